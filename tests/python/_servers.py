"""Servers of HTTP on loopback: nginx as people run it, and one of our own that fails on purpose."""

import contextlib
import gzip
import hashlib
import hmac
import http.client
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

import numpy as np
import penstock
import pytest

LUA = Path("/usr/lib/nginx/modules/ngx_http_lua_module.so")
NDK = LUA.with_name("ndk_http_module.so")


def write_corpus(folder: Path, rng: np.random.Generator, *, shards: int, documents: int) -> None:
    """folder/corpus of so many shards, of so many documents each with an entry, combined from folder/part0, …"""
    parts = [folder / f"part{number}" for number in range(shards)]
    for number, part in enumerate(parts):
        with penstock.Writer(part, fields={"token": "u2"}, metadata="json") as writer:
            for document in range(documents):
                tokens = rng.integers(0, 60_000, int(rng.integers(1, 300))).astype("u2")
                writer.append(token=tokens, metadata={"name": f"{number}/{document}"})
    penstock.combine(parts, folder / "corpus")


def without_credentials(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """For as long as the test: none of this machine's for buckets; `folder` is where boto3 looks for its files."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def nginx(root: Path, folder: Path, *, delay: float = 0.0, tls: bool = False) -> Iterator[str]:
    """The address of an nginx that serves `root`; what it writes goes to `folder`; each answer waits `delay` seconds.

    With `tls` its certificate is folder/cert.pem, of nobody's authority.
    """
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    if not Path(program).exists():
        pytest.skip("needs nginx (Debian: nginx-light)")
    if delay and not LUA.exists():
        pytest.skip("needs nginx's Lua (Debian: libnginx-mod-http-lua)")
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    modules = f"load_module {NDK};\nload_module {LUA};\n" if delay else ""
    wait = f"access_by_lua_block {{ ngx.sleep({delay}) }}" if delay else ""
    listen, scheme = f"listen 127.0.0.1:{port};", "http"
    if tls:
        name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
        key = ["-newkey", "rsa:2048", "-nodes", "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
        subprocess.run(["openssl", "req", "-x509", "-days", "2", *key, *name], check=True, capture_output=True)
        listen = (
            f"listen 127.0.0.1:{port} ssl;\nssl_certificate {folder}/cert.pem;\nssl_certificate_key {folder}/key.pem;"
        )
        scheme = "https"
    user = "user root; " if os.geteuid() == 0 else ""  # its own may not look into a folder of ours
    log = folder / "access.log"
    (folder / "nginx.conf").write_text(
        f"""{modules}{user}daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  log_format ranges '$request_method $uri $http_range $status $body_bytes_sent';
  access_log {log} ranges; sendfile on; tcp_nodelay on; keepalive_requests 1000000;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ {listen} root {root}; location / {{ {wait} }} }}
}}"""
    )
    server = subprocess.Popen(
        [program, "-c", str(folder / "nginx.conf"), "-p", str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(port, server)
        yield f"{scheme}://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(20)


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    """Until it answers."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise AssertionError("the server did not start")


