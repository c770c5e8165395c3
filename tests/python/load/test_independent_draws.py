"""Draws with replacement beside their formula in docs/order.md, in loaders on any ranks and threads."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import raw_tokens
from penstock.orders import Balanced, Weighted, resolve
from permutation_reference import independent_draws

N = 61
WEIGHTS = np.arange(N) % 5 * np.arange(N)


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> penstock.View:
    return raw_tokens(tmp_path_factory.mktemp("independent") / "tokens.bin", N * 4)[0].windows(4)


@pytest.mark.parametrize("weights", [WEIGHTS, [1 << 52] * 341, [3, 0, 0, 5], [0, 7]])
@pytest.mark.parametrize("seed", [0, (1 << 64) - 1])
def test_draws_are_those_of_the_formula(weights: Any, seed: int) -> None:
    order = resolve(Weighted(weights, size=97, draws="independent"), len(weights), seed)
    for epoch in (0, 1, 5000):
        drawn = order.pick(epoch * 97, 1, 97)
        assert drawn[0].tolist() == independent_draws([int(each) for each in weights], seed, epoch, 97)
        assert set(drawn[2].tolist()) == {epoch}


def test_any_ranks_threads_and_fetches_give_one_order(view: penstock.View) -> None:
    expected = [index for epoch in range(3) for index in independent_draws(WEIGHTS.tolist(), 4, epoch, 60)]
    for ranks, fetch, threads in ((1, None, 1), (2, 12, 3), (3, 5, 2)):
        order = Weighted(WEIGHTS, size=60, draws="independent", fetch=fetch, lanes=ranks)
        found = []
        for rank in range(ranks):
            options = {"rank": rank, "world_size": ranks, "threads": threads, "framework": "numpy", "epochs": 3}
            with penstock.Loader(view, global_batch_size=12, seed=4, order=order, **options) as loader:
                assert len(loader) == 15
                found.append(np.concatenate([batch.indices for batch in loader]))
        assert np.stack(found, axis=1).ravel().tolist() == expected


def test_classes_come_by_their_shares_and_not_in_turn(view: penstock.View) -> None:
    labels = np.arange(N) % 3
    order = resolve(Balanced(labels, size=30_000, draws="independent"), N, 7)
    drawn = labels[order.pick(0, 1, 30_000)[0]]
    assert abs(np.bincount(drawn) - 10_000).max() < 6 * np.sqrt(30_000 * 2 / 9)
    pairs = np.bincount(drawn[:-1] * 3 + drawn[1:], minlength=9)  # in turn no class would follow itself so often
    assert ((pairs - 30_000 / 9) ** 2 / (30_000 / 9)).sum() < 33
    with penstock.Loader(view, 8, order=Balanced(labels, weights=[1, 0, 9], draws="independent"), epochs=1) as loader:
        assert len(loader) == 8


def test_states_of_other_draws_are_refused(view: penstock.View) -> None:
    states = {}
    for draws in ("rounded", "independent"):
        with penstock.Loader(view, 8, order=Weighted(WEIGHTS, draws=draws), epochs=1) as loader:
            next(loader)
            states[draws] = loader.state_dict()
    said = json.loads(states["independent"]["job"])["order"]
    assert (said["name"], said["algorithm"], said["draws"]) == ("weighted", 3, {"name": "independent", "size": N})
    with penstock.Loader(view, 8, order=Weighted(WEIGHTS, draws="independent"), epochs=1) as loader:
        with pytest.raises(penstock.StateMismatchError, match=r"saved 2, now 3: .* leave draws= of the order out"):
            loader.load_state_dict(states["rounded"])
        assert loader.load_state_dict(states["independent"]).position == 8
    with (
        penstock.Loader(view, 8, order=Weighted(WEIGHTS), epochs=1) as loader,
        pytest.raises(penstock.StateMismatchError, match=r'saved 3, now 2: .* give draws="independent" to the order'),
    ):
        loader.load_state_dict(states["independent"])


def test_blocks_and_draws_without_replacement_are_refused() -> None:
    with pytest.raises(penstock.InvalidArgumentError, match="block=4 with draws='independent'"):
        Weighted([1, 2], draws="independent", block=4, fetch=8)
    with pytest.raises(penstock.InvalidArgumentError, match="replace=False with draws='independent'"):
        Weighted([1, 2], draws="independent", replace=False)
