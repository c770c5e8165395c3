"""`penstock.import_tokens` of what opens in place: the same documents, the same bytes for any number of workers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _token_files import DOCUMENTS, GOLDEN, MEGATRON, STREAM, files_of, put_olmo, tokens_of

SMALL = 256  # bytes of a shard, so that there are several
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "datatrove/plain.ds": ("u2", {}),
    "datatrove/loss.ds": ("u4", {}),
    "litdata/tensor": ("u4", {}),
    "litdata/numpy": ("u2", {}),
    "mds/tokens": ("u4", {}),
    "mds/beside": ("u2", {}),
    "mds/bytes": ("u2", {"dtype": "u2"}),
    "mds/dynamic": ("u2", {}),
    "olmo": ("u2", {"dtype": "u2"}),
}


@pytest.fixture(params=CASES)
def case(request: Any, tmp_path: Path) -> tuple[Path, str, dict[str, Any]]:
    dtype, options = CASES[request.param]
    return (put_olmo(tmp_path) if request.param == "olmo" else GOLDEN / request.param), dtype, options


def test_documents_are_those_that_open_in_place(case: tuple[Path, str, dict[str, Any]], tmp_path: Path) -> None:
    path, dtype, options = case
    done = penstock.import_tokens(path, tmp_path / "d", shard_size=SMALL, **options)
    assert (done.documents, done.records, done.fields["token"]) == (len(DOCUMENTS), len(STREAM), dtype)
    assert done.shards > 2 and done.codec == "boundaries"
    assert tokens_of(tmp_path / "d") == DOCUMENTS
    assert penstock.verify(tmp_path / "d")
    dataset = penstock.open(tmp_path / "d")
    assert dataset.dtype["token"] == dtype
    assert np.array_equal(dataset.windows(1).read(range(len(STREAM)))["token"].reshape(-1), STREAM)


def test_workers_write_the_same_bytes(case: tuple[Path, str, dict[str, Any]], tmp_path: Path) -> None:
    path, _, options = case
    penstock.import_tokens(path, tmp_path / "one", shard_size=SMALL, **options)
    penstock.import_tokens(path, tmp_path / "three", shard_size=SMALL, workers=3, **options)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "three")


def test_a_mask_becomes_a_field(tmp_path: Path) -> None:
    done = penstock.import_tokens(GOLDEN / "datatrove" / "loss.ds", tmp_path / "d")
    assert done.fields == {"token": "u4", "loss": "b1"}
    for one in penstock.open(tmp_path / "d").documents():
        assert one["loss"].tolist() == [bool(at % 2) for at in range(len(one["loss"]))]


@pytest.mark.parametrize("name", ["u2_text_document", "i4_text_sentence"])
def test_documents_of_megatron(tmp_path: Path, name: str) -> None:
    done = penstock.import_tokens(MEGATRON / name, tmp_path / "d")
    assert done.fields == {"token": "u2" if name[0] == "u" else "u4"}
    assert tokens_of(tmp_path / "d") == [one["token"].tolist() for one in penstock.open(MEGATRON / name).documents()]


def put_bin(path: Path, tokens: Any, dtype: str = "<u2") -> Path:
    np.asarray(tokens, dtype).tofile(path)
    return path


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
    assert penstock.import_tokens(tmp_path / "a.npy", tmp_path / "a").fields == {"token": "u2"}
    np.save(tmp_path / "b.npy", np.arange(100, dtype="<i8"))
    assert penstock.import_tokens(tmp_path / "b.npy", tmp_path / "b").fields == {"token": "u4"}
    assert penstock.import_tokens(tmp_path / "b.npy", tmp_path / "c", dtype="u1").fields == {"token": "u1"}
    head = np.zeros(256, "<i4")
    head[:3] = 20240520, 1, 5
    (tmp_path / "c.bin").write_bytes(head.tobytes() + np.arange(5, dtype="<u2").tobytes())
    assert penstock.import_tokens(tmp_path / "c.bin", tmp_path / "e").records == 5


END = 7


@pytest.mark.parametrize("size", [1, 100, 20_000, 1 << 20])
@pytest.mark.parametrize("rate", [0.3, 0.001, 0.0])
def test_a_token_ends_documents(tmp_path: Path, rate: float, size: int) -> None:
    rng = np.random.default_rng(3)
    tokens = rng.integers(8, 1000, 9_000)
    tokens[rng.random(9_000) < rate] = END
    tokens[0] = 8  # else the first one would be said to begin documents
    path = put_bin(tmp_path / "train.bin", tokens)
    if size == 1:
        tokens = tokens[:200]
        put_bin(path, tokens)
    done = penstock.import_tokens(path, tmp_path / "d", dtype="u2", end_of_document=END, shard_size=size)
    ends = [at + 1 for at, token in enumerate(tokens) if token == END]
    if not ends or ends[-1] < len(tokens):
        ends.append(len(tokens))
    wanted = [tokens[a:b].tolist() for a, b in zip([0, *ends], ends, strict=False)]
    assert tokens_of(tmp_path / "d") == wanted and done.documents == len(wanted)
    assert size != 100 or rate < 0.1 or done.shards > 1


def test_several_inputs_are_end_to_end_and_share_shards(tmp_path: Path) -> None:
    for number in range(5):
        put_bin(tmp_path / f"{number}.bin", [number, END, number])
    done = penstock.import_tokens(tmp_path / "*.bin", tmp_path / "d", dtype="u2", end_of_document=END)
    assert (done.shards, done.documents) == (1, 10)
    assert tokens_of(tmp_path / "d") == [each for number in range(5) for each in ([number, END], [number])]


def test_a_pattern_that_matches_index_files_takes_each_once(tmp_path: Path) -> None:
    for path in (GOLDEN / "datatrove").glob("plain.ds*"):
        shutil.copy(path, tmp_path)
    assert penstock.import_tokens(tmp_path / "plain.ds*", tmp_path / "d").documents == len(DOCUMENTS)


def test_an_input_named_twice_is_taken_twice(tmp_path: Path) -> None:
    path = put_bin(tmp_path / "a.bin", [1, 2])
    for out, inputs in (("d", [path, path]), ("e", [path, f"{tmp_path}/*.bin"])):
        assert penstock.import_tokens(inputs, tmp_path / out, dtype="u2").records == 4
    plain = GOLDEN / "datatrove" / "plain.ds"
    penstock.import_tokens([plain, plain, f"{plain}.index"], tmp_path / "f")
    assert tokens_of(tmp_path / "f") == DOCUMENTS + DOCUMENTS


def test_all_metadata_of_what_has_none_is_none(tmp_path: Path) -> None:
    done = penstock.import_tokens(GOLDEN / "datatrove" / "plain.ds", tmp_path / "d", metadata="all")
    assert done.codec == "boundaries"
    both = [GOLDEN / "mds" / "tokens", GOLDEN / "mds" / "beside"]  # of which one has columns beside the tokens
    penstock.import_tokens(both, tmp_path / "e", metadata="all", dtype="u4")
    found = [one.spans[0].metadata for one in penstock.open(tmp_path / "e").documents()]
    assert found[0] == {} and found[len(DOCUMENTS) + 1] == {"a": 1, "text": "x"}


def test_a_token_that_occurs_nowhere_is_said(tmp_path: Path) -> None:
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
    given = ["import", paths[0], "--dtype", "u2", "--end-of-document", END, "--out", tmp_path / "g"]
    code, out, _ = run(*given)
    assert code == 0 and f"note: {note.replace('end_of_document', '--end-of-document')}" in out
    code, out, _ = run(*given, "--overwrite", "--json")
    assert code == 0 and json.loads(out)["notes"] == [note]


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


def stop(done: int, total: int) -> None:
    raise KeyboardInterrupt


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "plain.ds"
    for each in (GOLDEN / "datatrove").glob("plain.ds*"):
        shutil.copy(each, tmp_path)
    with pytest.raises(KeyboardInterrupt, match="1 finished shard is kept: go on with --resume"):
        penstock.import_tokens(path, tmp_path / "d", shard_size=SMALL, progress=stop)
    with pytest.raises(penstock.InvalidArgumentError, match="1 finished shard"):
        penstock.import_tokens(path, tmp_path / "d", shard_size=SMALL)
    done = penstock.import_tokens(path, tmp_path / "d", shard_size=SMALL, resume=True)
    assert (done.kept_shards, done.documents, done.records) == (1, len(DOCUMENTS), len(STREAM))
    penstock.import_tokens(path, tmp_path / "e", shard_size=SMALL)
    assert files_of(tmp_path / "d") == files_of(tmp_path / "e")
    again = penstock.import_tokens(path, tmp_path / "d", shard_size=SMALL, resume=True)
    assert again.kept_shards == again.shards == done.shards
    with pytest.raises(penstock.InvalidArgumentError, match="holds a dataset"):
        penstock.import_tokens(path, tmp_path / "d", shard_size=SMALL)


def test_an_input_that_changed_is_refused_by_name(tmp_path: Path) -> None:
    for each in (GOLDEN / "datatrove").glob("plain.ds*"):
        shutil.copy(each, tmp_path)
    path = tmp_path / "plain.ds"
    with pytest.raises(KeyboardInterrupt):
        penstock.import_tokens(path, tmp_path / "d", shard_size=SMALL, progress=stop)
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(penstock.InvalidArgumentError, match=r"plain\.ds: is another than when 1 finished shard"):
        penstock.import_tokens(path, tmp_path / "d", shard_size=SMALL, resume=True)
    done = penstock.import_tokens(path, tmp_path / "d", shard_size=SMALL, overwrite=True)
    assert done.kept_shards == 0 and tokens_of(tmp_path / "d") != DOCUMENTS


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "documents cut again": ({"end_of_document": 3}, "datatrove says itself where documents are"),
    "a column": ({"column": "text"}, "has no columns; mds, huggingface, parquet, webdataset have"),
    "metadata": ({"metadata": ["url"]}, "no metadata 'url': datatrove has none that is read"),
    "no format": ({"format": "arrow"}, "must be one of 'raw', 'megatron'"),
    "too small": ({"dtype": "u1"}, r"plain\.ds: document 1?\d: token \d+ does not fit u1 \(0 to 255\)"),
    "no type": ({"dtype": "f4"}, "a token of a dataset has u1, u2, u4"),
    "one name": ({"metadata": "url"}, 'a list of names is wanted, or "all"'),
    "a name twice": ({"metadata": ["url", "url"]}, "metadata: 'url': a list of names is wanted, each once"),
    "no workers": ({"workers": 0}, "workers"),
    "workers of a word": ({"workers": "two"}, "workers='two': a number, or an executor"),
}


@pytest.mark.parametrize("what", list(REFUSED))
def test_refusals_say_what_to_do(tmp_path: Path, what: str) -> None:
    options, message = REFUSED[what]
    with pytest.raises(penstock.InvalidArgumentError, match=message):
        penstock.import_tokens(GOLDEN / "datatrove" / "plain.ds", tmp_path / "d", **options)
    assert not (tmp_path / "d").exists()


def test_inputs_that_do_not_go_together(tmp_path: Path) -> None:
    plain, loss = GOLDEN / "datatrove" / "plain.ds", GOLDEN / "datatrove" / "loss.ds"
    with pytest.raises(penstock.InvalidArgumentError, match=r"has token and .* has token, loss: import them apart"):
        penstock.import_tokens([plain, loss], tmp_path / "d")
    with pytest.raises(penstock.InvalidArgumentError, match=r"has documents and .* has none: import them apart"):
        penstock.import_tokens([plain, put_bin(tmp_path / "a.bin", [1])], tmp_path / "d", dtype="u2")
    with pytest.raises(penstock.InvalidArgumentError, match=r"tokens of <u2 and .* of <i4: say with dtype"):
        penstock.import_tokens([plain, GOLDEN / "mds" / "tokens"], tmp_path / "d")
    done = penstock.import_tokens([plain, GOLDEN / "mds" / "tokens"], tmp_path / "d", dtype="u2")
    assert done.documents == 2 * len(DOCUMENTS)
    with pytest.raises(penstock.NotFoundError, match="no such file or folder"):
        penstock.import_tokens(tmp_path / "none.bin", tmp_path / "e")
    with pytest.raises(penstock.InvalidArgumentError, match="a dataset of penstock already"):
        penstock.import_tokens(tmp_path / "d", tmp_path / "e")
    with pytest.raises(penstock.InvalidArgumentError, match=r"a folder of \.ds files: name the files"):
        penstock.import_tokens(GOLDEN / "datatrove", tmp_path / "e")
    with pytest.raises(penstock.InvalidArgumentError, match="there are no tokens"):
        penstock.import_tokens(put_bin(tmp_path / "empty.bin", []), tmp_path / "e", dtype="u2")
    with pytest.raises(penstock.InvalidArgumentError, match=r"n\.bin: record 0: token -1 does not fit u4"):
        penstock.import_tokens(put_bin(tmp_path / "n.bin", [-1], "<i4"), tmp_path / "e", format="raw", dtype="i4")


def test_truncated_and_wrong_files(tmp_path: Path) -> None:
    for path in (GOLDEN / "datatrove").glob("plain.ds*"):
        shutil.copy(path, tmp_path)
    (tmp_path / "plain.ds").write_bytes((tmp_path / "plain.ds").read_bytes()[:-2])
    with pytest.raises(penstock.CorruptionError, match=r"plain\.ds"):
        penstock.import_tokens(tmp_path / "plain.ds", tmp_path / "d")
    for path in MEGATRON.glob("u2_text_document*"):
        shutil.copy(path, tmp_path)
    (tmp_path / "u2_text_document.idx").write_bytes(b"MMIDIDY" + bytes(80))
    with pytest.raises(penstock.CorruptionError, match=r"u2_text_document.idx"):
        penstock.import_tokens(tmp_path / "u2_text_document", tmp_path / "d")


def run(*arguments: Any) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *map(str, arguments)], capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout, done.stderr


def test_the_command(tmp_path: Path) -> None:
    path = put_bin(tmp_path / "train.bin", [5, 6, 0, 7, 0, 8])
    given = ["import", path, "--dtype", "u2", "--end-of-document", 0, "--out", tmp_path / "d", "--workers", 2]
    code, out, _ = run(*given, "--json")
    said = json.loads(out)
    assert (code, said["documents"], said["records"], said["fields"]) == (0, 3, 6, {"token": "u2"})
    code, out, _ = run("import", path, "--dtype", "u2", "--out", tmp_path / "e")
    assert code == 0 and "none: say with --end-of-document or --begin-of-document where they are" in out
    code, _, error = run(*given, "--obs", "a")
    assert code == 2 and "--obs is not for token files" in error
    code, _, error = run("import", tmp_path / "a.h5ad", "--out", tmp_path / "f", "--column", "a")
    assert code == 2 and "--column is not for AnnData" in error
    code, _, error = run("import", tmp_path / "a.h5ad", path, "--out", tmp_path / "f")
    assert code == 2 and "AnnData and token files: import them apart" in error
    code, _, error = run("import", tmp_path / "none.bin", "--out", tmp_path / "f")
    assert code == 2 and "no such file" in error
    code, _, error = run(*given)
    assert code == 2 and "holds a dataset already" in error


def test_a_token_that_ends_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock._from.tokens import in_place

    monkeypatch.setattr(in_place, "_LONGEST", 10_000)
    path = put_bin(tmp_path / "train.bin", np.full(40_000, 5))
    with pytest.raises(penstock.InvalidArgumentError, match=r"no token 7 from token .* is end_of_document another one"):
        penstock.import_tokens(path, tmp_path / "d", dtype="u2", end_of_document=END, shard_size=1000)
