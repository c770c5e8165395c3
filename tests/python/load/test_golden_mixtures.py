"""States of mixtures load for ever, and go on with the same rows: tests/golden/mixtures.json holds one of each kind.

`python tests/python/load/test_golden_mixtures.py`, with PYTHONPATH=tests/python, adds kinds that are not there yet, and
changes none that is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import penstock
import pytest
from _mixtures import rows
from penstock import Mixture, Positions, Stage, Tokens
from penstock.orders import Blocks

GOLDEN = Path(__file__).parents[2] / "golden"
FILE = GOLDEN / "mixtures.json"
G = 12  # of a global batch
SAVED, STEPS = 7, 9  # batches before the state, and after it


def windows() -> dict[str, penstock.View]:
    view = penstock.open(GOLDEN / "state-v1.bin", dtype="u2").windows(4, lookahead=1)
    return {"web": view, "code": view[:20], "books": view[30:]}


def packed() -> dict[str, penstock.View]:
    dataset = penstock.open(GOLDEN / "dataset-v1" / "compact")
    return {name: dataset.packed(64, fill="exact") for name in ("web", "code")}


class Kind(NamedTuple):
    """A mixture; weights that are set after so many batches, at a position or the loader's; the sources' order; the
    kind of which states are saved now, where they say more than these did."""

    mixture: Callable[[], Mixture]
    sets: Mapping[int, tuple[Mapping[str, Any], Any]] = {}
    order: Any = "uniform"
    now: str | None = None


def listed() -> Mixture:
    stages = [Stage({"web": 3, "code": 1}), Stage({"web": "0.2", "books": 0.3}, at=60), Stage(at=Tokens(600))]
    return Mixture(windows(), stages, caps={"code": 30}, epochs={"books": 2}, end=190)


def ramped() -> Mixture:
    stages = [
        Stage({"web": 3, "code": 1}),
        Stage({"books": 1}, at=30, ramp=Positions(70)),
        Stage({"web": 1}, at=80, ramp=Tokens(320)),  # while the ramp before it goes on
    ]
    return Mixture(windows(), stages)


def cut(steered: bool) -> Mixture:
    stages = [Stage({"web": 1, "code": 1}, window=2), Stage({"web": 1, "books": 2}, at=100, ramp=Positions(40))]
    return Mixture(windows(), stages, caps={"code": 25}, group=8, steered=steered)


def lengths() -> Mixture:
    stages = [Stage({"web": 1}, window=32), Stage({"web": 1, "code": 2}, at=50, ramp=Positions(60))]
    return Mixture(packed(), stages, steered=True)


def short() -> Mixture:
    stages = [Stage({"web": 1, "code": 1}, window=1)]
    return Mixture(windows(), stages, caps={"web": 21, "code": 14}, group=16, steered=True)


SETS: dict[int, tuple[dict[str, Any], Any]] = {
    2: ({"web": 0.5, "code": 0.25}, None),
    4: ({"code": 1, "web": 1 / 3}, None),
    5: ({"code": 2, "web": 7}, 110),
    6: ({"web": 5, "code": 1}, 78),
}
KINDS = {
    "stages, caps": Kind(listed),
    "stages in blocks": Kind(listed, order={"web": Blocks(4, 16), "code": "sequential"}),
    "ramps": Kind(ramped, now="ramps, with what was asked"),
    "windows in groups": Kind(lambda: cut(False), now="windows in groups, with what was asked"),
    "steered": Kind(lambda: listed().steered(), SETS),
    "steered ramps": Kind(lambda: ramped().steered(), {**SETS, 3: ({"web": 1, "books": 4}, 41)}),
    "steered windows in groups": Kind(lambda: cut(True), SETS),
    "steered packed rows of two lengths": Kind(lengths, SETS),
    "steered, a short last group": Kind(short, {2: ({"web": 2, "code": 1}, None)}),
    "ramps, with what was asked": Kind(ramped),
    "windows in groups, with what was asked": Kind(lambda: cut(False)),
}


def loader(kind: Kind) -> penstock.Loader[Any]:
    options: dict[str, Any] = {"global_batch_size": G, "seed": 5, "framework": "numpy", "threads": 1}
    return penstock.Loader(kind.mixture(), order=kind.order, **options)


def given(made: penstock.Loader[Any]) -> list[list[list[int]]]:
    """[source, epoch, index] of the rows of the batches to come."""
    return [[list(row) for row in rows(batch)] for batch, _ in zip(made, range(STEPS), strict=False)]


def found(kind: Kind) -> dict[str, Any]:
    with loader(kind) as made:
        for step in range(1, SAVED + 1):
            next(made)
            if step in kind.sets:
                made.set_weights(*kind.sets[step])
        return {"state": made.state_dict(), "batches": given(made)}


@pytest.mark.parametrize("name", KINDS)
def test_a_state_that_was_saved_loads_and_gives_the_same_rows(name):
    kinds = json.loads(FILE.read_text())["kinds"]
    golden, now = kinds[name], kinds[KINDS[name].now or name]
    assert golden["state"]["position"] > 5 * G and sum(map(len, golden["batches"])) > 2 * G
    with loader(KINDS[name]) as made:
        made.load_state_dict(golden["state"])
        assert made.state_dict() == now["state"]
        assert given(made) == golden["batches"] == now["batches"]


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.now is None])
def test_a_run_saves_the_same_state(name):
    assert found(KINDS[name]) == json.loads(FILE.read_text())["kinds"][name]


if __name__ == "__main__":
    what = "States of mixtures as they were first saved, and the rows that follow. Never regenerate."
    kept = json.loads(FILE.read_text())["kinds"] if FILE.exists() else {}
    kinds = {name: kept.get(name) or found(kind) for name, kind in KINDS.items()}
    lines = [f" {json.dumps(name)}: {json.dumps(each)}" for name, each in kinds.items()]
    FILE.write_text(f'{{"what": {json.dumps(what)}, "kinds": {{\n' + ",\n".join(lines) + "\n}}\n")
