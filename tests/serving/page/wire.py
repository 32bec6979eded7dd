"""A wire between the page and the service that can be cut."""

import socket
import threading
from contextlib import contextmanager, suppress


class Wire:
    """Passes everything on, both ways."""

    def __init__(self, port):
        self._port, self._ends = port, []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """Break every connection in the middle; new ones are taken."""
        ends, self._ends = self._ends, []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._server.close()
        self.cut()

    def _accept(self):
        with suppress(OSError):  # closed
            while True:
                near = self._server.accept()[0]
                far = socket.create_connection(("127.0.0.1", self._port))
                self._ends += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source, target):
        with suppress(OSError), source:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@contextmanager
def wire(address):
    """A wire to a service."""
    made = Wire(int(address.rpartition(":")[2]))
    try:
        yield made
    finally:
        made.close()
