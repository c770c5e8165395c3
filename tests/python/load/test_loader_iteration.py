"""len, epochs, tails, batch sizes, transforms: what tests/model does not say of them, and what is refused."""

from __future__ import annotations

import itertools
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


def test_rows_of_the_last_batch_are_told_before_it_comes(view):
    for size, tail, per_epoch, rank in itertools.product((8, 104, 400), ("pad", "drop"), (False, True), (0, 1)):
        options = {"rank": rank, "world_size": 2, "per_epoch": per_epoch, "tail": tail, "epochs": 3}
        with make(view, global_batch_size=size, **options) as loader:
            told = loader.tail_rows
            last = None
            for last in loader:  # noqa: B007
                assert loader.tail_rows == told
            assert told == (None if last is None else int(last.valid.sum()))
    assert make(view, 10, per_epoch=False).tail_rows is None
    rows = [make(view, 4, epochs=1, rank=rank, world_size=8).tail_rows for rank in range(8)]
    assert rows == [1] * 7 + [0]  # 103 = 3 * 32 + 7: a rank of padding alone


def test_an_endless_run_says_that_positions_end(view):
    with make(view, 1) as loader:
        loader.seek(1 << 63)
        with pytest.raises(penstock.InvalidArgumentError, match=r"position 9,223.*endless.*2\^63.*rewind"):
            next(loader)
        loader.rewind()
        assert next(loader).position == 0
    with make(view, 10, epochs=1) as loader:  # a run that ends is over there
        loader.seek(1 << 63)
        assert list(loader) == []


def test_each_for_is_an_epoch_or_what_is_left_of_it_for_ever(view):
    with make(view, 50) as endless, pytest.raises(TypeError, match="endless"):
        assert bool(endless)
        len(endless)
    with make(view, 50, per_epoch=True) as loader:
        assert len(loader) == 3
        assert [batch.position for batch in islice(loader, 2)] == [0, 50]
        assert [batch.position for batch in loader] == [100]
        for epoch in range(1, 5):
            assert [batch.position for batch in loader] == [epoch * 103 + p for p in (0, 50, 100)]


def test_beyond_the_run_it_is_over(view):
    with make(view, 2, epochs=3) as loader:
        loader.seek(5000)
        assert list(loader) == []
        for position in (-1, 1.5, 1 << 64, (1 << 63) + 1):
            with pytest.raises(ValueError):
                loader.seek(position)
        resume = loader.load_state_dict({**loader.state_dict(), "position": 1000})
        assert str(resume) == (
            "resumes at epoch 3, position 1,000, step 155, beyond the last epoch, which ends at position 309: "
            "the run is over"
        )
        assert resume.epoch == loader.epoch == 3 and next(loader, None) is None
    with make(view, 4, epochs=2, skip=[(0, 206)]) as loader:  # nothing but what is skipped
        assert len(loader) == 0 and list(loader) == [] and loader.position == 206


def test_an_eval_loader_gives_the_same_batches_at_every_for(view):
    loaders = [penstock.eval_loader(view, 9, seed=3, rank=r, world_size=4, framework="numpy") for r in range(4)]
    first = [indices_of(loader) for loader in loaders]
    assert {len(batches) for batches in first} == {3} == {len(loader) for loader in loaders}
    assert sorted(i for batches in first for batch in batches for i in batch if i >= 0) == list(range(103))
    next(iter(loaders[0]))
    assert [indices_of(loader) for loader in loaders] == first  # also after one that was broken off


# --- batch sizes


def test_set_batch_size_is_per_rank_or_of_all_as_at_construction(view):
    with make(view, 4, rank=1, world_size=2, prefetch=6) as loader:
        next(loader), next(loader)
        loader.set_batch_size(3)  # six batches of four were read ahead
        assert [(batch.position, len(batch.indices)) for batch in islice(loader, 2)] == [(16, 3), (22, 3)]
    with make(view, global_batch_size=8, rank=1, world_size=2) as loader:
        loader.set_batch_size(6)
        for refused in (7, 0):
            with pytest.raises(ValueError, match=str(refused)):
                loader.set_batch_size(refused)
        assert len(next(loader).indices) == 3  # a refused change changes nothing


@pytest.mark.parametrize("size", [1 << 44, 1 << 24])
def test_a_batch_that_memory_cannot_hold_is_refused_when_it_is_said(view, size):
    refused = pytest.raises(
        penstock.InvalidArgumentError, match=f"no memory for a batch of {size:,} rows.*use a smaller batch size"
    )
    for sizes in (size, [(0, 8), (80, size)]):
        with refused:
            make(view, sizes, max_bytes=1 << 28)
    with make(view, 8, max_bytes=1 << 28) as loader:
        next(loader)
        with refused:
            loader.set_batch_size(size)
        assert loader.batch_size == 8 and next(loader).position == 8


