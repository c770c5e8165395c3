"""Servers on loopback as people run them: nginx, moto, fake-gcs-server; and what they serve."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

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
def nginx(root: Path, folder: Path, *, delay: float = 0.0, tls: bool = False, elsewhere: str = "") -> Iterator[str]:
    """The address of an nginx that serves `root`; what it writes goes to `folder`; each answer waits `delay` seconds.

    With `tls` its certificate is folder/cert.pem, of nobody's authority. With `elsewhere` it answers with redirects.
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
    if elsewhere:
        wait = f"return 302 {elsewhere}$request_uri;"
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
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise AssertionError("the server did not start")


def files_of(root: Path) -> dict[str, bytes]:
    """All files below a folder, by their paths in it."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def permit(moto_address: str, user: str, actions: list[str]) -> dict[str, str]:
    """From now on this moto looks at signatures and rights. Returns the keys of a user who may do `actions` alone."""
    boto3 = pytest.importorskip("boto3")
    keys = {"aws_access_key_id": "access", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    client = boto3.client("iam", endpoint_url=moto_address, **keys)
    allowed = {"Effect": "Allow", "Action": actions, "Resource": "*"}
    policy = {"Version": "2012-10-17", "Statement": [allowed]}
    client.create_user(UserName=user)
    client.put_user_policy(UserName=user, PolicyName="all", PolicyDocument=json.dumps(policy))
    made = client.create_access_key(UserName=user)["AccessKey"]
    command = urllib.request.Request(
        f"{moto_address}/moto-api/reset-auth", b"0", {"Content-Type": "text/plain"}, method="POST"
    )
    urllib.request.urlopen(command, timeout=20).close()
    return {"access_key_id": made["AccessKeyId"], "secret_access_key": made["SecretAccessKey"]}


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
