"""The second reader's mixtures: written from docs/order.md."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import gcd, lcm

import numpy as np
from _second_order import NEVER, at, key, permutation, pick, scaled

SOURCE, MIXTURE = 0x6D6978736F757263, 0x6D697874757265


def name_bytes(name: str) -> list[int]:
    data = name.encode()
    return [len(data), *data]


class Strata:
    """Units of one stage in their order: members are (weight, key)."""

    def __init__(self, members: list[tuple[int, int]], anywhere: bool = False) -> None:
        common = gcd(*(weight for weight, _ in members))
        self.members = [(weight // common, k) for weight, k in members]
        self.w = [weight for weight, _ in self.members]
        self.total = total = sum(self.w)
        self.first = members[0][1]
        self.is_word = total <= 4096
        self.repeats = 1 if total <= 64 else max(1, 1024 // total)
        self.words = 1 if len(members) == 1 else min(max(16384 // (self.repeats * total), 4), 64)
        self.turned = lru_cache(256)(self._turned)
        self.word = lru_cache(64)(self._word)
        self.begin, self.left_out = 0, [0] * len(members)
        if anywhere and len(members) > 1 and not self.is_word:
            begin = scaled(at(key(2, after=self.first), 0), total)
            self.left_out = self._walk(begin)[0]
            self.begin = begin

    def _word(self, v: int) -> np.ndarray:
        """The member of each letter, by time / w: whole parts, then the rest, of which floats tell w <= 4096 apart."""
        least, wholes, rests = min(self.w), [], []
        for weight, k in self.members:
            width = 1 << 32 if weight + least >= self.total else (weight << 32) // (self.total - least)
            letters = np.arange(self.repeats * weight, dtype="u8")
            jitter = at(k, letters + v * len(letters)) >> 32
            time = (letters << 32) + ((1 << 32) - width) // 2 + (jitter * width >> 32)
            wholes.append(time // weight)
            rests.append((time % weight) / weight)
        members = np.repeat(np.arange(len(self.w)), [len(each) for each in wholes])
        return members[np.lexsort((members, np.concatenate(rests), np.concatenate(wholes)))]

    def _turned(self, period: int) -> np.ndarray:
        word = self.word(scaled(at(key(1, after=self.first), period), self.words))
        return np.roll(word, -scaled(at(key(2, after=self.first), period), len(word)))

    def _walk(self, q: int) -> tuple[list[int], int]:
        """Slots of each member before rank q of all, and the member of rank q."""
        early = max(q - len(self.w), 0)
        counts = [max(weight * early // self.total - 1, 0) for weight in self.w]
        common = lcm(*self.w)

        def time(s: int) -> int:
            weight, k = self.members[s]
            return ((counts[s] << 32) + (at(k, counts[s]) >> 32)) * (common // weight)

        times = [time(s) for s in range(len(counts))]
        for left in range(q - sum(counts), -1, -1):
            s = times.index(min(times))
            if left:
                counts[s] += 1
                times[s] = time(s)
        return counts, s

    def slot(self, q: int) -> tuple[list[int], int]:
        """What each member has given before unit q of the stage, and whose unit q is."""
        if not self.is_word:
            counts, s = self._walk(self.begin + q)
            return [a - b for a, b in zip(counts, self.left_out, strict=True)], s
        period, place = divmod(q, self.repeats * self.total)
        turned = self.turned(period)
        before = np.bincount(turned[:place], minlength=len(self.w)).tolist()
        return [period * self.repeats * w + b for w, b in zip(self.w, before, strict=True)], int(turned[place])

    def until(self, s: int, count: int, most: int) -> int:
        """How many units there are until member s has given `count`; `most`, where that is later."""
        low, high = 0, min(most, 1)
        while high < most and self.slot(high)[0][s] < count:
            low, high = high, min(2 * high, most)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.slot(middle)[0][s] >= count else (middle, high)
        return high


@dataclass
class Stage:
    """A stage as it is asked for; `at` a position, or with `in_tokens` tokens; `ramp` likewise."""

    weights: dict[str, int]
    at: int = 0
    in_tokens: bool = False
    window: int = 0
    ramp: int = 0
    was_set: bool = False
    begin: int = 0
    unit: int = 0
    parts: int = 1


@dataclass
class Piece:
    """Units [unit, end) as they came out, of one set of weights."""

    unit: int
    end: int
    stage: Stage
    names: list[str]
    strata: Strata
    given: dict[str, int]
    is_step: bool


class Mixture:
    """What stands at positions of a mixture of `sizes` (name to observations)."""

    def __init__(self, orders: dict[str, dict], stages: list[Stage], caps: dict[str, int], length: int, group: int):
        self.orders, self.stages, self.caps, self.group = orders, stages, caps, group
        self.end_unit, self.pieces, tokens = NEVER, [], 0
        for number, stage in enumerate(stages):
            stage.window = stage.window or length
            stage.parts = length // stage.window if length else 1
            if number:
                before = stages[number - 1]
                past = -(-(stage.at - tokens) // before.window) if stage.in_tokens else stage.at - before.begin
                whole = group * before.parts if before.parts > 1 else 1
                past = -(-max(past, 0) // whole) * whole
                stage.begin, stage.unit = before.begin + past, before.unit + past // before.parts
                tokens += past * before.window
            if stage.ramp and stage.in_tokens:
                stage.ramp = -(-stage.ramp // stage.window)
        self._come_out()

    def _steps(self, stage: Stage, before: dict[str, int]) -> list[tuple[int, dict[str, int]]]:
        """(unit, weights) of a ramp's steps, and of the weights that it leads to."""
        g = self.group if stage.parts > 1 else 1
        groups = -(-stage.ramp // (g * stage.parts))
        if not groups:
            return [(stage.unit, stage.weights)]
        steps = min(groups, max(1, min(1024, groups * g // 16)))
        length = next(name for name, weight in stage.weights.items() if weight).partition("@")[1:]
        before = {"".join((name.partition("@")[0], *length)): weight for name, weight in before.items() if weight}
        (a, sum_a), (b, sum_b) = _divided(before), _divided(stage.weights)
        found = []
        for k in range(steps):
            left, past = 2 * steps - 2 * k - 1, 2 * k + 1
            mixed = {s: left * a.get(s, 0) * sum_b + past * b.get(s, 0) * sum_a for s in self.orders}
            if (shift := sum(mixed.values()).bit_length() - 60) > 1:
                mixed = {s: w + (1 << shift - 1) >> shift for s, w in mixed.items()}
            found.append((stage.unit + groups * k // steps * g, mixed))
        return [*found, (stage.unit + groups * g, stage.weights)]

    def _come_out(self) -> None:
        given, force = dict.fromkeys(self.orders, 0), {}
        for stage, after in zip(self.stages, [*self.stages[1:], None], strict=True):
            end = after.unit if after else NEVER
            steps = [step for step in self._steps(stage, force) if step[0] < end]
            for (unit, weights), (stop, _) in pairwise([*steps, (end, {})]):
                while unit < stop:
                    piece = self._piece(unit, stop, stage, weights, given, unit == steps[0][0] or bool(stage.ramp))
                    if piece is None:
                        self.end_unit = unit
                        return
                    self.pieces.append(piece)
                    if piece.end < NEVER:
                        counts = piece.strata.slot(piece.end - unit)[0]
                        given = given | {s: given[s] + c for s, c in zip(piece.names, counts, strict=True)}
                    unit = piece.end
                force = weights

    def _piece(self, unit: int, stop: int, stage: Stage, weights: dict, given: dict, plain: bool) -> Piece | None:
        never = 1 << 70
        left = {s: self.caps.get(s, never) - given[s] for s in self.orders}
        names = sorted((s for s, w in weights.items() if w and left[s] > 0), key=str.encode)
        if not names:
            return None
        members = [(weights[s], key(MIXTURE, 1, *name_bytes(s), unit)) for s in names]
        strata = Strata(members, bool(stage.ramp) or stage.was_set)
        until = [strata.until(i, left[s], stop - unit) for i, s in enumerate(names) if s in self.caps]
        return Piece(unit, unit + min([stop - unit, *until]), stage, names, strata, given, plain)

    def end(self) -> int:
        """The position at which no source is left, or NEVER."""
        if self.end_unit == NEVER:
            return NEVER
        last = self.pieces[-1].stage
        return last.begin + (self.end_unit - last.unit) * last.parts

    def pick(self, position: int) -> tuple[str, int, int]:
        """Source, epoch and observation at a position."""
        stage = [each for each in self.stages if each.begin <= position][-1]
        q, part, m, g = position - stage.begin, 0, stage.parts, self.group
        unit = stage.unit + q
        if m > 1:
            h, r = divmod(q, g * m)
            first = stage.unit + h * g
            j = permutation(min(g, self.end_unit - first) * m, key(MIXTURE, 2, stage.unit), h)(r)
            unit, part = first + j // m, j % m
        piece = self.pieces[bisect_right(self.pieces, unit, key=lambda each: each.unit) - 1]
        counts, s = piece.strata.slot(unit - piece.unit)
        name = piece.names[s]
        epoch, index = pick(self.orders[name], piece.given[name] + counts[s])
        return name, epoch, index * m + part


def _divided(weights: dict[str, int]) -> tuple[dict[str, int], int]:
    common = gcd(*weights.values())
    found = {name: weight // common for name, weight in weights.items()}
    total = sum(found.values())
    if total >> 50:
        found = {name: ((weight << 50) + total // 2) // total for name, weight in found.items()}
    return found, sum(found.values())


def source_seed(seed: int, name: str) -> int:
    return key(SOURCE, seed, *name_bytes(name))


def asked(order: dict) -> list[Stage]:
    """The stages that a state lists; of a steered mixture also those that were set."""
    stages = [
        Stage(
            dict(zip(s["sources"], s["weights"], strict=True)), s["begin"], False, s.get("window", 0), s.get("ramp", 0)
        )
        for s in order["stages"]
        if s["sources"]
    ]
    if "steered" in order:
        names = order["steered"]["names"]
        for begin, *weights in order["steered"]["stages"]:
            stages, listed = [s for s in stages if s.at != begin], stages
            window = [s for s in listed if s.at <= begin][-1].window
            stages.append(Stage(dict(zip(names, weights, strict=True)), begin, False, window, 0, True))
            stages.sort(key=lambda s: s.at)
    return stages
