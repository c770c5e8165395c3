"""orders.Custom: arrays, .npy files, functions: what they give, on any ranks, and what is refused."""

from __future__ import annotations

import json
import pickle
import threading
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, compact, raw_tokens
from penstock import CorruptionError, InvalidArgumentError, orders

N = 101  # observations of the view: windows of ten tokens


@pytest.fixture
def view(tmp_path: Path) -> penstock.View:
    np.arange(10 * N, dtype="u2").tofile(tmp_path / "tokens.bin")
    return penstock.open(tmp_path / "tokens.bin", dtype="u2").windows(10)


def loader_of(view: Any, order: Any, **options: Any) -> penstock.Loader:
    return penstock.Loader(view, **{"batch_size": 8, "order": order, "framework": "numpy", "rank": 0, "world_size": 1}
                           | options)  # fmt: skip


def given(view: penstock.View, order: Any, count: int, seed: int = 0) -> list[int]:
    found: list[int] = penstock.Job(view, global_batch_size=8, order=order, seed=seed).picks(0, count)["index"].tolist()
    return found


def turned(epoch: int, positions: np.ndarray) -> np.ndarray:
    return (positions + 10 * epoch) % N


def turned_order(**options: Any) -> orders.Custom:
    return orders.Custom(turned, **{"name": "turned", "version": 1} | options)


# --- arrays


def test_an_array_is_the_order_in_whatever_form_it_is_given(tmp_path, view):
    indices = np.random.default_rng(0).integers(0, N, 150)
    backwards = np.ascontiguousarray(indices[::-1])
    apart = np.zeros((150, 3), np.uint32)
    apart[:, 1] = indices
    packed = np.zeros(150, [("a", "u1"), ("index", "<u8")])
    packed["index"] = indices
    for name, dtype in (("narrow", "u4"), ("wide", "i8"), ("turned", ">u8"), ("short", "u1")):
        np.save(tmp_path / f"{name}.npy", indices.astype(dtype))
    forms = [
        indices, indices.tolist(), indices.astype("u4"), indices.astype("i4"), indices.astype("u8"),
        indices.astype("i2"), indices.astype(">i4"), backwards[::-1], apart[:, 1], packed["index"],
        *(tmp_path / f"{name}.npy" for name in ("narrow", "wide", "turned", "short")), str(tmp_path / "wide.npy"),
        np.load(tmp_path / "narrow.npy", mmap_mode="r"),
    ]  # fmt: skip
    digest = orders.Custom(indices).digest
    for form in forms:
        order = orders.Custom(form)
        assert order.digest == digest and given(view, order, 320) == [*indices, *indices, *indices[:20]]
        native = orders.resolve(order, N, 7)
        assert json.loads(native.identity(0)) == {"digest": digest, "length": 150, "name": "custom"}
    assert orders.Custom(indices[::-1]).digest != digest


def test_what_loaders_read_stands_at_these_indices_and_an_epoch_is_the_array(view):
    indices = np.array([100, 3, 3, 7, 0])
    batches = list(loader_of(view, orders.Custom(indices), batch_size=2, epochs=2))
    assert np.concatenate([batch["token"][:, 0] for batch in batches]).tolist() == [*(indices * 10), *(indices * 10)]
    assert [batch.epochs.tolist() for batch in batches] == [[0, 0], [0, 0], [0, 1], [1, 1], [1, 1]]
    loader = loader_of(view, orders.Custom(indices), batch_size=2, epochs=2, per_epoch=True, tail="drop")
    assert len(loader) == 2 and [batch.indices.tolist() for batch in loader] == [[100, 3], [3, 7]]
    assert loader.position == 5


def test_a_curriculum_is_one_line(view):
    scores = np.random.default_rng(1).random(N)
    batches = loader_of(view, orders.Custom(np.argsort(scores)), epochs=1)
    found = np.concatenate([batch.indices[batch.valid] for batch in batches])
    assert sorted(found) == list(range(N)) and (np.diff(scores[found]) >= 0).all()


