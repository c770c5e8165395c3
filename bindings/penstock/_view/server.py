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
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from penstock._base.errors import Error, InvalidArgumentError
from penstock._view import samples
from penstock._view.exhibit import Exhibit

_FILES = Path(__file__).parent
_TYPES = {
    "page.html": "text/html; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "charts.js": "text/javascript; charset=utf-8",
    "reader.js": "text/javascript; charset=utf-8",
}
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

    def __init__(self, exhibits: Sequence[Exhibit], port: int = 0) -> None:
        """Listens at once.

        Args:
            exhibits: what is shown.
            port: 0: any that is free.

        Raises:
            OSError: the port is taken.
        """
        self.exhibits = exhibits
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
            answer = _ANSWERS[name](self.server.exhibits, _Query(query)) if name in _ANSWERS else None
        except (InvalidArgumentError, IndexError) as error:
            self._say(HTTPStatus.BAD_REQUEST, str(error))
        except (Error, OSError, MemoryError, ModuleNotFoundError) as error:
            self._say(HTTPStatus.INTERNAL_SERVER_ERROR, str(error) or type(error).__name__)
        except Exception as error:  # the page shows it; the server goes on
            self._say(HTTPStatus.INTERNAL_SERVER_ERROR, f"unexpected {type(error).__name__}: {error}")
        else:
            if answer is None:
                self._say(HTTPStatus.NOT_FOUND, f"there is no {name!r:.80} here")
            else:
                self._json(HTTPStatus.OK, answer)

    def _say(self, status: HTTPStatus, words: str) -> None:
        self._json(status, {"error": words})

    def _json(self, status: HTTPStatus, value: Any) -> None:
        self._send(status, "application/json", json.dumps(value).encode())

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        with contextlib.suppress(OSError):  # the browser went on to another page
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            for header, text in _HEADERS.items():
                self.send_header(header, text)
            self.end_headers()
            self.wfile.write(body)


class _Query:
    """The arguments of a request."""

    def __init__(self, text: str) -> None:
        self._values = parse_qs(text, keep_blank_values=True)

    def text(self, name: str, otherwise: str) -> str:
        return self._values.get(name, [otherwise])[-1]

    def number(self, name: str, otherwise: int) -> int:
        text = self.text(name, str(otherwise)).strip().replace(",", "")
        if not (text.isascii() and text.isdecimal()) or len(text) > 20 or int(text) >= 1 << 64:
            raise InvalidArgumentError(f"{name} {text!r:.80}: must be a whole number from 0 to 2^64 - 1")
        return int(text)

    def has(self, name: str) -> bool:
        return name in self._values


def _exhibit(exhibits: Sequence[Exhibit], query: _Query) -> Exhibit:
    number = query.number("dataset", 0)
    if number >= len(exhibits):
        raise InvalidArgumentError(f"there is no dataset {number}: there are {len(exhibits)}")
    return exhibits[number]


def _datasets(exhibits: Sequence[Exhibit], query: _Query) -> Any:
    return [each.facts["path"] for each in exhibits]


def _facts(exhibits: Sequence[Exhibit], query: _Query) -> Any:
    return _exhibit(exhibits, query).facts


def _row(exhibits: Sequence[Exhibit], query: _Query) -> Any:
    place = next((each for each in ("position", "record") if query.has(each)), "index")
    return _exhibit(exhibits, query).row(
        query.text("kind", "window"),
        query.number("window", 256),
        {place: query.number(place, 0)},
        query.number("seed", 0),
        query.number("part", 0),
    )


_ANSWERS: dict[str, Callable[[Sequence[Exhibit], _Query], Any]] = {
    "datasets": _datasets,
    "facts": _facts,
    "row": _row,
    "lengths": lambda exhibits, query: samples.lengths(_exhibit(exhibits, query)),
    "tokens": lambda exhibits, query: samples.tokens(_exhibit(exhibits, query)),
}
