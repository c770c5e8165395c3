"""len, bool, epochs, tails, batch sizes, skips: how many batches there are and where the position is."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import array, raw_tokens


@pytest.fixture
def view(tmp_path):
    """103 windows."""
    return raw_tokens(tmp_path / "tokens.bin", 103 * 8 + 3)[0].windows(8)


def make(view: penstock.View, *args: Any, **options: Any) -> penstock.Loader:
    return penstock.Loader(view, *args, **{"framework": "numpy", "threads": 2, **options})


def indices_of(loader: penstock.Loader) -> list[list[int]]:
    return [array(batch.indices).tolist() for batch in loader]


# --- the end


@pytest.mark.parametrize("tail", ["pad", "drop"])
@pytest.mark.parametrize("per_epoch", [False, True])
@pytest.mark.parametrize("batch_size", [2, 8, 100, 104, 400])
def test_rows_of_the_last_batch_are_told_before_it_comes(view, batch_size, per_epoch, tail):
    for rank in range(2):
        options = {"rank": rank, "world_size": 2, "per_epoch": per_epoch, "tail": tail, "epochs": 3}
        with make(view, global_batch_size=batch_size, **options) as loader:
            told = loader.tail_rows
            last = None
            for last in loader:  # noqa: B007
                assert loader.tail_rows == told
            assert told == (None if last is None else int(last.valid.sum()))
    with make(view, 10, per_epoch=False) as endless:
        assert endless.tail_rows is None


def test_a_rank_of_padding_alone_is_told(view):
    rows = [make(view, 4, epochs=1, rank=rank, world_size=8).tail_rows for rank in range(8)]
    assert rows == [1] * 7 + [0]  # 103 = 3 * 32 + 7


@pytest.mark.parametrize("per_epoch", [False, True])
def test_an_endless_run_says_that_positions_end(tmp_path, per_epoch):
    end = 1 << 63
    (tmp_path / "sparse.bin").touch()
    os.truncate(tmp_path / "sparse.bin", (1 << 33) + 3)  # few have so many epochs that they come there
    view = penstock.open(tmp_path / "sparse.bin", dtype="u1").windows(1)
    with make(view, 10, per_epoch=per_epoch) as loader:
        loader.seek(end - 10)
        assert next(loader).position == end - 10
        for position in (end, end - 9):
            loader.seek(position)
            for _ in range(2):
                with pytest.raises(penstock.InvalidArgumentError, match=r"position 9,223.*endless.*2\^63.*rewind"):
                    next(loader)
        loader.rewind()
        assert next(loader).position == 0
    job = penstock.Job(view, global_batch_size=10, per_epoch=per_epoch)
    with pytest.raises(penstock.InvalidArgumentError, match="endless"):
        job.plan(end - 3, 0, 1)
    with make(view, 10, epochs=1) as loader:  # a run that ends is over there
        loader.seek(end)
        assert list(loader) == []


def test_an_endless_loader_has_no_length_is_true_and_crosses_epochs(view):
    with make(view, 10) as loader:
        assert bool(loader)
        with pytest.raises(TypeError, match="endless"):
            len(loader)
        batches = list(islice(loader, 31))
    assert all(batch.valid.all() for batch in batches)
    crossing = batches[10]
    assert crossing.position == 100 and crossing.epochs.tolist() == [0] * 3 + [1] * 7
    indices = [index for batch in batches for index in batch.indices.tolist()]
    for epoch in range(3):
        assert sorted(indices[epoch * 103 : (epoch + 1) * 103]) == list(range(103))
    assert indices[:103] != indices[103:206]


@pytest.mark.parametrize("batch_size", [1, 7, 10, 103, 206, 500])
def test_a_padded_run_delivers_everything_and_ends_at_k_n(view, batch_size):
    with make(view, batch_size, epochs=2) as loader:
        assert len(loader) == -(-206 // batch_size)
        batches = list(loader)
        assert len(batches) == len(loader)
        assert loader.position == 206
        assert next(loader, None) is None and list(loader) == []  # a finished loader gives nothing …
        loader.rewind()
        assert len(list(loader)) == len(batches)  # … until rewind
    last = batches[-1]
    valid = 206 - (len(batches) - 1) * batch_size
    assert last.valid.tolist() == [True] * valid + [False] * (batch_size - valid)
    assert (
        (last.indices[valid:] == -1).all() and (last.epochs[valid:] == -1).all() and (last.indices[:valid] >= 0).all()
    )
    assert not last["token"][valid:].any()
    assert sum(int(batch.valid.sum()) for batch in batches) == 206


@pytest.mark.parametrize("batch_size", [1, 7, 10, 103, 206, 500])
def test_a_dropped_tail_is_not_delivered_and_the_run_still_ends_at_k_n(view, batch_size):
    with make(view, batch_size, epochs=2, tail="drop") as loader:
        assert len(loader) == 206 // batch_size
        batches = list(loader)
        assert len(batches) == 206 // batch_size
        assert all(batch.valid.all() for batch in batches)
        assert loader.position == 206


@pytest.mark.parametrize(("tail", "count"), [("pad", 11), ("drop", 10)])
def test_per_epoch_makes_each_for_one_epoch(view, tail, count):
    with make(view, 10, epochs=3, per_epoch=True, tail=tail) as loader:
        for epoch in range(3):
            assert len(loader) == count
            batches = list(loader)
            assert len(batches) == count
            assert loader.position == (epoch + 1) * 103
            assert {int(e) for batch in batches for e in batch.epochs[batch.valid]} == {epoch}
            seen = sorted(i for batch in batches for i in batch.indices[batch.valid].tolist())
            assert len(set(seen)) == len(seen) == (103 if tail == "pad" else 100)
        assert list(loader) == []


def test_per_epoch_without_epochs_goes_on_for_ever(view):
    with make(view, 50, per_epoch=True) as loader:
        assert len(loader) == 3
        for epoch in range(5):
            assert [batch.position for batch in loader] == [epoch * 103 + p for p in (0, 50, 100)]


def test_a_broken_off_epoch_goes_on_where_it_was(view):
    with make(view, 50, epochs=2, per_epoch=True) as loader:
        assert [batch.position for batch in islice(loader, 2)] == [0, 50]
        assert [batch.position for batch in loader] == [100]
        assert [batch.position for batch in loader] == [103, 153, 203]


def test_len_is_the_whole_run_not_what_remains(view):
    with make(view, 10, epochs=2) as loader:
        next(loader)
        assert len(loader) == 21
        loader.seek(200)
        assert len(loader) == 21 and len(list(loader)) == 1


# --- batch sizes


@pytest.mark.parametrize("arguments", [{}, {"batch_size": 4, "global_batch_size": 8}])
def test_exactly_one_batch_size_is_given(view, arguments):
    with pytest.raises(penstock.InvalidArgumentError, match="exactly one of batch_size"):
        make(view, **arguments)


def test_a_global_batch_size_that_ranks_do_not_divide_names_the_nearest_that_they_do(view):
    with pytest.raises(ValueError, match=r"100") as caught:
        make(view, global_batch_size=100, rank=0, world_size=7)
    assert "98" in str(caught.value)
    with pytest.raises(ValueError, match="105"):
        make(view, global_batch_size=103, rank=0, world_size=7)
    loader = make(view, global_batch_size=98, rank=0, world_size=7)
    assert len(next(loader).indices) == 14


def test_fewer_observations_than_ranks_names_one_that_is_possible(view):
    with pytest.raises(ValueError, match="7"):
        make(view, global_batch_size=3, rank=0, world_size=7)


@pytest.mark.parametrize("size", [0, -1, 2.5, "8", 1 << 64])
def test_a_batch_size_that_cannot_be(view, size):
    with pytest.raises(ValueError):
        make(view, size)


def test_batch_size_is_per_rank_and_global_batch_size_of_all(view):
    per_rank = make(view, 4, rank=1, world_size=3, epochs=1)
    total = make(view, global_batch_size=12, rank=1, world_size=3, epochs=1)
    assert indices_of(per_rank) == indices_of(total)
    assert len(per_rank) == len(total) == 9


def test_a_schedule_changes_the_batch_size_at_positions(view):
    with make(view, global_batch_size=[(0, 4), (10, 8), (40, 16)], epochs=1) as loader:
        found = [(batch.position, len(batch.indices)) for batch in loader]
        assert found[:7] == [(0, 4), (4, 4), (8, 4), (12, 8), (20, 8), (28, 8), (36, 8)]
        assert found[7:] == [(44, 16), (60, 16), (76, 16), (92, 16)]
        assert len(loader) == len(found)
        loader.seek(50)
        assert len(next(loader).indices) == 16
    with make(view, 4, epochs=1) as plain, make(view, [(0, 4), (30, 2)], epochs=1) as scheduled:
        order = [i for batch in indices_of(plain) for i in batch if i >= 0]
        assert [i for batch in indices_of(scheduled) for i in batch if i >= 0] == order


@pytest.mark.parametrize(
    "schedule", [[], [(1, 4)], [(0, 4), (0, 8)], [(0, 4), (9, 8), (5, 4)], [(0, 0)], [(0, 4), (8, 5)]]
)
def test_a_schedule_that_cannot_be(view, schedule):
    with pytest.raises(ValueError):
        make(view, global_batch_size=schedule, rank=0, world_size=2)


def test_set_batch_size_works_from_the_next_undelivered_batch_on(view):
    with make(view, 4, rank=1, world_size=2, epochs=1, prefetch=6) as loader:
        next(loader), next(loader)
        loader.set_batch_size(3)  # per rank, as at construction; six batches of four were read ahead
        sizes = [(batch.position, len(batch.indices)) for batch in islice(loader, 3)]
        assert sizes == [(16, 3), (22, 3), (28, 3)]
    with make(view, global_batch_size=8, rank=1, world_size=2) as loader:
        loader.set_batch_size(6)
        assert len(next(loader).indices) == 3
        with pytest.raises(ValueError, match="7"):
            loader.set_batch_size(7)
        with pytest.raises(ValueError):
            loader.set_batch_size(0)
        assert len(next(loader).indices) == 3  # a refused change changes nothing


# --- skips


def test_a_run_of_which_everything_is_skipped_is_empty(view):
    with make(view, 4, epochs=2, skip=[(0, 206)]) as loader:
        assert len(loader) == 0 and list(loader) == [] and loader.position == 206


@pytest.mark.parametrize("skip", [[(5, 3)], [(-1, 3)], [(0.5, 3)]])
def test_a_skip_that_cannot_be(view, skip):
    with pytest.raises(ValueError):
        make(view, 4, skip=skip)


# --- evaluation, transform, other arguments


def test_an_eval_loader_gives_the_same_batches_at_every_for(view):
    loaders = [penstock.eval_loader(view, 9, seed=3, rank=r, world_size=4, framework="numpy") for r in range(4)]
    first = [indices_of(loader) for loader in loaders]
    assert {len(batches) for batches in first} == {3} == {len(loader) for loader in loaders}
    assert sorted(i for batches in first for batch in batches for i in batch if i >= 0) == list(range(103))
    next(iter(loaders[0]))
    assert [indices_of(loader) for loader in loaders] == first  # also after one that was broken off


def test_transform_changes_what_is_given_but_not_the_order(view):
    seen = []
    with make(
        view, 5, epochs=1, transform=lambda batch: (seen.append(batch.position), batch["token"].sum())[1]
    ) as loader:
        sums = list(loader)
    with make(view, 5, epochs=1) as plain:
        assert sums == [batch["token"].sum() for batch in plain]
    assert seen == list(range(0, 103, 5))  # once for each batch given out, not for those read ahead


@pytest.mark.parametrize("options", [{}, {"per_epoch": True, "epochs": 3}, {"skip": [(7, 12)]}])
def test_a_batch_whose_transform_fails_was_not_delivered_and_comes_again(view, options):
    failures = 2

    def fail_twice(batch: Any) -> Any:
        nonlocal failures
        if batch.position == 5 and failures > 0:
            failures -= 1
            raise KeyError("mine")
        return batch

    expected = [batch.indices.tolist() for batch in islice(make(view, 5, **options), 4)]
    with make(view, 5, transform=fail_twice, **options) as loader:
        seen = [next(loader).indices.tolist()]
        for _ in range(2):
            with pytest.raises(KeyError, match="mine"):
                next(loader)
            assert loader.position == loader.state_dict()["position"] == 5
        seen += [next(loader).indices.tolist() for _ in range(3)]
    assert seen == expected


@pytest.mark.parametrize(
    "options",
    [{"tail": "keep"}, {"reader": "libaio"}, {"framework": "jax"}, {"on_mismatch": "shrug"}, {"order": "random"},
     {"epochs": -1}, {"seed": -1}, {"seed": 1 << 64}, {"seed": 0.5}, {"threads": -1}, {"prefetch": -2},
     {"max_bytes": -1}, {"epochs": 1 << 62}, {"epochs": 1.5}],
)  # fmt: skip
def test_an_argument_that_cannot_be_is_refused_in_words(view, options):
    with pytest.raises(penstock.InvalidArgumentError) as caught:
        make(view, 4, **options)
    assert str(next(iter(options.values()))) in str(caught.value).replace(",", "")


def test_seeds_and_epochs_give_other_orders(view):
    orders = [tuple(i for batch in indices_of(make(view, 10, seed=seed, epochs=1)) for i in batch) for seed in range(4)]
    orders.append(tuple(i for batch in indices_of(make(view, 10, seed=(1 << 64) - 1, epochs=1)) for i in batch))
    assert len(set(orders)) == 5
    assert indices_of(make(view, 10, order="sequential", epochs=1))[0] == list(range(10))


def test_a_position_beyond_the_run_is_its_end(view):
    with make(view, 4, epochs=1) as loader:
        loader.seek(5000)
        assert list(loader) == []
        for position in (-1, 1.5, 1 << 64, (1 << 63) + 1):
            with pytest.raises(ValueError):
                loader.seek(position)


def test_a_closed_loader_refuses_and_closing_twice_is_nothing(view):
    loader = make(view, 4)
    batch = next(loader)
    content = array(batch["token"])
    loader.close()
    loader.close()
    with pytest.raises(penstock.InvalidArgumentError, match="closed"):
        next(loader)
    np.testing.assert_array_equal(batch["token"], content)
    assert loader.state_dict()["position"] == 4  # its state can still be saved
    assert "rank 0 of 1" in repr(loader)


@pytest.mark.parametrize(
    ("view", "options", "words"),
    [
        ("a path", {}, "a str is no view"),
        (None, {"tail": None}, "tail=None"),
        (None, {"skip": 5}, "skip=5: must be ranges"),
        (None, {"batch_size": "4"}, "batch size='4'"),
        (None, {"transform": 5}, "transform=5: must be a function"),
        (None, {"threads": 0}, "threads=0: must be from 1 to"),
        (None, {"threads": 1 << 32}, "threads=4294967296: must be from 1 to"),
        (None, {"prefetch": 0}, "prefetch=0: must be from 1 to"),
        (None, {"epochs": 0}, "epochs=0: must be from 1 to"),
        (None, {"batch_size": 0}, "batch size=0: must be from 1 to"),
        (None, {"batch_size": 1 << 63, "rank": 0, "world_size": 4}, "batch size=9223372036854775808: must be"),
    ],
)
def test_what_newcomers_mistake_is_told_in_words(tmp_path, view, options, words):
    found = raw_tokens(tmp_path / "tokens.bin", 100)[0].windows(10) if view is None else view
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        penstock.Loader(found, **{"batch_size": 2, **options})


@pytest.mark.parametrize("order", ["uniform", "sequential", penstock.orders.Blocks(2, 4)])
@pytest.mark.parametrize("size", [10**15, 1 << 44, 1 << 31, 1 << 24])
def test_a_batch_that_memory_cannot_hold_is_refused_when_it_is_said(tmp_path, order, size):
    view = raw_tokens(tmp_path / "tokens.bin", 1000)[0].windows(10)
    refused = pytest.raises(
        penstock.InvalidArgumentError, match=f"no memory for a batch of {size:,} rows.*use a smaller batch size"
    )
    options = {"order": order, "framework": "numpy", "max_bytes": 1 << 28}
    for sizes in (size, [(0, 8), (80, size)]):
        with refused:
            penstock.Loader(view, sizes, **options)
    with penstock.Loader(view, 8, **options) as loader:
        next(loader)
        with refused:
            loader.set_batch_size(size)
        assert loader.batch_size == 8 and next(loader).position == 8


def test_a_size_that_the_run_never_fills_is_taken_and_its_batch_padded_or_dropped(tmp_path):
    """docs/decisions.md: "A batch that cannot be is refused early"."""
    view = raw_tokens(tmp_path / "tokens.bin", 1000)[0].windows(10)
    for sizes, full in ((1024, 0), ([(0, 8), (80, 1024)], 10), ([(0, 8), (80, 8), (96, 1024)], 12)):
        for tail, more in (("pad", 1), ("drop", 0)):
            options = {"order": "sequential", "framework": "numpy", "epochs": 1, "tail": tail}
            batches = list(penstock.Loader(view, sizes, **options))
            assert [len(batch["token"]) for batch in batches] == [8] * full + [1024] * more
            assert sum(int(batch.valid.sum()) for batch in batches) == (100 if more else 8 * full)
    ranks = [penstock.Loader(view, 1, rank=rank, world_size=1024, epochs=1, framework="numpy") for rank in (0, 1023)]
    assert [int(next(each).valid.sum()) for each in ranks] == [1, 0]


@pytest.mark.parametrize("kind", ["stream", "windows", "documents"])
@pytest.mark.parametrize("order", ["sequential", "uniform"])
def test_what_the_check_counts_for_a_batch_is_near_what_it_takes(tmp_path, kind, order):
    rows = 1 << 16
    options = {"metadata": None} if kind == "stream" else {}
    with penstock.Writer(tmp_path / "corpus", {"token": "u2"}, **options) as writer:
        if kind == "stream":
            writer.append(token=np.zeros(8 * rows, "u2"))
        else:
            writer.append_batch([8] * rows, token=np.zeros(8 * rows, "u2"))
    program = f"""
