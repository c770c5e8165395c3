"""`penstock.import_tokens` of what does not open in place: Arrow, Parquet, tars, compressed MDS."""

from __future__ import annotations

import io
import json
import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _token_files import DOCUMENTS, GOLDEN, files_of, tokens_of
from penstock._from.tokens.arrow import ArrowReader
from penstock._from.tokens.formats import inputs_of

pyarrow: Any = pytest.importorskip("pyarrow")
parquet: Any = pytest.importorskip("pyarrow.parquet")
SMALL = 512


def metadata_of(path: Path) -> list[Any]:
    return [one.spans[0].metadata for one in penstock.open(path).documents()]


def table() -> Any:
    return pyarrow.table(
        {
            "url": [f"page/{number}" for number in range(len(DOCUMENTS))],
            "input_ids": pyarrow.array(DOCUMENTS, pyarrow.list_(pyarrow.int32())),
            "day": pyarrow.array(range(len(DOCUMENTS)), pyarrow.date32()),
            "score": pyarrow.array([0.5 * number for number in range(len(DOCUMENTS))]),
        }
    )


WANTED = [{"url": f"page/{n}", "day": f"1970-01-{n + 1:02}", "score": 0.5 * n} for n in range(len(DOCUMENTS))]


def put_parquet(path: Path) -> Path:
    parquet.write_table(table(), path, row_group_size=2)
    return path


def put_arrow(path: Path, stream: bool = True) -> Path:
    writer = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
    with writer(str(path), table().schema) as file:
        file.write_table(table(), max_chunksize=3)
    return path


def npy(values: Any, dtype: str = "<u2") -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(values, dtype))
    return file.getvalue()


