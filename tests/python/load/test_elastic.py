"""A run of R ranks, stopped anywhere and resumed on R' ranks, delivers what the never-stopped run does.

Ranks never talk, so all of them run here in one process. The content of every position comes from a run of one rank
that takes one observation at a time; which positions make a batch comes from a model that counts one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import penstock
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


def test_the_same_global_batch_gives_the_same_steps_on_any_number_of_ranks():
    size, total = 1501, 840  # 840 is a multiple of 1 to 8
    expected = None
    for ranks in range(1, 9):
        steps = run_steps(size, ranks, 100, epochs=2, global_batch_size=total)
        found = [(step.position, step.rows, step.after) for step in steps]
        expected = expected or found
        assert found == expected
    assert expected is not None and [len(rows) for _, rows, _ in expected] == [840, 840, 840, 482]


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
    """Up to three legs, each on a number of ranks and with batch sizes of its own."""
    common = {"epochs": job.epochs, "per_epoch": job.per_epoch, "tail": job.tail, "order": orders()[order]}
    common["skip"] = job.skip
    whole = Run(job.size, 1, {"batch_size": 1, **common})
    state = whole.loaders[0].state_dict()
    whole.close()
    given = []
    for left in reversed(range(data.draw(st.integers(1, 3), "legs"))):
        ranks = data.draw(st.integers(1, 8), "R")
        sizes = data.draw(schedules(ranks, job.end), "schedule")
        expected = rows_of(job, order, job.batches(state["position"], sizes))
        stop = data.draw(st.integers(0, len(expected)), "stop") if left else 10_000
        steps = run_steps(job.size, ranks, stop, state, **common, global_batch_size=sizes)
        assert [step.rows for step in steps] == expected[:stop]
        given += [row for step in steps for row in step.rows]
        state = steps[-1].after if steps else state
    if job.tail == "pad" and not job.skip:
        assert given == content(job.size, order, job.epochs)
