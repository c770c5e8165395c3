"""`penstock.export`: what penstock reads back is what was written; what a format cannot hold is refused or said."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest

FORMATS = {"megatron": "out", "datatrove": "out.ds", "mds": "out"}
NO_EMPTY = {"datatrove": ["empty"]}  # which its reader does not read
LENGTHS = (5, 1, 300, 2, 0, 70_000, 3)


def corpus(path: Path, dtype: str = "u2", metadata: Any = None, layout: str = "compact", **fields: Any) -> Path:
    """Documents of LENGTHS; `fields` are functions from tokens to values."""
    rng = np.random.default_rng(0)
    types = {"token": dtype, **{name: kind for name, (kind, _) in fields.items()}}
    options: dict[str, Any] = {} if metadata in (None, "boundaries") else {"layout": layout}
    with penstock.Writer(path, fields=types, metadata=metadata, shard_size=50_000, **options) as writer:
        for number, length in enumerate(LENGTHS):
            tokens = rng.integers(0, 250 if dtype == "u1" else 50_000, length)
            more = {"metadata": {"n": number}} if metadata not in (None, "boundaries") else {}
            writer.append(token=tokens, **more, **{name: make(tokens) for name, (_, make) in fields.items()})
    return path


def odd(tokens: Any) -> Any:
    return tokens % 2


def documents_of(path: Any, **hints: Any) -> list[list[int]]:
    return [one["token"].tolist() for one in penstock.open(path, **hints).documents()]


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4"])
@pytest.mark.parametrize("to", list(FORMATS))
def test_documents_come_back(tmp_path: Path, to: str, dtype: str) -> None:
    path = corpus(tmp_path / "d", dtype, "boundaries")
    drops = to == "datatrove"  # of the document without tokens
    done = penstock.export(path, tmp_path / FORMATS[to], to=to, drop=NO_EMPTY.get(to, []))
    assert (done.sequences, done.records) == (len(LENGTHS) - drops, sum(LENGTHS))
    assert done.left_out == (["1 document without tokens"] if drops else [])
    assert penstock.open(tmp_path / FORMATS[to]).kind == to
    wanted = [each for each in documents_of(path) if each or not drops]
    assert documents_of(tmp_path / FORMATS[to]) == wanted
    assert all(Path(each).exists() for each in done.paths)
    assert not [each for each in tmp_path.iterdir() if "partial" in each.name]
    penstock.import_tokens(tmp_path / FORMATS[to], tmp_path / "back")
    assert documents_of(tmp_path / "back") == wanted


@pytest.mark.parametrize("to", list(FORMATS))
@pytest.mark.parametrize("kind", ["stream", "ids", "documents"])
def test_windows_are_sequences(tmp_path: Path, to: str, kind: str) -> None:
    metadata = {"stream": None, "ids": "json", "documents": "boundaries"}[kind]
    path = tmp_path / "d"
    if kind == "ids":
        corpus(tmp_path / "compact", metadata="json")
        lengths = [each for each in LENGTHS if each]
        with penstock.Writer(path, fields={"token": "u2"}, metadata="json", layout="ids") as writer:
            for length in lengths:
                writer.append(token=np.arange(length) % 1000, metadata={})
    else:
        corpus(path, metadata=metadata)
    drop = ["metadata"] if kind == "ids" else []
    done = penstock.export(path, tmp_path / FORMATS[to], to=to, window=1000, drop=drop)
    assert (done.sequences, done.left_out) == (70, [*drop, "311 records behind the last window"])
    view = penstock.open(path).windows(1000)
    assert documents_of(tmp_path / FORMATS[to]) == [view[i]["token"].tolist() for i in range(70)]


def test_a_mask_goes_to_datatrove(tmp_path: Path) -> None:
    for name, kind in (("a", "?"), ("b", "u1")):
        path = corpus(
            tmp_path / name,
            metadata="boundaries",
            loss=(kind, odd if kind == "u1" else lambda tokens: odd(tokens) == 1),
        )
        with pytest.raises(penstock.InvalidArgumentError, match=r"1 document without tokens: .*--drop empty leaves"):
            penstock.export(path, tmp_path / f"{name}.ds", to="datatrove")
        done = penstock.export(path, tmp_path / f"{name}.ds", to="datatrove", drop=["empty"])
        assert done.left_out == ["1 document without tokens"] and len(done.paths) == 4
        whole = [one for one in penstock.open(path).documents() if len(one["token"])]
        for ours, theirs in zip(whole, penstock.open(tmp_path / f"{name}.ds").documents(), strict=True):
            assert ours["loss"].astype(bool).tolist() == theirs["loss"].tolist()
    path = corpus(tmp_path / "c", metadata="boundaries", loss=("u1", lambda tokens: tokens % 3))
    with pytest.raises(penstock.InvalidArgumentError, match="loss has the value 2, and datatrove holds 0 and 1"):
        penstock.export(path, tmp_path / "c.ds", to="datatrove", drop=["empty"])
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("c.")] == []


def test_mds_holds_metadata_and_fields(tmp_path: Path) -> None:
    path = corpus(
        tmp_path / "d", metadata="json", weight=("f4", lambda tokens: tokens / 2), loss=("?", lambda t: t > 9)
    )
    done = penstock.export(path, f"{tmp_path}/m/", to="mds")
    assert (done.paths, done.left_out) == ([str(tmp_path / "m")], [])
    shards = json.loads((tmp_path / "m" / "index.json").read_text())["shards"]
    assert shards[0]["column_names"] == ["loss", "metadata", "tokens", "weight"]
    assert shards[0]["column_encodings"] == ["ndarray:uint8", "json", "ndarray:uint16", "ndarray:float32"]
    assert documents_of(tmp_path / "m") == documents_of(path)


def test_json_comes_back_as_it_was(tmp_path: Path) -> None:
    entries = [{"é": "\u2028 ü", "n": [1, None, 1e300]}, "text", None]
    with penstock.Writer(tmp_path / "d", fields={"token": "u2"}, metadata="json") as writer:
        for number, entry in enumerate(entries):
            writer.append(token=[number] * number, metadata=entry)
    penstock.export(tmp_path / "d", tmp_path / "m", to="mds")
    penstock.import_tokens(tmp_path / "m", tmp_path / "back", metadata="all")
    read = penstock.open(tmp_path / "back").documents()
    assert [one.spans[0].metadata["metadata"] for one in read] == entries


def put(path: Path, tokens: Any, dtype: str = "u4", **options: Any) -> Path:
    with penstock.Writer(path, fields={"token": dtype}, metadata="boundaries", **options) as writer:
        writer.append(token=[1])
        writer.append(token=tokens)
    return path


def test_what_a_format_cannot_hold_is_refused_or_dropped(tmp_path: Path) -> None:
    path = corpus(tmp_path / "d", metadata="json", rank=("f4", lambda tokens: tokens))
    for to, name, why in (
        ("megatron", "rank", "Megatron holds tokens alone, not the field rank: --drop rank leaves it out"),
        ("datatrove", "rank", "datatrove holds tokens and a mask called loss of 0 and 1, not the field rank"),
        ("megatron", "metadata", "megatron holds no metadata of documents: --drop metadata leaves it out"),
    ):
        drop = [each for each in ("rank", "metadata") if each != name]
        with pytest.raises(penstock.InvalidArgumentError, match=why):
            penstock.export(path, tmp_path / FORMATS[to], to=to, drop=drop)
        done = penstock.export(path, tmp_path / f"{to}-{name}.ds", to=to, drop=[*drop, name, *NO_EMPTY.get(to, [])])
        left_out = ["1 document without tokens"] if to == "datatrove" else []
        assert sorted(done.left_out) == [*left_out, "metadata", "rank"]
    with pytest.raises(penstock.InvalidArgumentError, match="a window has the metadata of several documents"):
        penstock.export(path, tmp_path / "m", to="mds", window=10)
    with pytest.raises(penstock.InvalidArgumentError, match=r"beside its tokens .* has rank, metadata"):
        penstock.export(path, tmp_path / "m", to="mds", drop=["loss"])


def test_columns_and_features_are_refused_or_dropped(tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "d", fields={"token": "u2"}, columns={"year": "i4"}, features=["a", "b"]) as writer:
        writer.append(token=[1, 0], columns={"year": 2000})
    with pytest.raises(penstock.InvalidArgumentError, match="mds holds no columns: --drop columns leaves it out"):
        penstock.export(tmp_path / "d", tmp_path / "m", to="mds")
    done = penstock.export(tmp_path / "d", tmp_path / "m", to="mds", drop=["columns", "features"])
    assert done.left_out == ["columns", "features"]


def test_tokens_beyond_int32_are_refused_by_megatron(tmp_path: Path) -> None:
    path = put(tmp_path / "d", [7, 2**31 - 1])
    penstock.export(path, tmp_path / "a", to="megatron")
    assert documents_of(tmp_path / "a") == [[1], [7, 2**31 - 1]]
    path = put(tmp_path / "e", [7, 2**31])
    with pytest.raises(penstock.InvalidArgumentError, match="document 1: token 2,147,483,648, and Megatron holds"):
        penstock.export(path, tmp_path / "b", to="megatron")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.bin", "a.idx", "d", "e"]


def test_what_cannot_be_exported_says_why(tmp_path: Path) -> None:
    stream = corpus(tmp_path / "stream")
    with pytest.raises(penstock.InvalidArgumentError, match="a token stream without documents: say with window"):
        penstock.export(stream, tmp_path / "a", to="megatron")
    with pytest.raises(penstock.InvalidArgumentError, match=r"window=100,000: .* has 70,311 records"):
        penstock.export(stream, tmp_path / "a", to="megatron", window=100_000)
    with pytest.raises(penstock.InvalidArgumentError, match=r"the name of datatrove's tokens ends in \.ds"):
        penstock.export(stream, tmp_path / "a", to="datatrove", window=10)
    with pytest.raises(penstock.InvalidArgumentError, match="must be one of 'megatron', 'datatrove', 'mds'"):
        penstock.export(stream, tmp_path / "a", to="olmo")
    with penstock.Writer(tmp_path / "opaque", metadata="json") as writer:
        writer.append({"a": 1})
    with pytest.raises(penstock.InvalidArgumentError, match="opaque documents have no tokens"):
        penstock.export(tmp_path / "opaque", tmp_path / "a", to="mds")
    for to, name in FORMATS.items():
        (tmp_path / "there").mkdir(exist_ok=True)
        out = tmp_path / "there" / name
        penstock.export(stream, out, to=to, window=10)
        with pytest.raises(penstock.InvalidArgumentError, match="is there already"):
            penstock.export(stream, out, to=to, window=10)
    (tmp_path / "file").write_bytes(b"")
    for to, name in FORMATS.items():
        with pytest.raises(penstock.IoError, match="cannot be written: Not a directory"):
            penstock.export(stream, tmp_path / "file" / name, to=to, window=10)


def test_folders_are_made_and_names_must_be_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = corpus(tmp_path / "d", metadata="boundaries")
    for to, name in FORMATS.items():
        done = penstock.export(path, tmp_path / "new" / to / name, to=to, drop=NO_EMPTY.get(to, []))
        assert all(Path(each).exists() for each in done.paths)
    monkeypatch.chdir(tmp_path)
    for out in ("m/", "", ".", "..", "m/.."):
        with pytest.raises(penstock.InvalidArgumentError, match="names no file: megatron writes files, so say their "):
            penstock.export(path, out, to="megatron")
    with pytest.raises(penstock.InvalidArgumentError, match=r"say their name, as m/corpus\.ds"):
        penstock.export(path, "m/", to="datatrove")
    with pytest.raises(penstock.InvalidArgumentError, match="no name of a new folder"):
        penstock.export(path, "", to="mds")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["d", "new"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"a": b"\xff"}, "document 1 is no JSON, which MDS has: Object of type bytes"),
        ({"a": [{1: 2}]}, "document 1 is no JSON, which MDS has: the key 1 is no text"),
        (b"{}", "document 1 is no JSON, which MDS has: Object of type bytes"),
        ({"a": float("nan")}, "document 1 is no JSON, which MDS has: .*--drop metadata leaves all of it out"),
    ],
)
def test_metadata_that_is_no_json_is_refused(tmp_path: Path, entry: Any, message: str) -> None:
    with penstock.Writer(tmp_path / "d", fields={"token": "u2"}, metadata="msgpack") as writer:
        writer.append(token=[1], metadata={"a": [1, "b", None]})
        writer.append(token=[2], metadata=entry)
    with pytest.raises(penstock.InvalidArgumentError, match=message):
        penstock.export(tmp_path / "d", tmp_path / "m", to="mds")
    assert not (tmp_path / "m").exists()
    penstock.export(tmp_path / "d", tmp_path / "m", to="mds", drop=["metadata"])


@pytest.mark.parametrize("to", list(FORMATS))
def test_nothing_is_left_when_it_stops(tmp_path: Path, to: str) -> None:
    path = corpus(tmp_path / "d", metadata="boundaries")

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        penstock.export(path, tmp_path / FORMATS[to], to=to, drop=NO_EMPTY.get(to, []), progress=stop)
    assert [each.name for each in tmp_path.iterdir()] == ["d"]


def run(*arguments: Any) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *map(str, arguments)], capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout, done.stderr


def test_the_command(tmp_path: Path) -> None:
    path = corpus(tmp_path / "d", metadata="json")
    code, _, error = run("export", path, "--to", "megatron", "--out", tmp_path / "m")
    assert code == 2 and "--drop metadata leaves it out" in error
    code, out, _ = run("export", path, "--to", "megatron", "--out", tmp_path / "m", "--drop", "metadata")
    assert code == 0 and "left out: metadata" in out
    assert documents_of(tmp_path / "m") == documents_of(path)
    code, out, _ = run("export", path, "--to", "mds", "--window", 100, "--drop", "metadata", "--json", "--out",
                       tmp_path / "w")  # fmt: skip
    assert code == 0 and json.loads(out)["left_out"] == ["metadata", "11 records behind the last window"]
    code, _, error = run("export", path, "--to", "h5ad", "--out", tmp_path / "x.h5ad", "--drop", "metadata")
    assert code == 2 and "--drop is for token files" in error
