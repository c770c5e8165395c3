"""Stores that Python reads in other processes: those that travel, what is missing there, exit, Ctrl-C and fork."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import penstock
import pytest
from _child import HOWS, run_child
from _fault_servers import fault_server
from _python_stores import Own, memory_store, write_root
from _servers import moto
from penstock import InvalidArgumentError


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    write_root(folder)
    return folder


def test_a_dataset_travels_where_its_store_does(root):
    for dataset in (penstock.open("corpus", store=Own(root)), penstock.open("*.npy", store=Own(root))):
        again = pickle.loads(pickle.dumps(dataset))
        assert again.fingerprint == dataset.fingerprint
        assert (
            pickle.loads(pickle.dumps(again.windows(10)))[5]["token"].tolist()
            == dataset.windows(10)[5]["token"].tolist()
        )
    with pytest.raises(InvalidArgumentError, match="store=MemoryStore is not pickled"):
        pickle.dumps(penstock.open("corpus", store=memory_store(root)).windows(10))


def test_a_store_that_holds_secrets_does_not_travel(root, tmp_path):
    obstore = pytest.importorskip("obstore")
    with moto({"bucket": root}, tmp_path / "log") as url:
        keys = {"access_key_id": "id", "secret_access_key": "Pa55word", "region": "us-east-1", "endpoint": url}
        store = obstore.store.S3Store("bucket", client_options={"allow_http": True}, **keys)
        dataset = penstock.open("corpus", store=store)
        assert dataset.fingerprint == penstock.open(root / "corpus").fingerprint
        with pytest.raises(InvalidArgumentError, match="holds secrets"):
            pickle.dumps(dataset)
        assert "Pa55word" not in repr(dataset)


def run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize(("module", "url"), [("obstore", "gs://bucket/key"), ("fsspec", "memory://key")])
def test_what_is_not_installed_is_told(module, url):
    code = f"""
        import sys
        sys.modules[{module!r}] = None
        import penstock
        try:
            penstock.open({url!r})
        except penstock.InvalidArgumentError as error:
            assert "pip install 'penstock[" in str(error), error
        else:
            raise AssertionError
    """
    run(code)


@pytest.mark.parametrize("how", HOWS)
def test_a_process_ends_with_reads_under_way(root, how):
    for _ in range(3):
        run_child(how, "own", root)


@pytest.mark.parametrize("how", ["exit", "interrupt", "fork"])
def test_a_process_ends_with_reads_of_obstore_under_way(root, how):
    pytest.importorskip("obstore")
    with fault_server(root) as server:
        for _ in range(3):
            run_child(how, "obstore", server.address)


def test_threads_end_with_their_dataset(root):
    def ours() -> int:
        return sum(each.name == "penstock-store" and each.is_alive() for each in threading.enumerate())

    before = ours()
    dataset = penstock.open("corpus", store=Own(root))
    view = dataset.windows(64)
    assert view[0]
    assert ours() > before
    del dataset, view
    deadline = time.monotonic() + 60
    while ours() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert ours() <= before
