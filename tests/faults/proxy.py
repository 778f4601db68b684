"""A way to a database that breaks, or swallows what is sent, when it is told to."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

SETTLE_SECONDS = 0.3
COMMIT_ASKED = b"COMMIT\0\0"  # the text of a statement, and no types of parameters


class Proxy:
    """Passes bytes on, and cuts a connection at its next commit.

    Attributes:
        cut: ``before`` the commit reaches the database, ``after`` it did, or empty.
        swallows: Take all bytes and pass none on, to either side; ends of connections neither.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cut = ""
        self.swallows = False
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        """Accept nobody any more.

        The thread is waited for: one that still accepts takes connections of whoever has the
        number of this listener next.
        """
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._target))
                except OSError:  # the database is away
                    client.close()
                    continue
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if self.swallows:
                    continue
                is_cut = self.cut and COMMIT_ASKED in data
                if is_cut:  # before the commit is passed on, for its answer may come at once
                    source.shutdown(socket.SHUT_RDWR)
                if not is_cut or self.cut == "after":
                    target.sendall(data)
                if is_cut:
                    time.sleep(SETTLE_SECONDS)  # in which the database does what it was sent
                    break
        if self.swallows:
            return
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@contextmanager
def a_proxy(port: int) -> Iterator[Proxy]:
    """Yield a way to a port of this machine."""
    proxy = Proxy(port)
    try:
        yield proxy
    finally:
        proxy.close()
