"""The second reader's mixtures (_second_reader.py, from docs/order.md) and penstock's give the same rows."""

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _second_reader import Run

GOLDEN = Path(__file__).parents[2] / "golden"
SIZES = {"web": 900, "code": 200, "books": 61, "ä": 131, "Z": 7}
WINDOW = 12
#: The second reader goes from unit to unit, so not to positions far away.
MOST = 20_000


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found = {}
    for name, size in SIZES.items():
        path = tmp_path_factory.mktemp("mixture") / "tokens.bin"
        np.zeros(size * WINDOW + 1, "u2").tofile(path)
        found[name] = penstock.open(path, dtype="u2").windows(WINDOW, lookahead=1)
    return found


def random_weights(chance: random.Random) -> dict[str, int]:
    names = chance.sample(list(SIZES), chance.choice([1, 2, 2, 3, 5]))
    most = chance.choice([3, 3, 12, 60, 900, 4000, 10**6, 10**12])
    return {name: chance.randrange(1, most + 1) for name in names}


def random_stages(chance: random.Random) -> list[penstock.Stage]:
    found, at = [], 0
    cuts = chance.random() < 0.4
    for number in range(chance.choice([1, 1, 2, 3, 5])):
        given: dict[str, Any] = {}
        in_tokens = number > 0 and not cuts and chance.random() < 0.3
        if number:
            given["at"] = penstock.Tokens(at * WINDOW - 5) if in_tokens else at
        if cuts and chance.random() < 0.6:
            given["window"] = chance.choice([1, 4, 6])
        if number and chance.random() < 0.4:
            ramp = chance.choice([1, 15, 40, 333, 5000])
            given["ramp"] = penstock.Tokens(ramp * WINDOW) if in_tokens else penstock.Positions(ramp)
        found.append(penstock.Stage(random_weights(chance), **given))
        at += chance.choice([40, 300, 700]) * (12 if cuts else 1)
    return found


def random_order(chance: random.Random) -> Any:
    return chance.choice(["uniform", "uniform", "sequential", penstock.orders.Blocks(3, 12, 2)])


@pytest.mark.parametrize("seed", range(60))
def test_mixtures_are_alike(seed: int, views: dict[str, Any]) -> None:
    chance = random.Random(seed)
    stages = random_stages(chance)
    caps = {name: chance.randrange(1, 2500) for name in SIZES if chance.random() < chance.choice([0, 0, 0.4, 0.9])}
    group, end = chance.choice([1, 8, 30, 1024]), chance.choice([None, None, 15_000])
    try:
        mixture = penstock.Mixture(views, stages, caps=caps, group=group, end=end)
    except penstock.InvalidArgumentError as error:
        assert "caps" in str(error) or "begins" in str(error), error
        return
    order = {name: random_order(chance) for name in SIZES}
    compare(chance, mixture, order, math.inf if end is None else end)


def halves(total: int) -> int:
    """About half of it, and without a common divisor."""
    return next(part for part in range(total // 2, 0, -1) if math.gcd(part, total) == 1)


#: Sums at which words get other lengths or end, ramps of the most steps, sums that are rounded.
EDGES: list[tuple[list[dict[str, int]], int]] = [
    *(
        ([{"web": total - halves(total), "ä": halves(total)}], 0)
        for total in (64, 65, 341, 342, 512, 513, 1024, 1025, 4095, 4096, 4097)
    ),
    *(([{"web": 1}, {"web": 1, "code": 2}], ramp) for ramp in (15, 16, 31, 32, 16384, 16400)),
    *(([{"web": 3, "ä": 2**50 - d}, {"web": 1, "code": 2}], 700) for d in (2, 3, 4)),
    *(([{"web": 3, "ä": 2**50 - 3}, {"web": 1, "code": 2**k - 1}], 700) for k in (4, 5, 6, 7, 61)),
    ([{"web": 2, "ä": 2**50 - 3}, {"web": 1, "code": 14}], 700),  # odd weights of 61 bits, which are not rounded
]


@pytest.mark.parametrize("number", range(len(EDGES)))
def test_mixtures_at_edges_are_alike(number: int, views: dict[str, Any]) -> None:
    weights, ramp = EDGES[number]
    given: list[dict[str, Any]] = [{}, {"at": 500, "ramp": penstock.Positions(ramp)}]
    stages = [penstock.Stage(each, **more) for each, more in zip(weights, given, strict=False)]
    compare(random.Random(number), penstock.Mixture(views, stages), "uniform", math.inf, 2_000)


def compare(chance: random.Random, mixture: penstock.Mixture, order: Any, end: float, most: int = 6_000) -> None:
    """Positions and where batches end, by the state of the mixture and by that of the same one, steered.

    `end`: as it was given; where no source is left earlier, states that say the caps tell it.
    """
    last = math.inf if mixture.run_end is None else mixture.run_end
    begins = [0, last - 40, last, *(stage.begin + d for stage in mixture.stages for d in (-20, 0))]
    begins += [chance.randrange(most) for _ in range(3)]
    for each in (mixture.steered(), mixture):
        job = penstock.Job(each, global_batch_size=4, seed=3, order=order)
        run = Run(job.state_dict(2**63 - 1))
        for first in {max(0, min(p, last - 1)) for p in begins if p < MOST}:
            for p, picked in enumerate(job.picks(first, int(min(30, last - first))), first):
                source, epoch, index, (begin, _) = run.row(p)
                assert (picked["source"], picked["epoch"], picked["index"]) == (source, epoch, index), p
                assert picked["first_record"] == begin, p
        for position in (0, *(b - 2 for b in begins if 2 <= b <= min(MOST, last))):
            says_caps = each.is_steered or "asked" in run.order
            wanted, plan = run.batch(position, [(0, 4)], end if says_caps else last), job.plan(position, 0, 1)
            assert wanted is not None and plan is not None
            assert (plan.global_rows, plan.next_position) == (len(wanted[0]), wanted[2])


def test_golden_states_go_on_alike() -> None:
    kinds = json.loads((GOLDEN / "mixtures.json").read_text())["kinds"]
    for kind, case in kinds.items():
        run = Run(case["state"])
        rows = [row for batch in case["batches"] for row in batch]
        for position, row in enumerate(rows, case["state"]["position"]):
            assert [*run.row(position)[:3]] == row, (kind, position)
    assert len(kinds) >= 9


def test_a_mixture_that_was_steered_goes_on_alike(views: dict[str, Any]) -> None:
    """From the state alone."""
    for seed in range(8):
        chance = random.Random(seed)
        mixture = penstock.Mixture(views, [penstock.Stage(random_weights(chance))], caps={"Z": 50}, steered=True)
        loader = penstock.Loader(mixture, global_batch_size=6, seed=seed, framework="numpy")
        for _ in range(5):
            for _ in range(chance.randrange(1, 30)):
                next(loader)
            loader.set_weights(random_weights(chance) | {"web": 1})
        run = Run(loader.state_dict())
        for _ in range(20):
            batch = next(loader)
            rows = zip(batch.sources.tolist(), batch.epochs.tolist(), batch.indices.tolist(), strict=True)
            assert [*rows] == [run.row(batch.position + i)[:3] for i in range(6)]
