"""The address that the API listens on."""

import errno
import socket

from app.settings import SettingsError


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to the address; raises SettingsError, which names the variable to change."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise SettingsError(f"ASSAY_PORT: port {port} is taken; end what uses it or set another") from None
        raise SettingsError(f"ASSAY_HOST, ASSAY_PORT: can't listen there ({error.strerror})") from None
    return bound
