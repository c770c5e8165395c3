"""Runs a case: loaders of all ranks beside the model, resumed in another shape, every batch compared."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import penstock
from arrays import Layout, batch_arrays
from cells import arrays_of_cells
from compare import Difference, check, compare_batch, compare_located, compare_view
from dimensions import CELLS, STEERED, Case, broken
from jobs import MixtureJob, Pick, ViewJob, make_job
from layouts import Shape, layout_of, options_of
from observations import Given
from positions import NEVER, Cursor, GlobalBatch, by_cost, by_turns, rows_of
from sources import Library, NothingLeftError
from transforms import arrays_of_transform, transformed

ROWS = {"refuse": 12, "pad": 13, "few": 2}  # of a global batch: 1, 2 and 3 ranks share 12
MOST_STEPS = 5  # of each leg


class Run:
    """One case, number `seed`."""

    def __init__(self, library: Library, case: Case, seed: int, legs: int = 2) -> None:
        self.case, self.chance = case, random.Random(seed)
        self.seed = self.chance.choice([0, 1, 7, (1 << 64) - 1])
        self.rows = ROWS[case["uneven"]]
        self.job = make_job(library, case, self.seed, self.rows)
        self.raised = False
        self.legs = legs
        self._jobs: dict[tuple[tuple[int, int], ...], penstock.Job] = {}
        self.costs = self._given_costs()

    # --- the arguments

    def cursor(self, ranks: int) -> Cursor:
        case = self.case
        sizes = {
            "schedule": ((0, self.rows), (30, 2 * self.rows), (61, self.rows // 2 * 2)),
            "large": ((0, 6 * self.rows),),
            "tokens": self._sizes_by_tokens(),
            "rank": ((0, self._rank_rows(ranks) * ranks),),
        }.get(case["batch"], ((0, self.rows),))
        return Cursor(self.job.ends(case["length"] == "each"), sizes, self.skip(), case["tail"])

    def _rank_rows(self, ranks: int) -> int:
        return max(1, self.rows // ranks)

    def _sizes_by_tokens(self) -> tuple[tuple[int, int], ...]:
        """Where windows are shorter a batch has as many more."""
        if isinstance(self.job, ViewJob) or not self.job.sources[0].window:
            return ((0, self.rows),)
        begins = [0, *self.job.ends(False)[:-1]]
        window = self.job.sources[0].window
        return tuple((at, self.rows * window // (self.job.pick(at).window or window)) for at in begins)

    def skip(self) -> tuple[tuple[int, int], ...]:
        # Where a mixture is steered its end may move.
        first = 40 if self.case["mix"] in STEERED else min(self.job.ends(True)[0], 40)
        return {"none": (), "few": ((3, 5), (5, 6), (17, 31)), "epoch": ((1, 2), (first // 2, first + 4))}[
            self.case["skip"]
        ]

    def options(self, shape: Shape, rank: int) -> dict[str, Any]:
        case, ranks = self.case, shape.ranks
        options = options_of(case, shape, self.job.view)
        sizes: Any = [(at, size) for at, size in self.cursor(ranks).sizes]
        if case["batch"] == "rank":
            options["batch_size"] = self._rank_rows(ranks)
        elif case["batch"] == "tokens":
            options["global_batch_size"] = penstock.Tokens(self.rows * self.job.sources[0].window)
        else:
            options["global_batch_size"] = sizes if len(sizes) > 1 else sizes[0][1]
        if case["length"] != "endless":
            options["epochs"] = {"one": 1}.get(case["length"], 2)
            options["per_epoch"] = case["length"] == "each"
        if case["balance"] != "none":
            options["balance"] = self.balance()
        if case["growth"] != "none":
            options["on_mismatch"] = "grown"
        if case["hook"] != "none":
            options["transform"] = self._transform
        options |= {"order": self.travelled(self.job.order), "rank": rank, "world_size": ranks, "uneven": self.uneven}
        return {**options, "seed": self.seed, "tail": case["tail"], "skip": self.skip()}

    @property
    def uneven(self) -> str:
        return "refuse" if self.case["uneven"] == "refuse" else "pad"

    def rank_rows(self, size: int, ranks: int) -> int:
        """Of each rank's batch."""
        return rows_of(size, ranks, 2 if self.case["balance"] == "micro" else 1)

    def plain_job(self, ranks: int) -> penstock.Job | None:
        """The job without loaders; None of those that it is not asked of."""
        case = self.case
        if case["growth"] != "none" or case["batch"] in ("set", "tokens") or case["mix"] in STEERED:
            return None
        sizes = self.cursor(ranks).sizes
        if sizes not in self._jobs:
            options = {"epochs": {"one": 1}.get(case["length"], 2)} if case["length"] != "endless" else {}
            per_epoch = case["length"] == "each"
            self._jobs[sizes] = penstock.Job(
                self.job.view, global_batch_size=[list(each) for each in sizes], seed=self.seed, order=self.job.order,
                per_epoch=per_epoch, tail=case["tail"], skip=self.skip(), uneven=self.uneven, **options,
            )  # fmt: skip
        return self._jobs[sizes]

    def balance(self) -> penstock.Balance | None:
        kind = self.case["balance"]
        if kind == "none":
            return None
        cost: Any = {"micro": "attention", "given": self.costs}.get(kind, kind)
        return penstock.Balance(cost, micro_batches=2 if kind == "micro" else None)

    def _given_costs(self) -> Any:
        found = [np.arange(len(each.numbers)) * 13 % 10 for each in self.job.sources]
        return found[0] if isinstance(self.job, ViewJob) else dict(zip(self.job.view.names, found, strict=True))

    def _transform(self, batch: penstock.Batch) -> tuple[str, penstock.Batch]:
        if self.case["hook"] == "raising" and not self.raised and batch.position > 0:
            self.raised = True
            raise ArithmeticError("once")
        return "transformed", batch

    def travelled(self, what: Any) -> Any:
        """The view or the order, perhaps as another process gets it."""
        return pickle.loads(pickle.dumps(what)) if self.case["travel"] == "pickled" else what

    def shape(self, first: bool) -> Shape:
        case, chance = self.case, self.chance
        changed = case["resume"] == "all" and not first
        ranks = int(case["ranks"])
        if not first and case["resume"] in ("ranks", "all"):
            others = (1, 2, 3) if case["uneven"] == "refuse" else (1, 2, 3, 4, 5)
            ranks = chance.choice([each for each in others if each != ranks])
        readers = ["auto", "pread", "mmap"] if case["place"] == "local" else ["auto", "python"]
        return Shape(
            ranks=ranks,
            framework=chance.choice(["numpy", "torch"]) if changed else case["framework"],
            reader=chance.choice(readers) if changed else case["reader"],
            threads=chance.choice([1, 2, 3]) if changed else 1 + chance.randrange(2),
            prefetch={"least": 1, "deep": 9}.get(case["memory"]) if not changed else chance.choice([1, 3, None]),
            max_bytes=0 if case["memory"] == "least" else None,
            context_rank=chance.randrange(12),
        )

    # --- the run

    def run(self) -> int:
        """Compares all of it; how many batches these were.

        Raises:
            Difference: something is not as the model has it.
        """
        compare_view(self.job, self.case, self.chance)
        growths = {"none": 0, "once": 1, "twice": 2}[self.case["growth"]]
        legs = max(self.legs, growths + 1)
        state, position, compared = None, 0, 0
        for leg in range(legs):
            if 0 < leg <= growths and isinstance(self.job, ViewJob):
                self.job.grow(position)
                self.costs = self._given_costs()
            if leg > 0 and isinstance(self.job, MixtureJob) and self.job.is_steered and self.chance.random() < 0.5:
                self.job.change_list(position, self.chance)
            one = Leg(self, self.shape(leg == 0), state, position)
            try:
                steps = MOST_STEPS if leg == legs - 1 else self.chance.randrange(0 if leg else 1, MOST_STEPS)
                compared += one.run(steps)
                state, position = one.state()
            finally:
                one.close()
        return compared


