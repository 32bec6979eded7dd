import socket

import pytest
from pytest_socket import SocketConnectBlockedError


def test_the_network_is_refused():
    with pytest.raises(SocketConnectBlockedError):
        socket.create_connection(("192.0.2.1", 80), timeout=1)