def put_tar(path: Path, *members: tuple[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def samples(extension: str = "npy", make: Callable[[Any], bytes] = npy) -> list[tuple[str, bytes]]:
    return [
        each
        for number, tokens in enumerate(DOCUMENTS)
        for each in (
            (f"a/{number:06}.{extension}", make(tokens)),
            (f"a/{number:06}.json", json.dumps({"url": f"page/{number}", "n": number}).encode()),
        )
    ]


CASES: dict[str, Callable[[Path], Path]] = {
    "parquet": lambda folder: put_parquet(folder / "a.parquet"),
    "stream": lambda folder: put_arrow(folder / "a.arrow"),
    "file": lambda folder: put_arrow(folder / "b.arrow", stream=False),
    "tar": lambda folder: put_tar(folder / "a.tar", *samples()),
    "tar.gz": lambda folder: put_tar(folder / "a.tar.gz", *samples(), mode="w:gz"),
}


@pytest.mark.parametrize("what", list(CASES))
def test_documents_and_workers(tmp_path: Path, what: str) -> None:
    path = CASES[what](tmp_path)
    inputs = [path, path]
    if what == "parquet":  # a table without rows is nothing
        parquet.write_table(table().slice(0, 0), tmp_path / "empty.parquet")
        inputs.insert(1, tmp_path / "empty.parquet")
    done = penstock.import_tokens(inputs, tmp_path / "d", shard_size=SMALL)
    assert done.documents == 2 * len(DOCUMENTS) and done.shards > 1 and done.codec == "boundaries"
    assert tokens_of(tmp_path / "d") == DOCUMENTS + DOCUMENTS
    assert penstock.verify(tmp_path / "d")
    penstock.import_tokens(inputs, tmp_path / "e", shard_size=SMALL, workers=2)
    assert files_of(tmp_path / "d") == files_of(tmp_path / "e")


@pytest.mark.parametrize("what", ["parquet", "stream", "file"])
def test_columns_become_metadata(tmp_path: Path, what: str) -> None:
    path = CASES[what](tmp_path)
    penstock.import_tokens(path, tmp_path / "d", metadata=["url", "day", "score"], shard_size=SMALL)
    assert metadata_of(tmp_path / "d") == WANTED
    penstock.import_tokens(path, tmp_path / "e", metadata="all")
    assert metadata_of(tmp_path / "e") == WANTED
    with pytest.raises(penstock.InvalidArgumentError, match="no column 'date' beside 'input_ids' for metadata"):
        penstock.import_tokens(path, tmp_path / "f", metadata=["date"])


@pytest.mark.parametrize(("name", "kind"), [("list_", "uint16"), ("large_list", "int64"), ("list_", "uint8")])
def test_lists_of_integers(tmp_path: Path, name: str, kind: str) -> None:
    lists = [[token % 200 for token in each] for each in DOCUMENTS] + [[]]
    made = pyarrow.table({"ids": pyarrow.array(lists, getattr(pyarrow, name)(getattr(pyarrow, kind)()))})
    parquet.write_table(made, tmp_path / "a.parquet")
    with pytest.raises(penstock.InvalidArgumentError, match="say with column which has the tokens, of ids"):
        penstock.import_tokens(tmp_path / "a.parquet", tmp_path / "d")
    done = penstock.import_tokens(tmp_path / "a.parquet", tmp_path / "d", column="ids")
    assert done.fields == {"token": {"uint16": "u2", "int64": "u4", "uint8": "u1"}[kind]}
    assert tokens_of(tmp_path / "d") == lists


def test_a_folder_of_save_to_disk(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    names = []
    for number in range(2):
        put_arrow(folder / f"data-{number:05}-of-00002.arrow")
        names.append({"filename": f"data-{number:05}-of-00002.arrow"})
    (folder / "state.json").write_text(json.dumps({"_data_files": names}))
    penstock.import_tokens(folder, tmp_path / "d", metadata=["url"], shard_size=SMALL, workers=2)
    assert tokens_of(tmp_path / "d") == DOCUMENTS + DOCUMENTS
    assert metadata_of(tmp_path / "d")[1] == {"url": "page/1"}
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "../a.arrow"}]}))
    with pytest.raises(penstock.CorruptionError, match="names no file of its folder"):
        penstock.import_tokens(folder, tmp_path / "e")
    (tmp_path / "dict").mkdir()
    (tmp_path / "dict" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(penstock.InvalidArgumentError, match=r"a folder of splits \(train, test\): import one of them"):
        penstock.import_tokens(tmp_path / "dict", tmp_path / "e")


@pytest.mark.parametrize(
    ("name", "options", "second"),
    [
        ("huggingface/plain", {"metadata": "all"}, {"url": "page/2", "n": 2}),
        ("webdataset/npy.tar", {"metadata": "all"}, {"__key__": "000002", "url": "page/2", "cls": "2"}),
        ("webdataset/json.tar", {}, None),
        ("webdataset/bytes.tar", {"column": "bytes", "dtype": "u2"}, None),
    ],
)
def test_golden_files(tmp_path: Path, name: str, options: dict[str, Any], second: Any) -> None:
    penstock.import_tokens(GOLDEN / name, tmp_path / "d", **options)
    assert tokens_of(tmp_path / "d") == DOCUMENTS and metadata_of(tmp_path / "d")[2] == second


@pytest.mark.parametrize("kind", ["zstd", "br", "gz", "bz2", "snappy"])
def test_golden_files_of_compressed_mds(tmp_path: Path, kind: str) -> None:
    path = GOLDEN / "packed" / kind
    with pytest.raises(penstock.InvalidArgumentError, match="penstock import"):
        penstock.open(path)
    workers = 2 if kind == "zstd" else 1
    done = penstock.import_tokens(path, tmp_path / "d", metadata="all", workers=workers, shard_size=SMALL)
    assert tokens_of(tmp_path / "d") == DOCUMENTS and done.shards > 1
    entries = [{"a": n, "kind": {"of": [n]}, "text": "x" * n, "weight": n / 4} for n in range(len(DOCUMENTS))]
    assert metadata_of(tmp_path / "d") == entries
    if kind == "gz":
        penstock.import_tokens(GOLDEN / "mds" / "beside", tmp_path / "plain", metadata=["text", "a"])
        assert metadata_of(tmp_path / "plain") == [{"text": each["text"], "a": each["a"]} for each in entries]


def test_damaged_mds(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "packed" / "gz", folder := tmp_path / "a")
    file = sorted(folder.glob("*.gz"))[-1]
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    with pytest.raises(penstock.CorruptionError, match=r"shard\.\d+\.mds\.gz"):
        penstock.import_tokens(folder, tmp_path / "d")
    file.write_bytes(whole)
    index = json.loads((folder / "index.json").read_text())
    shard = index["shards"][0]
    for change, message in (
        ({"raw_data": {**shard["raw_data"], "bytes": 5}}, "unpacks to more bytes, index.json says 5"),
        ({"raw_data": {**shard["raw_data"], "bytes": 1 << 33}}, "says no bytes of raw_data below 4 GiB"),
        *(
            ({"zip_data": {**shard["zip_data"], "basename": name}}, "names no file of its folder")
            for name in ("../a", "/etc/passwd", "..", "", "a/b", "a\0b", "x" * 300, "\ud800", None)
        ),
        ({"zip_data": {**shard["zip_data"], "basename": "a"}}, r"mds\.a|a: no such file, which index.json names"),
        ({"compression": None}, r"shard\.00000\.mds: no such file, which index.json names"),
        ({"zip_data": {**shard["zip_data"], "bytes": 5}}, "bytes, index.json says 5"),
        ({"zip_data": {**shard["zip_data"], "hashes": {"sha1": "00"}}}, "its sha1 is [0-9a-f]{40}, index.json says 00"),
        ({"compression": "lzma"}, "compression 'lzma': zstd, br, snappy, gz and bz2 are read"),
        ({"column_encodings": ["pkl"] * len(shard["column_encodings"])}, "pickle|pkl"),
    ):
        changed = {**index, "shards": [{**shard, **change}, *index["shards"][1:]]}
        (folder / "index.json").write_text(json.dumps(changed))
        with pytest.raises(penstock.Error, match=message):
            penstock.import_tokens(folder, tmp_path / "d")
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    ("name", "message"), [("a.tar", "no whole tar"), ("a.arrow", "no file of Arrow"), ("a.parquet", "no Parquet file")]
)
def test_files_that_are_of_no_kind_are_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / name).write_bytes(b"neither of them" * 100)
    with pytest.raises(penstock.CorruptionError, match=message):
        penstock.import_tokens(tmp_path / name, tmp_path / "d")