class Leg:
    """The loaders of all ranks from a state on."""

    def __init__(self, run: Run, shape: Shape, state: Any, position: int) -> None:
        self.job, self.case, self.shape, self.position = run.job, run.case, shape, position
        self.run_, self.cursor = run, run.cursor(shape.ranks)
        self.layout: Layout = layout_of(run.case, run.job.sources, shape)
        self.loaders: list[penstock.Loader[Any]] = []
        self.last: Any = None
        self.held: list[Any] = []
        for rank in range(shape.ranks):
            self.loaders.append(penstock.Loader(run.travelled(run.job.view), **run.options(shape, rank)))
            if state is not None and run.case["resume"] == "seek" and run.case["growth"] == "none":
                if isinstance(run.job, MixtureJob):  # as a state would tell
                    for at, weights in run.job.weights.items():
                        self.loaders[-1].set_weights(weights, at)
                self.loaders[-1].seek(position)
            elif state is not None:
                resumed = self.loaders[-1].load_state_dict(state)
                check(resumed.position == position, "Resume.position", resumed.position, position)
        if run.case["growth"] != "none" and state is not None:
            self.cursor = run.cursor(shape.ranks)

    def close(self) -> None:
        for each in self.loaders:
            each.close()

    def state(self) -> tuple[dict[str, Any], int]:
        states = [each.state_dict() for each in self.loaders]
        check(all(each == states[0] for each in states), "states of ranks", states, states[0])
        check(states[0]["position"] == self.position, "state position", states[0]["position"], self.position)
        if self.last is not None:
            check(self.last == self._known(states[0]), "batch.state_dict()", self.last, states[0])
            if isinstance(self.job, MixtureJob) and self.job.is_steered and self.run_.chance.random() < 0.3:
                self.job.forget(self.position)  # which a batch's state does not have
                return self.last, self.position
        return states[0], self.position

    def _known(self, state: dict[str, Any]) -> dict[str, Any]:
        """A state without the weights that begin at its position or after it."""
        if self.case["mix"] not in STEERED:
            return state
        job = json.loads(state["job"])
        steered = job["order"]["steered"]
        steered["stages"] = [each for each in steered["stages"] if each[0] < state["position"]]
        return {**state, "job": json.dumps(job, ensure_ascii=False, separators=(",", ":"), sort_keys=True)}

    def run(self, steps: int) -> int:
        self._begin()
        self._check_lengths()
        for step in range(steps):
            if self.case["batch"] == "set" and step == 2:
                self.cursor = self.cursor.with_size(self.position, 2 * self.run_.rows)
                for each in self.loaders:
                    each.set_batch_size(2 * self.run_.rows)
            if step > 0 and isinstance(self.job, MixtureJob) and self.job.is_steered:
                for _ in range(self.run_.chance.choice([0, 1, 1, 3])):
                    self._set_weights(self.job)
            batch = self.cursor.batch(self.position)
            if batch is None or batch.begin >= self.for_end:
                self._check_over()
                if self.position >= self.cursor.ends[-1]:
                    return step
                self._begin()
            else:
                self._compare(batch)
        return steps

    def _set_weights(self, job: MixtureJob) -> None:
        """At the position or ahead of it, which may be said in tokens."""
        if self.position >= job.end:
            return
        chance, names = self.run_.chance, job.view.names
        at = self.position + (chance.randrange(30) if chance.random() < 0.5 else 0)
        weights = {names[0]: 2, names[-1]: 1 + len(job.weights)}
        how: list[Any] = [at] if at > self.position else [at, None]
        if job.sources[0].window and at < job.end:
            how.append(penstock.Tokens(job.tokens_before(at)))
        given = chance.choice(how)
        expected = job.set_weights(at, weights)
        for each in self.loaders:
            begin = each.set_weights(weights, given)
            check(begin == expected, f"set_weights(at={given})", begin, expected)
        self.cursor = replace(self.cursor, ends=job.ends(False))
        self.for_end = self.cursor.ends[-1]

    def _begin(self) -> None:
        """Of a `for`, which is an epoch or the run."""
        for each in self.loaders:
            iter(each)
        self.for_end = next((each for each in self.cursor.ends if each > self.position), self.cursor.ends[-1])
        if self.case["length"] != "each":
            self.for_end = self.cursor.ends[-1]

    def _check_over(self) -> None:
        """That the `for` is over, at its end, whatever is left there."""
        for each in self.loaders:
            given = next(each, None)
            check(given is None, "the end", given, None)
        if self.position < self.for_end:
            self.position, self.last = self.for_end, None

    def _check_lengths(self) -> None:
        if self.cursor.ends[-1] >= NEVER:
            return
        loader, position = self.loaders[0], self.position
        if self.case["length"] != "each":
            check(len(loader) == self.cursor.steps_before(NEVER), "len", len(loader), self.cursor.steps_before(NEVER))
            last = _last(self.cursor, 0)
            for rank, each in enumerate(self.loaders):
                expected = None if last is None else len(range(rank, len(last.positions), self.shape.ranks))
                check(each.tail_rows == expected, "tail_rows", each.tail_rows, expected)
        expected_step = self.cursor.steps_before(position)
        check(loader.step == expected_step, "step", loader.step, expected_step)
        check(loader.position == position, "position", loader.position, position)
        if isinstance(self.job, ViewJob):
            check(loader.epoch == self.job.epoch(position), "epoch", loader.epoch, self.job.epoch(position))

    def _compare(self, batch: GlobalBatch) -> None:
        picks = [self.job.pick(each) for each in batch.positions]
        rows = self.run_.rank_rows(batch.size, self.shape.ranks)
        if self.position == batch.begin:  # not before a tail that was dropped
            full = self.run_.rank_rows(self.cursor.size_at(batch.begin), self.shape.ranks)
            check(self.loaders[0].batch_size == full, "batch_size", self.loaders[0].batch_size, full)
        given = [
            transformed(self.case, self.job.given(at), pick, self.job.sources[pick.source], self.run_.seed)
            for at, pick in zip(batch.positions, picks, strict=True)
        ]
        shares = self._shares(batch, rows)
        if self.run_.chance.random() < 0.3:
            step = self.cursor.step_at(batch.begin)
            located = compare_located(self.loaders[0], batch, shares, picks, given, step)
            job = self.run_.plain_job(self.shape.ranks)
            if job is not None:
                at = batch.begin
                told = job.locate(position=at, world_size=self.shape.ranks, balance=self.run_.balance())
                check(told == located, f"Job.locate(position={at})", told, located)
        for rank, (loader, share) in enumerate(zip(self.loaders, shares, strict=True)):
            found = self._next(loader)
            own: list[Given] = [given[each] for each in share]
            expected = batch_arrays(own, self.layout, rows, picks[0].window)
            if self.layout.kind in CELLS:
                expected |= arrays_of_cells(own, self.layout.kind, rows)
            expected |= arrays_of_transform(
                self.case, own, [picks[each] for each in share], self.job.sources, self.run_.seed, rows,
                picks[0].window, self.layout.metadata is not False,
            )  # fmt: skip
            expected |= {
                "indices": _numbers([picks[each].index for each in share], rows),
                "epochs": _numbers([picks[each].epoch for each in share], rows),
                "sources": _numbers([picks[each].source for each in share], rows),
                "positions": _numbers([batch.positions[each] for each in share], rows),
                "first_records": _numbers([each.row.first_record for each in own], rows),
                "valid": np.arange(rows) < len(share),
                **self._scales(len(share), rows, len(batch.positions)),
                "position": batch.begin,
            }
            compare_batch(found, expected, self.layout, self.shape.framework, f"rank {rank} at {batch.begin}", own)
            self.last = found.state_dict()
            if self.run_.chance.random() < 0.2:
                copy = pickle.loads(pickle.dumps(found.clone()))
                compare_batch(copy, expected, self.layout, self.shape.framework, f"a clone, at {batch.begin}", own)
            self._hold(found, expected, own)
        self._compare_plan(batch, picks, given)
        self.position = batch.end

    def _scales(self, valid: int, rows: int, of_all: int) -> dict[str, Any]:
        """By which the mean over a rank's valid rows is weighed, and that over those of a micro-batch."""
        parts = 2 if self.case["balance"] == "micro" else 1
        counts = [len(range(valid)[at : at + rows // parts]) for at in range(0, rows, rows // parts)]
        weighed = [count * self.shape.ranks / of_all for count in (valid, *counts)]
        return {"global_rows": of_all, "loss_scale": weighed[0], "loss_scales": tuple(weighed[1:])}

    def _hold(self, found: penstock.Batch, expected: dict[str, Any], own: list[Given]) -> None:
        """Batches that a caller holds stay as they are: compared again when others have come."""
        self.held.append((found, expected, own))
        if len(self.held) > self.shape.ranks:
            found, expected, own = self.held.pop(0)
            where = f"held, at {expected['position']}"
            compare_batch(found, expected, self.layout, self.shape.framework, where, own)

    def _compare_plan(self, batch: GlobalBatch, picks: Sequence[Pick], given: Sequence[Given]) -> None:
        """`Job.plan` of a rank, which reads nothing."""
        rank, ranks = self.run_.chance.randrange(self.shape.ranks), self.shape.ranks
        job = self.run_.plain_job(self.shape.ranks)
        if job is None:
            return
        plan = job.plan(batch.begin, rank, ranks)
        own = [picks[each] for each in by_turns(len(picks), ranks)[rank]]
        rows = rows_of(batch.size, ranks, 1)
        for name in ("source", "epoch", "index"):
            expected = _numbers([getattr(each, name) for each in own], rows)
            check(plan.picks[name].tolist() == expected.tolist(), f"Job.plan: {name}", plan.picks[name], expected)
        check((plan.position, plan.next_position) == (batch.begin, batch.end), "Job.plan", plan, batch)
        check(plan.global_rows == len(batch.positions), "Job.plan: global_rows", plan.global_rows, len(batch.positions))
        for number in (0, -1):
            at, first = batch.positions[number], given[number].row.first_record
            found = job.picks(at, 1)["first_record"]
            check(found.tolist() == [first], f"Job.picks({at}): first_record", found, first)

    def _next(self, loader: penstock.Loader[Any]) -> penstock.Batch:
        try:
            found = next(loader, None)
        except ArithmeticError:
            found = next(loader, None)
        check(found is not None, "a batch", "none", "one")
        if self.case["hook"] != "none":
            assert found is not None and found[0] == "transformed"
            return found[1]  # type: ignore[no-any-return]
        return found  # type: ignore[return-value]

    def _shares(self, batch: GlobalBatch, rows: int) -> list[list[int]]:
        kind, ranks = self.case["balance"], self.shape.ranks
        if kind == "none":
            return by_turns(len(batch.positions), ranks)
        costs = []
        for position in batch.positions:
            pick = self.job.pick(position)
            source = self.job.sources[pick.source]
            if kind == "given":
                costs.append(pick.index * 13 % 10)
            else:
                costs.append(
                    source.cost(pick.index, pick.window, pick.phase, "tokens" if kind == "tokens" else "attention")
                )
        return by_cost(costs, ranks, rows, 2 if kind == "micro" else 1)


def _last(cursor: Cursor, position: int) -> GlobalBatch | None:
    batch, last = cursor.batch(position), None
    while batch is not None:
        last, batch = batch, cursor.batch(batch.end)
    return last


def _numbers(values: Sequence[int], rows: int) -> np.ndarray:
    return np.array([*values, *[-1] * (rows - len(values))], np.int64)


def _refused_as_empty(view: penstock.View) -> int:
    try:
        penstock.Loader(view, 1).close()
    except penstock.InvalidArgumentError as error:
        if "has no observations" in str(error):
            return 0
        raise
    raise Difference(f"not refused: {view!r}")


def run_case(library: Library, case: Case, seed: int, legs: int = 2) -> int:
    """Batches that were compared; 0 of a case that is refused, as it must be. Between legs it is resumed.

    Raises:
        Difference: something is not as the model has it.
    """
    rules = broken(case)
    try:
        run = Run(library, case, seed, legs)
        if not rules:
            return run.run()
        Leg(run, run.shape(True), None, 0).close()
    except NothingLeftError as error:
        return _refused_as_empty(*error.args)
    except penstock.Error:
        if not rules:
            raise
        return 0
    raise Difference(f"not refused: {rules[0].words}")
