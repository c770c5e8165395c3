"""What stores that Python reads keep to themselves: headers, passwords in addresses and options, replies of servers."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _fault_servers import fault_server
from _python_stores import write_root
from _servers import nginx
from penstock import InvalidArgumentError, Storage
from penstock._places.stores.travel import check_travels

obstore = pytest.importorskip("obstore")
SECRET = "Pa55word"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    write_root(folder)
    return folder


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
        reload(tmp_path / "nginx")
        with penstock.Loader(view, 4, seed=1, reader="python") as loader, pytest.raises(penstock.IoError):
            next(loader)
        assert not plain.requests


def reload(folder: Path) -> None:
    """Lets an nginx read its configuration again."""
    os.kill(int((folder / "pid").read_text()), signal.SIGHUP)
    time.sleep(1)


@pytest.mark.parametrize(
    "url",
    [
        f"ftp://host/a?token={SECRET}",
        f"ftp://name:{SECRET}@host/a.npy",
        f"memory://host/a.npy?a=b&key={SECRET}",
        f"az://container/a.npy?sv=1&sig={SECRET}",
    ],
)
def test_addresses_that_would_show_secrets_are_refused(url):
    pytest.importorskip("fsspec")
    with pytest.raises(InvalidArgumentError, match=r"store=|holds no credentials") as error:
        penstock.open(url)
    assert SECRET not in "".join(traceback.format_exception(error.value))


def test_globs_with_question_marks_are_no_queries(root):
    filesystem = pytest.importorskip("fsspec").filesystem("memory")
    for part in ("x1", "x2"):
        filesystem.pipe_file(f"/globs/{part}/lang=en/0.npy", (root / "0.npy").read_bytes())
    assert penstock.open("memory://globs/x?/lang=en/?.npy").records == 40_000


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


def test_filesystems_without_secrets_travel(root):
    given = filesystem(client_kwargs={"headers": {}, "timeout": 5}, token="anon", auto_mkdir=True)
    given.pipe_file("/inside/0.npy", (root / "0.npy").read_bytes())
    dataset = penstock.open("inside/0.npy", store=given)
    assert pickle.loads(pickle.dumps(dataset)).fingerprint == dataset.fingerprint


def test_stores_of_obstore_travel_without_secrets_alone(root):
    make = obstore.store.S3Store
    with fault_server(root) as server:
        shutil.copytree(root / "corpus", root / "bucket" / "corpus", dirs_exist_ok=True)
        given = {"endpoint": server.address, "region": "us-east-1", "skip_signature": True}
        dataset = penstock.open("corpus", store=make("bucket", client_options={"allow_http": True}, **given))
        assert pickle.loads(pickle.dumps(dataset)).fingerprint == dataset.fingerprint
    for options in ({"proxy_url": f"http://me:{SECRET}@127.0.0.1:1"}, {"default_headers": {"X-Api-Key": SECRET}}):
        with pytest.raises(InvalidArgumentError, match="holds secrets"):
            check_travels(make("bucket", client_options=options, **given))


@pytest.mark.parametrize("status", [403, 500])
def test_of_what_a_server_says_its_status_and_code_are_shown(tmp_path, status):
    np.arange(1000, dtype="u2").tofile(tmp_path / "a.bin")
    body = f"<Error><Code>InvalidAccessKeyId</Code><AWSAccessKeyId>{SECRET}</AWSAccessKeyId></Error>".encode()
    with fault_server(tmp_path) as server:
        store = obstore.store.HTTPStore.from_url(
            server.address, client_options={"allow_http": True}, retry_config={"max_retries": 0}
        )
        view = penstock.open("a.bin", dtype="u2", store=store, storage=Storage(deadline=0.5)).windows(10)
        server.fault, server.body = (lambda path, number: str(status)), body
        with pytest.raises(penstock.IoError, match=rf"{status} [A-Z][A-Za-z ]+ \(InvalidAccessKeyId\)") as error:
            view[5]
        assert SECRET not in str(error.value)