import re, penstock
dataset = penstock.open({str(tmp_path / "corpus")!r})
view = dataset.documents() if {kind!r} == "documents" else dataset.windows(8)
options = {{"order": {order!r}, "framework": "numpy", "threads": 1, "prefetch": 1}}
try:
    penstock.Loader(view, 1 << 24, max_bytes=1 << 26, **options)
except penstock.InvalidArgumentError as error:
    counted = int(re.search(r"at least ([\\d,]+) bytes", str(error))[1].replace(",", "")) / (1 << 24)
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
loader = penstock.Loader(view, 64, epochs=1, **options)
next(loader)
loader.close()
before = resident()
loader = penstock.Loader(view, {rows}, epochs=1, **options)
batch = next(loader)
print(counted, (resident() - before) / {rows})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=100)
    counted, taken = map(float, done.stdout.split())
    assert counted <= 1.1 * taken, "no batch is refused that could be held"
    if kind != "windows":  # each of which may hold blocks of an index, as far as max_bytes allows
        assert taken <= 2.5 * counted


def test_a_fetch_of_a_collection_that_no_memory_holds_is_refused():
    with pytest.raises(penstock.InvalidArgumentError, match="must be fewer than 2\\^31"):
        penstock.CollectionLoader(np.arange(100), 4, fetch_factor=1 << 40)


