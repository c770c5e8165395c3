"""Mixtures: every source's epochs are whole through all stages, on any ranks, from any state."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _mixtures import WINDOW, all_rows, loader, rows, rows_of_ranks, write_sources
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


def test_a_resume_at_steps_and_stage_edges_repeats_the_rest_on_other_ranks(mixture):
    whole = all_rows(mixture)
    edges = [stage.begin for stage in mixture.stages]
    for at in sorted({*range(0, 450, 60), *edges, *(edge - 1 for edge in edges[1:]), *(edge + 1 for edge in edges)}):
        state = penstock.Job(mixture, global_batch_size=12, seed=3).state_dict(at)
        assert [row for batch in rows_of_ranks(mixture, 1 + at % 3, state) for row in batch] == whole[at:]


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


def test_documents_have_no_window_and_records_are_of_one_type(mixture, datasets):
    documents = Mixture({name: each.documents() for name, each in datasets.items()}, [Stage()], end=90)
    assert documents.stages[0].window is None and documents.stages[0].begin_tokens is None
    batch = next(loader(mixture))
    assert batch["token"].dtype == np.uint32  # of u2 and u4
    with pytest.raises(penstock.InvalidArgumentError, match="records of different types"):
        _ = batch.records


def test_what_is_to_come_may_change_on_resume(views, mixture):
    at = penstock.Job(mixture, global_batch_size=12, seed=3).state_dict(200)
    assert mixture.stages[2].begin > 200  # where books have ended
    first, *later = STAGES
    more = {**views, "more": views["web"]}
    for other in (
        Mixture(views, [*STAGES[:2], Stage({"web": 1}, at=250)], caps={"books": 40}),
        Mixture(views, STAGES, caps={"books": 60, "code": 400}, end=1000),
        Mixture(more, [first, Stage({"web": 1, "code": 1, "books": 1}, at=150), Stage(at=200)]),
        Mixture(dict(reversed(views.items())), [Stage({"web": 6, "code": 2}), Stage(at=150)], epochs={"books": 9}),
    ):
        assert loader(other).load_state_dict(at).position == 200
    two = {name: views[name] for name in ("web", "code")}
    sliced = {**views, "code": views["code"][1:]}
    for other, options, words in (
        (Mixture(views, [Stage({"web": 2, "code": 1}), *later]), {},
         "stage 0: saved code 1, web 3 from position 0, now code 1, web 2 from position 0; 150 observations"),
        (Mixture(views, [first, Stage(at=180)]), {}, "stage 1.* from position 150.* from position 180"),
        (Mixture(views, STAGES, caps={"books": 10}), {},
         "stage 2: saved no such stage, now code 1, web 1 from position"),
        (Mixture(two, [first, Stage(at=150)]), {},
         "source books: saved, but not of the job now; about 17 observations of it had been given"),
        (Mixture(sliced, STAGES), {}, "source code: slice: saved none.*about 54 observations of it had been given"),
        (mixture, {"seed": 4}, "(?!.*source)seed: saved 3, now 4"),
        (mixture, {"order": {"web": penstock.orders.Blocks(2, 8)}}, "source web: order's block: saved none, now 2"),
        (views["web"], {}, "order: saved mixture, now uniform"),
    ):  # fmt: skip
        with pytest.raises(penstock.StateMismatchError, match=words):
            loader(other, **options).load_state_dict(at)


def test_caps_epochs_and_the_end(views):
    sizes = {name: len(view) for name, view in views.items()}
    once = Mixture(views, [Stage(sizes)], epochs=dict.fromkeys(views, 1))
    assert once.run_end == sum(sizes.values()) and once.counts(once.run_end) == sizes
    assert len(set(all_rows(once))) == once.run_end and len(loader(once)) == -(-once.run_end // 12)
    endless = Mixture(views, [Stage()])
    assert endless.run_end is None and Mixture(views, [Stage()], end=Tokens(6_401)).run_end == 101
    with pytest.raises(TypeError, match="endless"):
        len(loader(endless))
    run = endless.plan(until=300, points=4)
    assert run.position.tolist() == [0, 100, 200, 300] and run.tokens.tolist() == [0, 6400, 12800, 19200]
    assert run.observations["web"].tolist()[-1] == endless.counts(300)["web"]
    assert run.epochs["books"][-1] == pytest.approx(100 / sizes["books"], rel=0.03)
    assert [batch.indices.tolist() for batch in penstock.eval_loader(Mixture(views, [Stage()], end=30), 12)]
    run = Mixture(views, [Stage({"web": 3, "code": 1})]).plan(4, points=11)  # equal points have the share before
    assert run.position.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4]
    shares = np.array(list(run.share.values()))
    assert np.isfinite(shares).all() and abs(shares.sum(axis=0) - 1).max() < 1e-9
    assert (shares[:, 1] == shares[:, 0]).all() and (shares[:, 4] == shares[:, 3]).all()
    far = 1 << 60
    mixture = Mixture(views, [Stage(), Stage({"web": 1}, at=far)], caps={"books": far})
    assert mixture.stages[1].begin == far and mixture.stages[1].begin_tokens == far * WINDOW
    assert mixture.plan((1 << 57) - 1, points=3).tokens.tolist()[-1] == ((1 << 57) - 1) * WINDOW


def test_stages_past_the_end_are_not_listed(views):
    mixture = Mixture(views, [Stage()], caps={"books": 20, "code": 40}, end=70)
    begins = [stage.begin for stage in mixture.stages]
    assert begins == [0, begins[1]] and begins[1] < 70
    saved = json.loads(loader(mixture).state_dict()["job"])
    assert [stage["begin"] for stage in saved["order"]["stages"]] == begins
    assert [source["name"] for source in saved["sources"]] == mixture.names
    assert [stage.begin for stage in Mixture(views, [Stage()], caps={"books": 20}, end=40).stages] == [0]
    again = pickle.loads(pickle.dumps(mixture))
    assert again.stages == mixture.stages and all_rows(again) == all_rows(mixture)
    later = Mixture(views, [Stage()], caps={"books": 20, "code": 40}, end=200)
    assert loader(later).load_state_dict({**loader(mixture).state_dict(), "position": 70}).position == 70


def test_at_position_0_all_stages_and_sources_may_change(views, datasets):
    state = loader(Mixture(views, [Stage({"web": 3, "code": 1})])).state_dict()
    cases = [
        (Mixture(views, [Stage({"web": 1, "books": 1})]), "uniform", "stage 0: saved code 1, web 3"),
        (Mixture(views, [Stage({"web": 1}, window=32)]), "uniform", "stage 0: saved code 1, web 3"),
        *((Mixture({"web": datasets["books"].windows(window, 1)}, [Stage()]), "sequential", "source web: dataset")
          for window in (WINDOW, 2 * WINDOW)),
    ]  # fmt: skip
    for other, order, words in cases:
        fresh, resumed = loader(other, order=order), loader(other, order=order)
        assert resumed.load_state_dict(state).position == 0
        assert next(resumed).indices.tolist() == next(fresh).indices.tolist()
        with pytest.raises(penstock.StateMismatchError, match=words):
            resumed.load_state_dict({**state, "position": 1})
    with pytest.raises(penstock.StateMismatchError, match="seed: saved 3, now 4"):
        loader(cases[0][0], seed=4).load_state_dict(state)


def test_what_cannot_be_is_refused_in_words(views, datasets):
    web, code = datasets["web"], datasets["code"]
    two = {"web": views["web"], "code": views["code"]}
    documents = {name: each.documents() for name, each in datasets.items()}
    mixtures: list[tuple[str, Any, Any, dict[str, Any]]] = [
        (r"stage 0: weights\['web'\]=-1", two, [Stage({"web": -1})], {}),
        (r"stage 0: weights\['web'\]=None: must be an integer", two, [Stage({"web": None})], {}),
        ('no source \'wbe\'; the sources are "web", "code"', two, [Stage({"wbe": 1})], {}),
        ("stage 1: it has no at=", two, [Stage(), Stage({"web": 1})], {}),
        ("stage 0: window=48: it must divide", two, [Stage(window=48)], {}),
        ("caps and epochs both have 'web'", two, [Stage()], {"caps": {"web": 9}, "epochs": {"web": 1}}),
        ("caps: there is no source 'wbe'", two, [Stage()], {"caps": {"wbe": 9}}),
        (r"caps\['web'\]=0", two, [Stage()], {"caps": {"web": 0}}),
        ("caps=5: {name: integer}", two, [Stage()], {"caps": 5}),
        (r"stage 1: its sources \(web\) have given their caps before", two, [Stage(), Stage({"web": 1}, at=100)],
         {"caps": {"web": 9}}),
        ("stage 0: its sources have given their caps by position 20", two,
         [Stage({"web": 1}), Stage({"code": 1}, at=100)], {"caps": {"web": 20}}),
        (r"epochs\['web'\]=144115188075855872: that many passes", two, [Stage()], {"epochs": {"web": 1 << 57}}),
        ("window of 'web' is 64, of 'code' 32", {**two, "code": code.windows(32, 1)}, [Stage()], {}),
        ("kind of 'web'", {**two, "code": code.documents()}, [Stage()], {}),
        ("is no view", {"web": web}, [Stage()], {}),
        ("at least one view by its name, not {}", {}, [Stage()], {}),
        (r"sources: 'a\\ud800' is no name", {"a\ud800": views["web"]}, [Stage()], {}),
        ("at least one penstock.Stage", two, [], {}),
        ("documents have no window", documents, [Stage(), Stage(at=Tokens(5))], {}),
        ("are padded otherwise", {**documents, "web": web.documents().padded()}, [Stage()], {}),
    ]  # fmt: skip
    for words, sources, stages, options in mixtures:
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            Mixture(sources, stages, **options)
    mixture = Mixture(two, [Stage()])
    short = Mixture(two, [Stage(window=32)])
    others: list[tuple[str, Any]] = [
        ("epochs=2: a mixture's sources have epochs of their own", lambda: loader(mixture, epochs=2)),
        ("per_epoch=True: a mixture's", lambda: loader(mixture, per_epoch=True)),
        ("order: there is no source 'wbe'", lambda: loader(mixture, order={"wbe": "uniform"})),
        ("orders by name are of a mixture's sources", lambda: loader(two["web"], order={"web": "uniform"})),
        ("plan: this mixture has no end: give until=", mixture.plan),
        ("plan: until position 9,223,372,036,854,775,808, where", lambda: mixture.plan(1 << 63)),
        ("given 9,223,372,036,854,775,808 tokens: at most", lambda: mixture.plan(1 << 57)),
        ("eval_loader: Mixture.* has no end", lambda: penstock.eval_loader(mixture, 12)),
        (r"no whole windows on each of 3 ranks of 32: .* Tokens\(480\)",
         lambda: loader(short, global_batch_size=Tokens(512), rank=0, world_size=3)),
        ("documents have no window", lambda: loader(documents["web"], global_batch_size=Tokens(512))),
        ("phase='rnd'", lambda: web.windows(64, phase="rnd")),
        ("leaves a window out", lambda: web.windows(web.records // 2 + 1, phase="random")),
    ]  # fmt: skip
    for words, ask in others:
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            ask()


def test_fields_must_have_the_same_names_and_make_one_array(views, tmp_path: Path):
    with penstock.Writer(tmp_path / "ids", fields={"id": "u2"}, metadata=None) as writer:
        writer.append(id=np.arange(1000))
    with penstock.Writer(tmp_path / "floats", fields={"token": "f4"}, metadata=None) as writer:
        writer.append(token=np.arange(1000))
    for name, words in (("ids", "the same names"), ("floats", "they make no one array")):
        other = penstock.open(tmp_path / name).windows(WINDOW, lookahead=1)
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            Mixture({"web": views["web"], "other": other}, [Stage()])


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
    more = {"caps": {"books": 40, "code": 900}, "epochs": {"web": 9}, "group": 32}
    described = [{"weights": {"web": 3, "code": 1}, "window": 16}, {"at_tokens": WINDOW * 150}, {"at": 1200}]
    path = describe_file(tmp_path, datasets, stages=described, end_tokens=WINDOW * 2000, **more)
    content = json.loads(path.read_text())
    del content["end"]
    path.write_text(json.dumps(content))
    read = Mixture.from_file(path)
    stages = [Stage({"web": 3, "code": 1}, window=16), Stage(at=Tokens(WINDOW * 150)), Stage(at=1200)]
    same = Mixture(views, stages, end=Tokens(WINDOW * 2000), **more)
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
        r"stages\[1\]: ramp=-5: must be from 0": {"stages": [{}, {"at": 5, "ramp": -5}]},
        r"stages\[1\]: at_tokens='x': must be an": {"stages": [{}, {"at_tokens": "x"}]},
        "path is an empty list": {"sources": {"web": {"path": []}}},
        "phase is of windows": {"sources": {"web": {"path": str(datasets["web"].path), "phase": "random"}}},
    }.items():
        with pytest.raises(penstock.InvalidArgumentError, match=more) as error:
            Mixture.from_file(describe_file(tmp_path, datasets, **words))
        assert "mix.json: " in str(error.value)
    with pytest.raises(penstock.NotFoundError):
        Mixture.from_file(tmp_path / "none.json")
    for text, words in (("{", r"bad\.json: no JSON"), ('{"group": 1, "group": 2}', '"group": given twice'),
                        ("[" * 100_000, "no JSON")):  # fmt: skip
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            Mixture.from_file(tmp_path / "bad.json")
    (tmp_path / "train.bin").write_bytes(b"\xd9\xff\xfe")
    with pytest.raises(penstock.InvalidArgumentError, match=r"train\.bin: a token file or .* not a mixture's JSON"):
        Mixture.from_file(tmp_path / "train.bin")
    with pytest.raises(penstock.InvalidArgumentError, match=r'^sources: \{"web": view, …\} is wanted, .*, not \[Datas'):
        Mixture(list(views.values()), [0.7, 0.3])  # type: ignore[arg-type,list-item]
    assert repr(Mixture({"web": views["web"]}, [Stage()])) == "Mixture(web; 1 stage)"
    with pytest.raises(penstock.InvalidArgumentError, match="a folder, and the JSON file"):
        Mixture.from_file(tmp_path)


def test_a_file_says_how_documents_are_told_chosen_and_packed(tmp_path: Path):
    np.array([*range(1, 10), 0] * 60, "u2").tofile(tmp_path / "bare.bin")
    with penstock.Writer(tmp_path / "own", {"token": "u2"}, columns={"score": "f4"}) as writer:
        for number in range(60):
            writer.append(token=range(1, 9), columns={"score": number / 60})
    bare, own = penstock.open(tmp_path / "bare.bin", dtype="u2"), penstock.open(tmp_path / "own")
    told, chosen = {"end_of_document": 0}, {"where": "score > 0.5"}
    packing: dict[str, Any] = {"max_document": 6, "lookahead": 1}
    for keys, one, other in (
        ({}, bare.documents(**told), own.where(chosen["where"]).documents()),
        ({"window": 24}, bare.windows(24, **told), own.where(chosen["where"]).windows(24)),
        (
            {"window": 24, "packed": True, **packing},
            bare.packed(24, **packing, **told),
            own.where(chosen["where"]).packed(24, **packing),
        ),
    ):
        sources: dict[str, Any] = {
            "bare": {"path": "bare.bin", "dtype": "u2", **told, **keys},
            "own": {"path": "own", **chosen, **keys},
        }
        (tmp_path / "mix.json").write_text(json.dumps({"sources": sources, "stages": [{}], "end": 30}))
        read, same = Mixture.from_file(tmp_path / "mix.json"), Mixture({"bare": one, "own": other}, [Stage()], end=30)
        assert loader(read).state_dict() == loader(same).state_dict()
        assert [each["token"].tolist() for each in loader(read)] == [each["token"].tolist() for each in loader(same)]
    stages = [{"window": 12, "max_document": 4}, {"at": 20}]
    (tmp_path / "mix.json").write_text(json.dumps({"sources": sources, "stages": stages, "end": 30}))
    assert [stage.window for stage in Mixture.from_file(tmp_path / "mix.json").stages] == [12, 24]
    for more, words in (
        ({"packed": "yes"}, "packed: 'yes': true or false"),
        ({"max_document": 3}, 'max_document is of packed rows: give "packed": true too'),
        ({"packed": True, "phase": "random"}, "phase is of windows"),
        ({"where": "scor > 1"}, "is score meant"),
    ):
        sources = {"own": {"path": "own", "window": 24, **more}}
        (tmp_path / "mix.json").write_text(json.dumps({"sources": sources}))
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            Mixture.from_file(tmp_path / "mix.json")
    sources = {"own": {"path": "own", "packed": True}}
    (tmp_path / "mix.json").write_text(json.dumps({"sources": sources}))
    with pytest.raises(penstock.InvalidArgumentError, match="packed is of packed rows: give a window too"):
        Mixture.from_file(tmp_path / "mix.json")


def test_penstock_mix_says_what_it_comes_to(tmp_path: Path, datasets, capsys):
    from penstock._cli.main import main

    path = str(describe_file(tmp_path, datasets))
    assert main(["mix", path, "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "stage 0  from 0 (0 tokens), windows of 64: code 25.0%, web 75.0%" in told
    assert "since a source has given its cap" in told
    assert re.search(r"^books +40 observations, 8.9%, 1.43 epochs$", told, re.MULTILINE)
    assert main(["mix", path, "--dry-run", "--until", "300", "--json", "--plot", str(tmp_path / "mix.png")]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["position"][-1] == 300 and sum(each[-1] for each in content["observations"].values()) == 300
    assert (tmp_path / "mix.png").stat().st_size > 10_000
    assert main(["mix", path, "--dry-run", "--until", "3", "--json"]) == 0  # many points of one position

    def no_json(constant: str) -> None:
        raise AssertionError(constant)

    content = json.loads(capsys.readouterr().out, parse_constant=no_json)
    assert content["position"][-1] == 3 and len(content["share"]["web"]) == 100
    assert main(["mix", path]) == 0 and capsys.readouterr().out == told
    endless = describe_file(tmp_path, datasets, end=None)
    assert main(["mix", str(endless)]) == 0
    whole = sum(map(len, Mixture.from_file(endless).sources.values()))
    words = f"until {whole:,} observations, {whole * WINDOW:,} tokens: the mixture has no end, --until N shows another"
    assert words in re.sub(r" +", " ", capsys.readouterr().out)


def test_windows_of_a_random_phase_are_another_job_and_their_parts_lie_where_they_do(datasets):
    view = datasets["web"].windows(64, phase="random")
    assert pickle.loads(pickle.dumps(view)).read([0]).first_records == view.read([0]).first_records
    assert view[3:9].read([0, 2]).first_records.tolist() == view.read([3, 5]).first_records.tolist()
    epochs = [batch.first_records - batch.indices * 64 for batch in loader(view, global_batch_size=len(view), epochs=4)]
    assert all(len({*phases.tolist()}) == 1 for phases in epochs) and len({int(each[0]) for each in epochs}) > 1
    with pytest.raises(penstock.StateMismatchError, match="phase: saved random, now none"):
        loader(datasets["web"].windows(64)).load_state_dict(loader(view).state_dict())


# --- stages of shorter windows: what orders give in them, tests/model and the tests in C++ compare


CUT_STAGES = [
    Stage({"web": 2, "code": 1}, window=16),
    Stage(window=32, at=500),
    Stage({"web": 1, "code": 2}, at=800),
    Stage({"web": 3, "code": 1}, window=16, at=900),
]


@pytest.fixture(scope="module")
def two(views):
    return {name: views[name] for name in ("web", "code")}


@pytest.fixture(scope="module")
def cut(two):
    return Mixture(two, CUT_STAGES, end=1500, group=16)


def test_schedules_of_tokens_keep_their_tokens_across_windows(cut):
    schedule = [(0, Tokens(512)), (256, Tokens(1024)), (850, 5), (1000, Tokens(256))]
    flat = all_rows(cut, global_batch_size=60)
    assert len(flat) == 1500
    given = []
    for batch in loader(cut, global_batch_size=schedule):
        size = [each for at, each in schedule if at <= batch.position][-1]
        window = batch.inputs.shape[1]
        assert len(batch.inputs) == (size.count // window if isinstance(size, Tokens) else size), batch.position
        given += rows(batch)
    assert given == flat
    with pytest.raises(penstock.InvalidArgumentError, match="no whole windows of 64"):
        loader(cut, global_batch_size=[(0, Tokens(512)), (100, Tokens(96))])
    plain = loader(cut.sources["web"], global_batch_size=[(0, Tokens(128)), (10, 4)])
    assert [len(rows(next(plain))) for _ in range(7)] == [2, 2, 2, 2, 2, 4, 4]


def last_group(two, caps, **more):
    return Mixture(two, [Stage({"web": 2, "code": 1}, window=16)], caps=caps, group=16, **more)


def test_in_a_last_group_that_is_short_another_end_is_refused_and_before_it_taken(two):
    saved = last_group(two, {"web": 50, "code": 25})  # 75 units: the last group has 11
    whole = all_rows(saved)
    begin, end = 64 * 4, 75 * 4
    assert saved.run_end == end == len(whole) == len(set(whole))
    job = penstock.Job(saved, global_batch_size=1, seed=3)
    for caps in ({"web": 55, "code": 25}, {"web": 50, "code": 24}, {"web": 49, "code": 25}, {}):
        other = last_group(two, caps, end=600)
        for position in (begin - 1, begin):
            again = loader(other)
            again.load_state_dict(job.state_dict(position))
            given = whole[:position] + [row for batch in again for row in rows(batch)]
            first = [row for row in given if row[1] == 0]
            assert len(set(first)) == len(first) and len(given) == (other.run_end or 600)
        for position in (begin + 1, end - 1, end):
            with pytest.raises(penstock.StateMismatchError, match=r"stage \d: saved .*from there on"):
                loader(other).load_state_dict(job.state_dict(position))
    alone = [Mixture({"web": two["web"]}, [Stage(window=16)], caps={"web": cap}, group=16) for cap in (75, 80)]
    words = (
        "stage 1: saved the run's end at position 300, by which the group from 256 is mixed, now no such stage; "
        "34 observations had been given"
    )
    with pytest.raises(penstock.StateMismatchError, match=words):
        loader(alone[1]).load_state_dict(penstock.Job(alone[0], global_batch_size=1, seed=3).state_dict(290))


def test_a_changed_group_is_named(two, cut):
    state = penstock.Job(cut, global_batch_size=60, seed=3).state_dict(240)
    words = r"windows of 16 from position 0, group 16, now .*windows of 16 from position 0, group 8;"
    with pytest.raises(penstock.StateMismatchError, match=words):
        loader(Mixture(two, CUT_STAGES, end=1500, group=8)).load_state_dict(state)


def test_keep_position_goes_on_after_as_many_records(two, cut):
    whole = Mixture(two, [Stage({"web": 2, "code": 1})], end=3000)
    changes = [stage.begin for stage in cut.stages]
    assert changes == [0, 512, 800, 900]
    state = penstock.Job(cut, global_batch_size=60, seed=3).state_dict(700)
    records = changes[1] * 16 + (700 - changes[1]) * 32
    found = loader(whole, on_mismatch="keep_position").load_state_dict(state)
    assert found.position == records // WINDOW
    assert "as many records as 700 windows of 16 and 32 and 64, rounded down to windows of 64" in str(found)
    back = penstock.Job(whole, global_batch_size=60, seed=3).state_dict(found.position)
    assert loader(cut, on_mismatch="keep_position").load_state_dict(back).position == 700
