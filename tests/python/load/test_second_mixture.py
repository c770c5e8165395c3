"""The second reader's mixtures (_second_mixture.py, from docs/order.md) and penstock's give the same rows."""

import json
import random
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _second_mixture import Mixture, Stage, asked, source_seed
from _second_order import NEVER, Run

GOLDEN = Path(__file__).parents[2] / "golden"
SIZES = {"web": 900, "code": 200, "books": 61, "ä": 131, "Z": 7}
WINDOW = 12


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


def random_stages(chance: random.Random) -> tuple[list[Stage], list[penstock.Stage]]:
    """The same stages for both."""
    mine, theirs, at = [], [], 0
    cuts = chance.random() < 0.4
    for number in range(chance.choice([1, 1, 2, 3, 5])):
        weights, in_tokens = random_weights(chance), number > 0 and not cuts and chance.random() < 0.3
        stage = Stage(weights, at * WINDOW - 5 if in_tokens else at, in_tokens)
        given: dict[str, Any] = {"at": penstock.Tokens(stage.at) if in_tokens else stage.at} if number else {}
        if cuts and chance.random() < 0.6:
            stage.window = given["window"] = chance.choice([1, 4, 6])
        if number and chance.random() < 0.4:
            stage.ramp = chance.choice([1, 15, 40, 333, 5000]) * (WINDOW if in_tokens else 1)
            given["ramp"] = (penstock.Tokens if in_tokens else penstock.Positions)(stage.ramp)
        mine.append(stage)
        theirs.append(penstock.Stage(weights, **given))
        at += chance.choice([40, 300, 700]) * (12 if cuts else 1)
    return mine, theirs


def came_out(mine: Mixture) -> list[tuple[int, list[str], list[int]]]:
    """Position, sources and weights of each stage that came out, where there are no ramps and no shorter windows."""
    return [(p.stage.begin + p.unit - p.stage.unit, p.names, p.strata.w) for p in mine.pieces]


@pytest.mark.parametrize("seed", range(60))
def test_mixtures_are_alike(seed: int, views: dict[str, Any]) -> None:
    chance = random.Random(seed)
    mine_stages, their_stages = random_stages(chance)
    caps = {name: chance.randrange(1, 2500) for name in SIZES if chance.random() < chance.choice([0, 0, 0.4, 0.9])}
    group, end = chance.choice([1, 8, 30, 1024]), chance.choice([None, None, 200_000])
    orders = {n: {"algorithm": 1, "name": "uniform", "seed": source_seed(seed, n), "size": s} for n, s in SIZES.items()}
    mine = Mixture(orders, mine_stages, caps, WINDOW, group)
    try:
        mixture = penstock.Mixture(views, their_stages, caps=caps, group=group, end=end)
    except penstock.InvalidArgumentError as error:
        begins = [s.begin for s in mine_stages]
        assert begins != sorted(set(begins)) or mine.pieces[-1].stage is not mine_stages[-1], error
        return
    compare(chance, mine, mixture, penstock.Job(mixture, global_batch_size=4, seed=seed), end)


