"""Which views, orders and states go on over a dataset that grew, and in what words others are refused."""

from __future__ import annotations

import json
import os
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _grown import RECORDS, WINDOW, Grown, make_grown, rows, write
from penstock import orders
from penstock.adapters.torch import BatchDataset


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Grown:
    return make_grown(tmp_path_factory.mktemp("grown"))


def test_what_is_not_the_same_job_is_refused_as_by_refuse(grown: Grown, tmp_path: Path) -> None:
    with grown.loader(0) as old:
        state = next(old).state_dict()
    write(tmp_path / "another", RECORDS[0], 17)
    penstock.append(tmp_path / "another", tmp_path / "another")
    another = penstock.open(tmp_path / "another").windows(WINDOW)
    cases = {
        "seed: saved 3, now 4": (grown.view(1), {"seed": 4}),
        "order: saved uniform, now sequential": (grown.view(1), {"order": "sequential"}),
        "window: saved 10, now 5": (grown.datasets[1].windows(5), {}),
        "lookahead: saved 0, now 1": (grown.datasets[1].windows(WINDOW, lookahead=1), {}),
        "view: saved windows, now documents": (grown.datasets[1].documents(), {}),
        r"skip before position 6: saved none, now \(0, 2\)": (grown.view(1), {"skip": [(0, 2)]}),
        r"dataset: .* Compared were the first 1 of these 2 shards": (another, {}),
        "dataset: the state was saved on": (grown.datasets[1].select([1, 0]).windows(WINDOW), {}),
    }
    for words, (view, options) in cases.items():
        given = {"batch_size": 6, "seed": 3, "framework": "numpy", "on_mismatch": "grown", **options}
        with penstock.Loader(view, **given) as loader:
            before = next(loader).state_dict()
            with pytest.raises(penstock.StateMismatchError, match=words):
                loader.load_state_dict(state)
            assert loader.state_dict() == before  # a refused state changes nothing
            next(loader)
    with grown.loader(1) as loader, grown.loader(0) as smaller:
        longer = loader.state_dict()
        longer["position"] = 6
        with pytest.raises(penstock.StateMismatchError, match=r"dataset: the state was saved on .*2 shards"):
            smaller.load_state_dict(longer)


def test_a_damaged_history_is_refused_and_not_run(grown: Grown) -> None:
    good = grown_state_after(grown)
    for change in (
        lambda stages: stages.clear(),
        lambda stages: stages[0].pop("source"),
        lambda stages: stages[0].update(begin=1),
        lambda stages: stages[1].update(begin=14),
        lambda stages: stages[1].update(begin=-13),
        lambda stages: stages[1].update(begin="13"),
        lambda stages: stages[1].update(begin=2**64),
        lambda stages: stages.append({**stages[1], "begin": 59}),
        lambda stages: stages.extend({**stages[1], "begin": 13 + 23 * i} for i in range(1, 1000)),
        lambda stages: stages[1].update(more=1),
        lambda stages: stages.reverse(),
        lambda stages: stages[0]["order"].update(seed=9),
        lambda stages: stages[0]["source"]["dataset"].update(shards=2),
        lambda stages: stages[0]["source"]["dataset"].update(fingerprint="0" * 32),
        lambda stages: stages[0]["source"].update(view={"kind": "documents"}),
    ):
        job = json.loads(good["job"])
        change(job["order"]["stages"])
        with grown.loader(1) as loader:
            with pytest.raises(penstock.StateMismatchError):
                loader.load_state_dict({**good, "job": json.dumps(job)})
            assert loader.position == 0 and len(next(loader).indices) == 6
    with grown.loader(1) as loader, pytest.raises(penstock.StateMismatchError):
        loader.load_state_dict({**good, "job": json.dumps({**json.loads(good["job"]), "order": 5})})
    for change in (
        lambda job: job["order"].update(algorithm=2),
        lambda job: job["order"]["stages"][0].update(more=1),
        lambda job: job["sources"][0]["dataset"].update(fingerprint="0" * 32),
    ):
        job = json.loads(good["job"])
        change(job)
        for number in (1, 2):
            with grown.loader(number) as loader, pytest.raises(penstock.StateMismatchError, match="of a later version"):
                loader.load_state_dict({**good, "job": json.dumps(job)})