@contextlib.contextmanager
def moto(buckets: dict[str, Path], log: Path) -> Iterator[str]:
    """The address of a moto that holds the files of a folder as each bucket. It looks at no signature."""
    boto3 = pytest.importorskip("boto3")
    program = Path(sys.executable).with_name("moto_server")
    if not program.exists():
        pytest.skip("needs moto[server]")
    port = free_port()
    with log.open("w") as out:
        command = [sys.executable, program, "-p", str(port)]
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        wait_for(port, server)
        address = f"http://127.0.0.1:{port}"
        keys = {"aws_access_key_id": "access", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
        client = boto3.client("s3", endpoint_url=address, **keys)
        for bucket, folder in buckets.items():
            client.create_bucket(Bucket=bucket)
            for file in filter(Path.is_file, folder.rglob("*")):
                client.upload_file(str(file), bucket, str(file.relative_to(folder)))
        yield address
    finally:
        server.terminate()
        server.wait(20)


class FaultServer(ThreadingHTTPServer):
    """Serves the files of a folder by ranges, but for what `fault(path, number)` names: one of FAULTS, or None.

    `number` counts the requests of this server from 0. `requests` is what was asked: (path, Range or None, headers).
    With `keys`, {access key: (secret, token or None)}, requests are signed in their addresses, as Amazon describes
    (Signature Version 4, "Authenticating Requests: Using Query Parameters"), and refused otherwise.
    """

    daemon_threads = False  # so that they are waited for, and leave no connection behind
    request_queue_size = 128

    def __init__(self, root: Path, fault: Callable[[str, int], str | None]) -> None:
        self.root, self.fault = root, fault
        self.requests: list[tuple[str, str | None, dict[str, str]]] = []
        self.lock = threading.Lock()
        self.connections: set[socket.socket] = set()
        self.elsewhere = ""  # where redirects lead
        self.keys: dict[str, tuple[str, str | None]] = {}
        super().__init__(("127.0.0.1", 0), _FaultHandler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

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

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients hang up on faults


@contextlib.contextmanager
def fault_server(
    root: Path, fault: Callable[[str, int], str | None] = lambda path, number: None
) -> Iterator[FaultServer]:
    server = FaultServer(root, fault)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.hang_up()
        server.server_close()
        thread.join(20)


FAULTS = (
    "503", "429", "500", "408", "reset", "cut", "closed", "200", "range", "long", "gzip", "no range",
)  # fmt: skip


def at_random(share: float, seed: int = 0, faults: tuple[str, ...] = FAULTS) -> Callable[[str, int], str | None]:
    """Each request fails with this probability, by one of `faults`."""
    draw = random.Random(seed)
    return lambda path, number: draw.choice(faults) if draw.random() < share else None


class _FaultHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FaultServer

    def log_message(self, *arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        with self.server.lock:
            number = len(self.server.requests)
            self.server.requests.append((self.path, asked, dict(self.headers)))
            fault = self.server.fault(self.path, number)
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
                return self.empty(416, {"Content-Range": f"bytes */{len(data)}"})
        body = data[begin:end]
        headers = {"ETag": '"one"'}
        if asked:
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(data)}"
        status = 206 if asked else 200
        if fault is None:
            return self.send(status, headers, body)
        self.fail(fault, status, headers, body, data)
        return None

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
        elif fault.isdigit() and fault != "200":
            self.empty(int(fault))
        elif fault == "200":
            self.send(200, {"ETag": headers["ETag"]}, data)
        elif fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.close_connection = True
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
        elif fault == "region":
            self.empty(301, {"x-amz-bucket-region": "eu-west-9"})
        elif fault == "redirect":
            self.empty(302, {"Location": self.server.elsewhere + self.path})
        else:
            raise AssertionError(fault)

    def empty(self, status: int, headers: dict[str, str] | None = None) -> None:
        self.send(status, headers or {}, b"")

    def send(self, status: int, headers: dict[str, str], body: bytes, length: int | None = -1) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if length is None:
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(body) if length < 0 else length))
        self.end_headers()
        self.wfile.write(body)


class FaultProxy(ThreadingHTTPServer):
    """Hands requests on to another server, but for what `fault(method, path, number)` names: "503", another status
    (with all that a careless server tells of the request), "reset", "blind" (handed on without its conditions), "lost"
    (handed on, and no answer), or None. It may wait.

    `number` counts the requests of this proxy from 0; `requests` is what was asked: (method, path).
    """

    daemon_threads = True  # one may wait for ever
    block_on_close = False
    request_queue_size = 128

    def __init__(self, target: str, fault: Callable[[str, str, int], str | None]) -> None:
        self.target, self.fault = target.removeprefix("http://"), fault
        self.requests: list[tuple[str, str]] = []
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), ProxyHandler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients hang up on faults


@contextlib.contextmanager
def fault_proxy(target: str, fault: Callable[[str, str, int], str | None]) -> Iterator[FaultProxy]:
    server = FaultProxy(target, fault)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(20)


class ProxyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    keeps_host = True  # signatures are of it
    server: FaultProxy

    def log_message(self, *arguments: Any) -> None:
        pass

    def hand_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.server.lock:
            number = len(self.server.requests)
            self.server.requests.append((self.command, self.path))
        fault = self.server.fault(self.command, self.path, number)
        if fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.close_connection = True
            return
        if fault == "503":
            self.answer(503, {"Retry-After": "0"}, b"")
            return
        if fault is not None and fault.isdigit():
            told = (
                f"<Error><Code>Refused</Code><Message>{self.path} {self.headers.get('Authorization')}</Message></Error>"
            )
            self.answer(int(fault), {}, told.encode())
            return
        headers = {name: value for name, value in self.headers.items() if self.keeps_host or name.lower() != "host"}
        if fault == "blind":
            headers = {
                name: value for name, value in headers.items() if name.lower() not in ("if-match", "if-none-match")
            }
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
        dropped = ("connection", "transfer-encoding", "date", "server")
        kept = {name: value for name, value in reply.getheaders() if name.lower() not in dropped}
        self.answer(reply.status, kept, data)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = hand_on

    def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() != "content-length" or self.command == "HEAD":
                self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
