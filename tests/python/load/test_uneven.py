"""uneven="pad": any global batch on any number of ranks, by content, with the factors that losses are weighed by.

What it gives with every order, view, mixture and column tests/model has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import raw_tokens

WINDOW = 3
COUNT = 9_001  # windows: two batches of 4,096, and one that is not full


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> penstock.View:
    """Windows of tokens that count: token t is t."""
    path = tmp_path_factory.mktemp("uneven") / "tokens.bin"
    np.arange(COUNT * WINDOW, dtype="<u4").tofile(path)
    return penstock.open(path, dtype="u4").windows(WINDOW)


def loader(view: penstock.View, rank: int, ranks: int, size: Any, **options: Any) -> penstock.Loader:
    given = {"seed": 5, "epochs": 1, "framework": "numpy", "threads": 1, "prefetch": 1, "uneven": "pad", **options}
    return penstock.Loader(view, global_batch_size=size, rank=rank, world_size=ranks, **given)


def dealt(batches: list[penstock.Batch], size: int) -> np.ndarray:
    """The rows of a global batch by position, from those of all ranks; that they are as they are to be."""
    ranks = len(batches)
    counts = [int(batch.valid.sum()) for batch in batches]
    total = sum(counts)
    rows = np.zeros((total, WINDOW), "i8")
    for rank, (batch, count) in enumerate(zip(batches, counts, strict=True)):
        assert batch.global_rows == total and batch.loss_scale == count * ranks / total
        assert len(batch.valid) == -(-size // ranks) and count == len(range(rank, total, ranks))
        assert batch.valid[:count].all() and not batch["token"][count:].any() and (batch.indices[count:] == -1).all()
        tokens = batch["token"][:count].astype("i8")
        assert (tokens == batch.indices[:count, None] * WINDOW + np.arange(WINDOW)).all()
        rows[rank::ranks] = tokens
    return rows


def steps(
    view: penstock.View, ranks: int, size: int, state: Any, count: int, **options: Any
) -> Iterator[tuple[np.ndarray, Any]]:
    """(rows, state after them) of the next `count` global batches; no rank knows of the others."""
    batches: list[list[penstock.Batch]] = []
    states = []
    for rank in range(ranks):
        with loader(view, rank, ranks, size, **options) as each:
            if state is not None:
                each.load_state_dict(state)
            batches.append(list(islice(each, count)))
            states.append([batch.state_dict() for batch in batches[-1]])
    assert all(each == states[0] for each in states)
    for step in range(count):
        yield dealt([of_rank[step] for of_rank in batches], size), states[0][step]


@pytest.mark.parametrize("size", [4_096, 1_000, 5])
def test_1000_ranks_then_960_then_7_give_the_batches_of_one(view, size):
    """Some seconds: so many loaders are made."""
    wanted = [batch["token"].astype("i8") for batch in islice(loader(view, 0, 1, size), 3)]
    state, found = None, []
    for ranks in (1_000, 960, 7):
        ((rows, state),) = steps(view, ranks, size, state, 1)
        found.append(rows)
    for rows, alone in zip(found, wanted, strict=True):
        assert (rows == alone[: len(rows)]).all()
    assert state["position"] == min(3 * size, COUNT)  # the third of 4,096 is the epoch's end


@pytest.mark.parametrize("size", [4_096, 1_000, 5])
@pytest.mark.parametrize("first", range(1, 65, 16))
def test_1_to_64_ranks_give_the_batches_of_one(view, size, first):
    """A run that goes on at another number of ranks at each step, around the epoch's end."""
    begin = {**penstock.Job(view, global_batch_size=1, seed=5, epochs=2).state_dict(0), "position": COUNT - 8 * size}
    begin["position"] = max(0, begin["position"])
    with loader(view, 0, 1, size, epochs=2) as alone:
        alone.load_state_dict(begin)
        state: Any = begin
        for ranks in range(first, first + 16):
            batch = next(alone, None)
            if batch is None:
                alone.load_state_dict(begin)
                state, batch = begin, next(alone)
            ((rows, state),) = steps(view, ranks, size, state, 1, epochs=2)
            assert (rows == batch["token"][: len(rows)]).all() and state == batch.state_dict()


