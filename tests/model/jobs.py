"""What stands at each position of a case's run, without a loader: views, mixtures, epochs, datasets that grow."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import penstock
from dimensions import DRAWS, PACKED, STEERED, Case
from observations import Given
from orders import Epochs, order_of
from penstock import Mixture, Positions, Stage
from positions import NEVER
from sources import Library, Source, make_source, packing_of

MEMBERS = {
    "none": "a",
    "alike": "ab",
    "types": "ca",
    "stages": "abc",
    "short": "a",
    "cuts": "ca",
    "ramp": "ab",
    "steered": "abc",
    "guided": "ca",
}


@dataclass(frozen=True)
class Pick:
    """What stands at a position."""

    source: int
    epoch: int
    index: int
    window: int
    phase: int


class ViewJob:
    """A run over one view, of which there are more shards from one position on, and more again."""

    def __init__(self, case: Case, sources: Sequence[Source], seed: int, epochs: int | None) -> None:
        self.case, self.grown, self.epochs = case, list(sources), epochs
        self.sources = [self.grown[0]]
        self.view: Any = self.grown[0].view
        self.order = order_of(case, self.grown[0])
        self._seed = seed
        self._epochs = [Epochs(case, each, seed) for each in self.grown]
        self._stretches = [(0, 0, 0)]  # from which position and epoch on, which of the datasets
        self._phases: dict[int, int] = {}

    def grow(self, position: int) -> None:
        """Goes on from a state at `position` with the next of the datasets."""
        number = self._stretches[-1][2] + 1
        begin, epoch = (0, 0) if position == 0 else self._end_of_epoch(position - 1)
        self._stretches = [each for each in self._stretches if each[0] < begin] + [(begin, epoch, number)]
        self.sources = [self.grown[number]]
        self.view, self.order = self.grown[number].view, order_of(self.case, self.grown[number])

    def _stretch(self, position: int) -> tuple[int, int, int]:
        return [each for each in self._stretches if each[0] <= position][-1]

    def _end_of_epoch(self, position: int) -> tuple[int, int]:
        """Where the epoch ends that has a position, and the number of the next one."""
        begin, epoch, number = self._stretch(position)
        passed = (position - begin) // self._epochs[number].size + 1
        return begin + passed * self._epochs[number].size, epoch + passed

    def epoch(self, position: int) -> int:
        begin, epoch, number = self._stretch(position)
        return epoch + (position - begin) // self._epochs[number].size

    def begin_of_epoch(self, wanted: int) -> int:
        begin, epoch, number = [each for each in self._stretches if each[1] <= wanted][-1]
        return begin + (wanted - epoch) * self._epochs[number].size

    def ends(self, per_epoch: bool) -> tuple[int, ...]:
        """That no batch crosses."""
        last = NEVER if self.epochs is None else self.begin_of_epoch(self.epochs)
        if not per_epoch:
            return (last,)
        return tuple(self.begin_of_epoch(each + 1) for each in range(self.epochs or 50))

    def pick(self, position: int) -> Pick:
        begin, first, number = self._stretch(position)
        passed, place = divmod(position - begin, self._epochs[number].size)
        epoch = first + passed
        index = self._epochs[number](epoch)[place]
        return Pick(0, epoch, index, self.sources[0].window, self._phase(epoch))

    def _phase(self, epoch: int) -> int:
        """Where the windows of an epoch begin: a hash that only the package knows; first records tell it."""
        if self.case["view"] != "phase":
            return 0
        if epoch not in self._phases:
            begin = self.begin_of_epoch(epoch)
            self._phases[epoch] = _phase(self.sources[0], epoch, begin, self._seed, self.order)
        return self._phases[epoch]

    def given(self, position: int) -> Given:
        pick = self.pick(position)
        return Given(self.sources[0].row(pick.index, pick.window, pick.phase), 0)


def _phase(source: Source, epoch: int, position: int, seed: int, order: Any) -> int:
    """By what is said of the first position of an epoch."""
    job = penstock.Job(source.view, global_batch_size=1, seed=seed, order=order)
    pick = job.picks(position, 1)[0]
    assert pick["epoch"] == epoch
    phase = int(pick["first_record"]) - int(source.numbers[pick["index"]]) * source.window
    assert 0 <= phase <= source.window + (len(source.opened.content.records) - source.lookahead) % source.window
    return phase


class MixtureJob:
    """A run over several views. The package says which source a position belongs to; its shares are checked."""

    def __init__(self, case: Case, sources: Sequence[Source], seed: int, global_size: int) -> None:
        self.case, self.sources, self._seed, self._global_size = case, list(sources), seed, global_size
        names = [f"source {number}" for number in range(len(sources))]
        views = {name: each.view for name, each in zip(names, sources, strict=True)}
        self.weights: dict[int, dict[str, int]] = {}  # that were set, by their positions
        chance = random.Random(f"{seed} {sorted(case.items())}")
        self._views, self._given = views, _plan(case, names, sources[0].window, chance)
        self.is_steered = case["mix"] in STEERED
        self.view = Mixture(views, **self._given, steered=self.is_steered)
        self.order: Any = {
            name: order_of(case, each, number) for number, (name, each) in enumerate(zip(names, sources, strict=True))
        }
        self._picks: Any = None
        self._plan_run(self.view, 0)

    def _begins(self) -> list[int]:
        """Of the list's stages."""
        begins = [0]
        for before, stage in zip(self._given["stages"], self._given["stages"][1:], strict=False):
            size = self._group_rows(before)
            begins.append(begins[-1] - (begins[-1] - stage.at) // size * size)
        return begins

    def _group_rows(self, stage: Stage) -> int:
        """Positions of a whole group in a stage."""
        whole = self.sources[0].window
        if stage.window in (None, whole) or self.case["view"] in PACKED:
            return 1
        return int(self._given["group"]) * (whole // stage.window)

    def set_weights(self, at: int, weights: dict[str, int]) -> int:
        """Weights that are set are stages of a list, until the next one of either; they begin at whole groups, and at
        the run's end nothing changes."""
        number = bisect_right(self._begins(), at) - 1
        begin, size = self._begins()[number], self._group_rows(self._given["stages"][number])
        begin -= (begin - at) // size * size
        if begin >= self.end:
            return at
        self.weights[begin] = weights
        self._plan_set(begin)
        return begin

    def forget(self, position: int) -> None:
        """What was set from a position on."""
        self.weights = {at: each for at, each in self.weights.items() if at < position}
        self._plan_set(position)

    def change_list(self, position: int, chance: random.Random) -> None:
        """Other weights, and a ramp or none, of the list's stages from a position on."""
        stages = []
        for begin, stage in zip(self._begins(), self._given["stages"], strict=True):
            if begin >= position > 0:
                names = list(stage.weights or self.view.names)
                ramp = Positions(chance.choice([1, 7, 40])) if chance.random() < 0.5 else None
                weights = {name: chance.randrange(1, 5) for name in names}
                stage = Stage(weights, window=stage.window, max_document=stage.max_document, at=stage.at, ramp=ramp)
            stages.append(stage)
        self._given = {**self._given, "stages": stages}
        self.view = Mixture(self._views, **self._given, steered=True)
        self._plan_set(position)

    def _plan_set(self, same: int) -> None:
        begins = self._begins()
        stages = dict(zip(begins, self._given["stages"], strict=True))
        for at, weights in self.weights.items():
            there = self._given["stages"][bisect_right(begins, at) - 1]
            stages[at] = Stage(weights, window=there.window, max_document=there.max_document, at=at or None)
        given = {**self._given, "stages": [stages[at] for at in sorted(stages)]}
        self._plan_run(Mixture(self._views, **given), same)

    def _plan_run(self, mixture: Mixture, same: int) -> None:
        assert mixture.run_end is not None
        self.end = mixture.run_end
        job = penstock.Job(mixture, global_batch_size=self._global_size, seed=self._seed, order=self.order)
        before, self._picks = self._picks, job.picks(0, self.end)
        assert before is None or (before[:same] == self._picks[:same]).all(), same
        self._stages = [(each.begin, each.window or 0, each.weights) for each in mixture.stages]
        self._ramps = [(each.begin, each.begin + each.ramp) for each in mixture.stages]
        self._windows = [self._stage(position)[1] for position in range(self.end)]
        self._check()

    def _stage(self, position: int) -> tuple[int, int, dict[str, int]]:
        return [each for each in self._stages if each[0] <= position][-1]

    def ends(self, per_epoch: bool) -> tuple[int, ...]:
        """Where windows change, and where the run ends."""
        changes = [at for at in range(1, self.end) if self._windows[at] != self._windows[at - 1]]
        return (*changes, self.end)

    def epoch(self, position: int) -> int:
        return 0 if position < self.end else 1

    def tokens_before(self, position: int) -> int:
        return sum(self._windows[:position])

    def pick(self, position: int) -> Pick:
        found, window = self._picks[position], self._windows[position]
        source = int(found["source"])
        phase = 0
        if self.case["view"] == "phase":
            index = int(found["index"])
            parts = self.sources[source].window // window
            whole = int(self.sources[source].numbers[index // parts]) * parts + index % parts
            phase = int(found["first_record"]) - whole * window
            assert phase == self._phases.setdefault((source, int(found["epoch"])), phase)
        return Pick(source, int(found["epoch"]), int(found["index"]), window, phase)

    def given(self, position: int) -> Given:
        pick = self.pick(position)
        return Given(self.sources[pick.source].row(pick.index, pick.window, pick.phase), pick.source)

    def _check(self) -> None:
        """Shares at every position of stages of whole windows, and each source's epochs: nothing repeated or lost."""
        self._phases: dict[tuple[int, int], int] = {}
        names = self.view.names
        count: Counter[str] = Counter()
        since, most = 0, 1  # where a stage, or what is left of it after a ramp, began, and how far it may be off
        for position in range(self.end):
            begin, window, weights = self._stage(position)
            if position == begin:
                count, since, most = Counter(), begin, 1
            count[names[self._picks[position]["source"]]] += 1
            if any(first <= position < last for first, last in self._ramps):
                count, since, most = Counter(), position + 1, 2
                continue
            if window == self.sources[0].window and self.case["mix"] not in ("short", "cuts", "ramp", "guided"):
                for name, weight in weights.items():
                    share = weight / sum(weights.values())
                    off = abs(count[name] - (position - since + 1) * share)
                    assert off < most * (1 + len(names) * share) + 1e-9, (position, name, count, weights)
            # A source that gives its cap inside a group has ended from the group's begin on.
            assert set(count) <= set(weights) or self.case["mix"] == "guided"
        if self.case["order"] in DRAWS:
            return
        for number, source in enumerate(self.sources):
            self._check_epochs(number, source)

    def _check_epochs(self, number: int, source: Source) -> None:
        """Each observation at most once an epoch, and epochs before the last one are whole, in parts of a window."""
        seen: Counter[tuple[int, int, int]] = Counter()
        for position in range(self.end):
            pick = self._picks[position]
            if pick["source"] == number:
                window = self._windows[position]
                whole = not source.window or self.case["view"] in PACKED
                parts = 1 if whole else source.window // window
                length = window if whole else source.window  # each has epochs of its own
                seen[length, int(pick["epoch"]), int(pick["index"]) // parts] += 12 // parts
        assert all(each <= 12 for each in seen.values()), seen
        by_epoch = Counter((length, epoch) for length, epoch, _ in seen)
        last = {length: max(epoch for each, epoch in by_epoch if each == length) for length, _ in by_epoch}
        for length, end in last.items():
            assert all(by_epoch[length, epoch] == source.size(length) for epoch in range(end))


def _plan(case: Case, names: list[str], window: int, chance: random.Random) -> dict[str, Any]:
    """The arguments of the mixture beside its sources."""
    kind = case["mix"]
    if kind == "alike":
        return {"stages": [Stage({names[0]: 3, names[1]: 1})], "end": 62}
    if kind == "types":
        return {"stages": [Stage({names[1]: 1}), Stage({names[0]: 1, names[1]: 2}, at=25)], "end": 64}
    if kind == "stages":
        first = Stage({names[0]: 1, names[1]: 2})
        return {"stages": [first, Stage(at=20), Stage({names[2]: 1}, at=44)], "caps": {names[1]: 17}, "end": 67}
    if kind == "ramp":
        return {"stages": [Stage({names[0]: 0.7, names[1]: "0.3"}),
                           Stage({names[1]: 1}, at=9, ramp=Positions(40))], "end": 66}  # fmt: skip
    if kind == "steered":
        first = Stage({names[0]: 1, names[1]: 2})
        ramp = chance.choice([None, Positions(5), Positions(90)])
        later = Stage({names[2]: 1, names[0]: 1}, at=44, ramp=ramp)
        return {"stages": [first, later], "caps": {names[1]: 17}, "end": 67}
    short: dict[str, Any] = {"window": window // 2}
    if case["view"] in PACKED and (limit := packing_of(case, window // 2).max_document):
        short["max_document"] = limit
    if kind == "short":
        return {"stages": [Stage(**short), Stage(at=18)], "end": 50, "group": 3}
    middle = Stage({names[0]: 1, names[1]: 1}, **short, at=14)
    if kind == "guided" and chance.random() < 0.4:  # 33 units, of which the last group has 3
        return {"stages": [Stage(), middle], "caps": {names[0]: 17, names[1]: 16}, "group": 4}
    return {"stages": [Stage(), middle, Stage({names[0]: 2, names[1]: 1}, at=33)], "end": 66, "group": 4}


def make_job(library: Library, case: Case, seed: int, global_size: int) -> ViewJob | MixtureJob:
    members = MEMBERS[case["mix"]]
    if case["mix"] == "types" and seed % 7 == 0:
        members = members[::-1]  # so that the first stage has only the wide one
    opened = [library.open(member, case) for member in members]
    if case["mix"] != "none":
        return MixtureJob(case, [make_source(library, each, case) for each in opened], seed, global_size)
    shards = len(opened[0].dataset.shards)
    stages = {"none": [shards], "once": [shards - 1, shards], "twice": [shards - 2, shards - 1, shards]}[case["growth"]]
    grown = [opened[0] if each == shards else library.first(opened[0], each) for each in stages]
    epochs = {"one": 1, "two": 2, "each": 2}.get(case["length"])
    return ViewJob(case, [make_source(library, each, case) for each in grown], seed, epochs)
