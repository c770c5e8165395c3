"""penstock trace: the text of any step of a run, from its number or from a saved state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock._cli.main import main
from penstock.orders import Blocks, Bucketed, Custom, Sequential, Weighted

TEXTS = [f"Document {number} says {number * number}." + " And more." * (number % 5) for number in range(60)]


def write(path: Path, tokenizer_file: str, first: int, stop: int, **options: Any) -> penstock.Dataset:
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(tokenizer_file)
    with penstock.Writer(path, fields={"token": "u2"}, metadata="json", **options) as writer:
        for number in range(first, stop):
            ids = tokenizer.encode(TEXTS[number], add_special_tokens=False).ids
            writer.append(token=ids, metadata={"url": f"pages/{number}"})
    return penstock.open(path)


@pytest.fixture
def corpus(tmp_path: Path, tokenizer_file: str) -> penstock.Dataset:
    return write(tmp_path / "corpus", tokenizer_file, 0, 60, shard_size=500)


def traced(capsys: pytest.CaptureFixture[str], *arguments: Any) -> Any:
    assert main(["trace", *map(str, arguments), "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    assert main(["trace", *map(str, arguments)]) in (1, 2)
    return capsys.readouterr().err


def test_a_step_is_what_the_loader_gave_in_words(tmp_path, corpus, tokenizer_file, capsys):
    view = corpus.windows(24, lookahead=1)
    assert len(corpus.shards) > 1
    options: dict[str, Any] = {"global_batch_size": 4, "seed": 5}
    every = [penstock.Loader(view, rank=rank, world_size=2, framework="numpy", **options) for rank in range(2)]
    for _ in range(3):
        batches = [next(loader) for loader in every]
    found = traced(
        capsys, corpus.path, "--step", 2, "-b", 4, "--window", 24, "--seed", 5, "--world-size", 2,
        "--tokenizer", tokenizer_file,
    )  # fmt: skip
    assert (found["step"], found["position"], found["next_position"]) == (2, 8, 12)
    assert len(found["rows"]) == 4
    for number, row in enumerate(found["rows"]):
        batch = batches[row["rank"]]
        assert (row["position"], row["rank"], row["row"]) == (8 + number, number % 2, number // 2)
        assert row["ids"] == batch["token"][row["row"]].tolist() and row["index"] == batch.indices[row["row"]]
        assert row["first_record"] == row["index"] * 24 and row["source"] is None
        spans = batch.spans.of_row(row["row"])
        assert [span["metadata"] for span in row["spans"]] == [span.metadata for span in spans]
        for span, own in zip(row["spans"], spans, strict=True):
            assert span["shard"] == corpus.shards[own.id.shard].name and span["shard"] in row["shards"]
            assert span["ids"] == row["ids"][own.start : own.stop]
            whole = TEXTS[int(own.metadata["url"].split("/")[1])]
            assert span["text"] in whole if own.begins or own.ends else span["text"][1:-1] in whole


def test_the_table_has_text_and_metadata_and_without_a_tokenizer_ids(corpus, tokenizer_file, capsys):
    given = ["trace", corpus.path, "--step", "0", "-b", "2", "--documents", "--order", "sequential"]
    assert main([*given, "--tokenizer", tokenizer_file]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"step 0, positions 0 to 2 of {corpus.path}: 2 rows"
    assert lines[1].split() == ["position", "rank", "row", "epoch", "index", "document", "records", "metadata", "text"]
    assert "00000/1" in lines[3] and '{"url": "pages/1"}' in lines[3] and "Document 1 says 1. And more." in lines[3]
    assert main(given) == 0
    ids = corpus.documents()[1]["token"][:24].tolist()
    assert " ".join(map(str, ids)) in " ".join(capsys.readouterr().out.splitlines()[3].split()) or len(ids) > 20


def test_text_moves_no_cursor_and_is_no_markup(tmp_path, capsys):
    with penstock.Writer(tmp_path / "corpus", fields={"token": "u1"}, metadata="json") as writer:
        writer.append(token=[1, 2, 3], metadata={"title": "[bold]\x1b[2J\u202e"})
    assert main(["trace", str(tmp_path / "corpus"), "--step", "0", "-b", "1", "--documents"]) == 0
    out = capsys.readouterr().out
    assert "[bold]" in out and "\x1b" not in out and "\u202e" not in out


def views_and_orders(dataset: penstock.Dataset) -> dict[str, tuple[Any, Any]]:
    documents = dataset.documents()
    return {
        "windows": (dataset.windows(24, lookahead=1), "uniform"),
        "phase": (dataset.windows(24, lookahead=2, phase="random"), Blocks(2, 4, lanes=2)),
        "documents": (documents, "sequential"),
        "fetches": (documents, Sequential(fetch=8)),
        "bucketed": (documents, Bucketed(documents.lengths(), pool=16, bucket=4)),
        "packed": (dataset.packed(40, fit="first", group=20, multiple_of=4), "uniform"),
        "cut rows": (dataset.packed(40, max_document=9, cut="truncate", max_documents=7), "uniform"),
        "filled rows": (dataset.packed(39, lookahead=1, fill="exact", buffer=9, refill=2), "sequential"),
        "slice of a split": (dataset.windows(12).split(5, seed=2)[0][40:3:-2], "uniform"),
        "split of a slice": (dataset.windows(12)[3:80].split(4)[1], "uniform"),
    }


CASES = (
    *("windows", "phase", "documents", "fetches", "bucketed", "packed", "cut rows", "filled rows"),
    *("slice of a split", "split of a slice"),
)


@pytest.mark.parametrize("kind", ["documents", "windows", "packed", "parts"])
def test_a_state_tells_the_condition_that_chose_documents(tmp_path, corpus, capsys, kind):
    penstock.annotate(corpus.path, {"score": np.arange(60) % 7})
    dataset = penstock.open(corpus.path)
    chosen = dataset.where("score < 5 or score = 6")
    view = {
        "documents": lambda: chosen.documents(),
        "windows": lambda: chosen.windows(12, lookahead=1),
        "packed": lambda: chosen.packed(40)[2:],
        "parts": lambda: dataset.windows(8)[4:].where("score <> 1").split(5)[0].where("score <> 5"),
    }[kind]()
    with penstock.Loader(view, 3, seed=1, framework="numpy") as loader:
        (tmp_path / "state").write_text(json.dumps(next(loader).state_dict()))
        batch = next(loader)
    found = traced(capsys, corpus.path, "--state", tmp_path / "state", "-b", 3)
    assert [row["index"] for row in found["rows"]] == batch.indices.tolist()
    assert [each for row in found["rows"] for each in row["ids"]] == batch["token"].ravel().tolist()
    penstock.annotate(corpus.path, {"score": np.arange(60) % 5})
    words = refused(capsys, corpus.path, "--state", tmp_path / "state", "-b", 3)
    assert "documents when the state was saved, now" in words and "the columns changed" in words


@pytest.mark.parametrize(
    ("case", "kind"), [*((case, "json") for case in CASES), ("slice of a split", "torch"), ("packed", "dcp")]
)
@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_a_state_tells_view_order_seed_and_skips(tmp_path, corpus, capsys, case, kind):
    view, order = views_and_orders(corpus)[case]
    loader = penstock.Loader(view, 6, seed=11, order=order, skip=[(2, 4)], rank=0, world_size=1, framework="numpy")
    for _ in range(4):
        next(loader)
    file = tmp_path / "state"
    if kind == "json":
        file.write_text(json.dumps(loader.state_dict()))
    else:
        torch = pytest.importorskip("torch")
        content = {"model": {"weight": torch.ones(3)}, "train": {"loader": loader.state_dict()}, "all": [1]}
        if kind == "dcp":
            pytest.importorskip("torch.distributed.checkpoint").save(content, checkpoint_id=file)
        else:
            torch.save(content | {"train": [loader.state_dict()]}, file)
    batch = next(loader)
    found = traced(capsys, corpus.path, "--state", file, "-b", 6)
    assert (found["step"], found["position"]) == (4, batch.position)
    assert [row["index"] for row in found["rows"]] == batch.indices.tolist()
    assert [row["epoch"] for row in found["rows"]] == batch.epochs.tolist()
    assert [row["first_record"] for row in found["rows"]] == batch.first_records.tolist()
    assert [each for row in found["rows"] for each in row["ids"]] == batch["token"].ravel().tolist()
    assert [[span["metadata"] for span in row["spans"]] for row in found["rows"]] == [
        [span.metadata for span in batch.spans.of_row(row)] for row in range(6)
    ]


def test_after_a_state_the_next_eight_are_shown_if_nobody_says_how_many(tmp_path, corpus, capsys):
    loader = penstock.Loader(corpus.windows(10), 3, framework="numpy")
    next(loader)
    (tmp_path / "state.json").write_text(json.dumps(loader.state_dict()))
    found = traced(capsys, corpus.path, "--state", tmp_path / "state.json")
    assert found["step"] is None and [row["position"] for row in found["rows"]] == list(range(3, 11))
    assert main(["trace", corpus.path, "--state", str(tmp_path / "state.json")]) == 0
    why = ", since --global-batch-size was not given; a state does not hold it\n"
    assert capsys.readouterr().out.startswith(f"positions 3 to 11 of {corpus.path}: 8 rows{why}")


def test_a_state_of_a_dataset_that_grew(tmp_path, tokenizer_file, capsys):
    whole = write(tmp_path / "whole", tokenizer_file, 0, 40)
    write(tmp_path / "more", tokenizer_file, 40, 60)
    options: dict[str, Any] = {"global_batch_size": 4, "seed": 5, "on_mismatch": "grown", "framework": "numpy"}
    with penstock.Loader(whole.windows(24), **options) as loader:
        states = [next(loader).state_dict()]
    penstock.append(whole.path, tmp_path / "more")
    with penstock.Loader(penstock.open(whole.path).windows(24), **options) as loader:
        loader.load_state_dict(states[0])
        for _ in range(len(whole.windows(24)) // 4 + 3):
            states.append(next(loader).state_dict())
        for number, state in list(enumerate(states))[::3]:
            (tmp_path / "state.json").write_text(json.dumps(state))
            found = traced(capsys, whole.path, "--state", tmp_path / "state.json", "-b", 4)
            loader.load_state_dict(state)
            batch = next(loader)
            assert (found["step"], found["position"]) == (number + 1, batch.position)
            assert [row["index"] for row in found["rows"]] == batch.indices.tolist()
            assert [row["ids"] for row in found["rows"]] == batch["token"].tolist()


def test_a_mixture_by_its_file(tmp_path, corpus, tokenizer_file, capsys):
    write(tmp_path / "code", tokenizer_file, 30, 60)
    sources = {name: {"path": name, "window": 16, "lookahead": 1} for name in ("corpus", "code")}
    stages = [{"weights": {"corpus": 2, "code": 1}}, {"at": 18, "window": 8}]
    mix = tmp_path / "mix.json"
    mix.write_text(json.dumps({"sources": sources, "stages": stages, "group": 2}))
    mixture = penstock.Mixture.from_file(mix)
    loader = penstock.Loader(mixture, 6, seed=2, framework="numpy")
    states = []
    for step in range(6):
        states.append(loader.state_dict())
        batch = next(loader)
        found = traced(capsys, mix, "--step", step, "-b", 6, "--seed", 2)
        (tmp_path / "state.json").write_text(json.dumps(states[-1]))
        assert traced(capsys, mix, "--state", tmp_path / "state.json", "-b", 6) == found
        assert [row["source"] for row in found["rows"]] == [mixture.names[number] for number in batch.sources]
        assert [row["ids"] for row in found["rows"]] == batch["token"].tolist()
    assert len(found["rows"][0]["ids"]) == 9
    assert main(["trace", str(mix), "--step", "0", "-b", "6"]) == 0
    assert "source" in capsys.readouterr().out.splitlines()[1].split()
    assert "give the mixture's file, mix.json" in refused(
        capsys, corpus.path, "--state", tmp_path / "state.json", "-b", 6
    )


def test_indices_are_found_by_their_digest(tmp_path, corpus, capsys):
    documents = corpus.documents()
    ranked, short = np.arange(60)[::-1].copy(), np.array([3, 1, 2, 3], np.uint32)
    for name, indices in (("ranked", ranked), ("short", short), ("other", short[::-1])):
        np.save(tmp_path / f"{name}.npy", indices)
    state = tmp_path / "state.json"
    for view, order, files in (
        (documents, Custom(ranked), ["ranked"]),
        (documents, Custom(tmp_path / "short.npy", fetch=4), ["other", "short"]),
    ):
        loader = penstock.Loader(view, 4, order=order, framework="numpy")
        state.write_text(json.dumps(next(loader).state_dict()))
        given = [each for name in files for each in ("--indices", tmp_path / f"{name}.npy")]
        rows = traced(capsys, corpus.path, "--state", state, "-b", 4, *given)["rows"]
        assert [row["index"] for row in rows] == next(loader).indices.tolist()
    step = [corpus.path, "--step", 1, "-b", 4, "--documents"]
    assert traced(capsys, *step, "--indices", tmp_path / "short.npy")["rows"][1]["index"] == 1
    for given, words in (
        ([corpus.path, "--state", state], "an array of 4 indices, of which a state has only the digest"),
        ([corpus.path, "--state", state, "--indices", tmp_path / "other.npy"], "other.npy'>) has another"),
        ([corpus.path, "--state", state, "--indices", tmp_path / "none.npy"], "none.npy: No such file"),
        ([*step, "--indices", tmp_path / "short.npy", "--order", "sequential"], "one order"),
        ([*step, *["--indices", tmp_path / "short.npy"] * 2], "one order"),
    ):
        assert words in refused(capsys, *given)
    own = Custom(lambda epoch, positions: positions, name="mine", version=4)
    state.write_text(json.dumps(penstock.Loader(documents, 4, order=own, framework="numpy").state_dict()))
    assert "the function 'mine', version '4': use loader.locate" in refused(capsys, corpus.path, "--state", state)


def test_indices_of_a_mixture(tmp_path, corpus, tokenizer_file, capsys):
    write(tmp_path / "code", tokenizer_file, 30, 60)
    mix = tmp_path / "mix.json"
    sources = {name: {"path": name, "window": 16, "lookahead": 1} for name in ("corpus", "code")}
    mix.write_text(json.dumps({"sources": sources, "stages": [{"weights": {"corpus": 2, "code": 1}}]}))
    order = {}
    for number, name in enumerate(sources):
        np.save(tmp_path / f"{name}.npy", np.arange(10)[::-1] + number)
        order[name] = Custom(tmp_path / f"{name}.npy")
    loader = penstock.Loader(penstock.Mixture.from_file(mix), 6, order=order, framework="numpy")
    (tmp_path / "state.json").write_text(json.dumps(next(loader).state_dict()))
    files = [each for name in reversed(sources) for each in ("--indices", tmp_path / f"{name}.npy")]
    rows = traced(capsys, mix, "--state", tmp_path / "state.json", "-b", 6, *files)["rows"]
    assert [row["index"] for row in rows] == next(loader).indices.tolist()


def test_a_rank_has_its_own_rows(corpus, capsys):
    given = [corpus.path, "--step", 3, "-b", "0:4,8:6", "-w", 10, "--world-size", 2]
    whole = traced(capsys, *given)["rows"]
    assert [row["position"] for row in whole] == list(range(14, 20))
    for rank in range(2):
        assert traced(capsys, *given, "--rank", rank)["rows"] == whole[rank::2]


def test_ranks_that_do_not_divide_the_batch(corpus, capsys):
    arguments = (corpus.path, "--step", 2, "-b", 5, "--window", 24, "--world-size", 3)
    assert "give --uneven pad" in refused(capsys, *arguments)
    rows = traced(capsys, *arguments, "--uneven", "pad")["rows"]
    assert [(row["position"], row["rank"], row["row"]) for row in rows] == [
        (10, 0, 0), (11, 1, 0), (12, 2, 0), (13, 0, 1), (14, 1, 1),
    ]  # fmt: skip
    last = traced(capsys, *arguments, "--uneven", "pad", "--rank", 2)["rows"]
    assert [(row["position"], row["row"]) for row in last] == [(12, 0)]


def test_a_stream_without_spans_has_text_and_shards(tmp_path, capsys):
    for name in ("a", "b"):
        np.arange(30, dtype="u2").tofile(tmp_path / f"{name}.bin")
    files = [tmp_path / "a.bin", tmp_path / "b.bin", "--dtype", "u2"]
    rows = traced(capsys, *files, "--step", 0, "-b", 3, "-w", 20, "--order", "sequential", "--lookahead", 0)["rows"]
    assert [len(row["shards"]) for row in rows] == [1, 2, 1] and rows[1]["spans"] == []
    assert rows[1]["ids"] == [*range(20, 30), *range(10)]
    assert main(["trace", *map(str, files), "--step", "0", "-b", "3", "-w", "20", "--lookahead", "0"]) == 0
    assert "0 to 20" in capsys.readouterr().out


def test_a_row_of_a_bare_file_names_its_place_there(tmp_path, capsys):
    for name in ("a", "b"):
        np.arange(3000, dtype="u2").tofile(tmp_path / f"{name}.bin")
    run = [tmp_path / "a.bin", tmp_path / "b.bin", "--dtype", "u2", "--step", 1, "-b", 2, "-w", 1100, "--lookahead", 0]
    assert main(["trace", *map(str, run), "--order", "sequential"]) == 0
    out = capsys.readouterr().out
    assert "a.bin from 2,200, b.bin  0 to 1,100" in out and "b.bin from 300  " in out
    rows = traced(capsys, *run, "--order", "sequential")["rows"]
    assert [row["shard_offset"] for row in rows] == [2200, 300]


@pytest.mark.parametrize(("side", "first"), [("end", [*range(1, 8), 0]), ("begin", [*range(8)])])
def test_a_token_tells_the_documents_of_a_bare_file(tmp_path, capsys, side, first):
    tokens = [*range(1, 8), 0] * 25 if side == "end" else [*range(8)] * 25
    np.array(tokens, dtype="u2").tofile(tmp_path / "t.bin")
    run = [tmp_path / "t.bin", "--dtype", "u2", "--step", 0, "-b", 2, "--order", "sequential"]
    asked = [f"--{side}-of-document", 0]
    assert [row["ids"] for row in traced(capsys, *run, "--documents", *asked)["rows"]] == [first, first]
    for given in (["--packed", "-w", 16], ["-w", 12, "--lookahead", 0]):
        rows = traced(capsys, *run, *given, *asked)["rows"]
        assert [span["id"] for span in rows[0]["spans"]] == [[0, 0], [0, 1]]
    words = refused(capsys, *run, "--packed", "-w", 16)
    assert "say with --end-of-document or --begin-of-document which token tells them" in words
    assert "shift each document by one token" in refused(
        capsys, *run, "--documents", f"--{'begin' if side == 'end' else 'end'}-of-document", 0
    )


def test_what_cannot_be_traced_is_said(tmp_path, corpus, capsys):
    view, state = corpus.windows(8), tmp_path / "state.json"
    one, other, weighted = (
        penstock.Loader(each, 4, order=order, framework="numpy").state_dict()
        for each, order in ((view, "uniform"), (view.select([1, 2]), "uniform"), (view, Weighted(np.ones(len(view)))))
    )
    with penstock.Writer(tmp_path / "other", fields={"token": "u2"}, metadata="json") as writer:
        writer.append(token=range(100), metadata=None)
    for given, words in {
        "-b 4": "exactly one of --step and --state",
        "--step 0 -w 4": "--step counts batches: give --global-batch-size G",
        "-b 4 --step 0": "give --window W, or --documents",
        "-b 4 --step 0 -w 4 --rank 2 --world-size 2": "--rank 2: ranks are below --world-size, 2",
        "-b 4 --step 0 -w 4 --world-size 3": "not a multiple of world size 3",
        "-b 4 --step 9999 -w 4 --epochs 1": "the run has",
        "-b 0:4,8 --step 0 -w 4": "no schedule",
        "-b 4 --step 0 -w 4 --skip 3": "no range",
        f"-b 4 --state {state}": "there is no such file",
        f"-b 4 --state {tmp_path}": "no checkpoint of torch.distributed",
    }.items():
        assert words in refused(capsys, corpus.path, *given.split()), given
    for content, words in (
        (b"{}", "no state of a loader"),
        (b"\x80nothing", "neither JSON nor what torch.save wrote"),
        ([one, other], "2 states of loaders that differ"),
        (other, "of a selection"),
        (weighted, "its order is 'weighted'"),
        ({**one, "job": "{}"}, "its job cannot be read"),
    ):
        state.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        assert words in refused(capsys, corpus.path, "-b", 4, "--state", state)
    state.write_text(json.dumps(one))
    words = refused(capsys, tmp_path / "other", "-b", 4, "--state", state)
    assert f"this state is of other files than {tmp_path / 'other'}: name those of the run (dataset: the state" in words
    assert "on_mismatch" not in words
    for option in ("--window 24", "--seed 1", "--order uniform", "--skip 1:2", "--documents", "--end-of-document 0"):
        words = f"{option.split()[0]}: the state says it"
        assert words in refused(capsys, corpus.path, "--state", state, *option.split())
    assert "--micro-batches needs --balance" in refused(capsys, corpus.path, "--state", state, "--micro-batches", 2)


def test_rows_that_went_to_ranks_by_cost(tmp_path, capsys):
    path = tmp_path / "documents"
    with penstock.Writer(path, fields={"token": "u2"}, metadata="json") as writer:
        for length in (1, 30, 2, 29, 3, 28, 4, 27):
            writer.append(token=np.arange(length), metadata={})
    options: dict[str, Any] = {"global_batch_size": 8, "order": "sequential", "framework": "numpy"}
    run = ["--step", 0, "-b", 8, "--documents", "--order", "sequential", "--balance", "attention"]
    seen = []
    for rank in range(2):
        balance = penstock.Balance("attention", micro_batches=2)
        loader = penstock.Loader(penstock.open(path).documents(), rank=rank, world_size=2, balance=balance, **options)
        batch = next(loader)
        rows = traced(capsys, path, *run, "--micro-batches", 2, "--world-size", 2, "--rank", rank)["rows"]
        assert [row["position"] for row in rows] == batch.positions.tolist()
        assert [row["row"] for row in rows] == list(range(4))
        assert [len(row["ids"]) for row in rows] == np.diff(batch.offsets).tolist()
        seen += [(row["position"], rank) for row in rows]
    everyone = traced(capsys, path, *run, "--micro-batches", 2, "--world-size", 2)["rows"]
    assert [(row["position"], row["rank"]) for row in everyone] == sorted(seen)