def test_other_words_name_this_one(grown: Grown) -> None:
    def refusing(view: penstock.View, word: str = "refuse") -> penstock.Loader:
        return penstock.Loader(view, 6, seed=3, framework="numpy", on_mismatch=word)

    with grown.loader(0) as old:
        state = next(old).state_dict()
    with refusing(grown.view(1)) as loader:
        with pytest.raises(penstock.StateMismatchError) as caught:
            loader.load_state_dict(state)
        assert "the first 1 of these 2 shards are the state's" in str(caught.value)
        assert "select(range(1))" in str(caught.value)
        assert 'on_mismatch="grown" ends the epoch over them' in str(caught.value)
    with refusing(grown.view(1), "restart") as loader:
        assert loader.load_state_dict(state).position == 0
    others = grown.datasets[1].select([1]).windows(WINDOW)
    with refusing(others) as loader, pytest.raises(penstock.StateMismatchError, match=r"^(?!.*and more)"):
        loader.load_state_dict(state)
    with grown.loader(0) as old, refusing(grown.datasets[1].select(range(1)).windows(WINDOW)) as loader:
        old.load_state_dict(state)
        loader.load_state_dict(state)
        assert next(loader).indices.tolist() == next(old).indices.tolist()
    with grown.loader(1) as going, refusing(grown.view(1)) as loader:
        going.load_state_dict(state)
        with pytest.raises(penstock.StateMismatchError, match='grew in the state\'s run: on_mismatch="grown" goes on'):
            loader.load_state_dict(next(going).state_dict())


def test_views_that_have_no_meaning_over_more_shards_are_refused_at_once(grown: Grown, tmp_path: Path) -> None:
    view, dataset = grown.view(0), grown.datasets[0]
    grown.tokens.tofile(tmp_path / "raw.bin")
    raw = penstock.open(tmp_path / "raw.bin", dtype="u2").windows(WINDOW)
    mixture = penstock.Mixture({"a": view}, [penstock.Stage({"a": 1})])
    for words, given, options in (
        ("a later stage", mixture, {}),
        ("orders.Weighted draws from a table", view, {"order": orders.Weighted(np.ones(len(view)))}),
        ("orders.Balanced draws from a table", view, {"order": orders.Balanced(np.arange(len(view)))}),
        ("phase='random'", dataset.windows(WINDOW, phase="random"), {}),
        ("is a selection", view.select([3, 1, 4]), {}),
        ("is a selection", view[::-1], {}),
        ("penstock import", raw, {}),
    ):
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            penstock.Loader(given, 2, on_mismatch="grown", **options)
    with pytest.raises(penstock.InvalidArgumentError, match=r"on_mismatch='grow': must be one of .*'grown'"):
        penstock.Loader(view, 2, on_mismatch="grow")  # type: ignore[arg-type]
    with pytest.raises(penstock.InvalidArgumentError, match=r"use a penstock\.Loader"):
        BatchDataset(view, 2, on_mismatch="grown")
    with pytest.raises(penstock.InvalidArgumentError, match="collection"):
        penstock.CollectionLoader(np.arange(10), 2, on_mismatch="grown")


def test_a_history_makes_no_other_loader_of_what_is_closed_or_forked(grown: Grown) -> None:
    with grown.loader(0) as old:
        state = list(islice(old, 4))[-1].state_dict()
    with grown.loader(1) as loader:
        held = next(loader)
        before = rows(held, grown.tokens)
        loader.load_state_dict(state)
        list(islice(loader, 5))
        assert rows(held, grown.tokens) == before  # as it was when the job was another
        assert held.state_dict()["job"] != loader.state_dict()["job"]
        child = os.fork()
        if child == 0:
            try:
                loader.load_state_dict(state)
            except penstock.InvalidArgumentError as error:
                os._exit(0 if "forked child" in str(error) else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        loader.load_state_dict(state)
        next(loader)
    loader.load_state_dict(grown_state_after(grown))  # of a run that grew at another position
    with pytest.raises(penstock.InvalidArgumentError, match="closed"):
        next(loader)


def grown_state_after(grown: Grown) -> dict[str, Any]:
    """Of a run over one shard up to position 13, and two from there on; in epoch 1, at position 18."""
    with grown.loader(0) as old, grown.loader(1) as loader:
        loader.load_state_dict(next(old).state_dict())
        return list(islice(loader, 2))[-1].state_dict()