def test_arrays_of_several_parts_are_digested_by_all_of_them():
    """Parts are of 4,194,304 indices, which threads look at side by side."""
    indices = np.arange(9_000_001, dtype=np.uint32)
    order = orders.Custom(indices)
    assert order.digest == orders.Custom(indices.astype(np.int64)).digest
    for at in (0, 4_194_304, 9_000_000):
        other = indices.copy()
        other[at] += 5
        assert orders.Custom(other).digest != order.digest
    other[8_500_000] = 10_000_000
    with pytest.raises(InvalidArgumentError, match="index 10,000,000 at position 8,500,000, and there are 9,000,006"):
        orders.resolve(orders.Custom(other), 9_000_006, 0)


@pytest.mark.parametrize(
    ("indices", "words"),
    [
        ([0.5, 1.0], r"indices of shape \[2\] and type float64: integers \[n\] wanted"),
        ([], "type float64"),
        (np.zeros(0, np.int64), "no indices"),
        ([[1, 2], [3, 4]], r"shape \[2, 2\]"),
        (5, r"shape \[\] and type int64"),
        ([True, False], r"np\.flatnonzero\(mask\)"),
        (["a"], "integers"),
        ([1, None], "type object"),
        ([[1], [2, 3]], "is no array"),
        ([1, -3, 2], "index -3 at position 1: observations are numbered from 0"),
        (np.array([1, -3], np.int32), "index -3 at position 1"),
        (np.array([1, -3], np.int8), "index -3 at position 1"),
    ],
)
def test_what_is_no_array_of_indices_is_refused_when_it_is_made(indices, words):
    with pytest.raises(InvalidArgumentError, match=words):
        orders.Custom(indices)


def test_an_index_that_the_view_lacks_is_refused_when_the_loader_is_made(view):
    for indices in (np.array([5, N, 7]), np.array([5, N, 7], np.uint32), np.array([5, 2**64 - 1], np.uint64)):
        with pytest.raises(
            InvalidArgumentError, match=r"orders\.Custom: index [\d,]+ at position 1, and there are 101"
        ):
            loader_of(view, orders.Custom(indices))
    with pytest.raises(InvalidArgumentError, match="an array or a function as"):
        loader_of(view, np.arange(5))
    with pytest.raises(InvalidArgumentError, match="an array or a function as"):
        loader_of(view, turned)
    with pytest.raises(InvalidArgumentError, match="name=, version= and length= are"):
        orders.Custom([1], name="mine")
    for options in ({"fetch": 0}, {"lanes": 0}, {"fetch": 1.5}):
        with pytest.raises(InvalidArgumentError, match=r"fetch|lanes"):
            orders.Custom([1], **options)


# --- files


def test_a_file_that_is_no_npy_of_indices_is_refused_with_its_name(tmp_path):
    def refused(kind: type[Exception], words: str) -> None:
        with pytest.raises(kind, match=words) as raised:
            orders.Custom(tmp_path / "order.npy")
        assert "order.npy" in str(raised.value)

    refused(penstock.NotFoundError, "No such file")
    (tmp_path / "order.npy").mkdir()
    refused(penstock.IoError, "directory")
    (tmp_path / "order.npy").rmdir()
    for content in (b"", b"1 2 3", b"\x93NUMPY\x01\x00\xff", b"\x93NUMPY\x07\x00\x10\x00" + b"x" * 20):
        (tmp_path / "order.npy").write_bytes(content)
        refused(InvalidArgumentError, "no .npy file")
    for array, words in ((np.ones(3), "float64"), (np.ones((2, 2), int), r"\[2, 2\]"), (np.zeros(0, int), "no indices"),
                         (np.array([1, -2]), "index -2 at position 1"), (np.array([None]), "object")):  # fmt: skip
        np.save(tmp_path / "order.npy", array)
        refused(InvalidArgumentError, words)
    np.save(tmp_path / "order.npy", np.arange(1000))
    (tmp_path / "order.npy").write_bytes((tmp_path / "order.npy").read_bytes()[:-1])
    refused(CorruptionError, "8,127 bytes, its header says 8,128")
    with pytest.raises(InvalidArgumentError, match="paths of this machine alone"):
        orders.Custom("s3://bucket/order.npy")


@pytest.mark.parametrize("change", ["cut", "written"])
def test_a_file_that_changes_ends_the_loader_by_an_error(tmp_path, view, change):
    np.save(tmp_path / "order.npy", np.arange(100_000) % N)
    order = orders.Custom(tmp_path / "order.npy")
    loader = loader_of(view, order, prefetch=1)
    assert next(loader).indices.tolist() == list(range(8))
    if change == "cut":
        with (tmp_path / "order.npy").open("r+b") as file:
            file.truncate(128)
    else:
        np.save(tmp_path / "order.npy", np.arange(100_000)[::-1] % N)
    for _ in range(2):  # asked again, it says so again
        with pytest.raises(CorruptionError, match="changed since it was opened"):
            for _ in range(3):
                next(loader)
    loader.close()
    with pytest.raises(CorruptionError, match="changed since"):
        loader_of(view, order)


