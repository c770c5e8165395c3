"""`penstock.import_tokens` of what opens in place: the same documents, the same bytes for any number of workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _token_files import DOCUMENTS, GOLDEN, MEGATRON, STREAM, copied, files_of, put_bin, put_olmo, tokens_of
from penstock._cli.main import main
from penstock._from.tokens import in_place

SMALL = 256  # bytes of a shard, so that there are several
PLAIN = GOLDEN / "datatrove" / "plain.ds"
LOSS = GOLDEN / "datatrove" / "loss.ds"
#: The type of a token, and workers: of each kind once, as they open it themselves.
CASES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "datatrove/plain.ds": ("u2", 1, {}),
    "datatrove/loss.ds": ("u4", 3, {}),
    "litdata/tensor": ("u4", 2, {}),
    "litdata/numpy": ("u2", 1, {}),
    "mds/tokens": ("u4", 2, {}),
    "mds/beside": ("u2", 1, {}),
    "mds/bytes": ("u2", 1, {"dtype": "u2"}),
    "mds/dynamic": ("u2", 1, {}),
    "olmo": ("u2", 2, {"dtype": "u2"}),
}


@pytest.mark.parametrize("what", CASES)
def test_documents_are_those_that_open_in_place(what: str, tmp_path: Path) -> None:
    dtype, workers, options = CASES[what]
    path = put_olmo(tmp_path) if what == "olmo" else GOLDEN / what
    done = penstock.import_tokens(path, tmp_path / "d", shard_size=SMALL, **options)
    assert (done.documents, done.records, done.fields["token"]) == (len(DOCUMENTS), len(STREAM), dtype)
    assert done.shards > 2 and done.codec == "boundaries"
    assert tokens_of(tmp_path / "d") == DOCUMENTS
    assert penstock.verify(tmp_path / "d")
    dataset = penstock.open(tmp_path / "d")
    assert dataset.dtype["token"] == dtype
    assert np.array_equal(dataset.windows(1).read(range(len(STREAM)))["token"].reshape(-1), STREAM)
    if workers > 1:
        penstock.import_tokens(path, tmp_path / "many", shard_size=SMALL, workers=workers, **options)
        assert files_of(tmp_path / "many") == files_of(tmp_path / "d")


def test_a_mask_becomes_a_field(tmp_path: Path) -> None:
    assert penstock.import_tokens(LOSS, tmp_path / "d").fields == {"token": "u4", "loss": "b1"}
    for one in penstock.open(tmp_path / "d").documents():
        assert one["loss"].tolist() == [bool(at % 2) for at in range(len(one["loss"]))]


@pytest.mark.parametrize("name", ["u2_text_document", "i4_text_sentence"])
def test_documents_of_megatron(tmp_path: Path, name: str) -> None:
    done = penstock.import_tokens(MEGATRON / name, tmp_path / "d")
    assert done.fields == {"token": "u2" if name[0] == "u" else "u4"}
    assert tokens_of(tmp_path / "d") == tokens_of(MEGATRON / name)


def test_bare_tokens_become_a_stream(tmp_path: Path) -> None:
    tokens = np.random.default_rng(0).integers(0, 50_257, 30_001)
    path = put_bin(tmp_path / "train.bin", tokens)
    done = penstock.import_tokens(path, tmp_path / "d", dtype="u2", shard_size=1 << 14)
    assert (done.documents, done.records, done.codec) == (0, 30_001, None)
    dataset = penstock.open(tmp_path / "d")
    assert dataset.mode == "tokens" and done.shards == 4
    assert np.array_equal(dataset.windows(1).read(range(30_001))["token"].reshape(-1), tokens)


def test_bare_npy_and_llm_c_say_their_type(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(100, dtype="<u2"))
    np.save(tmp_path / "b.npy", np.arange(100, dtype="<i8"))
    head = np.zeros(256, "<i4")
    head[:3] = 20240520, 1, 5
    (tmp_path / "c.bin").write_bytes(head.tobytes() + np.arange(5, dtype="<u2").tobytes())
    for number, (name, options, dtype) in enumerate(
        [("a.npy", {}, "u2"), ("b.npy", {}, "u4"), ("b.npy", {"dtype": "u1"}, "u1"), ("c.bin", {}, "u2")]
    ):
        done = penstock.import_tokens(tmp_path / name, tmp_path / str(number), **options)
        assert done.fields == {"token": dtype} and done.records == (5 if name == "c.bin" else 100)


END = 7


@pytest.mark.parametrize(
    ("size", "rate"),
    [(1, 0.3), (1, 0.0), (100, 0.3), (100, 0.001), (20_000, 0.3), (20_000, 0.001), (1 << 20, 0.3), (1 << 20, 0.0)],
)
def test_a_token_ends_documents(tmp_path: Path, rate: float, size: int) -> None:
    rng = np.random.default_rng(3)
    tokens = rng.integers(8, 1000, 200 if size == 1 else 9_000)
    tokens[rng.random(len(tokens)) < rate] = END
    tokens[0] = 8  # else the first one would be said to begin documents
    path = put_bin(tmp_path / "train.bin", tokens)
    done = penstock.import_tokens(path, tmp_path / "d", dtype="u2", end_of_document=END, shard_size=size)
    ends = [at + 1 for at, token in enumerate(tokens) if token == END]
    if not ends or ends[-1] < len(tokens):
        ends.append(len(tokens))
    wanted = [tokens[a:b].tolist() for a, b in zip([0, *ends], ends, strict=False)]
    assert tokens_of(tmp_path / "d") == wanted and done.documents == len(wanted)
    assert (size, rate) != (100, 0.3) or done.shards > 1


def test_several_inputs_are_end_to_end_and_share_shards(tmp_path: Path) -> None:
    for number in range(5):
        put_bin(tmp_path / f"{number}.bin", [number, END, number])
    done = penstock.import_tokens(tmp_path / "*.bin", tmp_path / "d", dtype="u2", end_of_document=END)
    assert (done.shards, done.documents) == (1, 10)
    assert tokens_of(tmp_path / "d") == [each for number in range(5) for each in ([number, END], [number])]
    copied(tmp_path)  # a pattern that matches index files takes each once; an input named twice is taken twice
    path = tmp_path / "0.bin"
    for out, inputs, records in (
        ("e", tmp_path / "plain.ds*", len(STREAM)),
        ("f", [path, path], 6),
        ("g", [path, f"{tmp_path}/0*.bin"], 6),
        ("h", [PLAIN, PLAIN, f"{PLAIN}.index"], 2 * len(STREAM)),
    ):
        assert penstock.import_tokens(inputs, tmp_path / out, dtype="u2").records == records


def test_all_metadata_of_what_has_none_is_none(tmp_path: Path) -> None:
    assert penstock.import_tokens(PLAIN, tmp_path / "d", metadata="all").codec == "boundaries"
    both = [GOLDEN / "mds" / "tokens", GOLDEN / "mds" / "beside"]  # of which one has columns beside the tokens
    penstock.import_tokens(both, tmp_path / "e", metadata="all", dtype="u4")
    found = [one.spans[0].metadata for one in penstock.open(tmp_path / "e").documents()]
    assert found[0] == {} and found[len(DOCUMENTS) + 1] == {"a": 1, "text": "x"}


def test_metadata_of_olmo(tmp_path: Path) -> None:
    path = put_olmo(tmp_path)
    penstock.import_tokens(path, tmp_path / "d", dtype="u2", metadata=["id", "location"], shard_size=SMALL)
    view = penstock.open(tmp_path / "d").documents()
    assert [one.spans[0].metadata for one in view] == [
        {"id": f"id {n}", "location": str(n)} for n in range(len(DOCUMENTS))
    ]
    penstock.import_tokens(path, tmp_path / "all", dtype="u2", metadata="all")
    entry = penstock.open(tmp_path / "all").documents()[0].spans[0].metadata
    assert entry == {"id": "id 0", "source": 'a "quoted"\nline,', "location": "0"}


def test_a_token_that_occurs_nowhere_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    note = f"token {END:,} occurs nowhere, so each input is one document: is end_of_document another?"
    paths = [put_bin(tmp_path / "a.bin", [1, 2]), put_bin(tmp_path / "b.bin", [3])]
    options: dict[str, Any] = {"dtype": "u2", "end_of_document": END}
    done = penstock.import_tokens(paths, tmp_path / "d", **options)
    assert (done.documents, done.notes) == (2, [note])
    assert penstock.import_tokens(paths, tmp_path / "d", resume=True, **options).notes == [note]
    paths.append(put_bin(tmp_path / "c.bin", [4, END]))
    assert penstock.import_tokens(paths, tmp_path / "e", **options).notes == []
    within = penstock.import_tokens(put_bin(tmp_path / "f.bin", [5, END, 5]), tmp_path / "f", **options).notes
    assert len(within) == 1 and "no input begins or ends with token" in within[0]
    given = ["import", str(paths[0]), "--dtype", "u2", "--end-of-document", str(END), "--out", str(tmp_path / "g")]
    assert main(given) == 0
    assert f"note: {note.replace('end_of_document', '--end-of-document')}" in capsys.readouterr().out
    assert main([*given, "--overwrite", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == [note]


def test_an_input_or_options_that_changed_are_no_part_of_what_goes_on(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    path = copied(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        penstock.import_tokens(path, tmp_path / "d", shard_size=SMALL, progress=stop)
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(penstock.InvalidArgumentError, match=r"plain\.ds: is another than when 1 finished shard"):
        penstock.import_tokens(path, tmp_path / "d", shard_size=SMALL, resume=True)
    done = penstock.import_tokens(path, tmp_path / "d", shard_size=SMALL, overwrite=True)
    assert done.kept_shards == 0 and tokens_of(tmp_path / "d") != DOCUMENTS
    with pytest.raises(penstock.InvalidArgumentError, match="made of other input or options"):
        penstock.import_tokens(path, tmp_path / "d", shard_size=2 * SMALL, resume=True)


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "documents cut again": (PLAIN, {"end_of_document": 3}, "datatrove says itself where documents are"),
    "a column": (PLAIN, {"column": "text"}, "has no columns; mds, huggingface, parquet, webdataset have"),
    "metadata": (PLAIN, {"metadata": ["url"]}, "no metadata 'url': datatrove has none that is read"),
    "no format": (PLAIN, {"format": "arrow"}, "must be one of 'raw', 'megatron'"),
    "too small": (PLAIN, {"dtype": "u1"}, r"plain\.ds: document 1?\d: token \d+ does not fit u1 \(0 to 255\)"),
    "no type": (PLAIN, {"dtype": "f4"}, "a token of a dataset has u1, u2, u4"),
    "one name": (PLAIN, {"metadata": "url"}, 'a list of names is wanted, or "all"'),
    "a name twice": (PLAIN, {"metadata": ["url", "url"]}, "metadata: 'url': a list of names is wanted, each once"),
    "no workers": (PLAIN, {"workers": 0}, "workers"),
    "workers of a word": (PLAIN, {"workers": "two"}, "workers='two': a number, or an executor"),
    "scratch": (PLAIN, {"scratch": "."}, "is a path of this machine, no address of a bucket"),
    "fields": ([PLAIN, LOSS], {}, r"has token and .* has token, loss: import them apart"),
    "documents and none": ([PLAIN, "a.bin"], {"dtype": "u2"}, r"has documents and .* has none: import them apart"),
    "types": ([PLAIN, GOLDEN / "mds" / "tokens"], {}, r"tokens of <u2 and .* of <i4: say with dtype"),
    "nothing": ("none.bin", {}, "no such file or folder"),
    "a dataset": ("dataset", {}, "a dataset of penstock already"),
    "a folder of files": (GOLDEN / "datatrove", {}, r"a folder of \.ds files: name the files"),
    "no tokens": ("empty.bin", {"dtype": "u2"}, "there are no tokens|an empty file"),
    "negative": ("n.bin", {"format": "raw", "dtype": "i4"}, r"n\.bin: record 0: token -1 does not fit u4"),
}


@pytest.mark.parametrize("what", list(REFUSED))
def test_refusals_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.chdir(tmp_path)
    put_bin(tmp_path / "a.bin", [1])
    put_bin(tmp_path / "empty.bin", [])
    put_bin(tmp_path / "n.bin", [-1], "<i4")
    penstock.import_tokens("a.bin", "dataset", dtype="u2")
    inputs, options, message = REFUSED[what]
    with pytest.raises(penstock.Error, match=message) as raised:
        penstock.import_tokens(inputs, tmp_path / "d", **options)
    assert isinstance(raised.value, penstock.NotFoundError if what == "nothing" else penstock.InvalidArgumentError)
    assert not (tmp_path / "d").exists()


def test_a_type_that_is_given_is_that_of_all_inputs(tmp_path: Path) -> None:
    done = penstock.import_tokens([PLAIN, GOLDEN / "mds" / "tokens"], tmp_path / "d", dtype="u2")
    assert done.documents == 2 * len(DOCUMENTS) and done.fields == {"token": "u2"}


def test_truncated_and_wrong_files(tmp_path: Path) -> None:
    path = copied(tmp_path)
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(penstock.CorruptionError, match=r"plain\.ds"):
        penstock.import_tokens(path, tmp_path / "d")
    path = copied(tmp_path, "../megatron/u2_text_document")
    (tmp_path / "u2_text_document.idx").write_bytes(b"MMIDIDY" + bytes(80))
    with pytest.raises(penstock.CorruptionError, match=r"u2_text_document.idx"):
        penstock.import_tokens(path, tmp_path / "d")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put_bin(tmp_path / "train.bin", [5, 6, 0, 7, 0, 8])
    given = ["import", "train.bin", "--dtype", "u2", "--end-of-document", "0", "--out", "d", "--workers", "2"]
    assert main([*given, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["documents"], said["records"], said["fields"]) == (3, 6, {"token": "u2"})
    assert main(["import", "train.bin", "--dtype", "u2", "--out", "e"]) == 0
    assert "none: say with --end-of-document or --begin-of-document where they are" in capsys.readouterr().out
    for arguments, words in (
        ([*given, "--obs", "a"], "--obs is not for token files"),
        (["import", "a.h5ad", "--out", "f", "--column", "a"], "--column is not for AnnData"),
        (["import", "a.h5ad", "train.bin", "--out", "f"], "AnnData and token files: import them apart"),
        (["import", "none.bin", "--out", "f"], "no such file"),
        (given, "holds a dataset already"),
    ):
        assert main(arguments) == 2
        assert words in capsys.readouterr().err


def test_a_token_that_ends_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_place, "_LONGEST", 10_000)
    path = put_bin(tmp_path / "train.bin", np.full(40_000, 5))
    with pytest.raises(penstock.InvalidArgumentError, match=r"no token 7 from token .* is end_of_document another one"):
        penstock.import_tokens(path, tmp_path / "d", dtype="u2", end_of_document=END, shard_size=1000)
