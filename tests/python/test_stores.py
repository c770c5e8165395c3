"""Datasets that Python reads: stores of obstore, filesystems of fsspec, objects of one's own; faults, exit, fork."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import re
import socket
import subprocess
import sys
import textwrap
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _google import google
from _servers import fault_server, free_port
from penstock import InvalidArgumentError, NotFoundError, Storage


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset of three shards, and token files."""
    folder = tmp_path_factory.mktemp("root")
    rng = np.random.default_rng(0)
    for number in range(3):
        with penstock.Writer(folder / f"part{number}", fields={"token": "u2"}, metadata="json") as writer:
            for document in range(100):
                tokens = rng.integers(0, 60_000, int(rng.integers(1, 300))).astype("u2")
                writer.append(token=tokens, metadata={"name": f"{number}/{document}"})
    penstock.combine([folder / f"part{number}" for number in range(3)], folder / "corpus")
    for number in range(3):
        np.save(folder / f"{number}.npy", rng.integers(0, 60_000, 20_000).astype("u2"))
    return folder


def files_of(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


class Own:
    """A store of a user's: files of a folder, told by what is done with them."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)

    def size(self, path: str) -> int:
        return (Path(self.root) / path).stat().st_size

    def list(self, prefix: str) -> list[Any]:
        found = (str(each.relative_to(self.root)) for each in Path(self.root).rglob("*") if each.is_file())
        return [each for each in found if each.startswith(prefix)]

    def read(self, path: str, offsets: list[int], sizes: list[int]) -> list[Any]:
        with (Path(self.root) / path).open("rb") as file:
            return [os.pread(file.fileno(), size, offset) for offset, size in zip(offsets, sizes, strict=True)]


class Failing(Own):
    """Its own files, but for what `fault(path, number of the call)` raises or returns instead."""

    def __init__(self, root: Path, fault: Any) -> None:
        super().__init__(root)
        self.fault, self.calls, self.lock = fault, 0, threading.Lock()

    def read(self, path: str, offsets: list[int], sizes: list[int]) -> list[Any]:
        with self.lock:
            self.calls += 1
            number = self.calls
        found = self.fault(path, number)
        return super().read(path, offsets, sizes) if found is None else found


def memory_store(root: Path) -> Any:
    obstore = pytest.importorskip("obstore")
    store = obstore.store.MemoryStore()
    for key, content in files_of(root).items():
        obstore.put(store, key, content)
    return store


def memory_filesystem(root: Path) -> Any:
    filesystem = pytest.importorskip("fsspec").filesystem("memory")
    for key, content in files_of(root).items():
        filesystem.pipe_file(f"/{root.name}/{key}", content)
    return filesystem


@contextlib.contextmanager
def moto(root: Path, log: Path) -> Any:
    """Address of a server of S3 that has the files in its bucket, and the environment that opens it."""
    obstore = pytest.importorskip("obstore")
    program = Path(sys.executable).with_name("moto_server")
    if not program.exists():
        pytest.skip("needs moto[server]")
    port = free_port()
    with log.open("w") as out:
        command = [sys.executable, str(program), "-p", str(port)]
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(port, server)
        request(url + "/bucket", method="PUT")
        keys = {"access_key_id": "id", "secret_access_key": "Pa55word", "region": "us-east-1"}
        store = obstore.store.S3Store("bucket", endpoint=url, client_options={"allow_http": True}, **keys)
        for key, content in files_of(root).items():
            obstore.put(store, key, content)
        yield url
    finally:
        server.terminate()
        server.wait(20)


def request(url: str, method: str) -> None:
    urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=20).close()


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert server.poll() is None, "the server did not start"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise AssertionError("the server did not start")


@pytest.fixture(scope="module")
def opened(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Opens a path below the root by each kind of store."""
    memory, filesystem = memory_store(root), memory_filesystem(root)
    local = pytest.importorskip("obstore").store.LocalStore(root)
    with contextlib.ExitStack() as servers:
        yield_google: list[str] = []

        def of_google(path: str, **given: Any) -> Any:
            if not yield_google:
                yield_google.append(servers.enter_context(google(root, tmp_path_factory.mktemp("gs"))))
            return penstock.open(
                f"gs://bucket/{path}", storage=Storage(endpoint=yield_google[0], anonymous=True), **given
            )

        yield {
            "obstore's memory": lambda path, **given: penstock.open(path, store=memory, **given),
            "obstore's files": lambda path, **given: penstock.open(path, store=local, **given),
            "fsspec by address": lambda path, **given: penstock.open(f"memory://{root.name}/{path}", **given),
            "fsspec": lambda path, **given: penstock.open(f"{root.name}/{path}", store=filesystem, **given),
            "own": lambda path, **given: penstock.open(path, store=Own(root), **given),
            "gs": of_google,
        }


KINDS = ["obstore's memory", "obstore's files", "fsspec by address", "fsspec", "own", "gs"]


def contents(loader: penstock.Loader, has_entries: bool = True) -> list[Any]:
    found = []
    for batch in loader:
        entries = [s.metadata for s in batch.spans] if has_entries else None
        spans = [(s.row, s.start, s.stop, s.id) for s in batch.spans]
        found.append((np.asarray(batch.indices).tolist(), np.asarray(batch["token"]).tolist(), spans, entries))
    return found


VIEWS = {
    "windows": lambda dataset: dataset.windows(64, lookahead=1),
    "documents": lambda dataset: dataset.documents(),
    "spans alone": lambda dataset: dataset.windows(100, metadata="spans"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("order", ["uniform", "sequential", penstock.orders.Blocks(4, 32)], ids=str)
def test_batches_are_those_of_the_local_files(root, opened, kind, view, order):
    def of(dataset: penstock.Dataset) -> list[Any]:
        loader = penstock.Loader(VIEWS[view](dataset), 16, order=order, seed=3, epochs=1)
        assert (loader.reader == "python") == (dataset.path != str(root / "corpus"))
        return contents(loader, view != "spans alone")

    assert of(opened[kind]("corpus")) == of(penstock.open(root / "corpus"))


@pytest.mark.parametrize("kind", KINDS)
def test_states_and_fingerprints_are_those_of_the_local_files(root, opened, kind):
    here, there = penstock.open(root / "corpus"), opened[kind]("corpus")
    assert there.fingerprint == here.fingerprint
    ours, theirs = (penstock.Loader(each.windows(64), 16, seed=1) for each in (here, there))
    for _ in range(5):
        next(ours)
    theirs.load_state_dict(ours.state_dict())
    assert theirs.state_dict() == ours.state_dict()
    assert next(ours)["token"].tolist() == next(theirs)["token"].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_glob_opens_what_the_store_lists(root, opened, kind):
    here = penstock.open(root / "*.npy")
    there = opened[kind]("*.npy")
    assert there.fingerprint == here.fingerprint
    assert there.windows(10)[4001]["token"].tolist() == here.windows(10)[4001]["token"].tolist()
    assert opened[kind]("[12].npy").records == 40_000
    with pytest.raises(NotFoundError, match=r"x\*\.npy: no file matches"):
        opened[kind]("x*.npy")


def test_a_glob_costs_one_listing_and_no_request_for_sizes(root):
    class Counting(Own):
        sizes, lists = 0, 0

        def size(self, path: str) -> int:
            self.sizes += 1
            return super().size(path)

        def list(self, prefix: str) -> list[Any]:
            self.lists += 1
            return [(each, super(Counting, self).size(each)) for each in super().list(prefix)]

    store = Counting(root)
    assert penstock.open("*.npy", store=store).records == 60_000
    assert (store.sizes, store.lists) == (0, 1)


def test_globs_go_through_folders(root):
    assert penstock.open("**/*.npy", store=Own(root)).fingerprint == penstock.open("*.npy", store=Own(root)).fingerprint
    assert penstock.open("part[01]", store=Own(root)).spans == 200
    assert penstock.open("part?", store=Own(root)).spans == 300


def test_http_and_s3_are_read_through_python_where_that_is_asked_for(root, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "Pa55word")
    expected = contents(penstock.Loader(penstock.open(root / "corpus").windows(64), 16, seed=1, epochs=1))
    with fault_server(root) as server:
        loader = penstock.Loader(
            penstock.open(f"{server.address}/corpus").windows(64), 16, seed=1, epochs=1, reader="python"
        )
        assert loader.reader == "python"
        assert contents(loader) == expected
        assert any("object_store" in headers.get("user-agent", "") for _, _, headers in server.requests)
    with moto(root, tmp_path / "log") as url:
        dataset = penstock.open("s3://bucket/corpus", storage=Storage(endpoint=url))
        loader = penstock.Loader(dataset.windows(64), 16, seed=1, epochs=1, reader="python")
        assert loader.reader == "python"
        assert contents(loader) == expected
        globbed = penstock.open("s3://bucket/*.npy", storage=Storage(endpoint=url))
        assert globbed.fingerprint == penstock.open(root / "*.npy").fingerprint


def test_a_reader_of_local_files_is_refused(root):
    view = penstock.open("corpus", store=Own(root)).windows(64)
    for reader in ("pread", "uring", "direct", "mmap"):
        with pytest.raises(InvalidArgumentError, match="corpus is elsewhere"):
            penstock.Loader(view, 4, reader=reader)
    with pytest.raises(InvalidArgumentError, match="through Python"):
        penstock.Loader(view, 4, reader="http")
    with pytest.raises(InvalidArgumentError, match="on this machine"):
        penstock.Loader(penstock.open(root / "corpus").windows(64), 4, reader="python")


# --- faults


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


@pytest.mark.parametrize(
    ("url", "given", "words"),
    [
        ("gs:///key", {}, "no bucket"),
        ("gs://bucket/key", {"storage": Storage(region="x")}, r"region=…\) is not for gs"),
        ("az://bucket/key", {"storage": Storage(profile="x")}, r"profile=…\) is not for az"),
        ("memory://key", {"storage": Storage(anonymous=True)}, r"anonymous=…\) is not for memory"),
        ("nonsense://key", {}, "not known"),
        ("memory://name:Pa55word@host/key", {}, r"^memory://…@…: .* give store="),
        ("github://key", {}, r"wants more than an address: give store="),
        ("key", {"store": 5}, "an obstore store, an fsspec filesystem, or an object"),
        ("key", {"store": Own}, "an obstore store, an fsspec filesystem, or an object"),
    ],
)
def test_what_cannot_be_opened_is_refused(url, given, words):
    pytest.importorskip("obstore")
    with pytest.raises(InvalidArgumentError, match=words):
        penstock.open(url, **given)


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


# --- other processes


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
    with moto(root, tmp_path / "log") as url:
        keys = {"access_key_id": "id", "secret_access_key": "Pa55word", "region": "us-east-1", "endpoint": url}
        store = obstore.store.S3Store("bucket", client_options={"allow_http": True}, **keys)
        dataset = penstock.open("corpus", store=store)
        assert dataset.fingerprint == penstock.open(root / "corpus").fingerprint
        with pytest.raises(InvalidArgumentError, match="holds secrets"):
            pickle.dumps(dataset)
        assert "Pa55word" not in repr(dataset)


def run(code: str, *arguments: str, **given: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, **given)
    assert done.returncode == 0, done.stderr[-2000:]
    assert not done.stderr, done.stderr[-2000:]
    return done


SLOW = """
    import os, sys, threading, time
    import penstock
    from pathlib import Path
    from test_stores import Own

    class Slow(Own):
        def __init__(self, root):
            super().__init__(root)
            self.begun, self.is_slow = threading.Event(), False

        def read(self, path, offsets, sizes):
            if self.is_slow:
                self.begun.set()
                time.sleep(0.2)
            return super().read(path, offsets, sizes)

    store = Slow(Path(sys.argv[1]))
    view = penstock.open("corpus", store=store).windows(64)
    store.is_slow = True
"""


def test_python_ends_with_reads_under_way(root):
    for _ in range(5):
        run(SLOW + "    loader = penstock.Loader(view, 4, seed=1)\n    it = iter(loader)\n    next(it)\n", str(root))


def test_python_ends_with_reads_of_obstore_under_way(root):
    pytest.importorskip("obstore")
    with fault_server(root) as server:
        code = """
            import sys, penstock
            loader = penstock.Loader(penstock.open(sys.argv[1] + "/corpus").windows(64), 4, seed=1, reader="python")
            next(loader)
        """
        for _ in range(5):
            run(code, server.address)


def test_ctrl_c_ends_a_wait_for_a_store(root):
    done = run(
        SLOW
        + """
    import signal
    store.read = lambda path, offsets, sizes: (store.begun.set(), time.sleep(600))
    def interrupt():
        store.begun.wait()
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt, daemon=True).start()
    loader = penstock.Loader(view, 4, seed=1)
    try:
        next(loader)
    except KeyboardInterrupt:
        loader.close()
        print("interrupted")
    store.begun.clear()
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        view[0]
    except KeyboardInterrupt:
        print("interrupted")
    """,
        str(root),
    )
    assert done.stdout.count("interrupted") == 2


def test_a_child_after_a_fork_refuses_and_its_parent_goes_on(root):
    done = run(
        SLOW
        + """
    loader = penstock.Loader(view, 4, seed=1)
    next(loader)
    child = os.fork()
    if child == 0:
        try:
            view[0]
        except penstock.InvalidArgumentError as error:
            os._exit(0 if "spawn" in str(error) else 2)
        os._exit(3)
    assert os.waitpid(child, 0)[1] == 0
    next(loader)
    child = os.fork()
    if child == 0:
        del loader, view
        sys.exit(0)  # an end of Python in the child, with all that the parent had
    assert os.waitpid(child, 0)[1] == 0
    print(len(view[0]["token"]))
    """,
        str(root),
    )
    assert done.stdout.split() == ["64"]


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
