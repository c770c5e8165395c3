"""The second reader from a position to its rows, written from docs/order.md."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import isqrt

import numpy as np
from _second_hashes import xxh3

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
NEVER = 1 << 63
BLOCKS, FETCHES = 0x626C6F636B73, 0x73657175656E


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def key(*values: int, after: int = 0) -> int:
    """The key of values that are absorbed one after the other, after those of another key."""
    for value in values:
        after = mix(((after ^ value) + GOLDEN) & MASK)
    return after


def at(k, i):
    """Number i of a key's stream; of an int, or of an array of u64."""
    return mix((k + (i + 1) * GOLDEN) & MASK)


def scaled(x: int, n: int) -> int:
    return x * n >> 64


class Permutation:
    """The bijection of [0, n): of an int, or of an array of u64."""

    def __init__(self, n: int, seed: int, epoch: int = 0) -> None:
        k = key(seed, epoch, n)
        self.n, self.table = n, list(range(n)) if n <= 64 else None
        if self.table is not None:
            for i in range(n - 1, 0, -1):
                j = scaled(at(k, i), i + 1)
                self.table[i], self.table[j] = self.table[j], self.table[i]
        b = isqrt(n - 1) + 1
        self.b = b + b % 2
        self.a = -(-n // self.b)
        self.words = [at(k, i) for i in range(8)]

    def _once(self, x):
        left, right = x // self.b, x % self.b
        for i, word in enumerate(self.words):
            low, high, half = word & 0xFFFFFFFF, word >> 32, right if i % 2 == 0 else left
            h = (half ^ low) * 0x85EBCA6B & 0xFFFFFFFF
            h = ((h ^ h >> 15) + high & 0xFFFFFFFF) * 0xC2B2AE35 & 0xFFFFFFFF
            h = h ^ h >> 16
            if i % 2 == 0:
                left = (left + (h * self.a >> 32)) % self.a
            else:
                right = (right + (h * self.b >> 32)) % self.b
        return left * self.b + right

    def __call__(self, x):
        if self.table is not None:
            return np.array(self.table, "u8")[x] if isinstance(x, np.ndarray) else self.table[x]
        y = self._once(x)
        if not isinstance(x, np.ndarray):
            while y >= self.n:
                y = self._once(y)
            return y
        while (far := y >= self.n).any():
            y[far] = self._once(y[far])
        return y


permutation = lru_cache(4096)(Permutation)


# ---- orders: (epoch, observation) of a position


def pick(order: dict, position: int) -> tuple[int, int]:
    """What stands at a position of an order, as a state says it: epoch and observation."""
    if order["name"] == "grown":
        return _grown(order, position)
    size, (epoch, offset) = order["size"], divmod(position, order["size"])
    if order["name"] == "uniform":
        return epoch, permutation(size, order["seed"], epoch)(offset)
    if order["name"] == "sequential":
        return epoch, offset
    if order["name"] == "sequential in fetches":
        j, place = divmod(offset, order["fetch"])
        length = min(order["fetch"], size - offset + place)
        return epoch, offset - place + permutation(length, key(FETCHES, order["seed"], epoch, j))(place)
    assert order["name"] == "blocks", order
    return epoch, _blocks(order, epoch, offset)


def _blocks(order: dict, epoch: int, offset: int) -> int:
    n, m, f, lanes = (order[name] for name in ("size", "block", "fetch", "lanes"))
    sub = partial(key, after=key(BLOCKS, order["seed"], epoch, n))
    lane, t = offset % lanes, offset // lanes
    longs, short = n % lanes, n // lanes
    length = short + (lane < longs)
    j = t // f
    t = j * f + permutation(min(f, length - j * f), sub(5, lane, j))(t - j * f)
    whole_long, whole_short = short + 1 - (short + 1) % m, short - short % m
    whole = whole_long if lane < longs else whole_short
    if t < whole:
        s = min(lane, longs) * whole_long + max(lane - longs, 0) * whole_short + t
    else:
        s = longs * whole_long + (lanes - longs) * whole_short + t - whole
        if lane < longs:
            s += permutation(longs, sub(3))(lane) * ((short + 1) % m)
        else:
            s += longs * ((short + 1) % m) + permutation(lanes - longs, sub(4))(lane - longs) * (short % m)
    if s < n // m * m:
        s = permutation(n // m, sub(2))(s // m) * m + s % m
    return (s + scaled(sub(1), n)) % n


def _grown(order: dict, position: int) -> tuple[int, int]:
    epochs = 0
    for stage, after in zip(order["stages"], [*order["stages"][1:], None], strict=True):
        size = stage["order"]["size"]
        if after is None or position < after["begin"]:
            return pick(stage["order"], epochs * size + position - stage["begin"])
        epochs += (after["begin"] - stage["begin"]) // size
    raise AssertionError(position)


# ---- views


def view_size(view: dict, records: int) -> int:
    """How many windows a view of a stream has."""
    count = max(records - view["lookahead"], 0) // view["window"]
    return count - 1 if view.get("phase") == "random" else count


def window(view: dict, records: int, epoch: int, i: int) -> tuple[int, int]:
    """Records [begin, end) of observation i of a view of windows."""
    part, w, phase = view.get("slice", {"first": 0, "step": 1}), view["window"], 0
    if view.get("phase") == "random":
        hashed = int.from_bytes(xxh3(np.array([w, epoch], "<u8").tobytes())[:8], "big")
        phase = scaled(hashed, records - view["lookahead"] - view_size(view, records) * w + 1)
    begin = (part["first"] + i * part["step"]) * w + phase
    return begin, begin + w + view["lookahead"]


# ---- batches and ranks


@dataclass
class Run:
    """The arithmetic of a run: `sizes`, (position, global batch size), …, and `ends` that no batch crosses."""

    sizes: list[tuple[int, int]]
    ends: list[int]
    skip: list[tuple[int, int]] = field(default_factory=list)
    drop: bool = False

    def _free(self, begin: int, end: int, most: int) -> list[int]:
        """At most so many positions of [begin, end) that no skip leaves out."""
        found: list[int] = []
        while begin < end and len(found) < most:
            past = [b for a, b in self.skip if a <= begin < b]
            if past:
                begin = max(past)
            else:
                found.append(begin)
                begin += 1
        return found

    def _begins(self, position: int, end: int) -> list[int]:
        size = [size for begin, size in self.sizes if begin <= position][-1]
        found = self._free(position, end, size)
        return [] if self.drop and len(found) < size else found

    def batch(self, position: int) -> tuple[list[int], int, int] | None:
        """Positions of the global batch at a state, its size, and the state after it; None at the run's end."""
        for end in self.ends:
            if position < end and (found := self._begins(position, end)):
                after = found[-1] + 1
                size = [size for begin, size in self.sizes if begin <= position][-1]
                return found, size, after if after < end and self._begins(after, end) else end
            position = max(position, end)
        return None


def rank_rows(positions: list[int], size: int, rank: int, ranks: int) -> list[int | None]:
    """A rank's rows of a global batch: positions, and None for padding."""
    mine: list[int | None] = [*positions[rank::ranks]]
    return mine + [None] * (-(-size // ranks) - len(mine))


def job_json(order: dict, sources: list[dict], skip: Iterable[tuple[int, int]] = (), form: int = 1) -> str:
    """`job` of a state."""
    said = {"format": form, "order": order, "skip": [list(each) for each in skip], "sources": sources}
    return json.dumps(said, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