def test_a_position_after_the_end_says_so_and_which_epoch_was_the_last(tmp_path):
    loader = penstock.Loader(raw_tokens(tmp_path / "tokens.bin", 100)[0].windows(10), batch_size=2, epochs=3)
    state = {**loader.state_dict(), "position": 1000}
    resume = loader.load_state_dict(state)
    assert str(resume) == (
        "resumes at epoch 3, position 1,000, step 15, beyond the last epoch, which ends at position 30: the run is over"
    )
    assert resume.epoch == loader.epoch == 3
    assert next(loader, None) is None


def test_a_loader_says_where_it_is(view):
    with make(view, global_batch_size=[(0, 4), (12, 8)], rank=1, world_size=2, per_epoch=True) as loader:
        assert loader.view is view
        assert (loader.epoch, loader.step, loader.batch_size) == (0, 0, 2)
        for step, batch in enumerate(loader):
            assert (loader.step, loader.epoch) == (step + 1, loader.position // len(view))
            assert len(batch.indices) == (2 if batch.position < 12 else 4)
        assert (loader.epoch, loader.step, len(loader)) == (1, 15, 13)  # as long as the present epoch
        loader.set_batch_size(6)
        assert loader.batch_size == 3
        loader.rewind()
        assert (loader.epoch, loader.step, loader.batch_size) == (0, 0, 2)
        resume = loader.load_state_dict({**loader.state_dict(), "position": len(view) + 8})
        assert (loader.epoch, loader.step) == (resume.epoch, resume.step)