@pytest.mark.filterwarnings("ignore:this loader's run is over")
@pytest.mark.parametrize(
    ("size", "options"),
    [
        (7, {"epochs": 2}),
        (7, {"epochs": 2, "per_epoch": True}),
        (7, {"epochs": 2, "per_epoch": True, "tail": "drop"}),
        (3, {"epochs": 1, "skip": [(2, 4), (9, 20)], "order": penstock.orders.Blocks(2, 6)}),
        (2, {"epochs": 1, "order": "sequential"}),
    ],
)
def test_restored_at_every_step_on_1_to_5_ranks(tmp_path, size, options):
    view = raw_tokens(tmp_path / "tokens.bin", 23 * WINDOW, "u4")[0].windows(WINDOW)

    def rest(ranks: int, state: Any) -> list[Any]:
        """All rows by position, batch by batch, and the states after each."""
        with ExitStack() as stack:
            each = [stack.enter_context(loader(view, r, ranks, size, **options)) for r in range(ranks)]
            for one in each:
                one.load_state_dict(state)
            found = []
            for _ in range(2 if options.get("per_epoch") else 1):
                for batches in zip(*each, strict=True):
                    counts = [int(batch.valid.sum()) for batch in batches]
                    assert all(batch.global_rows == sum(counts) for batch in batches)
                    assert [len(batch.valid) for batch in batches] == [-(-size // ranks)] * ranks
                    tokens = {int(p): t.tolist() for b in batches for p, t in zip(b.positions, b["token"], strict=True)}
                    tokens.pop(-1, None)
                    found.append((sorted(tokens.items()), batches[0].state_dict()))
            assert len({json.dumps(one.state_dict()) for one in each}) == 1
            return found

    with loader(view, 0, 1, size, **options) as first:
        state = first.state_dict()
    whole = rest(1, state)
    assert len(whole) >= 4
    for step in range(len(whole)):
        for ranks in range(1, 6):
            assert rest(ranks, state) == whole[step:], (step, ranks)
        state = whole[step][1]


def test_each_step_of_a_schedule_has_its_own_shape_and_a_rank_may_come_to_have_none(view):
    sizes = [(0, 7), (14, 2), (22, 12)]
    shapes = {7: 3, 2: 1, 12: 4}
    with ExitStack() as stack:
        each = [stack.enter_context(loader(view, rank, 3, sizes, order="sequential")) for rank in range(3)]
        at = 0
        for size in (7, 7, 2, 2, 2, 2, 12, 12):
            assert [one.batch_size for one in each] == [shapes[size]] * 3
            batches = [next(one) for one in each]
            assert [len(batch.valid) for batch in batches] == [shapes[size]] * 3
            assert (dealt(batches, size)[:, 0] == WINDOW * np.arange(at, at + size)).all()
            at += size
        each[0].set_batch_size(4)
        assert each[0].batch_size == 2 and len(next(each[0]).valid) == 2


def test_it_is_no_part_of_the_state_and_batch_size_always_divides(view):
    uneven, plain = loader(view, 0, 2, 7), loader(view, 0, 2, 8, uneven="refuse")
    assert uneven.state_dict() == plain.state_dict()
    plain.load_state_dict(next(uneven).state_dict())
    assert plain.position == 7
    with penstock.Loader(view, 3, rank=4, world_size=5, uneven="pad", framework="numpy") as each:
        batch = next(each)
        assert batch.valid.all() and (batch.global_rows, batch.loss_scale) == (15, 1.0)


def test_tokens_are_whole_windows_of_the_job_and_not_of_each_rank(view):
    with pytest.raises(penstock.InvalidArgumentError, match=r'Tokens\(24\), and uneven="pad" takes any whole windows'):
        loader(view, 0, 4, penstock.Tokens(7 * WINDOW), uneven="refuse")
    with loader(view, 3, 4, penstock.Tokens(7 * WINDOW)) as each:
        batch = next(each)
        assert (each.batch_size, int(batch.valid.sum()), batch.global_rows) == (2, 1, 7)
    with pytest.raises(penstock.InvalidArgumentError, match="these are no whole windows of 3: the nearest is"):
        loader(view, 0, 4, penstock.Tokens(7 * WINDOW + 1))


def test_micro_batches_are_padded_to_and_have_a_factor_each(view):
    costs = penstock.Balance(np.arange(COUNT) % 11, micro_batches=2)
    words = (
        r'does not divide the 3 rows .* give uneven="pad", .* \(8 or 16\), or a number of ranks that suits \(3 or 6\)'
    )
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        loader(view, 0, 4, 12, balance=costs, uneven="refuse")
    with pytest.raises(penstock.InvalidArgumentError, match=rf"the nearest is Tokens\({8 * WINDOW}\)"):
        loader(view, 0, 4, penstock.Tokens(7 * WINDOW), balance=costs, uneven="refuse")
    total = 0.0
    for rank in range(4):
        with loader(view, rank, 4, 10, balance=costs) as each:
            batch = next(each)
            valid = int(batch.valid.sum())
            assert each.batch_size == len(batch.valid) == 4 and valid == (3 if rank < 2 else 2)
            assert batch.loss_scales == (2 * 4 / 10, (valid - 2) * 4 / 10)
            assert sum(batch.loss_scales) == pytest.approx(batch.loss_scale)
            total += batch.loss_scale
    assert total == pytest.approx(4)  # averaged over ranks, 1


def test_a_batch_that_a_view_read_or_that_was_cloned_has_them_too(view):
    batch = view.read([1, 2, 3])
    assert (batch.global_rows, batch.loss_scale, batch.loss_scales) == (3, 1.0, (1.0,))
    empty = view.read([])
    assert (empty.global_rows, empty.loss_scale) == (0, 0.0)
    with loader(view, 1, 2, 7) as each:
        copy = next(each).clone()
        assert (copy.global_rows, copy.loss_scale, copy.clone().loss_scales) == (7, 6 / 7, (6 / 7,))


def test_jobs_and_their_plans_take_any_ranks(view):
    job = penstock.Job(view, global_batch_size=5, seed=5, epochs=1, uneven="pad")
    with loader(view, 0, 1, 5) as alone:
        wanted = next(alone).indices.tolist()
    plans = [job.plan(0, rank, 8) for rank in range(8)]
    assert [plan.picks["index"].tolist() for plan in plans if plan] == [[each] for each in [*wanted, -1, -1, -1]]
    assert {plan.global_rows for plan in plans if plan} == {5}
    assert [(row.rank, row.row) for row in job.locate(0, world_size=3)] == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]
    with pytest.raises(penstock.InvalidArgumentError, match=r'give uneven="pad" \(ranks get 0 or 1 rows'):
        penstock.Job(view, global_batch_size=5).plan(0, 0, 8)


def test_what_does_not_divide_is_refused_when_the_loader_is_made_in_words_of_what_would_do(view):
    words = (
        'global batch size 4,096 is not a multiple of world size 1,000: give uneven="pad" (ranks get 4 or 5 rows, '
        "padded to 5), or a multiple (4,000 or 5,000), or a number of ranks that divides it (512 or 1,024)"
    )
    with pytest.raises(penstock.InvalidArgumentError) as caught:
        penstock.Loader(view, global_batch_size=4_096, rank=0, world_size=1_000)
    assert str(caught.value) == words
    with pytest.raises(penstock.InvalidArgumentError) as caught:
        penstock.CollectionLoader(np.arange(9), global_batch_size=4_096, rank=0, world_size=1_000)
    assert str(caught.value) == words
    for wrong in ("drop", None, True):
        with pytest.raises(penstock.InvalidArgumentError, match="uneven="):
            loader(view, 0, 2, 7, uneven=wrong)
    with loader(view, 0, 2, 8, uneven="refuse") as each, pytest.raises(penstock.InvalidArgumentError, match="uneven="):
        each.set_batch_size(7)


def test_ranks_without_a_row_read_nothing(view):
    with loader(view, 7, 8, 5, order="sequential") as each:
        for _ in range(200):
            batch = next(each)
            assert not batch.valid.any() and batch.loss_scale == 0.0 and batch.global_rows == 5
        assert each.metrics().bytes_read == 0


@pytest.mark.parametrize("factor", [None, 2])
def test_collections(factor):
    store = np.arange(100) * 10
    wanted = [batch.tolist() for batch in penstock.CollectionLoader(store, 7, seed=1, epochs=1)]
    for ranks in (3, 5, 8):
        each = [
            penstock.CollectionLoader(
                store, global_batch_size=7, seed=1, epochs=1, rank=rank, world_size=ranks, uneven="pad",
                fetch_factor=factor, threads=0,
            )
            for rank in range(ranks)
        ]  # fmt: skip
        for whole, *batches in zip(wanted, *each, strict=True):
            infos = [one.info for one in each]
            valid = sum(int(info.valid.sum()) for info in infos)
            assert valid == min(7, valid) and {info.global_rows for info in infos} == {valid}
            assert [info.loss_scale for info in infos] == [int(i.valid.sum()) * ranks / valid for i in infos]
            assert [int(batches[i % ranks][i // ranks]) for i in range(valid)] == whole[:valid]
            assert {len(batch) for batch in batches} == {-(-7 // ranks)}
            for batch, info in zip(batches, infos, strict=True):
                assert (batch[~info.valid] == whole[valid - 1]).all()  # the last of the global batch
