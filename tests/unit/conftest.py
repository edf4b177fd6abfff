"""Unit tests reach no network: a socket that is not a local pair fails the test that opens it."""

import pytest
from pytest_socket import disable_socket


@pytest.fixture(autouse=True)
def no_network(socket_enabled: None) -> None:
    """Close the network for each test; pytest-socket's own fixture opens it again afterwards."""
    disable_socket(allow_unix_socket=True)
