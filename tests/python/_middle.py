"""Fill-in-the-middle as its page says it, in plain Python: what the native one is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from penstock._native import MixtureOrder

source_seed = MixtureOrder.source_seed
"""Of a mixture's source: seed and name; which seeds its order, too."""

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def mix64(bits: int) -> int:
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _MASK
    return bits ^ (bits >> 31)


class Draws:
    """What a row draws: see core/columns/row_draws.h."""

    def __init__(self, seed: int, epoch: int, observation: int, purpose: str) -> None:
        seed ^= mix64(int.from_bytes(purpose.encode(), "big"))
        state = mix64((seed + _GOLDEN) & _MASK)
        state = mix64((state + epoch) & _MASK)
        self.state = mix64((state + observation) & _MASK)

    def next(self) -> int:
        self.state = (self.state + _GOLDEN) & _MASK
        return mix64(self.state)

    def below(self, bound: int) -> int:
        return (self.next() * bound) >> 64

    def happens(self, probability: float) -> bool:
        return (self.next() >> 11) * 2.0**-53 < probability


class Middle(NamedTuple):
    prefix: int
    middle: int
    suffix: int
    rate: float
    spm_rate: float
    first: int | None = None  # a token that stays a piece's first …
    last: int | None = None  # … or its last


def rearranged(
    row: Sequence[int], pieces: Iterable[tuple[int, int]], fim: Middle, seed: int, epoch: int, observation: int
) -> list[tuple[int, int]]:
    """For each place of the row (the place whose record it has, its token)."""
    draws = Draws(seed, epoch, observation, "fim")
    made = list(enumerate(row))
    for begin, end in pieces:
        chosen, spm = draws.happens(fim.rate), draws.happens(fim.spm_rate)
        one, other = draws.next(), draws.next()
        if begin < end and fim.first is not None and row[begin] == fim.first:
            begin += 1
        if begin < end and fim.last is not None and row[end - 1] == fim.last:
            end -= 1
        kept = end - begin - 3
        if not chosen or kept < 1:
            continue
        a, b = sorted((each * (kept + 1)) >> 64 for each in (one, other))
        whole = list(enumerate(row))[begin : begin + kept]

        def mark(token: int, before: int, whole: list[tuple[int, int]] = whole) -> tuple[int, int]:
            return whole[min(before, len(whole) - 1)][0], token

        prefix, middle, suffix = whole[:a], whole[a:b], whole[b:]
        if spm:
            new = [mark(fim.prefix, b), mark(fim.suffix, b), *suffix, mark(fim.middle, 0), *prefix, *middle]
        else:
            new = [mark(fim.prefix, 0), *prefix, mark(fim.suffix, b), *suffix, mark(fim.middle, a), *middle]
        made[begin:end] = new
    return made
