"""What stores that Python reads keep to themselves: headers, passwords in addresses and options, replies of servers."""

from __future__ import annotations

import http.client
import os
import pickle
import signal
import ssl
import time
from pathlib import Path
from typing import Any

import penstock
import pytest
from _fault_servers import fault_server
from _servers import nginx
from penstock import InvalidArgumentError, Storage
from penstock._places.stores.travel import check_travels

obstore = pytest.importorskip("obstore")
SECRET = "Pa55word"


def test_headers_are_sent_through_python_to_no_server(root):
    with fault_server(root) as other, fault_server(root) as server:
        storage = Storage(headers={"X-Api-Key": SECRET}, deadline=5)
        view = penstock.open(f"{server.address}/corpus", storage=storage).windows(64)
        server.fault, server.elsewhere = (lambda path, number: "redirect"), other.address
        with pytest.raises(
            InvalidArgumentError, match=r"'X-Api-Key'.*redirects.*natively alone: reader='http'"
        ) as error:
            penstock.Loader(view, 4, seed=1, reader="python")
        assert SECRET not in str(error.value)
        with penstock.Loader(view, 4, seed=1) as loader, pytest.raises(penstock.IoError, match="redirect"):
            next(loader)
        assert not other.requests
    with fault_server(root) as other, fault_server(root) as server:  # without headers it is followed
        view = penstock.open(f"{server.address}/corpus").windows(64)
        server.fault, server.elsewhere = (lambda path, number: "redirect"), other.address
        with penstock.Loader(view, 4, seed=1, reader="python") as loader:
            next(loader)
        assert other.requests


def test_no_redirect_leads_through_python_from_https_to_http(root, tmp_path):
    with fault_server(root) as plain, nginx(root, tmp_path / "nginx", tls=True) as address:
        storage = Storage(ca_file=str(tmp_path / "nginx" / "cert.pem"), deadline=2)
        view = penstock.open(f"{address}/corpus", storage=storage).windows(64)
        config = tmp_path / "nginx" / "nginx.conf"
        config.write_text(config.read_text().replace("location / {", f"location / {{ return 302 {plain.address}$uri;"))
        reload(tmp_path / "nginx", address)
        with penstock.Loader(view, 4, seed=1, reader="python") as loader, pytest.raises(penstock.IoError):
            next(loader)
        assert not plain.requests


def reload(folder: Path, address: str) -> None:
    """Lets an nginx read its configuration again, and waits until it answers by it."""
    os.kill(int((folder / "pid").read_text()), signal.SIGHUP)
    trusting = ssl.create_default_context(cafile=folder / "cert.pem")
    status, end = 200, time.monotonic() + 30
    while status != 302 and time.monotonic() < end:
        connection = http.client.HTTPSConnection(address.removeprefix("https://"), context=trusting)
        connection.request("GET", "/corpus/dataset.json")
        status = connection.getresponse().status
        connection.close()


def filesystem(**options: Any) -> Any:
    return pytest.importorskip("fsspec").filesystem("memory", skip_instance_cache=True, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"headers": {"Authorization": SECRET}},
        {"client_kwargs": {"headers": {"X-Api-Key": SECRET}}},
        {"client_kwargs": {"proxy": f"http://me:{SECRET}@proxy:80"}},
        {"target_options": {"inner": [{"password": SECRET}]}},
        {"token": SECRET},
    ],
    ids=str,
)
def test_filesystems_with_secrets_inside_do_not_travel(root, options):
    given = filesystem(**options)
    given.pipe_file("/inside/0.npy", (root / "0.npy").read_bytes())
    dataset = penstock.open("inside/0.npy", store=given)
    with pytest.raises(InvalidArgumentError, match="holds secrets") as error:
        pickle.dumps(dataset)
    assert SECRET not in str(error.value)


def test_stores_without_secrets_travel_and_those_of_obstore_with_them_do_not(root):
    given = filesystem(client_kwargs={"headers": {}, "timeout": 5}, token="anon", auto_mkdir=True)
    given.pipe_file("/inside/0.npy", (root / "0.npy").read_bytes())
    with fault_server(root.parent) as server:
        make, options = obstore.store.S3Store, {"endpoint": server.address, "region": "us-east-1"}
        options["skip_signature"] = True
        store = make("data", client_options={"allow_http": True}, **options)
        for dataset in (penstock.open("corpus", store=store), penstock.open("inside/0.npy", store=given)):
            assert pickle.loads(pickle.dumps(dataset)).fingerprint == dataset.fingerprint
    for secrets in ({"proxy_url": f"http://me:{SECRET}@127.0.0.1:1"}, {"default_headers": {"X-Api-Key": SECRET}}):
        with pytest.raises(InvalidArgumentError, match="holds secrets"):
            check_travels(make("data", client_options=secrets, **options))


@pytest.mark.parametrize("status", [403, 500])
def test_of_what_a_server_says_its_status_and_code_are_shown(root, status):
    body = f"<Error><Code>InvalidAccessKeyId</Code><AWSAccessKeyId>{SECRET}</AWSAccessKeyId></Error>".encode()
    with fault_server(root) as server:
        store = obstore.store.HTTPStore.from_url(
            server.address, client_options={"allow_http": True}, retry_config={"max_retries": 0}
        )
        view = penstock.open("a.bin", dtype="u2", store=store, storage=Storage(deadline=0.5)).windows(10)
        server.fault, server.body = (lambda path, number: str(status)), body
        with pytest.raises(penstock.IoError, match=rf"{status} [A-Z][A-Za-z ]+ \(InvalidAccessKeyId\)") as error:
            view[5]
        assert SECRET not in str(error.value)