def test_a_stream_of_arrow_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    path = put_arrow(tmp_path / "a.arrow")
    data = path.read_bytes()
    for damage in (data[:-8], data + data, data + b"behind it", data[:-1500]):
        path.write_bytes(damage)
        message = "" if damage == data[:-1500] else ": it does not end where its stream of batches ends"
        with pytest.raises(penstock.CorruptionError, match=rf"a\.arrow{message}"):
            penstock.import_tokens(path, tmp_path / "d")


@pytest.mark.parametrize("stream", [True, False])
def test_an_arrow_file_that_lies_is_refused(tmp_path: Path, stream: bool) -> None:
    """A list that ends far behind the values."""
    batch = pyarrow.record_batch([pyarrow.array([list(range(1234))], pyarrow.list_(pyarrow.int32()))], ["input_ids"])
    make_writer = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
    with make_writer(str(tmp_path / "a.arrow"), batch.schema) as file:
        file.write_batch(batch)
    data, offsets = (tmp_path / "a.arrow").read_bytes(), np.array([0, 1234], "<i4").tobytes()
    at = data.rindex(offsets)  # behind those that the header may have
    (tmp_path / "a.arrow").write_bytes(data[:at] + np.array([0, 1 << 30], "<i4").tobytes() + data[at + 8 :])
    with pytest.raises(penstock.CorruptionError, match=r"a\.arrow"):
        penstock.import_tokens(tmp_path / "a.arrow", tmp_path / "d")


