"""Stores in other processes: what is missing there, exit, Ctrl-C and fork."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import threading
from typing import Any

import penstock
import pytest
from _child import run_child
from _fault_servers import fault_server
from _places import ACCESS, SECRET
from _python_stores import Own
from penstock import InvalidArgumentError

pytest.importorskip("obstore")


def test_a_store_that_holds_secrets_does_not_travel(root, bucket):
    obstore = pytest.importorskip("obstore")
    keys = {"access_key_id": "id", "secret_access_key": "Pa55word", "region": "us-east-1", "endpoint": bucket}
    store = obstore.store.S3Store("data", client_options={"allow_http": True}, **keys)
    dataset = penstock.open("corpus", store=store)
    assert dataset.fingerprint == penstock.open(root / "corpus").fingerprint
    with pytest.raises(InvalidArgumentError, match="holds secrets"):
        pickle.dumps(dataset)
    assert "Pa55word" not in repr(dataset)


def test_what_is_not_installed_is_told():
    code = """
import sys
for module, url in (("obstore", "gs://bucket/key"), ("fsspec", "memory://key")):
    sys.modules[module] = None
    import penstock
    try:
        penstock.open(url)
    except penstock.InvalidArgumentError as error:
        assert f"not installed: pip install {module}" in str(error), error
    else:
        raise AssertionError(module)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("hows", [["exit"], ["fork", "end of a child", "interrupt a view", "interrupt"]], ids=str)
@pytest.mark.parametrize("kind", ["own", "obstore", "s3"])
def test_a_process_goes_on_after_forks_and_ctrl_c_and_ends_with_reads_under_way(root, monkeypatch, kind, hows):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    with fault_server(root.parent if kind == "s3" else root) as server:
        run_child(hows, kind, root if kind == "own" else server.address)


def test_threads_end_with_their_dataset(root):
    def ours() -> list[Any]:
        return [each for each in threading.enumerate() if each.name == "penstock-store"]

    before = ours()
    view = penstock.open("corpus", store=Own(root)).windows(64)
    assert view[0]
    started = [each for each in ours() if each not in before]
    assert started
    del view
    gc.collect()
    for each in started:
        each.join(60)
    assert not any(each.is_alive() for each in started)
