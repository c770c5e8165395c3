"""`penstock.export`: what penstock reads back is what was written; what a format cannot hold is refused or said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _servers import nginx
from _token_files import tokens_of
from penstock._cli.main import main

FORMATS = {"megatron": "out", "datatrove": "out.ds", "mds": "out"}
NO_EMPTY = {"datatrove": ["empty"]}  # which its reader does not read
LENGTHS = (5, 1, 300, 2, 0, 70_000, 3)


def corpus(path: Path, dtype: str = "u2", metadata: Any = None, **fields: Any) -> Path:
    """Documents of LENGTHS; `fields` are functions from tokens to values."""
    rng = np.random.default_rng(0)
    types = {"token": dtype, **{name: kind for name, (kind, _) in fields.items()}}
    with penstock.Writer(path, fields=types, metadata=metadata, shard_size=50_000) as writer:
        for number, length in enumerate(LENGTHS):
            tokens = rng.integers(0, 250 if dtype == "u1" else 50_000, length)
            more = {"metadata": {"n": number}} if metadata not in (None, "boundaries") else {}
            writer.append(token=tokens, **more, **{name: make(tokens) for name, (_, make) in fields.items()})
    return path


@pytest.mark.parametrize(
    ("to", "dtype"), [*((to, "u2") for to in FORMATS), ("megatron", "u1"), ("datatrove", "u4"), ("mds", "u4")]
)
def test_documents_come_back(tmp_path: Path, to: str, dtype: str) -> None:
    path = corpus(tmp_path / "d", dtype, "boundaries")
    drops = to == "datatrove"  # of the document without tokens
    done = penstock.export(path, tmp_path / FORMATS[to], to=to, drop=NO_EMPTY.get(to, []))
    assert (done.sequences, done.records) == (len(LENGTHS) - drops, sum(LENGTHS))
    assert done.left_out == (["1 document without tokens"] if drops else [])
    assert penstock.open(tmp_path / FORMATS[to]).kind == to
    wanted = [each for each in tokens_of(path) if each or not drops]
    assert tokens_of(tmp_path / FORMATS[to]) == wanted
    assert all(Path(each).exists() for each in done.paths)
    assert not [each for each in tmp_path.iterdir() if "partial" in each.name]
    penstock.import_tokens(tmp_path / FORMATS[to], tmp_path / "back")
    assert tokens_of(tmp_path / "back") == wanted


@pytest.mark.parametrize(
    ("to", "kind"),
    [*((to, "stream") for to in FORMATS), ("megatron", "ids"), ("mds", "ids"), ("datatrove", "documents")],
)
def test_windows_are_sequences(tmp_path: Path, to: str, kind: str) -> None:
    path = tmp_path / "d"
    if kind == "ids":
        with penstock.Writer(path, fields={"token": "u2"}, metadata="json", layout="ids") as writer:
            for length in filter(None, LENGTHS):
                writer.append(token=np.arange(length) % 1000, metadata={})
    else:
        corpus(path, metadata=None if kind == "stream" else "boundaries")
    drop = ["metadata"] if kind == "ids" else []
    done = penstock.export(path, tmp_path / FORMATS[to], to=to, window=1000, drop=drop)
    assert (done.sequences, done.left_out) == (70, [*drop, "311 records behind the last window"])
    view = penstock.open(path).windows(1000)
    assert tokens_of(tmp_path / FORMATS[to]) == [view[i]["token"].tolist() for i in range(70)]


def test_a_mask_goes_to_datatrove(tmp_path: Path) -> None:
    masks = {"a": ("?", lambda tokens: tokens % 2 == 1), "b": ("u1", lambda tokens: tokens % 2)}
    for name, mask in masks.items():
        path = corpus(tmp_path / name, metadata="boundaries", loss=mask)
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
    assert tokens_of(tmp_path / "m") == tokens_of(path)


def test_json_comes_back_as_it_was(tmp_path: Path) -> None:
    entries = [{"é": "\u2028 ü", "n": [1, None, 1e300]}, "text", None]
    with penstock.Writer(tmp_path / "d", fields={"token": "u2"}, metadata="json") as writer:
        for number, entry in enumerate(entries):
            writer.append(token=[number] * number, metadata=entry)
    penstock.export(tmp_path / "d", tmp_path / "m", to="mds")
    penstock.import_tokens(tmp_path / "m", tmp_path / "back", metadata="all")
    read = penstock.open(tmp_path / "back").documents()
    assert [one.spans[0].metadata["metadata"] for one in read] == entries


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
    with penstock.Writer(tmp_path / "both", {"token": "u2"}, "json", columns={"score": "f4"}) as writer:
        writer.append(token=[1], metadata={}, columns={"score": 1})
    with pytest.raises(penstock.InvalidArgumentError, match="--drop metadata --drop columns leave them out"):
        penstock.export(tmp_path / "both", tmp_path / "m", to="megatron")
    with pytest.raises(penstock.InvalidArgumentError, match=r"mds holds no col.*: --drop columns --drop features"):
        penstock.export(tmp_path / "d", tmp_path / "m", to="mds")
    done = penstock.export(tmp_path / "d", tmp_path / "m", to="mds", drop=["columns", "features"])
    assert done.left_out == ["columns", "features"]


def test_tokens_beyond_int32_are_refused_by_megatron(tmp_path: Path) -> None:
    for name, last in (("d", 2**31 - 1), ("e", 2**31)):
        with penstock.Writer(tmp_path / name, fields={"token": "u4"}, metadata="boundaries") as writer:
            writer.append_batch([1, 2], token=[1, 7, last])
    penstock.export(tmp_path / "d", tmp_path / "a", to="megatron")
    assert tokens_of(tmp_path / "a") == [[1], [7, 2**31 - 1]]
    with pytest.raises(penstock.InvalidArgumentError, match="document 1: token 2,147,483,648, and Megatron holds"):
        penstock.export(tmp_path / "e", tmp_path / "b", to="megatron")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.bin", "a.idx", "d", "e"]


@pytest.mark.parametrize(
    ("path", "out", "options", "message"),
    [
        ("stream", "a", {"to": "megatron"}, "a token stream without documents: say with window"),
        ("stream", "a", {"to": "megatron", "window": 100_000}, r"window=100,000: .* has 70,311 records"),
        ("stream", "a", {"to": "datatrove", "window": 10}, r"the name of datatrove's tokens ends in \.ds: .*a\.ds\?"),
        ("stream", "a", {"to": "olmo"}, "must be one of 'megatron', 'datatrove', 'mds'"),
        ("stream", "a", {"to": "megatron", "drop": ["meta"]}, "drop='meta': there is none"),
        ("opaque", "a", {"to": "mds"}, "opaque documents have no tokens"),
        *(
            ("stream", out, {"to": "megatron", "window": 10}, "names no file: megatron writes files, so say their ")
            for out in ("m/", "", ".", "..", "m/..")
        ),
        ("stream", "m/", {"to": "datatrove", "window": 10}, r"say their name, as m/corpus\.ds"),
        ("stream", "", {"to": "mds", "window": 10}, "no name of a new folder"),
    ],
)
def test_what_cannot_be_exported_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, out: str, options: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    corpus(tmp_path / "stream")
    with penstock.Writer(tmp_path / "opaque", metadata="json") as writer:
        writer.append({"a": 1})
    with pytest.raises(penstock.InvalidArgumentError, match=message):
        penstock.export(path, out, **options)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["opaque", "stream"]


@pytest.mark.parametrize("to", list(FORMATS))
def test_folders_are_made_and_what_is_there_stays(tmp_path: Path, to: str) -> None:
    path = corpus(tmp_path / "d", metadata="boundaries")
    options: dict[str, Any] = {"to": to, "drop": NO_EMPTY.get(to, [])}

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        penstock.export(path, tmp_path / FORMATS[to], progress=stop, **options)
    assert [each.name for each in tmp_path.iterdir()] == ["d"]
    out = tmp_path / "new" / to / FORMATS[to]
    assert all(Path(each).exists() for each in penstock.export(path, out, **options).paths)
    with pytest.raises(penstock.InvalidArgumentError, match="is there already"):
        penstock.export(path, out, **options)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(penstock.IoError, match="cannot be written: Not a directory"):
        penstock.export(path, tmp_path / "file" / FORMATS[to], **options)


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


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = corpus(tmp_path / "d", metadata="json")
    for arguments, code, words in (
        ("--to megatron --out m", 2, "--drop metadata leaves it out"),
        ("--to megatron --out m --drop metadata", 0, "left out: metadata"),
        ("--to mds --window 100 --drop metadata --json --out w", 0, '"11 records behind the last window"'),
        ("--to h5ad --out x.h5ad --drop metadata", 2, "--drop is for token files"),
    ):
        assert main(["export", "d", *arguments.split()]) == code
        said = capsys.readouterr()
        assert words in (said.err if code else said.out)
        assert "--json" not in arguments or json.loads(said.out)["left_out"][0] == "metadata"
    assert tokens_of(tmp_path / "m") == tokens_of(path)


@pytest.mark.parametrize("lengths", [[3000], [9000, 3000]], ids=["less than a block", "a rest behind blocks"])
def test_at_an_address_reads_are_few(tmp_path: Path, lengths: list[int]) -> None:
    with penstock.Writer(tmp_path / "root" / "d", fields={"token": "u2"}, metadata="boundaries") as writer:
        for length in lengths:
            writer.append(token=np.arange(length))
    with nginx(tmp_path / "root", tmp_path / "server") as address:
        penstock.export(f"{address}/d", tmp_path / "out", to="megatron")
        asked = (tmp_path / "server" / "access.log").read_text().splitlines()
    assert tokens_of(tmp_path / "out") == [list(range(length)) for length in lengths]
    assert len([line for line in asked if "/stream.bin " in line]) <= 3, asked
