"""A server of HTTP on sockets of its own that tells lies: what goes over the wire is what a lie writes there."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

from servers.objects import Answer, Objects, Request

Tell = Callable[["Wire", Request, Answer], None]
_LINGER = b"\1\0\0\0\0\0\0\0"  # on, for 0 seconds: closing resets


class Wire:
    """One connection, as a lie sees it.

    Attributes:
        is_over: the connection ends after this reply.
    """

    def __init__(self, server: LyingServer, connection: socket.socket) -> None:
        self.server, self._connection = server, connection
        self.is_over = False

    def write(self, data: bytes) -> None:
        self._connection.sendall(data)

    def wait(self, seconds: float) -> bool:
        """False: the server ends, or the client has left."""
        if self.server.is_closing.wait(seconds):
            return False
        with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError, ValueError):
            if not self._connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                return False
        return True

    def reset(self) -> None:
        """The client sees ECONNRESET."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
        self.is_over = True

    def end(self) -> None:
        """The client sees the end of what was sent."""
        self.is_over = True

    def reply(self, answer: Answer, *, cut: int | None = None) -> None:
        """An answer as it stands; `cut`: only so many of its bytes."""
        self.write(wire_bytes(answer)[:cut])


def wire_bytes(answer: Answer, *, length: bool = True) -> bytes:
    """A reply with its header; `length`: and Content-Length, where the headers have none."""
    lines = [f"HTTP/1.1 {answer.status} Told"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    names = {name.lower() for name in answer.headers}
    if length and "content-length" not in names and answer.status not in (204, 304):
        lines.append(f"Content-Length: {len(answer.body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + answer.body


class LyingServer:
    """Serves `objects`, but for what `lie(request)` names: what writes the reply in the place of the honest one.

    Attributes:
        requests: all that came.
        told: how often a lie was told.
    """

    def __init__(self, objects: Objects, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self.objects, self._tls = objects, tls
        self.lie: Callable[[Request], Tell | None] = lambda request: None
        self.requests: list[Request] = []
        self.told = 0
        self.is_closing = threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server((host, 0), backlog=256)
        self.port = self._listener.getsockname()[1]
        self.address = f"{'https' if tls else 'http'}://{host}:{self.port}"

    @contextlib.contextmanager
    def running(self) -> Iterator[LyingServer]:
        thread = threading.Thread(target=self._accept, name="liar", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.is_closing.set()
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self.hang_up()
            thread.join(20)

    @property
    def connections(self) -> int:
        """How many are open."""
        with self._lock:
            return len(self._open)

    def hang_up(self) -> None:
        with self._lock:
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self.is_closing.is_set():
            try:
                connection = self._listener.accept()[0]
            except OSError:
                return
            connection.settimeout(60)
            with self._lock:
                self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), name="liar", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._tls is not None:
                with self._lock:
                    self._open.discard(connection)  # its descriptor is the other's from now on
                connection = self._tls.wrap_socket(connection, server_side=True)
                with self._lock:
                    self._open.add(connection)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            wire = Wire(self, connection)
            with connection.makefile("rb") as file:
                while not wire.is_over and (request := self._read(file)) is not None:
                    self._answer(wire, request)
        except (OSError, ValueError):
            pass  # a client that left
        finally:
            connection.close()
            with self._lock:
                self._open.discard(connection)

    def _read(self, file: Any) -> Request | None:
        line = file.readline().decode("latin-1").split()
        if len(line) != 3:
            return None
        headers = {}
        while (header := file.readline().decode("latin-1").strip()) != "":
            name, _, value = header.partition(":")
            headers[name.lower()] = value.strip()
        body = file.read(int(headers.get("content-length", "0")))
        with self._lock:
            request = Request(line[0], line[1], headers, body, len(self.requests))
            self.requests.append(request)
        return request

    def _answer(self, wire: Wire, request: Request) -> None:
        with self._lock:
            tell = self.lie(request)
            self.told += tell is not None
        if request.method == "HEAD":
            answer = self.objects.answer(request)
            answer.headers["Content-Length"] = str(len(answer.body))
            answer.body = b""
        elif tell is not None and getattr(tell, "does_nothing", False):
            answer = Answer(200, {"ETag": '"0"'})
        else:
            answer = self.objects.answer(request)
        if tell is None:
            wire.reply(answer)
        else:
            tell(wire, request, answer)
