"""One port each, served by a library or a server."""
