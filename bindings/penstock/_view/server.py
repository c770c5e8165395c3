"""The server of `penstock view`: on 127.0.0.1 alone, for clients with the key of its address.

Other users of the machine can connect to the port, and pages of the web can make a browser ask it (by a name that they
point at 127.0.0.1), so each request must have the key in its path and name this server in its Host header.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import socketserver
import threading
from collections.abc import Generator, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from penstock._base.errors import Error, InvalidArgumentError
from penstock._view.answers import ANSWERS, STREAMS, Query, Shown
from penstock._view.exhibit import Exhibit

_FILES = Path(__file__).parent / "page"
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_TYPES = {each.name: f"{_KINDS[each.suffix]}; charset=utf-8" for each in _FILES.iterdir() if each.suffix in _KINDS}
_HEADERS = {
    # The page may load its own files and ask its own server, and nothing else: text of the data that became markup
    # by a mistake of ours would still not run.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_IDLE_SECONDS = 20.0  # that a connection may take to say what it wants


class ViewServer(socketserver.ThreadingTCPServer):
    """Serves datasets until `close`; each request on a thread of its own.

    Attributes:
        address: of the page, key included.
    """

    allow_reuse_address = True
    request_queue_size = 64
    daemon_threads = False  # a daemon that reads when the interpreter ends would take the process down

    def __init__(self, exhibits: Sequence[Exhibit], port: int = 0, mixture: tuple[str, Any] | None = None) -> None:
        """Listens at once.

        Args:
            exhibits: what is shown.
            port: 0: any that is free.
            mixture: name of its file, and the mixture whose sources the exhibits are, in their order.

        Raises:
            OSError: the port is taken.
        """
        self.shown = Shown(exhibits, mixture)
        self.closing = threading.Event()
        self.key = secrets.token_urlsafe(16)
        self._connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _Handler)
        self.port = int(self.server_address[1])
        self.address = f"http://127.0.0.1:{self.port}/{self.key}/"

    def get_request(self) -> tuple[socket.socket, Any]:
        """Notes the connection, so that `close` ends it."""
        connection, address = super().get_request()
        self._connections.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        """Forgets it, and wakes a thread that still reads of it, which Ctrl-C may leave behind."""
        self._connections.discard(request)
        with contextlib.suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)
        self.close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of connections that break."""

    def close(self) -> None:
        """Ends all connections and waits for what is read now."""
        self.closing.set()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(RuntimeError):  # of a thread that Ctrl-C met before it was started
            self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    server_version = "penstock"
    sys_version = ""
    timeout = _IDLE_SECONDS

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: the terminal stays the user's."""

    def do_GET(self) -> None:
        """The page, its files, or an answer as JSON."""
        parts = urlsplit(self.path)
        key, *rest = parts.path.removeprefix("/").split("/", 1)
        if self.headers.get("Host", "").lower() not in self._hosts():
            self._say(HTTPStatus.FORBIDDEN, "this server answers to 127.0.0.1 and localhost alone")
        elif not hmac.compare_digest(key.encode("utf-8", "replace"), self.server.key.encode()) or not rest:
            self._say(HTTPStatus.FORBIDDEN, "the address has no valid key: use the one that penstock view printed")
        elif rest[0].startswith("api/"):
            self._answer(rest[0].removeprefix("api/"), parts.query)
        else:
            self._file(rest[0] or "page.html")

    def _hosts(self) -> tuple[str, str]:
        return f"127.0.0.1:{self.server.port}", f"localhost:{self.server.port}"

    def _file(self, name: str) -> None:
        if name not in _TYPES:
            self._say(HTTPStatus.NOT_FOUND, f"there is no {name!r:.80} here")
            return
        self._send(HTTPStatus.OK, _TYPES[name], (_FILES / name).read_bytes())

    def _answer(self, name: str, query: str) -> None:
        try:
            if name in STREAMS:
                self._stream(STREAMS[name](self.server.shown, Query(query)), Query(query))
                return
            answer = ANSWERS[name](self.server.shown, Query(query)) if name in ANSWERS else None
        except Exception as error:  # the page shows it; the server goes on
            words = self.server.shown.after(error, Query(query))
            self._say(*((HTTPStatus.CONFLICT, words) if words else _refusal(error)))
        else:
            if answer is None:
                self._say(HTTPStatus.NOT_FOUND, f"there is no {name!r:.80} here")
            else:
                self._json(HTTPStatus.OK, answer)

    def _stream(self, found: Generator[dict[str, Any]], query: Query) -> None:
        """Lines of JSON as they come, until the browser goes on to something else."""
        with contextlib.suppress(OSError), contextlib.closing(found):
            self._head(HTTPStatus.OK, "application/x-ndjson", None)
            try:
                for each in found:
                    if self.server.closing.is_set():
                        return
                    self.wfile.write(json.dumps(each).encode() + b"\n")
                    self.wfile.flush()
            except ConnectionError:
                raise
            except Exception as error:  # in the middle of the answer
                words = self.server.shown.after(error, query) or _refusal(error)[1]
                self.wfile.write(json.dumps({"error": words}).encode() + b"\n")

    def _say(self, status: HTTPStatus, words: str) -> None:
        self._json(status, {"error": words})

    def _json(self, status: HTTPStatus, value: Any) -> None:
        self._send(status, "application/json", json.dumps(value).encode())

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        with contextlib.suppress(OSError):  # the browser went on to another page
            self._head(status, kind, len(body))
            self.wfile.write(body)

    def _head(self, status: HTTPStatus, kind: str, length: int | None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for header, text in _HEADERS.items():
            self.send_header(header, text)
        self.end_headers()


def _refusal(error: Exception) -> tuple[HTTPStatus, str]:
    """Status and words for what went wrong."""
    if isinstance(error, (InvalidArgumentError, IndexError)):
        return HTTPStatus.BAD_REQUEST, str(error)
    if isinstance(error, (Error, OSError, MemoryError, ModuleNotFoundError)):
        return HTTPStatus.INTERNAL_SERVER_ERROR, str(error) or type(error).__name__
    return HTTPStatus.INTERNAL_SERVER_ERROR, f"unexpected {type(error).__name__}: {error}"
