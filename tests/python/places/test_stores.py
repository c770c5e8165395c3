"""What every store promises, wherever it is and however it is read; and what those that Python reads do besides."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _batches import VIEWS, contents
from _google import google
from _python_stores import Own, memory_filesystem, memory_store
from penstock import InvalidArgumentError, NotFoundError, Storage


@dataclass(frozen=True)
class Way:
    """How what lies in a store is opened, and read."""

    before: str = ""  # a path
    given: dict[str, Any] = field(default_factory=dict)  # to open
    reader: str = "python"
    asked: str | None = None  # of a loader
    lists: bool = True
    travels: bool = True

    def open(self, *paths: str, **given: Any) -> penstock.Dataset:
        return penstock.open(*(self.before + path for path in paths), **self.given, **given)

    def loader(self, view: penstock.View, **given: Any) -> penstock.Loader:
        more = {} if self.asked is None else {"reader": self.asked}
        made = penstock.Loader(view, 16, seed=3, **given, **more)
        assert made.reader == self.reader
        return made


@pytest.fixture(scope="session")
def google_bucket(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with google({"data": root}, tmp_path_factory.mktemp("gs")) as address:
        yield address


def s3(ask: Any, **given: Any) -> Way:
    return Way("s3://data/", {"storage": Storage(endpoint=ask("bucket"))}, **given)


def fsspec_address(root: Path) -> Way:
    memory_filesystem(root)
    return Way(f"memory://{root.name}/")


WAYS: dict[str, Callable[[Path, Any], Way]] = {
    "http": lambda root, ask: Way(ask("http") + "/", reader="http", lists=False),
    "http through python": lambda root, ask: Way(ask("http") + "/", asked="python", lists=False),
    "s3": lambda root, ask: s3(ask, reader="http"),
    "s3 through python": lambda root, ask: s3(ask, asked="python"),
    "gs": lambda root, ask: Way("gs://data/", {"storage": Storage(endpoint=ask("google_bucket"), anonymous=True)}),
    "obstore's memory": lambda root, ask: Way(given={"store": memory_store(root)}, travels=False),
    "obstore's files": lambda root, ask: Way(given={"store": pytest.importorskip("obstore").store.LocalStore(root)}),
    "fsspec by address": lambda root, ask: fsspec_address(root),
    "fsspec": lambda root, ask: Way(f"{root.name}/", {"store": memory_filesystem(root)}),
    "own": lambda root, ask: Way(given={"store": Own(root)}),
}
ORDERS = dict(zip(VIEWS, ["uniform", "sequential", penstock.orders.Blocks(4, 32)], strict=True))


@pytest.fixture
def way(root: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Way:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "access")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    return WAYS[request.param](root, request.getfixturevalue)


@pytest.mark.parametrize("way", WAYS, indirect=True)
class TestStore:
    def test_batches_states_and_fingerprints_are_those_of_the_local_files(self, root, way):
        here, there = penstock.open(root / "corpus"), way.open("corpus")
        assert there.fingerprint == here.fingerprint
        one, other = penstock.open(root / "part0"), way.open("part0")
        for view, make in VIEWS.items():
            expected = penstock.Loader(make(one), 16, seed=3, order=ORDERS[view], epochs=1)
            found = way.loader(make(other), order=ORDERS[view], epochs=1)
            assert contents(found, view != "spans alone") == contents(expected, view != "spans alone")
        ours, theirs = penstock.Loader(here.windows(64), 16, seed=3), way.loader(there.windows(64))
        for _ in range(5):
            next(ours)
        theirs.load_state_dict(ours.state_dict())
        assert theirs.state_dict() == ours.state_dict()
        assert contents(theirs, most=2) == contents(ours, most=2)

    def test_features_and_columns_are_read_there(self, way):
        dataset = way.open("cells")
        assert dataset.features.names == ["CD4", "CD8A", "GNLY"]
        assert dataset.features.columns["length"][1].item() == 235
        assert dataset.columns["n"][7:9].tolist() == [7, 8]
        batch = next(way.loader(dataset.cells("csr", columns=["n"])))
        assert batch.columns["n"].tolist() == np.asarray(batch.indices).tolist()

    def test_token_files_open_by_their_names_and_by_globs(self, root, way):
        here, names = penstock.open(root / "*.npy").windows(10), [f"{number}.npy" for number in range(3)]
        there = [way.open(*names)] + ([way.open("*.npy")] if way.lists else [])
        for each in there:
            assert each.fingerprint == penstock.open(root / "*.npy").fingerprint
            assert each.windows(10)[4001]["token"].tolist() == here[4001]["token"].tolist()
        assert not way.lists or way.open("[12].npy").records == 40_000

    def test_nothing_is_not_found(self, way):
        names = {"nothing": "nothing", "none.npy": r"none\.npy"}
        for name, words in {**names, **({"x*.npy": r"x\*\.npy: no file matches"} if way.lists else {})}.items():
            with pytest.raises(NotFoundError, match=words):
                way.open(name)

    def test_a_dataset_travels_where_its_store_does(self, way):
        dataset = way.open("cells")
        if not way.travels:
            with pytest.raises(InvalidArgumentError, match="is not pickled"):
                pickle.dumps(dataset.windows(1))
            return
        again = pickle.loads(pickle.dumps(dataset))
        assert again.fingerprint == dataset.fingerprint
        assert again.features.names == dataset.features.names and again.columns["n"][7] == 7
        window = pickle.loads(pickle.dumps(again.windows(10)))[5]
        assert window["gene"].tolist() == dataset.windows(10)[5]["gene"].tolist()


@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_batches_of_a_cache_are_the_same_whatever_it_holds(root, way, tmp_path):
    expected = contents(penstock.Loader(penstock.open(root / "part0").documents(), 16, seed=3, epochs=1))
    for number, bound in enumerate((None, None, 1)):
        there = way.open("part0", cache=tmp_path / "cache", **({} if bound is None else {"cache_bytes": bound}))
        assert contents(way.loader(there.documents(), epochs=1)) == expected
        assert number == 2 or (there.cache_counts["misses"] > 0) == (number == 0)
        assert there.cache_counts["wrong"] == 0


# ---- what Python reads


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


def test_globs_go_through_folders_and_question_marks_are_no_queries(root):
    assert penstock.open("**/*.npy", store=Own(root)).fingerprint == penstock.open("*.npy", store=Own(root)).fingerprint
    assert penstock.open("part[01]", store=Own(root)).spans == 200
    assert penstock.open("part?", store=Own(root)).spans == 300
    filesystem = pytest.importorskip("fsspec").filesystem("memory")
    for part in ("x1", "x2"):
        filesystem.pipe_file(f"/globs/{part}/lang=en/0.npy", (root / "0.npy").read_bytes())
    assert penstock.open("memory://globs/x?/lang=en/?.npy").records == 40_000


def test_a_reader_of_local_files_is_refused(root):
    view = penstock.open("corpus", store=Own(root)).windows(64)
    for reader in ("pread", "uring", "direct", "mmap"):
        with pytest.raises(InvalidArgumentError, match="corpus is elsewhere"):
            penstock.Loader(view, 4, reader=reader)
    with pytest.raises(InvalidArgumentError, match="through Python"):
        penstock.Loader(view, 4, reader="http")
    with pytest.raises(InvalidArgumentError, match="on this machine"):
        penstock.Loader(penstock.open(root / "corpus").windows(64), 4, reader="python")


@pytest.mark.parametrize(
    ("url", "given", "words"),
    [
        ("gs:///key", {}, "no bucket"),
        ("gs://bucket/key", {"storage": Storage(region="x")}, r"region=…\) is not for gs"),
        ("az://bucket/key", {"storage": Storage(profile="x")}, r"profile=…\) is not for az"),
        ("memory://key", {"storage": Storage(anonymous=True)}, r"anonymous=…\) is not for memory"),
        ("nonsense://key", {}, "not known"),
        ("memory://name:Pa55word@host/key", {}, r"^memory://…@…: .* give store="),
        ("ftp://host/a?token=Pa55word", {}, "store=|holds no credentials"),
        ("ftp://name:Pa55word@host/a.npy", {}, "store=|holds no credentials"),
        ("memory://host/a.npy?a=b&key=Pa55word", {}, "store=|holds no credentials"),
        ("az://container/a.npy?sv=1&sig=Pa55word", {}, "store=|holds no credentials"),
        ("gs://id:Pa55word@bucket/key", {}, "holds no credentials"),
        ("github://key", {}, r"wants more than an address: give store="),
        ("key", {"store": 5}, "an obstore store, an fsspec filesystem, or an object"),
        ("key", {"store": Own}, "an obstore store, an fsspec filesystem, or an object"),
    ],
)
def test_what_cannot_be_opened_is_refused_without_its_secrets(url, given, words):
    pytest.importorskip("obstore")
    pytest.importorskip("fsspec")
    with pytest.raises(InvalidArgumentError, match=words) as error:
        penstock.open(url, **given)
    assert "Pa55word" not in "".join(traceback.format_exception(error.value))
