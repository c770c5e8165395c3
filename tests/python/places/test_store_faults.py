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
from _python_stores import Failing, Own, memory_store
from _servers import free_port
from penstock import NotFoundError, Storage

SECRET = "Pa55word"


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


def test_a_fault_that_stays_is_told_with_its_place_and_attempts_and_without_secrets(root):
    told = f"the disk http://name:{SECRET}@host/key?X-Signature={SECRET} is on {SECRET * 5}\nand so is the house"
    message = message_of(Failing(root, always(OSError(told))), penstock.IoError, deadline=0.5)
    words = (
        r"stream\.bin, bytes [\d,]+ to [\d,]+: no answer that will do in 0\.5 s and \d+ attempts?; the last: OSError:"
    )
    assert re.search(words, message)
    assert "house" not in message and SECRET not in message


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


def test_no_server_is_told_in_a_moment():
    pytest.importorskip("obstore")
    storage = Storage(endpoint=f"http://127.0.0.1:{free_port()}", anonymous=True, deadline=3600)
    with pytest.raises(penstock.IoError, match="no connection in 3 attempts"):
        penstock.open("gs://bucket/corpus", storage=storage)


def test_calls_that_never_return_are_left_at_the_deadline_also_where_they_hold_every_thread(root):
    release, hangs = threading.Event(), threading.Event()

    def hang(path: str, number: int) -> Any:
        if hangs.is_set() and path.endswith("stream.bin"):
            release.wait(600)
        return None

    view = penstock.open("corpus", store=Failing(root, hang), storage=Storage(connections=2, deadline=0.3)).windows(64)
    hangs.set()
    messages = []
    try:
        for _ in range(6):
            with pytest.raises(penstock.IoError) as error:
                view[5]
            messages.append(str(error.value))
    finally:
        release.set()
    assert "had not returned" in messages[0]
    assert "no thread was free to ask for it in 0.3 s: 3 calls of its store have not returned" in messages[-1]


def test_a_file_that_became_another_one_is_refused_at_once(root):
    obstore = pytest.importorskip("obstore")
    plain = (root / "0.npy").read_bytes()
    blank = plain[:128] + bytes(40_000)
    for changed, words in (
        (plain[:1000], "the file has 1,000 bytes, and 40,128 are expected"),
        (blank, r"0\.npy, bytes .* another one than before: its ETag was"),
    ):
        store = memory_store(root)
        view = penstock.open("0.npy", store=store, storage=Storage(deadline=3600)).windows(10)
        obstore.put(store, "0.npy", changed)
        with pytest.raises(penstock.CorruptionError, match=words):
            view[1000]
    store = memory_store(root)
    view = penstock.open("0.npy", store=store, storage=Storage(check_etag=False)).windows(10)
    obstore.put(store, "0.npy", blank)
    assert view[1000]["token"].tolist() == [0] * 10


@pytest.mark.parametrize("reader", ["http", "python"])
def test_another_etag_of_a_server_is_refused(root, reader):
    pytest.importorskip("obstore")
    with fault_server(root) as server:
        view = penstock.open(f"{server.address}/corpus", storage=Storage(deadline=3600)).windows(64)
        with penstock.Loader(view, 16, seed=1, reader=reader) as loader:
            next(loader)
            server.etag = '"two"'
            with pytest.raises(penstock.CorruptionError, match="another one than before: its ETag was"):
                for _ in range(100):
                    next(loader)
        free = penstock.open(f"{server.address}/a.bin", dtype="u2", storage=Storage(check_etag=False)).windows(64)
        server.etag = '"three"'
        assert len(next(penstock.Loader(free, 4, seed=1, reader=reader)).indices) == 4
