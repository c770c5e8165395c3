"""Servers of HTTP on loopback that fail on purpose: one of files, and one between a client and another server."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import hmac
import http.client
import random
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote


class _Faulty(ThreadingHTTPServer):
    """A server that does on purpose what servers do by accident; `requests` is what it was asked for."""

    request_queue_size = 128

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self.requests: list[Any] = []
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def count(self, request: Any) -> int:
        """Takes note of a request and returns how many there were before."""
        with self.lock:
            self.requests.append(request)
            return len(self.requests) - 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients hang up on faults

    def hang_up(self) -> None:
        """Ends all connections, whatever is under way."""

    @contextlib.contextmanager
    def running(self) -> Iterator[Any]:
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.shutdown()
            self.hang_up()
            self.server_close()
            thread.join(20)


class _FaultyHandler(BaseHTTPRequestHandler):
    """What both servers answer with."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *arguments: Any) -> None:
        pass

    def reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.close_connection = True

    def send(self, status: int, headers: dict[str, str], body: bytes, length: int | None = -1) -> None:
        """`length` is what is said of the body, None for nothing; by default what it has."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if length is None:
            self.send_header("Connection", "close")
        elif "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body) if length < 0 else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class FaultServer(_Faulty):
    """Serves the files of a folder by ranges, but for what `fault(path, number)` names: one of FAULTS, or None.

    `number` counts the requests of this server from 0. `requests` is what was asked: (path, Range or None, headers).
    With `keys`, {access key: (secret, token or None)}, requests are signed in their addresses, as Amazon describes
    (Signature Version 4, "Authenticating Requests: Using Query Parameters"), and refused otherwise.
    """

    daemon_threads = False  # so that they are waited for, and leave no connection behind

    def __init__(self, root: Path, fault: Callable[[str, int], str | None]) -> None:
        self.root, self.fault = root, fault
        self.connections: set[socket.socket] = set()
        self.elsewhere = ""  # where redirects lead
        self.body = b""  # of replies that are a status and no more
        self.keys: dict[str, tuple[str, str | None]] = {}
        self.etag = '"one"'  # of all files
        self.hold = 0.0  # seconds before the refusal "held"
        super().__init__(_FaultHandler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self.lock:
            self.connections.add(request)
        super().process_request(request, client_address)

    def hang_up(self) -> None:
        """Ends all connections, whatever is under way."""
        with self.lock:
            for connection in self.connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        with self.lock:
            self.connections.discard(request)
        self.close_request(request)  # without a farewell, so that those who do not linger reset


def fault_server(
    root: Path, fault: Callable[[str, int], str | None] = lambda path, number: None
) -> contextlib.AbstractContextManager[FaultServer]:
    return FaultServer(root, fault).running()


FAULTS = (
    "503", "429", "500", "408", "reset", "cut", "closed", "200", "range", "long", "gzip", "no range",
)  # fmt: skip


def at_random(share: float, seed: int = 0, faults: tuple[str, ...] = FAULTS) -> Callable[[str, int], str | None]:
    """Each request fails with this probability, by one of `faults`."""
    draw = random.Random(seed)
    return lambda path, number: draw.choice(faults) if draw.random() < share else None


class _FaultHandler(_FaultyHandler):
    server: FaultServer

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        number = self.server.count((self.path, asked, dict(self.headers)))
        with self.server.lock:
            fault = self.server.fault(self.path, number)
        if fault == "region":
            return self.empty(301, {"x-amz-bucket-region": "eu-west-9"})
        if fault == "signed for another region":
            body = b"<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-9</Region></Error>"
            return self.send(400, {}, body)
        if self.server.keys and not self.is_signed():
            return self.empty(403)
        file = self.server.root / unquote(self.path.partition("?")[0]).lstrip("/")
        if not file.is_file():
            return self.empty(404)
        data = file.read_bytes()
        begin, end = 0, len(data)
        if asked:
            first, last = re.fullmatch(r"bytes=(\d+)-(\d+)", asked).groups()
            begin, end = int(first), min(int(last) + 1, len(data))
            if begin >= len(data):
                return self.empty(416, {} if fault == "416" else {"Content-Range": f"bytes */{len(data)}"})
        body = data[begin:end]
        headers = {"ETag": self.server.etag}
        if asked:
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(data)}"
        status = 206 if asked else 200
        if fault is None:
            return self.send(status, headers, body)
        self.fail(fault, status, headers, body, data)
        return None

    do_HEAD = do_GET

    def is_signed(self) -> bool:
        path, _, query = self.path.partition("?")
        given = dict(parse_qsl(query, keep_blank_values=True))
        if given.get("X-Amz-Algorithm") != "AWS4-HMAC-SHA256":
            return False
        signature = given.pop("X-Amz-Signature")
        access, day, region, service, end = given["X-Amz-Credential"].split("/")
        secret, token = self.server.keys.get(access, ("", None))
        begins = datetime.strptime(given["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        age = (datetime.now(UTC) - begins).total_seconds()
        if not secret or given.get("X-Amz-Security-Token") != token or not -60 < age <= float(given["X-Amz-Expires"]):
            return False
        canonical_query = "&".join(f"{quote(k, safe='-_.~')}={quote(v, safe='-_.~')}" for k, v in sorted(given.items()))
        names = given["X-Amz-SignedHeaders"].split(";")
        headers = "".join(f"{name}:{self.headers[name].strip()}\n" for name in names)
        asked = "\n".join(("GET", path, canonical_query, headers, ";".join(names), "UNSIGNED-PAYLOAD"))
        scope = f"{day}/{region}/{service}/{end}"
        text = "\n".join(("AWS4-HMAC-SHA256", given["X-Amz-Date"], scope, hashlib.sha256(asked.encode()).hexdigest()))
        key = f"AWS4{secret}".encode()
        for part in (day, region, service, end):
            key = hmac.digest(key, part.encode(), "sha256")
        return hmac.compare_digest(signature, hmac.digest(key, text.encode(), "sha256").hex())

    def fail(self, fault: str, status: int, headers: dict[str, str], body: bytes, data: bytes) -> None:
        if fault in ("503", "429"):
            self.empty(int(fault), {"Retry-After": "0"})
        elif fault == "held":
            time.sleep(self.server.hold)
            self.empty(503, {"Retry-After": "0"})
        elif fault == "later":
            self.empty(503, {"Retry-After": "2"})
        elif fault.isdigit() and fault != "200":
            self.send(int(fault), {}, self.server.body)
        elif fault == "200":
            self.send(200, {"ETag": headers["ETag"]}, data)
        elif fault == "reset":
            self.reset()
        elif fault == "closed":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif fault == "cut":
            self.send(status, headers, body[: len(body) // 2], length=len(body))
            self.close_connection = True
        elif fault == "range":
            self.send(status, {**headers, "Content-Range": f"bytes 1-{len(body)}/{len(data) + 1}"}, body[::-1])
        elif fault == "no range":
            self.send(206, {"ETag": headers["ETag"]}, body[::-1])
        elif fault == "long":
            self.send(status, headers, body + b"more", length=None)
            self.close_connection = True
        elif fault == "gzip":
            self.send(status, {**headers, "Content-Encoding": "gzip"}, gzip.compress(body))
        elif fault == "etag":
            self.send(status, {**headers, "ETag": '"two"'}, body)
        elif fault == "slow":
            self.send(status, headers, b"", length=len(body))
            for byte in body:
                time.sleep(1)
                self.wfile.write(bytes([byte]))
        elif fault == "redirect":
            self.empty(302, {"Location": self.server.elsewhere + self.path})
        else:
            raise AssertionError(fault)

    def empty(self, status: int, headers: dict[str, str] | None = None) -> None:
        self.send(status, headers or {}, b"")


REFUSALS = {
    "region": (301, {"x-amz-bucket-region": "eu-west-9"}, "<Code>PermanentRedirect</Code>"),
    "malformed": (400, {}, "<Code>AuthorizationHeaderMalformed</Code><Region>eu-west-9</Region>"),
    "no upload": (404, {}, "<Code>NoSuchUpload</Code>"),
}


class FaultProxy(_Faulty):
    """Hands requests on to another server, but for what `fault(method, path, number)` names: "503", another status
    (with all that a careless server tells of the request), "reset", "blind" (handed on without its conditions), "lost"
    (handed on, and no answer), "region" and "malformed" (Amazon's two answers where a bucket lies in another region),
    "no upload" (its parts are not there any more), or None. It may wait.

    `number` counts the requests of this proxy from 0; `requests` is what was asked: (method, path).
    """

    daemon_threads = True  # one may wait for ever
    block_on_close = False

    def __init__(self, target: str, fault: Callable[[str, str, int], str | None]) -> None:
        self.target, self.fault = target.removeprefix("http://"), fault
        super().__init__(ProxyHandler)


def fault_proxy(
    target: str, fault: Callable[[str, str, int], str | None]
) -> contextlib.AbstractContextManager[FaultProxy]:
    return FaultProxy(target, fault).running()


class ProxyHandler(_FaultyHandler):
    server: FaultProxy

    def hand_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        number = self.server.count((self.command, self.path))
        fault = self.server.fault(self.command, self.path, number)
        if fault == "reset":
            self.reset()
            return
        if fault == "503":
            self.send(503, {"Retry-After": "0"}, b"")
            return
        if fault is not None and fault.isdigit():
            told = (
                f"<Error><Code>Refused</Code><Message>{self.path} {self.headers.get('Authorization')}</Message></Error>"
            )
            self.send(int(fault), {}, told.encode())
            return
        if fault in REFUSALS:
            status, headers, body = REFUSALS[fault]
            self.send(status, headers, f"<Error>{body}</Error>".encode())
            return
        withheld = ["host"]  # which is the other server's own
        if fault == "blind":
            withheld += ["if-match", "if-none-match"]
        headers = {name: value for name, value in self.headers.items() if name.lower() not in withheld}
        connection = http.client.HTTPConnection(self.server.target, timeout=60)
        try:
            connection.request(self.command, self.path, body, headers)
            reply = connection.getresponse()
            data = reply.read()
        finally:
            connection.close()
        if fault == "lost":
            self.close_connection = True
            return
        dropped = ["connection", "transfer-encoding", "date", "server"]
        if self.command != "HEAD":  # of which it says what a GET would give
            dropped.append("content-length")
        kept = {name: value for name, value in reply.getheaders() if name.lower() not in dropped}
        self.send(reply.status, kept, data)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = hand_on
