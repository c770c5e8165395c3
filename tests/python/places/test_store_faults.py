"""Faults of stores that Python reads: those that pass, and errors in words."""

from __future__ import annotations

import random
import re
import threading
from pathlib import Path
from typing import Any

import penstock
import pytest
from _batches import contents
from _fault_servers import fault_server
from _python_stores import Failing, Own, memory_filesystem, memory_store, write_root
from _servers import free_port
from penstock import InvalidArgumentError, NotFoundError, Storage


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    write_root(folder)
    return folder


def test_faults_that_pass_are_no_faults(root):
    expected = contents(penstock.Loader(penstock.open(root / "corpus").windows(64), 16, seed=1, epochs=1))
    store = Own(root)
    dataset = penstock.open("corpus", store=store)
    store.read = short_or_failing(root)  # type: ignore[method-assign]
    loader = penstock.Loader(dataset.windows(64), 16, seed=1, epochs=1)
    assert contents(loader) == expected
    assert loader.metrics().retries > 0


def short_or_failing(root: Path) -> Any:
    """read() of which one call in five raises, and of the others one buffer in ten is cut."""
    draw, lock, plain = random.Random(1), threading.Lock(), Own(root)

    def read(path: str, offsets: list[int], sizes: list[int]) -> list[Any]:
        with lock:
            fails, cuts = draw.random() < 0.2, [draw.random() < 0.1 for _ in sizes]
        if fails:
            raise OSError("it fails")
        found = plain.read(path, offsets, sizes)
        return [memoryview(each)[:-1] if cut else each for each, cut in zip(found, cuts, strict=True)]

    return read


def always(error: BaseException) -> Any:
    def fault(path: str, number: int) -> Any:
        if path.endswith("stream.bin"):
            raise error
        return None

    return fault


def message_of(store: Any, kind: type[Exception], **storage: Any) -> str:
    loader = penstock.Loader(penstock.open("corpus", store=store, storage=Storage(**storage)).windows(64), 4, seed=1)
    with pytest.raises(kind) as error:
        next(loader)
    assert error.value.__cause__ is None
    return str(error.value)


def test_a_fault_that_stays_is_told_with_its_place_and_attempts(root):
    store = Failing(root, always(OSError("the disk is on fire\nand so is the house")))
    message = message_of(store, penstock.IoError, deadline=1.0)
    words = (
        r"stream\.bin, bytes [\d,]+ to [\d,]+: no answer that will do in 1 s and \d+ attempts; the last: OSError: the"
    )
    assert re.search(words, message)
    assert "house" not in message


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (FileNotFoundError("gone"), NotFoundError, "no such file"),
        (PermissionError("no"), penstock.IoError, "access is refused: it was asked for with those of store="),
        (TypeError("a mistake"), penstock.IoError, "cannot be read: TypeError: a mistake"),
    ],
)
def test_what_will_not_pass_is_told_at_once(root, error, kind, words):
    store = Failing(root, always(error))
    assert words in message_of(store, kind, deadline=3600)


@pytest.mark.parametrize(
    ("given", "words"),
    [([], "0 buffers for"), (b"bytes", "not a list of buffers"), (["text"], "bytes-like"), (5, "cannot be read")],
)
def test_answers_that_are_none_are_refused(root, given, words):
    store = Own(root)
    dataset = penstock.open("0.npy", store=store)
    store.read = lambda path, offsets, sizes: given if not isinstance(given, list) else given * len(sizes)  # type: ignore[method-assign]
    with pytest.raises(penstock.IoError, match=words):
        dataset.windows(10)[0]


def test_a_file_of_another_size_is_refused_at_once(root):
    obstore = pytest.importorskip("obstore")
    store = memory_store(root)
    dataset = penstock.open("0.npy", store=store, storage=Storage(deadline=3600))
    obstore.put(store, "0.npy", (root / "0.npy").read_bytes()[:1000])
    with pytest.raises(penstock.CorruptionError, match="the file has 1,000 bytes, and 40,128 are expected"):
        dataset.windows(10)[1000]


def test_a_call_that_never_returns_is_left_at_the_deadline(root):
    release = threading.Event()

    def hang(path: str, number: int) -> Any:
        if path.endswith("stream.bin"):
            release.wait(600)
        return None

    try:
        assert "had not returned" in message_of(Failing(root, hang), penstock.IoError, deadline=1.0)
    finally:
        release.set()


def test_what_is_not_there_is_not_found(root):
    for store in (Own(root), memory_store(root), memory_filesystem(root)):
        with pytest.raises(NotFoundError):
            penstock.open("nothing", store=store)
        with pytest.raises(NotFoundError, match=r"none\.npy"):
            penstock.open("none.npy", store=store)


def test_no_server_is_told_in_a_moment():
    pytest.importorskip("obstore")
    storage = Storage(endpoint=f"http://127.0.0.1:{free_port()}", anonymous=True, deadline=3600)
    with pytest.raises(penstock.IoError, match="no connection in 3 attempts"):
        penstock.open("gs://bucket/corpus", storage=storage)


def test_secrets_are_in_no_message(root):
    secret = "Pa55word"
    error = OSError(f"GET http://name:{secret}@host/key?X-Signature={secret} and {'Pa55word' * 5}")
    assert secret not in message_of(Failing(root, always(error)), penstock.IoError, deadline=0.5)
    with pytest.raises(InvalidArgumentError, match="holds no credentials") as refusal:
        penstock.open(f"gs://id:{secret}@bucket/key")
    assert secret not in str(refusal.value)


def test_reads_end_though_more_calls_than_connections_never_return(root):
    release, hangs = threading.Event(), threading.Event()

    def hang(path: str, number: int) -> Any:
        if hangs.is_set() and path.endswith("stream.bin"):
            release.wait(600)
        return None

    view = penstock.open("corpus", store=Failing(root, hang), storage=Storage(connections=2, deadline=0.5)).windows(64)
    hangs.set()
    messages = []
    try:
        for _ in range(6):
            with pytest.raises(penstock.IoError) as error:
                view[5]
            messages.append(str(error.value))
    finally:
        release.set()
    assert "no thread was free to ask for it in 0.5 s: 3 calls of its store have not returned" in messages[-1]


def test_another_file_of_the_same_size_is_refused_by_its_etag(root):
    obstore = pytest.importorskip("obstore")
    changed = (root / "0.npy").read_bytes()[:128] + bytes(40_000)
    store = memory_store(root)
    view = penstock.open("0.npy", store=store, storage=Storage(deadline=3600)).windows(10)
    obstore.put(store, "0.npy", changed)
    with pytest.raises(penstock.CorruptionError, match=r"0\.npy, bytes .* another one than before: its ETag was"):
        view[1000]
    store = memory_store(root)
    view = penstock.open("0.npy", store=store, storage=Storage(check_etag=False)).windows(10)
    obstore.put(store, "0.npy", changed)
    assert view[1000]["token"].tolist() == [0] * 10


def test_another_etag_of_a_server_is_refused_through_python(root):
    pytest.importorskip("obstore")
    with fault_server(root) as server:
        view = penstock.open(f"{server.address}/corpus", storage=Storage(deadline=3600)).windows(64)
        with penstock.Loader(view, 16, seed=1, reader="python") as loader:
            next(loader)
            server.etag = '"two"'
            with pytest.raises(penstock.CorruptionError, match='its ETag was "one" and is "two"'):
                for _ in range(100):
                    next(loader)
