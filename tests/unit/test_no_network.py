import socket

import pytest
from pytest_socket import SocketBlockedError


def test_a_unit_test_cannot_open_a_connection() -> None:
    # The warning is an error too, whichever comes first.
    with pytest.raises((SocketBlockedError, UserWarning)):
        socket.create_connection(("127.0.0.1", 9), timeout=1)