def test_a_file_that_is_replaced_stays_what_it_was_for_who_has_it_open(tmp_path, view):
    np.save(tmp_path / "order.npy", np.arange(50))
    order = orders.Custom(tmp_path / "order.npy")
    loader = loader_of(view, order)
    np.save(tmp_path / "new.npy", np.arange(50)[::-1])
    (tmp_path / "new.npy").rename(tmp_path / "order.npy")
    assert next(loader).indices.tolist() == list(range(8))
    with pytest.raises(penstock.StateMismatchError, match="order's digest"):
        loader_of(view, orders.Custom(tmp_path / "order.npy")).load_state_dict(loader.state_dict())


# --- ranks and states


ORDERS: dict[str, Any] = {
    "array": lambda folder: orders.Custom(np.append(np.arange(N)[::-1], [4, 4, 9])),
    "file, in fetches": lambda folder: npy(folder, np.arange(2 * N) * 7 % N, fetch=16, lanes=4),
    "short array": lambda folder: orders.Custom([3, 1, 2]),
    "function": lambda folder: turned_order(),
    "function, in fetches": lambda folder: turned_order(length=130, fetch=8, lanes=2),
}


def npy(folder: Path, indices: np.ndarray, **options: Any) -> orders.Custom:
    np.save(folder / "order.npy", indices)
    return orders.Custom(folder / "order.npy", **options)


def reference(name: str, position: int) -> int:
    """What stands at a position, in plain words."""
    length = {"array": N + 3, "file, in fetches": 2 * N, "short array": 3, "function": N}.get(name, 130)
    epoch, at = divmod(position, length)
    if name == "array":
        return N - 1 - at if at < N else [4, 4, 9][at - N]
    if name == "file, in fetches":
        return at * 7 % N
    return [3, 1, 2][at] if name == "short array" else (at + 10 * epoch) % N


def global_batches(view: penstock.View, order: Any, ranks: int, state: Any, count: int) -> list[list[int]]:
    """The next batches of all ranks, by their tokens."""
    loaders = [loader_of(view, order, batch_size=None, global_batch_size=60, rank=rank, world_size=ranks)
               for rank in range(ranks)]  # fmt: skip
    found = []
    for loader in loaders:
        if state is not None:
            loader.load_state_dict(state)
    for _ in range(count):
        rows = np.zeros(60, int)
        for rank, loader in enumerate(loaders):
            rows[rank::ranks] = next(loader)["token"][:, 0] // 10
        found.append(rows.tolist())
    return found


@pytest.mark.parametrize("name", ORDERS)
def test_restored_at_every_step_on_one_to_five_ranks(tmp_path, view, name):
    order = ORDERS[name](tmp_path)
    expected = [[reference(name, position) for position in range(begin, begin + 60)] for begin in range(0, 480, 60)]
    states = []
    with loader_of(view, order, batch_size=60) as loader:
        states = [loader.state_dict(), *(batch.state_dict() for batch in islice(loader, 7))]
    for step, state in enumerate(states):
        ranks = 1 + step % 5
        again = ORDERS[name](tmp_path) if step % 2 else pickle.loads(pickle.dumps(order))
        saved = json.loads(json.dumps(state))
        assert global_batches(view, again, ranks, saved, len(expected) - step) == expected[step:], (step, ranks)


def test_a_state_of_another_order_is_refused_in_words(view):
    state = loader_of(view, turned_order()).state_dict()
    for other, words in (
        (turned_order(version=2), "order's version: saved 1, now 2"),
        (turned_order(name="ramp"), "order's function: saved turned, now ramp"),
        (turned_order(length=50), "order's length: saved 101, now 50"),
        (orders.Custom([1, 2]), "order's digest"),
        ("uniform", "order: saved custom, now uniform"),
    ):
        with pytest.raises(penstock.StateMismatchError, match=words):
            loader_of(view, other).load_state_dict(state)
    for same in (turned_order(fetch=4, lanes=2), turned_order(version="1"), turned_order(length=N)):
        assert loader_of(view, same, seed=5).load_state_dict(state).position == 0


