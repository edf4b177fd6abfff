"""Where the judge listens: it can be shut, as by a server that is down, and opened again on the same port."""

import asyncio
from collections.abc import Callable


class Door:
    """Listens on `port` (0: a free one) while open; its callers are refused while shut."""

    def __init__(self, protocol: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> None:
        self._protocol = protocol
        self._host = host
        self._server: asyncio.Server | None = None
        self.port = port

    async def open(self) -> None:
        """Listen, on the same port as before."""
        if self._server is None:
            self._server = await asyncio.get_running_loop().create_server(
                self._protocol, self._host, self.port, backlog=4096
            )
            self.port = self._server.sockets[0].getsockname()[1]

    def shut(self) -> None:
        """Refuse new connections; those that are open stay."""
        if self._server is not None:
            self._server.close()
            self._server = None
