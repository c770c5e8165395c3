"""A run of R ranks, stopped anywhere and resumed on R' ranks, delivers what the never-stopped run does.

Ranks never talk, so all of them run here in one process. The content of every position comes from a run of one rank
that takes one observation at a time; which positions make a batch comes from a model that counts one by one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import penstock
import pytest
from _datasets import orders, raw_tokens
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

WINDOW = 4
Row = tuple[int, int, bytes]  # observation, epoch, tokens


@cache
def view_of(size: int) -> penstock.View:
    folder = Path(mkdtemp(prefix="penstock-test-"))
    view = raw_tokens(folder / "tokens.bin", size * WINDOW + 1, seed=size)[0].windows(WINDOW)
    return view


@cache
def content(size: int, order: str, epochs: int) -> list[Row]:
    """What stands at each position, by the never-stopped run of one rank with batches of one."""
    with penstock.Loader(
        view_of(size), 1, seed=5, order=orders()[order], epochs=epochs, threads=1, framework="numpy"
    ) as loader:
        return [(int(b.indices[0]), int(b.epochs[0]), b["token"][0].tobytes()) for b in loader]


@dataclass
class Step:
    """One global batch: rows in the order of their positions, and the state after it."""

    position: int
    rows: list[Row]
    after: dict[str, Any]


@dataclass
class Run:
    """All ranks of a job in one process."""

    size: int
    ranks: int
    options: dict[str, Any]
    state: dict[str, Any] | None = None
    loaders: list[penstock.Loader] = field(default_factory=list)

    def __post_init__(self) -> None:
        for rank in range(self.ranks):
            loader = penstock.Loader(
                view_of(self.size), rank=rank, world_size=self.ranks, seed=5, threads=1, prefetch=1 + rank % 2,
                framework="numpy", **self.options,
            )  # fmt: skip
            if self.state is not None:
                loader.load_state_dict(self.state)
            self.loaders.append(loader)

    def steps(self, most: int) -> list[Step]:
        found: list[Step] = []
        while len(found) < most:
            batches = [next(loader, None) for loader in self.loaders]
            if batches[0] is None:
                assert batches == [None] * self.ranks, "a rank has more batches than another"
                position, run_end = self.loaders[0].position, self.options.get("epochs")
                if run_end is not None and position >= run_end * self.size:
                    break
                for loader in self.loaders:  # per_epoch: the next `for`
                    iter(loader)
                continue
            found.append(self._step(batches))
        return found

    def _step(self, batches: list[Any]) -> Step:
        states = [loader.state_dict() for loader in self.loaders]
        assert all(state == states[0] for state in states), "ranks have different states"
        assert all(batch.position == batches[0].position for batch in batches)
        count = len(batches[0].indices)
        assert all(len(batch.indices) == count for batch in batches)
        rows: list[Row | None] = [None] * (count * self.ranks)
        for rank, batch in enumerate(batches):
            for i in range(count):
                if batch.valid[i]:
                    row = (int(batch.indices[i]), int(batch.epochs[i]), batch["token"][i].tobytes())
                    rows[i * self.ranks + rank] = row
                else:
                    assert batch.indices[i] == -1 and not batch["token"][i].any()
        valid = [row for row in rows if row is not None]
        assert rows == valid + [None] * (len(rows) - len(valid)), "padding is not at the end"
        return Step(batches[0].position, valid, states[0])

    def close(self) -> None:
        for loader in self.loaders:
            loader.close()


def run_steps(size: int, ranks: int, most: int, state: dict[str, Any] | None = None, **options: Any) -> list[Step]:
    run = Run(size, ranks, options, state)
    try:
        return run.steps(most)
    finally:
        run.close()


@pytest.mark.parametrize("after", range(1, 9))
@pytest.mark.parametrize("before", range(1, 9))
def test_any_number_of_ranks_resumes_on_any_other(before, after):
    size, epochs = 37, 3
    expected = content(size, "uniform", epochs)
    stop = (5 * before + 3 * after) % (111 // (2 * before)) + 1
    first = run_steps(size, before, stop, epochs=epochs, batch_size=2)
    rest = run_steps(size, after, 1000, first[-1].after, epochs=epochs, batch_size=3)  # another batch size too
    rows = [row for step in first + rest for row in step.rows]
    assert rows == expected  # the same content at every position
    for epoch in range(epochs):
        assert Counter(index for index, e, _ in rows if e == epoch) == Counter(range(size))
    assert (rest or first)[-1].after["position"] == epochs * size


@pytest.mark.parametrize("order", ["sequential", "blocks", "lanes"])
def test_every_order_is_elastic(order):
    expected = content(41, order, 3)
    first = run_steps(41, 4, 5, epochs=3, batch_size=2, order=orders()[order])
    middle = run_steps(41, 3, 4, first[-1].after, epochs=3, batch_size=1, order=orders()[order])
    rest = run_steps(41, 8, 1000, middle[-1].after, epochs=3, batch_size=1, order=orders()[order])
    assert [row for step in first + middle + rest for row in step.rows] == expected


def test_the_same_global_batch_gives_the_same_steps_on_any_number_of_ranks():
    size, total = 1501, 840  # 840 is a multiple of 1 to 8
    expected = None
    for ranks in range(1, 9):
        steps = run_steps(size, ranks, 100, epochs=2, global_batch_size=total)
        found = [(step.position, step.rows, step.after) for step in steps]
        expected = expected or found
        assert found == expected
    assert expected is not None and [len(rows) for _, rows, _ in expected] == [840, 840, 840, 482]


def test_a_run_of_many_stops_is_the_run_that_never_stopped():
    expected = content(53, "uniform", 3)
    state, rows, turn = None, [], 0
    while state is None or state["position"] < 3 * 53:
        ranks = 1 + turn * 5 % 8
        steps = run_steps(53, ranks, 1 + turn % 2, state, epochs=3, batch_size=1 + turn % 3)
        rows += [row for step in steps for row in step.rows]
        state, turn = steps[-1].after, turn + 1
    assert rows == expected


# --- all of it together, against a model that counts one by one


@dataclass(frozen=True)
class Job:
    size: int
    epochs: int
    per_epoch: bool
    tail: str
    skip: tuple[tuple[int, int], ...]

    @property
    def end(self) -> int:
        return self.size * self.epochs

    def skipped(self, position: int) -> bool:
        return any(begin <= position < end for begin, end in self.skip)

    def segment_end(self, position: int) -> int:
        return (position // self.size + 1) * self.size if self.per_epoch else self.end

    def batches(self, position: int, schedule: list[tuple[int, int]]) -> list[list[int]]:
        """The positions of all global batches from `position` to the end of the run."""
        found = []
        while position < self.end:
            wanted = [size for at, size in schedule if at <= position][-1]
            taken: list[int] = []
            end = self.segment_end(position)
            while position < end and len(taken) < wanted:
                if not self.skipped(position):
                    taken.append(position)
                position += 1
            if len(taken) == wanted or (taken and self.tail == "pad"):
                found.append(taken)
        return found


@st.composite
def schedules(draw: st.DrawFn, ranks: int, end: int) -> list[tuple[int, int]]:
    starts = draw(st.sets(st.integers(1, max(1, end)), max_size=2))
    return [(at, ranks * draw(st.integers(1, 5))) for at in (0, *sorted(starts))]


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    size = draw(st.integers(1, 40))
    epochs = draw(st.integers(1, 3))
    begins = draw(st.lists(st.integers(0, size * epochs), max_size=3))
    skip = tuple((begin, begin + draw(st.integers(0, 12))) for begin in begins)
    return Job(size, epochs, draw(st.booleans()), draw(st.sampled_from(["pad", "drop"])), skip)


def rows_of(job: Job, order: str, batches: list[list[int]]) -> list[list[Row]]:
    at = content(job.size, order, job.epochs)
    return [[at[position] for position in batch] for batch in batches]


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), jobs(), st.sampled_from(["uniform", "sequential", "blocks", "lanes"]))
def test_every_job_is_elastic(data, job, order):
    before, after = data.draw(st.integers(1, 8), "R"), data.draw(st.integers(1, 8), "R'")
    common = {"epochs": job.epochs, "per_epoch": job.per_epoch, "tail": job.tail, "order": orders()[order]}
    first_sizes = data.draw(schedules(before, job.end), "schedule")
    expected = rows_of(job, order, job.batches(0, first_sizes))
    stop = data.draw(st.integers(0, len(expected)), "stop")
    first = run_steps(job.size, before, stop, **common, skip=job.skip, global_batch_size=first_sizes)
    assert [step.rows for step in first] == expected[:stop]
    state = (
        first[-1].after
        if first
        else Run(job.size, 1, {"batch_size": 1, "skip": job.skip, **common}).loaders[0].state_dict()
    )
    later_sizes = data.draw(schedules(after, job.end), "schedule'")
    rest = run_steps(job.size, after, 10_000, state, **common, skip=job.skip, global_batch_size=later_sizes)
    assert [step.rows for step in rest] == rows_of(job, order, job.batches(state["position"], later_sizes))
    if job.tail == "pad" and not job.skip:
        assert [r for step in first + rest for r in step.rows] == content(job.size, order, job.epochs)