# --- functions


def test_a_function_is_asked_for_blocks_by_a_thread_of_its_own(tmp_path):
    view = raw_tokens(tmp_path / "tokens.bin", 150_000)[0].windows(1)
    asked = []

    def recorded(epoch: int, positions: np.ndarray) -> np.ndarray:
        assert type(epoch) is int and positions.dtype == np.int64
        asked.append((epoch, int(positions[0]), len(positions), threading.current_thread().name))
        return positions[::-1]

    order = orders.Custom(recorded, name="recorded", version=1)
    with loader_of(view, order, batch_size=5000, epochs=1) as loader:
        found = np.concatenate([batch.indices for batch in loader])
    blocks = [(0, 65_536), (65_536, 65_536), (131_072, 18_928)]
    assert found.tolist() == [at for begin, size in blocks for at in range(begin + size - 1, begin - 1, -1)]
    assert asked == [(0, begin, size, "penstock-order") for begin, size in blocks]  # each once, none beyond the run


@pytest.mark.parametrize("fails", [False, True])
def test_the_next_epoch_is_asked_for_ahead_and_once_where_it_fails(tmp_path, fails):
    view = raw_tokens(tmp_path / "tokens.bin", 70_000)[0].windows(1)
    asked: list[tuple[int, int]] = []
    next_epoch = threading.Event()

    def recorded(epoch: int, positions: np.ndarray) -> np.ndarray:
        asked.append((epoch, int(positions[0])))
        if epoch == 1:
            next_epoch.set()
        if epoch == 1 and fails:
            raise ValueError("not made yet")
        return positions

    order = orders.Custom(recorded, name="recorded", version=1)
    with loader_of(view, order, batch_size=100, prefetch=1, epochs=2) as loader:
        loader.seek(65_600)  # in the last block, 44 batches before the epoch's end
        next(loader)
        assert next_epoch.wait(10)
        for _ in range(30):
            next(loader)
    assert asked == [(0, 65_536), (1, 0)]


def test_a_mixture_gives_what_was_read_while_a_function_has_not_answered(view):
    may_answer = threading.Event()

    def hangs(epoch: int, positions: np.ndarray) -> np.ndarray:
        if epoch == 1:
            may_answer.wait(20)
        return positions

    mixture = penstock.Mixture({"a": view, "b": view}, [penstock.Stage({"a": 1, "b": 1})])
    order = orders.Custom(hangs, name="hangs", version=1)
    begun = time.monotonic()
    with loader_of(mixture, order, prefetch=4) as loader:
        for _ in range(2 * N // 8):
            assert not next(loader).epochs.any()
        assert time.monotonic() - begun < 10
        may_answer.set()
        assert next(loader).epochs.any()


def test_what_a_function_raises_reaches_the_caller_with_its_traceback_and_is_asked_again(view):
    failing = [True]

    def sometimes(epoch: int, positions: np.ndarray) -> np.ndarray:
        if epoch == 1 and failing[0]:
            raise ZeroDivisionError("of the user")
        return positions

    order = orders.Custom(sometimes, name="sometimes", version=3)
    for fetch in (None, 16):
        failing[0], order.fetch = True, fetch
        with loader_of(view, order, batch_size=N) as loader:
            assert next(loader).indices.tolist() == list(range(N))
            for _ in range(2):
                words = (
                    r"orders\.Custom 'sometimes', version 3: epoch 1, positions 0 to 100: its function raised "
                    "ZeroDivisionError: of the user"
                )
                with pytest.raises(InvalidArgumentError, match=words) as raised:
                    next(loader)
                cause = raised.value.__cause__
                assert isinstance(cause, ZeroDivisionError)
                frames = []
                traceback = cause.__traceback__
                while traceback is not None:
                    frames.append(traceback.tb_frame.f_code.co_name)
                    traceback = traceback.tb_next
                assert frames[-1] == "sometimes"
            failing[0] = False
            assert next(loader).indices.tolist() == list(range(N))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda positions: positions / 2, r"of shape \[101\] and type float64: integers \[101\] wanted"),
        (lambda positions: positions[1:], r"of shape \[100\]"),
        (lambda positions: positions.reshape(1, -1), r"of shape \[1, 101\]"),
        (lambda positions: None, r"of shape \[\] and type object"),
        (lambda positions: positions > 3, "type bool"),
        (lambda positions: positions - 3, "its function returned -3 at position 0: observations are numbered from 0"),
        (lambda positions: positions + 50, r"epoch 0, position 51: index 101, and there are 101 observations"),
        (lambda positions: positions.astype("u8") - 1, "position 0: index 18,446,744,073,709,551,615"),
    ],
)
def test_what_a_function_must_not_give_is_named_by_epoch_and_position(view, answer, words):
    order = orders.Custom(lambda epoch, positions: answer(positions), name="odd", version=1)
    with pytest.raises(InvalidArgumentError, match=words) as raised:
        next(loader_of(view, order))
    assert str(raised.value).startswith("orders.Custom 'odd', version 1: epoch 0, position")
    with pytest.raises(InvalidArgumentError, match=words):
        given(view, order, 5)