IDS = pyarrow.list_(pyarrow.int32())


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"input_ids": pyarrow.array([[1], None], IDS)}, {}, "a row of 'input_ids' is null"),
        ({"input_ids": pyarrow.array([[1, None]], IDS)}, {}, "a token of 'input_ids' is null"),
        ({"input_ids": pyarrow.array([[1], [-5]], IDS)}, {}, r"a\.parquet: document 1: token -5 does not fit u4"),
        ({"input_ids": ["1 2"]}, {}, "'input_ids' holds string: lists of integers are wanted"),
        ({"input_ids": pyarrow.array([[70_000]], IDS)}, {"dtype": "u2"}, "does not fit u2"),
        ({"input_ids": pyarrow.array([], IDS)}, {}, r"a\.parquet: there are no tokens"),
    ],
)
def test_rows_that_are_refused(tmp_path: Path, columns: Any, options: dict[str, Any], message: str) -> None:
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    inputs = [tmp_path / "a.parquet"]
    if options:
        inputs.insert(0, put_parquet(tmp_path / "b.parquet"))
    with pytest.raises(penstock.InvalidArgumentError, match=message):
        penstock.import_tokens(inputs, tmp_path / "d", **options)


@pytest.mark.parametrize("put", ["parquet", "arrow"])
def test_columns_that_cannot_be_metadata_are_named(tmp_path: Path, put: str) -> None:
    tokens = pyarrow.array([[1], [2]], pyarrow.list_(pyarrow.int32()))
    text = pyarrow.Array.from_buffers(pyarrow.string(), 2, pyarrow.array([b"\xff", b"a"]).buffers())
    for values, message in (
        (pyarrow.array([10**15, 2], pyarrow.timestamp("s")), "'t' has a value that Python has not: .*: leave it out"),
        (pyarrow.array([1, 2], pyarrow.timestamp("us", "Mars/Olympus")), "'t' has a value that Python has not"),
        (pyarrow.array([b"\xff", b"a"]), "is no JSON"),
        (text, r"a\.(parquet|arrow): .*(utf-8|UTF8)"),
    ):
        found = pyarrow.table({"tokens": tokens, "t": values})
        path = tmp_path / f"a.{put}"
        if put == "parquet":
            parquet.write_table(found, path)
        else:
            with pyarrow.ipc.new_stream(str(path), found.schema) as file:
                file.write_table(found)
        with pytest.raises((penstock.InvalidArgumentError, penstock.CorruptionError), match=message):
            penstock.import_tokens(path, tmp_path / "d", metadata="all")


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    tokens = pyarrow.array([[1], [2]], pyarrow.list_(pyarrow.int32()))
    for names in (["tokens", "tokens", "a"], ["tokens", "a", "a"]):
        parquet.write_table(pyarrow.Table.from_arrays([tokens] * 3, names=names), tmp_path / "a.parquet")
        with pytest.raises(penstock.InvalidArgumentError, match=r"several columns are called '(tokens|a)'"):
            penstock.import_tokens(tmp_path / "a.parquet", tmp_path / "d", metadata="all")


def test_a_batch_is_looked_at_by_its_own_task_alone(tmp_path: Path) -> None:
    """Else the work grows with the square of the data."""
    (given,) = inputs_of([put_arrow(tmp_path / "a.arrow")], None, None, (), None, None, None)
    reader, looked = ArrowReader(given), []
    reader._check = lambda batch, path, full: looked.append(batch.num_rows) if full else None  # type: ignore
    pieces = list(reader.pieces(1))
    assert len(pieces) == 3 and not looked
    assert [sum(map(len, part.lengths.reshape(-1, 1))) for part in reader.parts(pieces[2])] == looked == [2]


def test_the_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put_parquet(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match=r"reading it needs the package pyarrow: pip install pyarrow$"):
        penstock.import_tokens(path, tmp_path / "d")