def halves(total: int) -> int:
    """About half of it, and without a common divisor."""
    return next(part for part in range(total // 2, 0, -1) if gcd(part, total) == 1)


#: Sums at which words get other lengths or end, ramps of the most steps, sums that are rounded.
EDGES: list[tuple[list[dict[str, int]], int]] = [
    *(
        ([{"web": total - halves(total), "ä": halves(total)}], 0)
        for total in (64, 65, 341, 342, 512, 513, 1024, 1025, 4095, 4096, 4097)
    ),
    *(([{"web": 1}, {"web": 1, "code": 2}], ramp) for ramp in (15, 16, 31, 32, 16384)),
    *(([{"web": 3, "ä": 2**50 - d}, {"web": 1, "code": 2}], 700) for d in (2, 3, 4)),
    *(([{"web": 3, "ä": 2**50 - 3}, {"web": 1, "code": 2**k - 1}], 700) for k in (4, 5, 6, 7, 61)),
]


@pytest.mark.parametrize("number", range(len(EDGES)))
def test_mixtures_at_edges_are_alike(number: int, views: dict[str, Any]) -> None:
    weights, ramp = EDGES[number]
    given: list[dict[str, Any]] = [{}, {"at": 500, "ramp": penstock.Positions(ramp)}]
    theirs = [penstock.Stage(each, **more) for each, more in zip(weights, given, strict=False)]
    mine = [Stage(each, 500 * i, ramp=ramp * i) for i, each in enumerate(weights)]
    orders = {n: {"algorithm": 1, "name": "uniform", "seed": source_seed(3, n), "size": s} for n, s in SIZES.items()}
    mixture = penstock.Mixture(views, theirs)
    job = penstock.Job(mixture, global_batch_size=4, seed=3)
    compare(random.Random(number), Mixture(orders, mine, {}, WINDOW, 1024), mixture, job, None)


def compare(
    chance: random.Random, mine: Mixture, mixture: penstock.Mixture, job: penstock.Job, end: int | None
) -> None:
    """Stages, what stands at positions, and where batches end."""
    said = json.loads(job.state_dict(NEVER - 1)["job"])["order"]
    assert said["orders"].items() <= mine.orders.items()
    last = min(mine.end(), end or NEVER)
    assert [s.begin for s in mine.stages] == [s.begin for s in mixture.stages if not s.implied]
    if not any(s.ramp or s.parts > 1 for s in mine.stages):
        assert came_out(mine) == [(s["begin"], s["sources"], s["weights"]) for s in said["stages"]]

    names = list(SIZES)
    begins = [0, last - 40, *(p + d for s in said["stages"] for p in [s["begin"]] for d in (-20, 0))]
    for first in {max(0, min(p, last - 1)) for p in [*begins, *(chance.randrange(40_000) for _ in range(3))]}:
        if first > 2**40:
            continue
        for p, each in enumerate(job.picks(first, min(30, last - first)), first):
            assert (names[each["source"]], each["epoch"], each["index"]) == mine.pick(p), p
    for position in (0, *(s.begin - 2 for s in mine.stages[1:])):
        ends = [s.begin for a, s in zip(mine.stages, mine.stages[1:], strict=False) if a.window != s.window]
        wanted, plan = Run([(0, 4)], [*ends, last]).batch(position), job.plan(position, 0, 1)
        assert wanted is not None and plan is not None
        assert (plan.global_rows, plan.next_position) == (len(wanted[0]), wanted[2])


#: What a state does not say, since it lists stages as they came out: those asked for, where windows are in groups.
ASKED = {
    "windows in groups": (
        [Stage({"web": 1, "code": 1}, window=2), Stage({"web": 1, "books": 2}, 100, ramp=40)],
        {"code": 25},
    )
}


def test_golden_states_go_on_alike() -> None:
    kinds = json.loads((GOLDEN / "mixtures.json").read_text())["kinds"]
    for kind, case in kinds.items():
        job = json.loads(case["state"]["job"])
        order, names, view = job["order"], [source["name"] for source in job["sources"]], job["sources"][0]["view"]
        stages, caps = ASKED.get(kind, (asked(order), order.get("caps", {})))
        group = next((stage["group"] for stage in order["stages"] if "group" in stage), 1024)
        mine = Mixture(order["orders"], stages, caps, view["window"] if view["kind"] == "windows" else 0, group)
        rows = [row for batch in case["batches"] for row in batch]
        for position, (source, epoch, index) in enumerate(rows, case["state"]["position"]):
            assert mine.pick(position) == (names[source], epoch, index), (kind, position)
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
        order = json.loads(loader.state_dict()["job"])["order"]
        mine, names = Mixture(order["orders"], asked(order), order["caps"], WINDOW, 1024), list(SIZES)
        for _ in range(20):
            batch = next(loader)
            rows = zip(batch.sources, batch.epochs, batch.indices, strict=True)
            found = [(names[s], int(e), int(i)) for s, e, i in rows]
            assert found == [mine.pick(batch.position + i) for i in range(6)]