def test_any_integers_are_indices(view):
    for dtype in ("u1", "i1", "i4", ">u8", "u4"):
        order = orders.Custom(lambda epoch, positions, dtype=dtype: positions.astype(dtype), name="f", version=1)
        assert given(view, order, 4) == [0, 1, 2, 3]
    order = orders.Custom(lambda epoch, positions: positions.tolist()[::-1], name="f", version=1)
    assert given(view, order, 3) == [100, 99, 98]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"version": 1}, "a function without name="),
        ({"name": "f"}, "a function without version="),
        ({"name": "", "version": 1}, "name=''"),
        ({"name": 5, "version": 1}, "name=5: a text"),
        ({"name": "f", "version": 1.5}, "version=1.5: an integer or a text"),
        ({"name": "f", "version": True}, "version=True"),
        ({"name": "a\nb", "version": 1}, "printable"),
        ({"name": "f" * 201, "version": 1}, "1 to 200"),
        ({"name": "\ud800", "version": 1}, "printable"),
        ({"name": "f", "version": 1, "length": 0}, "length 0: wanted at least 1"),
        ({"name": "f", "version": 1, "length": 2.0}, "an integer"),
    ],
)
def test_a_function_has_a_name_and_a_version(options, words):
    with pytest.raises(InvalidArgumentError, match=words):
        orders.Custom(turned, **options)


@pytest.mark.parametrize("version", [7, "7", np.int64(7), np.uint8(7)])
def test_a_version_is_an_integer_of_any_type_or_a_text(version):
    assert orders.Custom(turned, name="turned", version=version).version == "7"


def test_threads_end_with_their_orders(view):
    def asking() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name == "penstock-order"}

    before = asking()  # of orders before, which may end meanwhile
    with loader_of(view, turned_order()) as loader:
        next(loader)
        own = asking() - before
        assert len(own) == 1
    del loader
    for _ in range(200):
        if not own & asking():
            return
        threading.Event().wait(0.05)
    raise AssertionError("the thread is still there")


# --- to other processes


def test_files_travel_by_their_path_and_arrays_by_their_values(tmp_path, view):
    indices = np.arange(70_000) * 3 % N
    by_path, by_value = npy(tmp_path, indices), orders.Custom(indices)
    assert len(pickle.dumps(by_path)) < 1000 < 500_000 < len(pickle.dumps(by_value))
    for order in (by_path, by_value):
        again = pickle.loads(pickle.dumps(order))
        assert again.digest == order.digest and given(view, again, 100) == indices[:100].tolist()
    travelling = pickle.dumps(by_path)
    np.save(tmp_path / "order.npy", indices)  # the same at another time: it is read again
    assert given(view, pickle.loads(travelling), 100) == indices[:100].tolist()
    np.save(tmp_path / "order.npy", indices[::-1])
    with pytest.raises(CorruptionError, match="other indices than when it was pickled"):
        pickle.loads(travelling)
    (tmp_path / "order.npy").unlink()
    with pytest.raises(penstock.NotFoundError):
        pickle.loads(travelling)


def test_a_function_travels_by_its_name_or_is_refused(view):
    assert given(view, pickle.loads(pickle.dumps(turned_order())), 3) == [0, 1, 2]
    order = orders.Custom(lambda epoch, positions: positions, name="mine", version=1)
    with pytest.raises(InvalidArgumentError, match=r"'mine' does not pickle.*at the top of a module"):
        pickle.dumps(order)
    cloudpickle = pytest.importorskip("cloudpickle")
    assert given(view, pickle.loads(cloudpickle.dumps(order)), 3) == [0, 1, 2]


