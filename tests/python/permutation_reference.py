"""Algorithm 1 and the order `blocks` in plain Python, written from their description and sharing no code with penstock.

Run as a script, it prints tests/golden/permutation.json.
"""

import json
import math

M64 = (1 << 64) - 1
M32 = (1 << 32) - 1
GOLDEN = 0x9E3779B97F4A7C15
ROUNDS = 8


def mix64(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M64
    return z ^ (z >> 31)


def absorb(*values: int) -> int:
    state = 0
    for value in values:
        state = mix64(((state ^ value) + GOLDEN) & M64)
    return state


def key_at(state: int, counter: int) -> int:
    return mix64((state + (counter + 1) * GOLDEN) & M64)


def fmixk(half: int, key: int) -> int:
    h = (half ^ (key & M32)) & M32
    h = (h * 0x85EBCA6B) & M32
    h ^= h >> 15
    h = (h + (key >> 32)) & M32
    h = (h * 0xC2B2AE35) & M32
    return h ^ (h >> 16)


class Reference:
    """The bijection of [0, n) that algorithm 1 gives for (seed, epoch)."""

    def __init__(self, n: int, seed: int, epoch: int = 0) -> None:
        self.n = n
        state = absorb(seed, epoch, n)
        self.table = None
        if n <= 64:
            self.table = list(range(n))
            for i in range(n - 1, 0, -1):
                j = key_at(state, i) * (i + 1) >> 64
                self.table[i], self.table[j] = self.table[j], self.table[i]
            return
        self.b = math.isqrt(n - 1) + 1
        self.b += self.b % 2
        self.a = -(-n // self.b)
        self.keys = [key_at(state, i) for i in range(ROUNDS)]

    def __call__(self, x: int) -> int:
        if self.table is not None:
            return self.table[x]
        while True:
            left, right = divmod(x, self.b)
            for i in range(0, ROUNDS, 2):
                left = (left + (fmixk(right, self.keys[i]) * self.a >> 32)) % self.a
                right = (right + (fmixk(left, self.keys[i + 1]) * self.b >> 32)) % self.b
            x = left * self.b + right
            if x < self.n:
                return x


class BlocksReference:
    """The order `blocks`: the observation at any position."""

    ORDER, TURN, BLOCKS, LONG, SHORT, FETCH = 0x626C6F636B73, 1, 2, 3, 4, 5

    def __init__(self, n: int, seed: int, block: int, fetch: int, lanes: int) -> None:
        self.n, self.seed, self.block, self.fetch, self.lanes = n, seed, block, fetch, lanes

    def __call__(self, position: int) -> int:
        n, m, lanes = self.n, self.block, self.lanes
        epoch, offset = divmod(position, n)
        base = (self.ORDER, self.seed, epoch, n)
        time, lane = divmod(offset, lanes)
        lengths = [n // lanes + (i < n % lanes) for i in range(lanes)]
        number, within = divmod(time, self.fetch)
        size = min(self.fetch, lengths[lane] - number * self.fetch)
        element = number * self.fetch + Reference(size, absorb(*base, self.FETCH, lane, number))(within)
        wholes = [length - length % m for length in lengths]
        if element < wholes[lane]:
            element += sum(wholes[:lane])
        else:
            group = [i for i in range(lanes) if (i < n % lanes) == (lane < n % lanes)]
            use = self.LONG if lane < n % lanes else self.SHORT
            slot = Reference(len(group), absorb(*base, use))(lane - group[0])
            before = [lengths[i] % m for i in range(group[0] + slot)]
            element = sum(wholes) + sum(before) + element - wholes[lane]
        if element < n // m * m:
            element = Reference(n // m, absorb(*base, self.BLOCKS))(element // m) * m + element % m
        return (element + (absorb(*base, self.TURN) * n >> 64)) % n


def independent_draws(weights: list, seed: int, epoch: int, size: int) -> list:
    """An epoch of `Weighted(weights, draws="independent")`, of integer weights, from docs/order.md."""
    total = int(sum(weights))
    drawn = []
    for draw in range(size):
        state, counter = absorb(0x776569676874696E, seed, epoch, draw), 0
        while (key_at(state, counter) * total) & M64 < (1 << 64) % total:
            counter += 1
        place = key_at(state, counter) * total >> 64
        index = 0
        while sum(weights[: index + 1]) <= place:
            index += 1
        drawn.append(index)
    return drawn


def golden() -> dict:
    keys = [(0, 0), (7, 1), (0xDEADBEEF00000000, 0), (M64, 3), (0x8000000100000001, 1 << 40), (1, M64)]
    permutations = []
    for n in (1, 2, 3, 64, 65, 1000, 1 << 20, (1 << 32) + 1, (1 << 40) + 7, 1 << 52):
        for seed, epoch in keys:
            permutation = Reference(n, seed, epoch)
            indices = sorted(i for i in {0, 1, 2, n // 3, n // 2, n - 2, n - 1} if 0 <= i < n)
            pairs = [[i, permutation(i)] for i in indices]
            permutations.append({"n": n, "seed": seed, "epoch": epoch, "pairs": pairs})
    blocks = []
    shapes = ((1, 1, 1, 1), (10, 3, 6, 2), (1000, 8, 64, 4), (1003, 16, 160, 7), (50, 64, 128, 80))
    for n, block, fetch, lanes in shapes:
        for seed in (7, 0xDEADBEEF00000001):
            order = BlocksReference(n, seed, block, fetch, lanes)
            positions = sorted({0, 1, 2, 3, n // 2, n - 1, n, n + 1, 3 * n + n // 3, 4 * n - 1})
            pairs = [[p, order(p)] for p in positions]
            blocks.append({"n": n, "seed": seed, "block": block, "fetch": fetch, "lanes": lanes, "pairs": pairs})
    return {"algorithm": 1, "permutation": permutations, "blocks": blocks}


def golden_text() -> str:
    """One case a line, so that a difference names its case."""
    data = golden()
    cases = {name: ",\n".join("  " + json.dumps(case) for case in data[name]) for name in ("permutation", "blocks")}
    return (
        f'{{"algorithm": {data["algorithm"]},\n"permutation": [\n{cases["permutation"]}\n],\n'
        f'"blocks": [\n{cases["blocks"]}\n]}}\n'
    )


if __name__ == "__main__":
    print(golden_text(), end="")
