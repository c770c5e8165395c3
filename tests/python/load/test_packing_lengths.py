"""Packed rows of other lengths by stage of a mixture: each source packed again, with epochs of its own."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import penstock
import pytest
from _datasets import compact
from _refused import refused
from penstock import Mixture, Stage, Tokens

LENGTHS = {
    "web": np.random.default_rng(1).integers(1, 30, 60).tolist(),
    "code": np.random.default_rng(2).integers(1, 30, 24).tolist(),
}


@pytest.fixture
def datasets(tmp_path):
    found = {}
    for name, lengths in LENGTHS.items():
        (tmp_path / name).mkdir()
        found[name] = compact(tmp_path / name, [lengths])[0]
    return found


def three_stages(datasets, **options):
    views = {name: each.packed(32, **options) for name, each in datasets.items()}
    stages = [
        Stage({"web": 3, "code": 1}, window=16, max_document=12),
        Stage({"web": 1, "code": 1}, at=120),
        Stage({"web": 1}, window=16, max_document=12, at=180),
    ]
    return Mixture(views, stages, end=240)


@pytest.mark.parametrize("options", [{}, {"fill": "exact", "fit": "next"}, {"max_documents": 4, "group": 7}])
def test_each_length_is_packed_for_itself_and_has_its_own_epochs(datasets, options):
    mixture = three_stages(datasets, **options)
    assert [(each.begin, each.window) for each in mixture.stages] == [(0, 16), (120, 32), (180, 16)]
    assert mixture.names == ["web", "code"] and mixture.stages[0].weights == {"web": 3, "code": 1}
    seen: Counter[tuple[str, int, int, int]] = Counter()
    short = {"max_document": 12, **options}
    views = {(name, 16): each.packed(16, **short) for name, each in datasets.items()}
    views |= {(name, 32): each.packed(32, **options) for name, each in datasets.items()}
    with penstock.Loader(mixture, global_batch_size=8, seed=1, framework="numpy") as loader:
        for batch in loader:
            window = batch["token"].shape[1]
            assert window == (32 if 120 <= batch.position < 180 else 16)
            rows = zip(batch.sources, batch.indices, batch.epochs, batch["token"], batch.valid, strict=True)
            for source, index, epoch, tokens, valid in rows:
                if valid:
                    name = mixture.names[source]
                    assert tokens.tolist() == views[name, window][int(index)]["token"].tolist()
                    seen[name, window, int(epoch), int(index)] += 1
            places = loader.locate(position=batch.position)
            assert [(each.source, each.index) for each in places] == [
                (int(s), int(i)) for s, i, ok in zip(batch.sources, batch.indices, batch.valid, strict=True) if ok
            ]
    assert set(seen.values()) == {1}
    for (name, window), view in views.items():
        epochs = Counter(epoch for each, length, epoch, _ in seen if (each, length) == (name, window))
        assert all(epochs[epoch] == len(view) for epoch in range(max(epochs)))
        assert name == "code" or epochs  # the third stage goes on where the first one ended
    given = Counter(name for name, *_ in seen.elements())
    assert mixture.counts(240) == dict(given)
    run = mixture.plan(points=2)
    assert run.tokens[-1] == 16 * 120 + 32 * 60 + 16 * 60
    passes = sum(1 / len(views[name, window]) for name, window, *_ in seen.elements() if name == "web")
    assert run.epochs["web"][-1] == pytest.approx(passes)


def test_a_stage_that_says_the_max_document_of_the_views_goes_on_with_their_rows(datasets):
    views = {name: each.packed(32, max_document=20) for name, each in datasets.items()}
    stages = [
        Stage({"web": 1}, max_document=20),
        Stage({"web": 1}, at=15),
        Stage({"web": 1}, window=24, at=len(views["web"])),
        Stage({"web": 1}, window=24, max_document=20, at=len(views["web"]) + 15),
    ]
    mixture = Mixture(views, stages, end=2 * len(views["web"]))
    assert mixture._lengths.names == ["web", "code", "web@24", "code@24"]
    with penstock.Loader(mixture, batch_size=5, framework="numpy") as loader:
        seen = [
            (batch["token"].shape[1], *row)
            for batch in loader
            for row in zip(batch.epochs[batch.valid], batch.indices[batch.valid], strict=True)
        ]
    assert len(set(seen)) == len(seen) == 2 * len(views["web"])
    views["code"] = datasets["code"].packed(32, max_document=16)
    assert "web@32/20" in Mixture(views, stages[:2])._lengths.names  # of the other source it is another length


def test_it_resumes_at_every_step_on_other_ranks(datasets):
    mixture = pickle.loads(pickle.dumps(three_stages(datasets)))
    made = {"global_batch_size": 12, "seed": 3, "framework": "numpy"}
    with penstock.Loader(mixture, **made) as loader:
        batches = [(batch["token"].copy(), batch.indices.copy(), batch.state_dict()) for batch in loader]
    for step, (_, _, state) in enumerate(batches[:-1]):
        ranks = 1 + step % 4
        for rank in range(ranks):
            with penstock.Loader(mixture, **made, rank=rank, world_size=ranks) as loader:
                loader.load_state_dict(state)
                batch = next(loader)
                assert (batch["token"] == batches[step + 1][0][rank::ranks]).all()
                assert (batch.indices == batches[step + 1][1][rank::ranks]).all()


def test_stages_to_come_may_change_and_those_before_the_state_may_not(datasets):
    views = {"web": datasets["web"].packed(32)}
    first = [Stage(window=16), Stage(at=40)]
    with penstock.Loader(Mixture(views, first), 8, seed=1) as loader:
        next(loader)
        state = loader.state_dict()
    with penstock.Loader(Mixture(views, [Stage(window=16), Stage(at=48), Stage(window=8, at=90)]), 8, seed=1) as loader:
        assert loader.load_state_dict(state).position == 8
    for stages, named in (
        ([Stage(window=8), Stage(at=40)], "web@8"),
        ([Stage(), Stage(window=16, at=40)], "web@16"),
        ([Stage(window=16, max_document=9), Stage(at=40)], "web@16/9"),
    ):
        loader = penstock.Loader(Mixture(views, stages), 8, seed=1)
        with loader, pytest.raises(penstock.StateMismatchError, match=named):
            loader.load_state_dict(state)
    other = {"web": datasets["web"].packed(32, fit="first")}
    loader = penstock.Loader(Mixture(other, first), 8, seed=1)
    with loader, pytest.raises(penstock.StateMismatchError, match="source web@16: fit"):
        loader.load_state_dict(state)


def test_caps_count_each_length_and_batches_may_count_tokens(datasets):
    views = {name: each.packed(32) for name, each in datasets.items()}
    stages = [Stage(window=16), Stage(at=90)]
    mixture = Mixture(views, stages, epochs={"code": 1}, end=140)
    short, whole = len(datasets["code"].packed(16)), len(views["code"])
    assert mixture.counts(90)["code"] == min(short, 45)
    assert mixture.counts(140)["code"] == min(short, 45) + min(whole, 25)
    assert any(each.implied for each in mixture.stages)
    with penstock.Loader(mixture, global_batch_size=Tokens(320), seed=0, framework="numpy") as loader:
        shapes = {batch["token"].shape for batch in loader}
    assert shapes == {(20, 16), (10, 32)}
    order = {"web": penstock.orders.Blocks(2, 4), "web@16": "sequential"}
    job = penstock.Job(Mixture(views, stages, end=140), global_batch_size=4, order=order)
    picks = job.picks(0, 90)
    web = picks[picks["source"] == 0]
    size = len(datasets["web"].packed(16))
    assert (web["index"] == np.arange(len(web)) % size).all()


def test_what_cannot_be_is_refused(datasets, tmp_path):
    view = datasets["web"].packed(32)
    table = tmp_path / "table"
    from penstock._cli.main import main

    assert main(["pack", datasets["web"].path, "--window", "32", "--out", str(table)]) == 0
    for sources, stage, words in (
        ({"web": view[1:]}, Stage(window=16), r"sources\['web'\]: .*part of rows of another length"),
        ({"web": datasets["web"].packed(32, table=table)}, Stage(window=16), "table=.*rows of 32"),
        ({"web": view}, Stage(max_document=33), "sources.*max_document=33: a row has 32"),
        (
            {"web": datasets["web"].packed(32, max_document=20)},
            Stage(window=16),
            r"max_document=20: give Stage\(window=16, max_document=…\) of at most 16",
        ),
        ({"web": datasets["web"].packed(32, long="drop")}, Stage(max_document=9), "long="),
        ({"web": datasets["web"].packed(32, multiple_of=4)}, Stage(window=18), "multiple_of=4: the window 18"),
        ({"web": view, "web@16": view}, Stage(window=16), "'web@16' is called like"),
        ({"web": datasets["web"].windows(32)}, Stage(max_document=9), "max_document=9: it is of packed rows"),
        ({"web": datasets["web"].documents()}, Stage(window=9), "window"),
    ):
        refused(words, Mixture, sources, [stage], end=9)
    refused("Stage: max_document", Stage, max_document=0)
    drawn = penstock.orders.Weighted(np.ones(len(view)))
    mixture = Mixture({"web": view}, [Stage(window=16), Stage(at=9)])
    refused("order of 'web@16'", penstock.Loader, mixture, 4, order=drawn)
    single = datasets["web"].packed(512, max_documents=2)  # as many rows of any length that holds the longest document
    drawn = penstock.orders.Weighted(np.ones(len(single)))
    mixture = Mixture({"web": single}, [Stage(window=1024), Stage(at=9)])
    refused(r"order of 'web@1024': orders\.Weighted .* 'web@1024': …", penstock.Loader, mixture, 4, order=drawn)
    penstock.Loader(mixture, 4, order={"web": drawn, "web@1024": drawn}).close()
    own = penstock.orders.Custom(np.arange(3))  # indices that rows of both lengths have
    refused(r"order of 'web@1024': orders\.Custom has an array", penstock.Loader, mixture, 4, order=own)
    penstock.Loader(mixture, 4, order={"web": own, "web@1024": own}).close()
    rule = penstock.orders.Custom(_rows_of_epoch, name="turned", version=1)
    penstock.Loader(mixture, 4, order=rule).close()  # a function is asked for each length
    cost = {"web": np.ones(len(view), int)}
    refused("cost", penstock.Loader, mixture, 4, rank=0, world_size=2, balance=penstock.Balance(cost))


def _rows_of_epoch(epoch: int, positions: np.ndarray) -> np.ndarray:
    return positions