# --- with what else there is


def test_mixtures_take_one_for_each_source(tmp_path, view):
    np.arange(500, dtype="u2").tofile(tmp_path / "other.bin")
    other = penstock.open(tmp_path / "other.bin", dtype="u2").windows(10)
    mixture = penstock.Mixture({"a": view, "b": other}, [penstock.Stage({"a": 2, "b": 1})], end=300)
    order = {"a": turned_order(), "b": orders.Custom([7, 7, 1])}
    picks = penstock.Job(mixture, global_batch_size=6, order=order).picks(0, 300)
    a, b = (picks["index"][picks["source"] == number].tolist() for number in range(2))
    assert a == [reference("function", at) for at in range(len(a))] and b == ([7, 7, 1] * 100)[: len(b)]
    with loader_of(mixture, order, batch_size=6) as loader:
        states = [batch.state_dict() for batch in islice(loader, 20)]
        assert [loader.locate(position=120)[row].index for row in range(6)] == picks["index"][120:126].tolist()
        loader.load_state_dict(states[3])
        assert next(loader).indices.tolist() == picks["index"][24:30].tolist()
    with pytest.raises(InvalidArgumentError, match="index 101 at position 0"):
        loader_of(mixture, {"a": orders.Custom([N])})


def test_rows_by_cost_of_an_order_in_fetches(view):
    options = {"batch_size": 8, "epochs": 1, "balance": penstock.Balance(np.arange(N)), "world_size": 2}
    found = []
    for rank in range(2):
        with loader_of(view, turned_order(fetch=16), rank=rank, **options) as loader:
            found += [int(index) for batch in loader for index in batch.indices[batch.valid]]
    assert sorted(found) == list(range(N))


def test_collections_evaluation_and_workers(view):
    collection = np.arange(N) * 2
    order = turned_order(length=60)
    with penstock.CollectionLoader(collection, 10, order=order, epochs=2) as loader:
        assert np.concatenate(list(loader)).tolist() == [2 * ((at % 60 + 10 * (at // 60)) % N) for at in range(120)]
    with pytest.raises(InvalidArgumentError, match="index 101"):
        penstock.CollectionLoader(collection, 10, order=orders.Custom([N]))
    asked = []
    recorded = orders.Custom(lambda epoch, positions: asked.append(epoch) or positions, name="recorded", version=1)
    with penstock.CollectionLoader(collection, 10, order=recorded, epochs=1) as loader:
        assert len(loader) == 11 and not asked  # being made it asks nothing
        assert next(loader).tolist() == [2 * at for at in range(10)] and asked == [0]
    with pytest.raises(InvalidArgumentError, match="not a multiple of world size 4"):
        penstock.CollectionLoader(collection, global_batch_size=10, order=recorded, rank=0, world_size=4)
    evaluation = penstock.eval_loader(view, 10, order=orders.Custom([5, 6, 7]))
    for _ in range(2):
        assert [batch.indices[batch.valid].tolist() for batch in evaluation] == [[5, 6, 7]]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_dataloader_make_it_anew(tmp_path, view, method):
    torch = pytest.importorskip("torch")
    from penstock.adapters.torch import BatchDataset

    for order in (turned_order(), npy(tmp_path, np.arange(N)[::-1])):
        dataset = BatchDataset(view, 10, order=order, epochs=1)
        batches = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context=method)
        found = [int(each) for batch in batches for each in batch["token"][:, 0] // 10]
        assert found[:N] == given(view, order, N)


def test_growth_is_refused_in_words(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].documents()
    for order in (turned_order(), orders.Custom([1])):
        with pytest.raises(InvalidArgumentError, match="says itself which observations come"):
            loader_of(view, order, on_mismatch="grown")


def test_ranks_that_have_other_indices_are_told(view):
    from penstock._load.agreement import Facts, disagreements

    jobs = [loader_of(view, each).state_dict()["job"] for each in (orders.Custom([1, 2]), orders.Custom([2, 1]))]
    facts = [Facts(rank, 2, 0, job, [(0, 8)], None, None, "pad") for rank, job in enumerate(jobs)]
    assert "order.digest" in disagreements(facts)[0]
