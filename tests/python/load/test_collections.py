"""CollectionLoader, Collections and suggest: what is asked of a collection, what comes out, what is refused."""

from __future__ import annotations

import gc
import pickle
import tempfile
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest

STORE = np.arange(100) * 10


class Recorded:
    """A collection that notes what it is asked for."""

    def __init__(self, count: int = 100) -> None:
        self.count = count
        self.calls: list[list[int]] = []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, indices: Any) -> np.ndarray:
        assert isinstance(indices, np.ndarray) and indices.dtype == np.int64
        self.calls.append(indices.tolist())
        return indices * 10


def make(collection: Any = STORE, batch_size: int | None = 4, **options: Any) -> penstock.CollectionLoader:
    return penstock.CollectionLoader(collection, batch_size, **{"seed": 1, "threads": 0, **options})


# --- what is read


def test_a_fetch_is_one_call_with_ascending_indices_each_once():
    store = Recorded()
    draws = penstock.orders.Weighted([9] * 3 + [1] * 97)  # some come several times in a fetch
    loader = make(store, 10, order=draws, fetch_factor=5)
    batches = [next(loader) for _ in range(10)]
    assert len(store.calls) == 2
    for number, call in enumerate(store.calls):
        assert call == sorted(set(call)) == sorted({*np.concatenate(batches[number * 5 : number * 5 + 5]) // 10})
        assert len(call) < 50


@pytest.mark.parametrize(
    "order, factor, rows",
    [
        ("uniform", 3, 12), ("uniform", None, 64), ("sequential", None, 64), ("sequential", 20, 80),
        (penstock.orders.Blocks(2, 20), None, 20),
        (penstock.orders.Blocks(2, 20), 2, 8), (penstock.orders.Blocks(2, 10, lanes=2), None, 20),
        (penstock.orders.Sequential(fetch=8), 16, 8),
    ],
)  # fmt: skip
def test_a_fetch_is_as_many_batches_as_asked_or_the_orders_own(order, factor, rows):
    store = Recorded()
    next(make(store, order=order, fetch_factor=factor))
    assert [len(call) for call in store.calls] == [rows]


def test_fetches_of_blocks_are_the_orders_in_every_epoch():
    store = Recorded()
    assert len(list(make(store, 4, order=penstock.orders.Blocks(4, 16), epochs=3))) == 75
    assert [len(call) for call in store.calls] == 3 * [16, 16, 16, 16, 16, 16, 4]
    for call in store.calls:
        runs = np.split(call, np.flatnonzero(np.diff(call) != 1) + 1)
        assert all(len(run) % 4 == 0 or 0 in run or 99 in run for run in runs)


def test_a_resume_within_a_fetch_reads_what_is_left_of_it():
    whole = Recorded()
    loader = make(whole, fetch_factor=5)
    for step in range(1, 12):
        next(loader)
        part = Recorded()
        resumed = make(part, fetch_factor=5)
        resumed.load_state_dict(loader.state_dict())
        next(resumed)
        assert len(part.calls[0]) == 4 * (5 - step % 5)
        if step % 5:
            assert set(part.calls[0]) < set(whole.calls[-1])


def test_nothing_is_read_before_it_is_asked_for():
    store = Recorded()
    loader = make(store, threads=1)
    loader.load_state_dict({**loader.state_dict(), "position": 8})
    loader.seek(12)
    assert store.calls == [] and loader.position == 12
    loader.close()
    assert store.calls == []


def test_a_fetch_ends_with_the_epoch_where_each_for_is_one():
    store = Recorded()
    loader = make(store, per_epoch=True, fetch_factor=16)
    assert [len(list(loader)) for _ in range(2)] == [25, 25]
    assert [len(call) for call in store.calls] == [64, 36, 64, 36]
    assert [len(batch) for batch in make(STORE, [(0, 4), (8, 10)], epochs=1)] == [4, 4] + [10] * 10


# --- what comes out


@pytest.mark.parametrize("tail", ["pad", "drop"])
@pytest.mark.parametrize("per_epoch", [False, True])
def test_it_delivers_what_a_loader_of_a_view_does(per_epoch, tail):
    options = {"epochs": 2, "per_epoch": per_epoch, "tail": tail, "skip": [(3, 9), (140, 177)], "world_size": 3}
    view = penstock_view(STORE.astype("u2"))
    for rank in range(3):
        loader = make(STORE, None, global_batch_size=12, rank=rank, threads=rank % 2, **options)
        native = penstock.Loader(view, global_batch_size=12, seed=1, rank=rank, framework="numpy", **options)
        for _ in range(3):
            assert len(loader) == len(native)
            for batch, other in zip(loader, native, strict=True):
                info = loader.info
                assert (batch == info.indices * 10).all() and len(batch) == 4
                assert info.position == other.position and info.valid.tolist() == other.valid.tolist()
                assert info.indices[info.valid].tolist() == other.indices[other.valid].tolist()
                assert info.epochs[info.valid].tolist() == other.epochs[other.valid].tolist()
                assert loader.position == native.position and len(loader) == len(native)


def penstock_view(tokens: np.ndarray) -> penstock.View:
    path = Path(tempfile.mkdtemp()) / "tokens.bin"
    tokens.tofile(path)
    return penstock.open(path, dtype="u2").windows(1)


def test_padded_rows_repeat_the_last_observation_of_the_run_on_every_rank():
    last = int(penstock.orders.resolve("uniform", 100, 1).pick(99, 1, 1)[0][0])
    for rank in range(4):
        loader = make(STORE, 8, epochs=1, rank=rank, world_size=4)
        *_, batch = loader
        valid = loader.info.valid
        assert valid.sum() == 1 and loader.info.position == 96
        assert (batch[~valid] == last * 10).all() and (loader.info.indices[~valid] == last).all()
        assert (loader.info.epochs == 0).all()


def test_hooks_are_called_as_documented():
    seen: list[Any] = []

    def fetch_callback(collection: Any, indices: np.ndarray) -> Any:
        seen.append(("fetch", collection is STORE, len(indices)))
        return {"x": collection[indices]}

    def fetch_transform(fetched: Any) -> Any:
        seen.append(("transform", list(fetched)))
        return fetched["x"] + 1

    def batch_callback(fetched: np.ndarray, places: np.ndarray) -> Any:
        seen.append(("batch", len(fetched), len(places)))
        return fetched[places]

    hooks = {"fetch_callback": fetch_callback, "fetch_transform": fetch_transform, "batch_callback": batch_callback}
    loader = make(STORE, 4, fetch_factor=2, **hooks, batch_transform=lambda batch: (batch - 1, "made"))
    for _ in range(2):
        batch, made = next(loader)
        assert (batch == loader.info.indices * 10).all() and made == "made"
    assert seen == [("fetch", True, 8), ("transform", ["x"]), ("batch", 8, 4), ("batch", 8, 4)]


def both_parts(batch: Any, one: Any, other: Any) -> list[int]:
    return np.where(np.asarray(batch[one]) // 10 == batch[other], batch[other], -1).tolist()


def test_collections_of_many_kinds_give_batches_of_theirs():
    pandas, torch = pytest.importorskip("pandas"), pytest.importorskip("torch")
    arrow = pytest.importorskip("pyarrow").table({"x": STORE})
    column = pytest.importorskip("datasets").Dataset.from_dict({"x": STORE.tolist()})["x"]
    numbers, together = list(range(100)), penstock.Collections(x=STORE, unstructured={"unit": "mm"})
    for collection, look in (
        (numbers, list),
        ({"a": STORE, "b": numbers}, lambda batch: both_parts(batch, "a", "b")),
        ((STORE, numbers), lambda batch: both_parts(batch, 0, 1)),
        (together, lambda batch: batch["x"] // 10 if batch.unstructured == {"unit": "mm"} else None),
        (Recorded, lambda batch: batch // 10),
        (lambda: STORE, lambda batch: batch // 10),
        (pandas.DataFrame({"x": STORE}, index=STORE[::-1]), lambda batch: batch["x"] // 10),
        (torch.as_tensor(STORE), lambda batch: batch // 10),
        (arrow, lambda batch: np.array(batch["x"]) // 10),
        (column, lambda batch: np.array(batch) // 10),
    ):
        loader = make(collection)
        assert list(look(next(loader))) == loader.info.indices.tolist()
    loader = make(STORE, fetch_transform=lambda x: arrow.take(x // 10))
    assert next(loader)["x"].to_pylist() == (loader.info.indices * 10).tolist()


@pytest.mark.parametrize("threads", [0, 1])
def test_close_lets_go_of_what_was_opened(threads):
    opened: list[Any] = []

    def open_it() -> Recorded:
        store = Recorded()
        opened.append(weakref.ref(store))
        return store

    loader = make(open_it, threads=threads)
    next(loader)
    loader.close()
    gc.collect()
    assert opened[0]() is None


def test_a_thread_that_cannot_be_started_is_started_later(monkeypatch):
    with make(STORE, threads=1, order="sequential") as loader:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", lambda thread: (_ for _ in ()).throw(RuntimeError("no more")))
            with pytest.raises(RuntimeError, match="no more"):
                next(loader)
        assert next(loader).tolist() == [0, 10, 20, 30]


# --- the state


def test_the_state_is_a_loaders_and_the_same_for_all_that_may_differ():
    states = []
    for options in (
        {"batch_size": 4, "rank": 0, "world_size": 4}, {"batch_size": 8, "rank": 1, "world_size": 2, "threads": 1},
        {"batch_size": 16, "fetch_factor": 3}, {"batch_size": None, "global_batch_size": 16, "prefetch": 4},
        {"batch_size": 16, "epochs": 3, "per_epoch": True, "tail": "drop"}, {"batch_size": [(0, 16), (32, 8)]},
    ):  # fmt: skip
        loader = make(STORE, **options)
        assert loader.state_dict()["position"] == 0
        next(loader)
        states.append(loader.state_dict())
    assert all(state == states[0] for state in states)
    assert list(states[0]) == ["version", "position", "job"] and states[0]["position"] == 16
    resume = make(STORE, 8).load_state_dict({**states[0], "position": 216})
    assert str(resume) == "resumes at epoch 2, position 216, step 27"
    assert (resume.epoch, resume.position, resume.step) == (2, 216, 27)


def test_another_collection_seed_or_order_is_refused_by_name():
    state = make(STORE).state_dict()
    for other, words in (
        (make(STORE[:90]), r"100 observations\), this one is .* \(90 observations\)"),
        (make(STORE.astype("f4")), "dataset"),
        (make(STORE, seed=2), "seed: saved 1, now 2"),
        (make(STORE, order="sequential"), "order: saved uniform, now sequential"),
        (make(STORE, fingerprint="mine"), "dataset"),
    ):
        with pytest.raises(penstock.StateMismatchError, match=words):
            other.load_state_dict(state)
    other = make(STORE.astype("f4"), on_mismatch="keep_position")
    assert other.load_state_dict({**state, "position": 8}).position == 8
    assert make(STORE[:90], on_mismatch="restart").load_state_dict({**state, "position": 8}).position == 0
    named = make(STORE, fingerprint="mine")
    assert make(STORE.astype("f4"), fingerprint="mine").load_state_dict(named.state_dict()).position == 0


def test_what_is_no_state_of_a_collection_is_refused():
    state = penstock.Loader(penstock_view(STORE.astype("u2")), 4, seed=1).state_dict()
    with pytest.raises(penstock.StateMismatchError, match="collection"):
        make(STORE).load_state_dict(state)
    with pytest.raises(penstock.InvalidArgumentError, match="no state"):
        make(STORE).load_state_dict({"position": 1})


# --- bad input


@pytest.mark.parametrize(
    "collection, words",
    [
        (5, "int objects are not indexed by integers"),
        ((n for n in range(3)), "generator objects are not indexed"),
        ({1, 2, 3}, "set objects are not indexed"),
        ("cells.h5ad", "open it"),
        ([], "no observations"),
        ({"train": [1, 2], "test": [1]}, "train: 2, test: 1"),
        (np.float32(3), "has no length"),
        (lambda: None, "NoneType objects are not indexed"),
    ],
)
def test_what_is_no_collection_is_refused(collection, words):
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        make(collection)


def test_a_view_or_dataset_of_penstock_is_sent_to_loader():
    view = penstock_view(STORE.astype("u2"))
    for given in (view, view.dataset):
        with pytest.raises(penstock.InvalidArgumentError, match=r"penstock\.Loader"):
            make(given)
    store = Recorded()
    store._source = "elsewhere"  # type: ignore[attr-defined]
    assert len(next(make(store))) == 4


@pytest.mark.parametrize(
    "options, words",
    [
        ({"batch_size": None}, "exactly one of"),
        ({"global_batch_size": 4}, "exactly one of"),
        ({"fetch_factor": 0}, "fetch_factor=0"),
        ({"threads": 2}, "threads=2: must be from 0 to 1"),
        ({"prefetch": 0}, "prefetch=0"),
        ({"processes": -1}, "processes"),
        ({"fetch_callback": 3}, "fetch_callback=3: must be a function"),
        ({"fingerprint": 3}, "fingerprint=3"),
        ({"on_mismatch": "error"}, "on_mismatch"),
        ({"tail": "keep"}, "tail"),
        ({"order": penstock.orders.Blocks(64, 128), "fetch_factor": 8}, "64: fetch_factor must be at least 16"),
        ({"order": penstock.orders.Weighted([1] * 100, block=64, fetch=64), "fetch_factor": 8}, "at least 16"),
        ({"batch_size": None, "global_batch_size": 5, "rank": 0, "world_size": 3}, "not a multiple of world size 3"),
        ({"rank": 3, "world_size": 3}, "rank 3"),
        ({"fetch_factor": 1 << 40}, r"must be fewer than 2\^31"),
    ],
)
def test_arguments_that_cannot_be_are_refused(options, words):
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        make(STORE, **{"batch_size": 4, **options})


@pytest.mark.parametrize("threads", [0, 1])
@pytest.mark.parametrize(
    "options, words",
    [
        ({"fetch_callback": lambda c, i: None}, r"fetch_callback\(collection, indices\) returned None"),
        ({"fetch_transform": lambda f: None}, r"fetch_transform\(fetched\) returned None"),
        ({"batch_callback": lambda f, p: None}, r"batch_callback\(fetched, places\) returned None"),
        ({"batch_transform": lambda b: None}, r"batch_transform\(batch\) returned None"),
        ({"fetch_callback": lambda c, i: c[i][1:]}, "of 63 observations, 64 were asked for"),
        ({"fetch_transform": lambda f: f[:2]}, "of 2 observations, 64 were asked for"),
        ({"fetch_transform": lambda f: {"a": f, "b": f[1:]}}, "gave a dict without a length"),
    ],
)
def test_hooks_that_give_nothing_or_another_count_are_named(options, words, threads):
    with make(STORE, threads=threads, **options) as loader:
        for _ in range(2):  # it can be asked again
            with pytest.raises(penstock.InvalidArgumentError, match=f"the batch at position 0: .*{words}"):
                next(loader)
    assert loader.position == 0


class OneByOne(Recorded):
    def __getitem__(self, index: Any) -> Any:
        return {0: 1}[index]


class Short(Recorded):
    def __getitem__(self, indices: Any) -> np.ndarray:
        return super().__getitem__(indices)[:-1]


def test_a_collection_or_part_that_gives_another_count_is_named():
    for collection in (Short(), {"a": STORE, "b": Short()}, penstock.Collections(a=STORE, b=Short())):
        with pytest.raises(penstock.InvalidArgumentError, match=r"position 0: indexing the Short gave .* of 63 .*64"):
            next(make(collection))
    with pytest.raises(penstock.Error, match="indexing the OneByOne raised TypeError") as raised:
        next(make(OneByOne()))
    assert isinstance(raised.value.__cause__, TypeError)


@pytest.mark.parametrize("threads", [0, 1])
@pytest.mark.parametrize("count", [90, -1])
def test_a_length_that_changes_or_raises_is_refused_at_its_batch(threads, count):
    class Gone(Recorded):
        def __len__(self) -> int:
            if self.count < 0:
                raise StopIteration
            return self.count

    words = "has 90 observations now, and had 100" if count == 90 else "the length of the Gone raised StopIteration"
    store = Gone()
    with make(store, fetch_factor=2, threads=threads) as loader:
        next(loader), next(loader)
        store.count = count
        with pytest.raises(penstock.Error, match=words):
            for _ in range(8):
                next(loader)
        assert loader.position % 8 == 0


@pytest.mark.parametrize("threads", [0, 1])
@pytest.mark.parametrize("hook", ["fetch_callback", "fetch_transform", "batch_callback", "batch_transform"])
def test_the_error_of_a_hook_is_raised_at_its_batch_with_its_cause(hook, threads):
    broken = [True]

    def fail(*given: Any) -> Any:
        if hook == "fetch_callback":
            given = (given[0][given[1]],)
        values = given[0] if hook != "batch_callback" else given[0][given[1]]
        if broken and 330 in values:
            raise KeyError("thirty-three")
        return values

    with make(STORE, order="sequential", threads=threads, fetch_factor=2, **{hook: fail}) as loader:
        first = 8 * 4 if hook.startswith("batch") else 32  # of the fetch [32, 40), or the batch [32, 36)
        for _ in range(first // 4):
            next(loader)
        with pytest.raises(penstock.Error, match=rf"the batch at position 32: {hook}.* raised KeyError") as raised:
            next(loader)
        assert isinstance(raised.value.__cause__, KeyError)
        broken.clear()
        assert next(loader).tolist() == [320, 330, 340, 350]


def test_a_loader_refuses_what_it_is_not():
    loader = make(STORE, threads=1)
    with pytest.raises(TypeError, match="endless"):
        len(loader)
    with pytest.raises(TypeError, match="DataLoader"):
        loader[0]
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(loader)
    with pytest.raises(penstock.InvalidArgumentError, match="take one with next"):
        _ = loader.info
    assert bool(loader) and "rank 0 of 1" in repr(loader)
    next(loader)
    with loader:
        pass
    with pytest.raises(penstock.InvalidArgumentError, match="closed"):
        next(loader)
    loader.close()
    assert loader.state_dict()["position"] == 4


# --- Collections


def test_collections_are_indexed_together():
    both = penstock.Collections(x=STORE, name=[f"n{i}" for i in range(100)], unstructured={"unit": "mm"})
    assert len(both) == 100 and list(both.keys()) == list(both) == ["x", "name"]
    assert both["x"] is STORE and both[0] is STORE and both[-1] is both["name"] and "x" in both
    assert [name for name, _ in both.items()] == ["x", "name"] and next(iter(both.values())) is STORE
    for key, expected in (
        (slice(2, 8, 3), [2, 5]), ([7, 3, 7, -1], [7, 3, 7, 99]), (np.arange(100) > 97, [98, 99]), ([], []),
    ):  # fmt: skip
        few = both[key]
        assert isinstance(few, penstock.Collections) and few.unstructured == {"unit": "mm"}
        assert few["x"].tolist() == [10 * at for at in expected] and few["name"] == [f"n{at}" for at in expected]
        assert len(few) == len(expected)
    assert repr(both) == "Collections(x: ndarray, name: list; 100 observations)"
    assert len(pickle.loads(pickle.dumps(both))) == 100
    assert penstock.Collections({"two words": STORE})["two words"] is STORE


def test_collections_that_cannot_be_are_refused():
    for parts, words in (({}, "nothing"), ({"a": [1], "b": [1, 2]}, "a: 1, b: 2"), ({"a": 3}, "a: none")):
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            penstock.Collections(**parts)
    both = penstock.Collections(a=STORE)
    with pytest.raises(KeyError, match='the parts are "a"'):
        both["b"]
    for key in ([100], [0.5], 1, [-101]):
        with pytest.raises(IndexError):
            both[key]


def test_what_of_a_backed_anndata_is_a_collection(tmp_path):
    anndata, sparse = pytest.importorskip("anndata"), pytest.importorskip("scipy.sparse")
    anndata.AnnData(sparse.csr_matrix(np.eye(100, dtype="f4"))).write_h5ad(tmp_path / "x.h5ad")
    backed = anndata.read_h5ad(tmp_path / "x.h5ad", backed="r")
    whole = anndata.read_h5ad(tmp_path / "x.h5ad")[:]
    for collection in (whole.X, backed.X, {"x": backed.X, "y": np.arange(100)}):
        loader = make(collection)
        found = next(loader)
        x = found["x"] if isinstance(found, dict) else found
        assert x.toarray().argmax(1).tolist() == loader.info.indices.tolist()
    few = backed[:5]
    for collection in (few, penstock.Collections(x=few)):
        with pytest.raises(penstock.InvalidArgumentError, match="a view of a backed one"):
            make(collection)
    read = make(np.arange(5), 2, fetch_callback=lambda numbers, at: few._adata_ref[numbers[at]].to_memory())
    assert next(read).n_obs == 2
    assert not penstock.Collections(x=backed)[[]]["x"].isbacked


# --- suggest


def test_suggest_takes_the_fastest_that_fits():
    found = penstock.suggest(np.zeros((4096, 16), "f4"), 16, seconds=0.5)
    rows = {(row.block, row.fetch_factor): row for row in found.table}
    assert all(block <= factor for block, factor in rows) and (1, 1) in rows and (4, 16) in rows
    assert all(row.bytes == 2 * row.fetch_factor * 16 * 16 * 4 for row in found.table)
    chosen = rows[found.block, found.fetch_factor]
    assert chosen.observations_per_s == max(row.observations_per_s for row in found.table if row.fits)
    assert found.order == penstock.orders.Blocks(found.block, 16 * found.fetch_factor)
    assert len(str(found).splitlines()) == 2 + len(rows)
    tight = penstock.suggest(np.zeros((4096, 16), "f4"), 16, memory=2 * 4 * 16 * 16 * 4, seconds=0.1)
    assert tight.fetch_factor == 4 and max(row.bytes for row in tight.table) == 2 * 4 * 16 * 16 * 4
    with pytest.raises(penstock.InvalidArgumentError, match="more than memory=100"):
        penstock.suggest(np.zeros((4096, 16), "f4"), 16, memory=100, seconds=0.1)
    with pytest.raises(penstock.InvalidArgumentError, match="fewer than a batch"):
        penstock.suggest(STORE, 101)


def test_suggest_spends_its_time_on_what_is_fast():
    class Disk(Recorded):
        def __getitem__(self, indices: Any) -> np.ndarray:
            time.sleep(0.002 * (1 + int((np.diff(indices) != 1).sum())))
            return indices

    begin = time.monotonic()
    found = penstock.suggest(Disk(20_000), 16, seconds=2)
    assert found.block == 256 and time.monotonic() - begin < 6


def test_suggest_tells_bytes_of_a_fetch_from_those_of_its_batches():
    class Named(np.ndarray):
        @property
        def nbytes(self) -> int:  # a megabyte of names beside the values
            return 1_000_000 + super().nbytes

    options: Any = {"fetch_transform": lambda x: x.view(Named), "memory": 2_500_000, "seconds": 1}
    found = penstock.suggest(np.zeros((4096, 8), "f4"), 16, **options)
    assert {row.fetch_factor for row in found.table} == {1, 4, 16, 64, 256}


def test_suggest_says_what_is_wrong():
    for seconds in (float("nan"), float("inf"), "x"):
        with pytest.raises(penstock.InvalidArgumentError, match="must be a finite number"):
            penstock.suggest(STORE, 4, seconds=seconds)
    with pytest.raises(penstock.Error, match="raised ZeroDivisionError") as raised:
        penstock.suggest(STORE, 4, fetch_transform=lambda x: 1 / 0)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_suggest_measures_a_view():
    found = penstock.suggest(penstock_view(np.zeros(5000, "u2")), 16, seconds=0.2)
    assert found.block <= found.fetch_factor and {row.fetch_factor for row in found.table} >= {1, 4, 16}
    with pytest.raises(penstock.InvalidArgumentError, match="fetch_callback"):
        penstock.suggest(penstock_view(np.zeros(5000, "u2")), 16, fetch_transform=len)


def test_a_batch_whose_next_fetch_cannot_be_started_comes_again(monkeypatch):
    with make(STORE, threads=1, fetch_factor=1, order="sequential") as loader:
        next(loader)
        start = loader._reader.start
        monkeypatch.setattr(loader._reader, "start", lambda fetch: (_ for _ in ()).throw(MemoryError()))
        with pytest.raises(MemoryError):
            next(loader)
        assert loader.position == 4 and loader.info.position == 0
        monkeypatch.setattr(loader._reader, "start", start)
        assert next(loader).tolist() == [40, 50, 60, 70]