def test_a_size_that_the_run_never_fills_is_taken_and_its_batch_padded_or_dropped(tmp_path):
    """docs/decisions.md: "A batch that cannot be is refused early"."""
    view = raw_tokens(tmp_path / "tokens.bin", 1000)[0].windows(10)
    for sizes, full in ((1024, 0), ([(0, 8), (80, 1024)], 10), ([(0, 8), (80, 8), (96, 1024)], 12)):
        for tail, more in (("pad", 1), ("drop", 0)):
            batches = list(make(view, sizes, order="sequential", epochs=1, tail=tail))
            assert [len(batch["token"]) for batch in batches] == [8] * full + [1024] * more
            assert sum(int(batch.valid.sum()) for batch in batches) == (100 if more else 8 * full)
    ranks = [make(view, 1, rank=rank, world_size=1024, epochs=1) for rank in (0, 1023)]
    assert [int(next(each).valid.sum()) for each in ranks] == [1, 0]


# In a process of its own, whose resident memory is that of the batch.
COUNTED = """
import re, sys, penstock
path, kind, order, rows = *sys.argv[1:4], int(sys.argv[4])
dataset = penstock.open(path)
view = dataset.documents() if kind == "documents" else dataset.windows(8)
options = {"order": order, "framework": "numpy", "threads": 1, "prefetch": 1}
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
loader = penstock.Loader(view, rows, epochs=1, **options)
batch = next(loader)
print(counted, (resident() - before) / rows)
"""


@pytest.mark.parametrize(
    ("kind", "order"), [("stream", "sequential"), ("windows", "uniform"), ("documents", "uniform")]
)
def test_what_the_check_counts_for_a_batch_is_near_what_it_takes(tmp_path, kind, order):
    rows = 1 << 16
    options = {"metadata": None} if kind == "stream" else {}
    with penstock.Writer(tmp_path / "corpus", {"token": "u2"}, **options) as writer:
        if kind == "stream":
            writer.append(token=np.zeros(8 * rows, "u2"))
        else:
            writer.append_batch([8] * rows, token=np.zeros(8 * rows, "u2"))
    command = [sys.executable, "-c", COUNTED, str(tmp_path / "corpus"), kind, order, str(rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    counted, taken = map(float, done.stdout.split())
    assert counted <= 1.1 * taken, "no batch is refused that could be held"
    if kind != "windows":  # each of which may hold blocks of an index, as far as max_bytes allows
        assert taken <= 2.5 * counted


# --- transform


@pytest.mark.parametrize("options", [{}, {"per_epoch": True, "epochs": 3}, {"skip": [(7, 12)]}])
def test_a_batch_whose_transform_fails_was_not_delivered_and_comes_again(view, options):
    asked = []

    def fail_twice(batch: Any) -> Any:
        asked.append(batch.position)
        if batch.position == 5 and asked.count(5) < 3:
            raise KeyError("mine")
        return batch.position, batch.indices.tolist()

    expected = [(batch.position, batch.indices.tolist()) for batch in islice(make(view, 5, **options), 4)]
    with make(view, 5, transform=fail_twice, **options) as loader:
        seen = [next(loader)]
        for _ in range(2):
            with pytest.raises(KeyError, match="mine"):
                next(loader)
            assert loader.position == loader.state_dict()["position"] == 5
        seen += [next(loader) for _ in range(3)]
    assert seen == expected
    assert asked == [0, 5, 5, *(position for position, _ in expected[1:])]  # not for what is read ahead


# --- other arguments


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": None}, "exactly one of batch_size"),
        ({"global_batch_size": 8}, "exactly one of batch_size"),
        *(({"batch_size": size}, str(size)) for size in (-1, 2.5, 1 << 64)),
        ({"batch_size": "4"}, "batch size='4'"),
        ({"batch_size": 0}, "batch size=0: must be from 1 to"),
        ({"batch_size": 1 << 63, "rank": 0, "world_size": 4}, "batch size=9223372036854775808: must be"),
        *(
            ({"batch_size": None, "global_batch_size": size, "rank": 0, "world_size": 7}, nearest)
            for size, nearest in ((100, "98"), (103, "105"), (3, "7"))
        ),
        ({"batch_size": [(0, 4), (0, 8)]}, ""),
        ({"skip": [(0.5, 3)]}, ""),
        ({"skip": 5}, "skip=5: must be ranges"),
        ({"tail": "keep"}, "keep"),
        ({"tail": None}, "tail=None"),
        *(({name: "other"}, "other") for name in ("reader", "framework", "on_mismatch", "order")),
        *(({"seed": seed}, str(seed)) for seed in (-1, 1 << 64, 0.5)),
        *(({"epochs": epochs}, str(epochs)) for epochs in (-1, 1 << 62, 1.5)),
        ({"epochs": 0}, "epochs=0: must be from 1 to"),
        *(({"threads": threads}, f"threads={threads}: must be from 1 to") for threads in (-1, 0, 1 << 32)),
        *(({"prefetch": prefetch}, f"prefetch={prefetch}: must be from 1 to") for prefetch in (-2, 0)),
        ({"max_bytes": -1}, "-1"),
        ({"transform": 5}, "transform=5: must be a function"),
    ],
)
def test_an_argument_that_cannot_be_is_refused_in_words(view, options, words):
    with pytest.raises(penstock.InvalidArgumentError) as caught:
        make(view, **{"batch_size": 4, **options})
    assert words in str(caught.value).replace(",", "")


def test_what_is_no_view_is_refused():
    with pytest.raises(penstock.InvalidArgumentError, match="a str is no view"):
        penstock.Loader("a path", 2)  # type: ignore[arg-type]


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
