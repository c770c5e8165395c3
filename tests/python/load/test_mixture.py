"""Mixtures: every source's epochs are whole through all stages, on any ranks, from any state."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import penstock
import pytest
from _mixtures import WINDOW, all_rows, loader, rows, turns, write_sources
from penstock import Mixture, Stage, Tokens


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, penstock.Dataset]:
    return write_sources(tmp_path_factory.mktemp("mixture"))


@pytest.fixture(scope="module")
def views(datasets):
    return {name: dataset.windows(WINDOW, lookahead=1) for name, dataset in datasets.items()}


STAGES = [
    Stage({"web": 3, "code": 1}),
    Stage(at=Tokens(WINDOW * 150)),
    Stage({"web": 1_000_003, "code": 7_919}, at=301),
]


@pytest.fixture(scope="module")
def mixture(views):
    return Mixture(views, STAGES, caps={"books": 40}, end=450)


def test_each_source_gives_its_share_and_its_epochs_through_all_stages(mixture, views):
    given = all_rows(mixture)
    assert len(given) == 450 == len(penstock.Job(mixture, global_batch_size=1))
    job = penstock.Job(mixture, global_batch_size=12, seed=3)
    picks = job.picks(0, 450)
    assert given == list(zip(picks["source"].tolist(), picks["epoch"].tolist(), picks["index"].tolist(), strict=True))
    for number, (name, view) in enumerate(views.items()):
        mine = [(epoch, index) for source, epoch, index in given if source == number]
        assert len(mine) == mixture.counts(450)[name]
        for at in range(0, len(mine), len(view)):
            epoch = mine[at : at + len(view)]
            assert {each for each, _ in epoch} == {at // len(view)}
            assert len({index for _, index in epoch}) == len(epoch)
    assert mixture.counts(450)["books"] == 40
    begins = [stage.begin for stage in mixture.stages]
    assert begins[0] == 0 and begins[1] == 150 and 301 in begins and any(stage.implied for stage in mixture.stages)
    for stage, end in zip(mixture.stages, [*begins[1:], 450], strict=True):
        total = sum(stage.weights.values())
        for position in range(stage.begin, end + 1, 7):
            for name, weight in stage.weights.items():
                since = mixture.counts(position)[name] - mixture.counts(stage.begin)[name]
                share = weight / total
                assert abs(since - (position - stage.begin) * share) < 1 + len(stage.weights) * share


def test_a_resume_at_every_step_and_stage_edge_repeats_the_rest_on_other_ranks(mixture):
    whole = all_rows(mixture)
    edges = [stage.begin for stage in mixture.stages]
    for at in sorted({*range(0, 450, 12), *edges, *(edge - 1 for edge in edges[1:]), *(edge + 1 for edge in edges)}):
        state = penstock.Job(mixture, global_batch_size=12, seed=3).state_dict(at)
        for ranks in (1, 3):
            loaders = [loader(mixture, rank=rank, world_size=ranks, threads=rank + 1) for rank in range(ranks)]
            for each in loaders:
                assert each.load_state_dict(state).position == at
            given = []
            for batches in zip(*loaders, strict=True):
                by_rank = [rows(batch) for batch in batches]
                given += [each[row] for row in range(12 // ranks) for each in by_rank if row < len(each)]
            assert given == whole[at:]


@pytest.mark.parametrize(
    "order", [penstock.orders.Blocks(2, 8), {"web": penstock.orders.Blocks(4, 16, lanes=2), "code": "sequential"}]
)
def test_each_source_has_an_order_of_its_own_and_threads_do_not_matter(mixture, views, order):
    given = [all_rows(mixture, order=order, threads=threads, world_size=1, rank=0) for threads in (1, 3)]
    assert given[0] == given[1]
    for number, name in enumerate(mixture.names):
        seed = penstock._native.MixtureOrder.source_seed(3, name)
        chosen = order.get(name, "uniform") if isinstance(order, dict) else order
        mine = [index for source, _, index in given[0] if source == number]
        alone = penstock.orders.resolve(chosen, len(views[name]), seed)
        assert mine == alone.pick(0, 1, len(mine))[0].tolist()
    halves = [list(loader(mixture, order=order, rank=rank, world_size=2)) for rank in range(2)]
    merged = [row for pair in zip(*halves, strict=True) for row in turns([rows(batch) for batch in pair])]
    assert merged == given[0]


def test_documents_have_no_window_and_records_are_of_one_type(mixture, datasets):
    documents = Mixture({name: each.documents() for name, each in datasets.items()}, [Stage()], end=90)
    assert documents.stages[0].window is None and documents.stages[0].begin_tokens is None
    batch = next(loader(mixture))
    assert batch["token"].dtype == np.uint32  # of u2 and u4
    with pytest.raises(penstock.InvalidArgumentError, match="records of different types"):
        _ = batch.records


def test_what_is_to_come_may_change_on_resume(views, mixture):
    at = penstock.Job(mixture, global_batch_size=12, seed=3).state_dict(200)
    begin = mixture.stages[2].begin  # books have ended
    assert begin > 200
    more = {**views, "more": views["web"]}
    for other in (
        Mixture(views, [*STAGES[:2], Stage({"web": 1}, at=250)], caps={"books": 40}),
        Mixture(views, STAGES, caps={"books": 60, "code": 400}, end=1000),
        Mixture(more, [Stage({"web": 3, "code": 1}), Stage({"web": 1, "code": 1, "books": 1}, at=150), Stage(at=200)]),
        Mixture(dict(reversed(views.items())), [Stage({"web": 6, "code": 2}), Stage(at=150)], epochs={"books": 9}),
    ):
        assert loader(other).load_state_dict(at).position == 200

    def refused(other, **options):
        with pytest.raises(penstock.StateMismatchError) as error:
            loader(other, **options).load_state_dict(at)
        return str(error.value)

    words = refused(Mixture(views, [Stage({"web": 2, "code": 1}), *STAGES[1:]]))
    assert "stage 0: saved code 1, web 3 from position 0, now code 1, web 2 from position 0; 150 observations" in words
    words = refused(Mixture(views, [STAGES[0], Stage(at=180)]))
    assert "stage 1" in words and "from position 150" in words and "from position 180" in words
    words = refused(Mixture(views, STAGES, caps={"books": 10}))
    assert "stage 2: saved no such stage, now code 1, web 1 from position" in words
    words = refused(Mixture({name: views[name] for name in ("web", "code")}, [STAGES[0], Stage(at=150)]))
    assert "source books: saved, but not of the job now; about 17 observations of it had been given" in words
    words = refused(Mixture({**views, "code": views["code"][1:]}, STAGES))
    assert "source code: slice: saved none" in words and "about 54 observations of it had been given" in words
    words = refused(mixture, seed=4)
    assert "seed: saved 3, now 4" in words and "source" not in words
    words = refused(mixture, order={"web": penstock.orders.Blocks(2, 8)})
    assert "source web: order's block: saved none, now 2" in words
    words = refused(views["web"])
    assert "order: saved mixture, now uniform" in words


def test_caps_epochs_and_the_end(views):
    sizes = {name: len(view) for name, view in views.items()}
    once = Mixture(views, [Stage(sizes)], epochs=dict.fromkeys(views, 1))
    assert once.run_end == sum(sizes.values()) and once.counts(once.run_end) == sizes
    assert len(loader(once)) == -(-once.run_end // 12)
    assert len(set(all_rows(once))) == once.run_end
    endless = Mixture(views, [Stage()])
    assert endless.run_end is None
    with pytest.raises(TypeError, match="endless"):
        len(loader(endless))
    assert Mixture(views, [Stage()], end=Tokens(6_401)).run_end == 101
    run = endless.plan(until=300, points=4)
    assert run.position.tolist() == [0, 100, 200, 300] and run.tokens.tolist() == [0, 6400, 12800, 19200]
    assert run.observations["web"].tolist()[-1] == endless.counts(300)["web"]
    assert abs(sum(run.share.values()) - 1).max() < 1e-9
    assert run.epochs["books"][-1] == pytest.approx(100 / sizes["books"], rel=0.03)
    assert [batch.indices.tolist() for batch in penstock.eval_loader(Mixture(views, [Stage()], end=30), 12)]


def test_stages_past_the_end_are_not_listed(views):
    mixture = Mixture(views, [Stage()], caps={"books": 20, "code": 40}, end=70)
    assert [stage.begin for stage in mixture.stages] == [0, mixture.stages[1].begin] and mixture.stages[1].begin < 70
    assert [stage["begin"] for stage in json.loads(loader(mixture).state_dict()["job"])["order"]["stages"]] == [
        stage.begin for stage in mixture.stages
    ]
    assert [stage.begin for stage in Mixture(views, [Stage()], caps={"books": 20}, end=40).stages] == [0]
    later = Mixture(views, [Stage()], caps={"books": 20, "code": 40}, end=200)
    assert loader(later).load_state_dict({**loader(mixture).state_dict(), "position": 70}).position == 70


def test_shares_of_equal_points_are_those_before(views):
    run = Mixture(views, [Stage({"web": 3, "code": 1})]).plan(4, points=11)
    assert run.position.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4]
    shares = np.array(list(run.share.values()))
    assert np.isfinite(shares).all() and abs(shares.sum(axis=0) - 1).max() < 1e-9
    assert (shares[:, 1] == shares[:, 0]).all() and (shares[:, 4] == shares[:, 3]).all()


def test_tokens_of_far_positions_are_exact(views):
    far = 1 << 60
    mixture = Mixture(views, [Stage(), Stage({"web": 1}, at=far)], caps={"books": far})
    assert mixture.stages[1].begin == far and mixture.stages[1].begin_tokens == far * WINDOW
    run = mixture.plan((1 << 57) - 1, points=3)
    assert run.tokens.tolist()[-1] == ((1 << 57) - 1) * WINDOW


def test_at_position_0_all_stages_and_sources_may_change(views, datasets):
    state = loader(Mixture(views, [Stage({"web": 3, "code": 1})])).state_dict()
    others = [Mixture(views, [Stage({"web": 1, "books": 1})]), Mixture(views, [Stage({"web": 1}, window=32)])]
    for other in others:
        assert loader(other).load_state_dict(state).position == 0
        with pytest.raises(penstock.StateMismatchError, match="stage 0: saved code 1, web 3"):
            loader(other).load_state_dict({**state, "position": 1})
    for window in (WINDOW, 2 * WINDOW):
        named_alike = Mixture({"web": datasets["books"].windows(window, 1)}, [Stage()])
        fresh, resumed = loader(named_alike, order="sequential"), loader(named_alike, order="sequential")
        assert resumed.load_state_dict(state).position == 0
        assert next(resumed).indices.tolist() == next(fresh).indices.tolist()
        with pytest.raises(penstock.StateMismatchError, match="source web: dataset"):
            resumed.load_state_dict({**state, "position": 1})
    with pytest.raises(penstock.StateMismatchError, match="seed: saved 3, now 4"):
        loader(others[0], seed=4).load_state_dict(state)


def test_a_mixture_pickles(mixture):
    again = pickle.loads(pickle.dumps(mixture))
    assert again.stages == mixture.stages and all_rows(again) == all_rows(mixture)


def test_what_cannot_be_is_refused_in_words(views, datasets):
    web, code = views["web"], views["code"]
    two = {"web": web, "code": code}
    cases = {
        "stage 0: all weights are 0": lambda: Mixture(two, [Stage({"web": 0})]),
        r"stage 0: weights\['web'\]=-1": lambda: Mixture(two, [Stage({"web": -1})]),
        r"stage 0: weights\['web'\]=0.5: must be an integer": lambda: Mixture(two, [Stage({"web": 0.5})]),
        'no source \'wbe\'; the sources are "web", "code"': lambda: Mixture(two, [Stage({"wbe": 1})]),
        "stage 0: it begins at 5": lambda: Mixture(two, [Stage(at=5)]),
        "stage 1: it has no at=": lambda: Mixture(two, [Stage(), Stage({"web": 1})]),
        "stage 2: it begins at 90": lambda: Mixture(two, [Stage(), Stage(at=100), Stage(at=90)]),
        "stage 0: window=48: it must divide": lambda: Mixture(two, [Stage(window=48)]),
        "caps and epochs both have 'web'": lambda: Mixture(two, [Stage()], caps={"web": 9}, epochs={"web": 1}),
        "caps: there is no source 'wbe'": lambda: Mixture(two, [Stage()], caps={"wbe": 9}),
        r"caps\['web'\]=0": lambda: Mixture(two, [Stage()], caps={"web": 0}),
        r"stage 1: its sources \(web\) have given their caps before": lambda: Mixture(
            two, [Stage(), Stage({"web": 1}, at=100)], caps={"web": 9}
        ),
        "stage 0: its sources have given their caps by position 20": lambda: Mixture(
            two, [Stage({"web": 1}), Stage({"code": 1}, at=100)], caps={"web": 20}
        ),
        "end: the run ends at position 100": lambda: Mixture(two, [Stage(), Stage(at=100)], end=100),
        "window of 'web' is 64, of 'code' 32": lambda: Mixture(
            {"web": web, "code": datasets["code"].windows(32, 1)}, [Stage()]
        ),
        "kind of 'web'": lambda: Mixture({"web": web, "code": datasets["code"].documents()}, [Stage()]),
        "is no view": lambda: Mixture({"web": datasets["web"]}, [Stage()]),
        "sources={}": lambda: Mixture({}, [Stage()]),
        "at least one penstock.Stage": lambda: Mixture(two, []),
        "epochs=2: a mixture's sources have epochs of their own": lambda: loader(Mixture(two, [Stage()]), epochs=2),
        "per_epoch=True: a mixture's": lambda: loader(Mixture(two, [Stage()]), per_epoch=True),
        "order: there is no source 'wbe'": lambda: loader(Mixture(two, [Stage()]), order={"wbe": "uniform"}),
        "orders by name are of a mixture's sources": lambda: loader(web, order={"web": "uniform"}),
        "plan: this mixture has no end: give until=": lambda: Mixture(two, [Stage()]).plan(),
        "documents have no window": lambda: Mixture(
            {name: each.documents() for name, each in datasets.items()}, [Stage(), Stage(at=Tokens(5))]
        ),
        r"epochs\['web'\]=144115188075855872: that many passes": lambda: Mixture(
            two, [Stage()], epochs={"web": 1 << 57}
        ),
        r"sources: 'a\\ud800' is no name": lambda: Mixture({"a\ud800": web}, [Stage()]),
        "plan: until position 9,223,372,036,854,775,808, where": lambda: Mixture(two, [Stage()]).plan(1 << 63),
        "given 9,223,372,036,854,775,808 tokens: at most": lambda: Mixture(two, [Stage()]).plan(1 << 57),
        "eval_loader: Mixture.* has no end": lambda: penstock.eval_loader(Mixture(two, [Stage()]), 12),
        "packed for one window": lambda: Mixture({"web": datasets["web"].packed(64)}, [Stage(window=32)]),
        "are padded otherwise": lambda: Mixture(
            {"web": datasets["web"].documents().padded(), "code": datasets["code"].documents()}, [Stage()]
        ),
        "caps=5: {name: integer}": lambda: Mixture(two, [Stage()], caps=5),
    }
    for words, make in cases.items():
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            make()


def test_fields_must_have_the_same_names_and_make_one_array(views, tmp_path: Path):
    with penstock.Writer(tmp_path / "ids", fields={"id": "u2"}, metadata=None) as writer:
        writer.append(id=np.arange(1000))
    with penstock.Writer(tmp_path / "floats", fields={"token": "f4"}, metadata=None) as writer:
        writer.append(token=np.arange(1000))
    for name, words in (("ids", "the same names"), ("floats", "they make no one array")):
        other = penstock.open(tmp_path / name).windows(WINDOW, lookahead=1)
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            Mixture({"web": views["web"], "other": other}, [Stage()])


def test_the_state_is_json_of_stages_that_came_out(mixture):
    job = json.loads(loader(mixture).state_dict()["job"])
    assert [stage["begin"] for stage in job["order"]["stages"]] == [stage.begin for stage in mixture.stages]
    assert [source["name"] for source in job["sources"]] == mixture.names


def test_batches_of_tokens_are_whole_windows_on_each_rank(views, datasets):
    mixture = Mixture(views, [Stage(window=32), Stage(at=500)], end=1200, group=16)
    change = mixture.stages[1].begin
    assert change % (16 * 2) == 0 and mixture.stages[1].begin_tokens == change * 32
    with pytest.raises(
        penstock.InvalidArgumentError, match=r"no whole windows on each of 3 ranks of 32: .* Tokens\(480\)"
    ):
        loader(mixture, global_batch_size=Tokens(512), rank=0, world_size=3)
    with pytest.raises(penstock.InvalidArgumentError, match="documents have no window"):
        loader(datasets["web"].documents(), global_batch_size=Tokens(512))
    plain = loader(views["web"], batch_size=None, global_batch_size=[(0, Tokens(128)), (10, 4)])
    assert [len(rows(next(plain))) for _ in range(7)] == [2, 2, 2, 2, 2, 4, 4]


def describe_file(folder: Path, datasets, **more) -> Path:
    sources = {name: {"path": each.path, "window": WINDOW, "lookahead": 1} for name, each in datasets.items()}
    content = {
        "sources": sources,
        "stages": [{"weights": {"web": 3, "code": 1}}, {"at_tokens": WINDOW * 150}],
        "caps": {"books": 40},
        "end": 450,
        **more,
    }
    path = folder / "mix.json"
    path.write_text(json.dumps(content))
    return path


def test_a_file_describes_a_mixture(tmp_path: Path, datasets, views):
    read = Mixture.from_file(describe_file(tmp_path, datasets))
    assert read.stages == Mixture(views, STAGES[:2], caps={"books": 40}, end=450).stages and read.run_end == 450
    given = {
        "stages": [{"weights": {"web": 3, "code": 1}, "window": 16}, {"at_tokens": WINDOW * 150}, {"at": 1200}],
        "caps": {"books": 40, "code": 900},
        "epochs": {"web": 9},
        "end_tokens": WINDOW * 2000,
        "group": 32,
    }
    path = describe_file(tmp_path, datasets, **given)
    content = json.loads(path.read_text())
    del content["end"]
    path.write_text(json.dumps(content))
    read = Mixture.from_file(path)
    same = Mixture(
        views,
        [Stage({"web": 3, "code": 1}, window=16), Stage(at=Tokens(WINDOW * 150)), Stage(at=1200)],
        caps={"books": 40, "code": 900},
        epochs={"web": 9},
        end=Tokens(WINDOW * 2000),
        group=32,
    )
    assert read.stages == same.stages and read.run_end == same.run_end
    assert loader(read).state_dict() == loader(same).state_dict()
    assert read.stages[1].begin == 640 and [stage.window for stage in read.stages][:2] == [16, WINDOW]
    for more, words in {
        "no 'stagess'": {"stagess": []},
        r"sources\['web'\]: it has no path": {"sources": {"web": {}}},
        "stage 1: it has no at=": {"stages": [{}, {}]},
        r"stages\[0\]: there is no 'wieghts'": {"stages": [{"wieghts": {}}]},
        "end and end_tokens: give one": {"end_tokens": 5},
        "end: 'x'|end='x'": {"end": "x"},
        "group=0: must be": {"group": 0},
        r"caps: there is no source 'wbe'": {"caps": {"wbe": 4}},
        r"stages: 7: a list": {"stages": 7},
        r"stages\[1\]: .*at=5\.5": {"stages": [{}, {"at": 5.5}]},
        "path is an empty list": {"sources": {"web": {"path": []}}},
        "phase is of windows": {"sources": {"web": {"path": str(datasets["web"].path), "phase": "random"}}},
    }.items():
        with pytest.raises(penstock.InvalidArgumentError, match=more) as error:
            Mixture.from_file(describe_file(tmp_path, datasets, **words))
        assert "mix.json: " in str(error.value)
    with pytest.raises(penstock.NotFoundError):
        Mixture.from_file(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(penstock.InvalidArgumentError, match=r"bad\.json: no JSON"):
        Mixture.from_file(tmp_path / "bad.json")
    for text, words in (('{"group": 1, "group": 2}', '"group": given twice'), ("[" * 100_000, "no JSON")):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            Mixture.from_file(tmp_path / "bad.json")
    with pytest.raises(penstock.InvalidArgumentError, match="a folder, and the JSON file"):
        Mixture.from_file(tmp_path)


def test_penstock_mix_says_what_it_comes_to(tmp_path: Path, datasets, capsys):
    from penstock._cli.main import main

    path = str(describe_file(tmp_path, datasets))
    assert main(["mix", path, "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "stage 0  from 0 (0 tokens), windows of 64: code 25.0%, web 75.0%" in told
    assert "since a source has given its cap" in told and "books    40 observations, 8.9%, 1.43 epochs" in told
    assert main(["mix", path, "--dry-run", "--until", "300", "--json", "--plot", str(tmp_path / "mix.png")]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["position"][-1] == 300 and sum(each[-1] for each in content["observations"].values()) == 300
    assert (tmp_path / "mix.png").stat().st_size > 10_000
    assert main(["mix", path, "--dry-run", "--until", "3", "--json"]) == 0  # many points of one position

    def no_json(constant: str) -> None:
        raise AssertionError(constant)

    content = json.loads(capsys.readouterr().out, parse_constant=no_json)
    assert content["position"][-1] == 3 and len(content["share"]["web"]) == 100
    assert main(["mix", path]) == 2 and "--dry-run" in capsys.readouterr().err
    endless = str(describe_file(tmp_path, datasets, end=None))
    assert main(["mix", endless, "--dry-run"]) == 2 and "--until" in capsys.readouterr().err


def test_windows_of_a_random_phase_begin_elsewhere_in_each_epoch(datasets):
    web = datasets["web"]
    stream = web.windows(1).read(range(web.records))["token"].ravel()
    for window, lookahead in ((64, 1), (7, 0), (web.records // 2, 0)):
        view = web.windows(window, lookahead, phase="random")
        assert len(view) == (web.records - lookahead) // window - 1
        assert pickle.loads(pickle.dumps(view)).read([0]).first_records == view.read([0]).first_records
        for order in ("uniform", "sequential", penstock.orders.Blocks(2, 8)):
            begins = []
            run = penstock.Loader(view, 4, seed=1, order=order, epochs=5, framework="numpy", rank=0, world_size=1)
            for batch in run:
                for row in np.flatnonzero(batch.valid):
                    first = int(batch.first_records[row])
                    assert np.array_equal(batch["token"][row], stream[first : first + window + lookahead])
                    begins.append((int(batch.epochs[row]), int(batch.indices[row]), first))
            phases = {epoch: first - index * window for epoch, index, first in begins}
            assert all(first == phases[epoch] + index * window for epoch, index, first in begins)
            assert all(0 <= phase <= web.records - lookahead - len(view) * window for phase in phases.values())
            assert len(set(phases.values())) > 1
    spans = web.windows(64, phase="random")
    run = penstock.Loader(spans, 4, seed=1, epochs=2, framework="numpy", rank=0, world_size=1)
    plain = {(span.metadata["number"]): span for span in web.windows(web.records).read([0]).spans}
    for batch in run:
        for span in batch.spans:
            begin = int(batch.first_records[span.row]) + span.start
            assert begin == plain[span.metadata["number"]].start + span.offset
    part = spans[3:9].read([0, 2])
    assert part.first_records.tolist() == spans.read([3, 5]).first_records.tolist()
    for bad, words in (("rnd", "phase='rnd'"),):
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            web.windows(64, phase=bad)
    with pytest.raises(penstock.InvalidArgumentError, match="leaves a window out"):
        web.windows(web.records // 2 + 1, phase="random")
    state = penstock.Loader(spans, 4, framework="numpy", rank=0, world_size=1).state_dict()
    with pytest.raises(penstock.StateMismatchError, match="phase: saved random, now none"):
        penstock.Loader(web.windows(64), 4, framework="numpy", rank=0, world_size=1).load_state_dict(state)
