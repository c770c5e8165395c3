"""Columns as tables: Arrow, SQL, and the commands annotate, query, info and show."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest
from penstock._query import mentioned, query

PLATES = [None if i % 5 == 0 else f"p{i % 3}" for i in range(200)]
SCORES = np.arange(200, dtype="f4") / 7


@pytest.fixture
def path(tmp_path: Path) -> Path:
    columns: dict[str, Any] = {"plate": "category", "score": "f4", "per.cent": ("i2", (2, 3)), "flag": "?"}
    with penstock.Writer(tmp_path / "d", {"token": "u2"}, "raw", columns=columns, shard_size=1_500) as writer:
        for i in range(200):
            values = {"plate": PLATES[i], "score": SCORES[i], "per.cent": np.full((2, 3), i), "flag": i % 2 == 0}
            writer.append(b"m", token=[i, i], columns=values)
    return tmp_path / "d"


def run(*arguments: object, code: int = 0) -> str:
    command = [sys.executable, "-m", "penstock", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def test_an_arrow_table_has_all_values(path: Path) -> None:
    columns = penstock.open(path).columns
    table = columns.to_arrow(document=True)
    assert table["plate"].to_pylist() == PLATES and table["document"].to_pylist() == list(range(200))
    np.testing.assert_array_equal(table["score"].to_numpy(), SCORES)
    assert table["per.cent"].to_pylist()[7] == [[7, 7, 7], [7, 7, 7]] and table["flag"].to_pylist()[:2] == [True, False]
    assert columns.to_arrow(["score"]).column_names == ["score"]


def test_an_answer_is_what_numpy_says_and_select_takes_it(path: Path) -> None:
    dataset = penstock.open(path)
    answer = query(dataset, "select document where plate = 'p1' and score > 10 order by document desc")
    expected = [i for i in range(199, -1, -1) if PLATES[i] == "p1" and SCORES[i] > 10]
    assert answer["document"].to_pylist() == expected
    view = dataset.documents(columns=["score"]).select(np.asarray(answer["document"]))
    np.testing.assert_array_equal(view.read([0, 1]).columns["score"], SCORES[expected[:2]])
    counts = query(dataset, 'select plate, count(*) as n, max("per.cent"[1][1]) as m from documents group by plate')
    said = {row["plate"]: (row["n"], row["m"]) for row in counts.to_pylist()}
    assert said["p2"] == (PLATES.count("p2"), max(i for i in range(200) if PLATES[i] == "p2")) and said[None][0] == 40


@pytest.mark.parametrize(
    "sql, needed",
    [
        ("select count(*) from documents", []),
        ("select * from documents", ["a", "b.c", 'd"e']),
        ("select A from documents", ["a"]),
        ('select "b.c" where 1', ["b.c"]),
        ('select "d""e" as x where 1', ['d"e']),
    ],
)
def test_only_columns_of_the_question_are_read(sql: str, needed: list[str]) -> None:
    found = mentioned(sql, ["a", "b.c", 'd"e'])
    assert set(needed) <= set(found) and (needed or not found)


def test_counts_and_records_are_not_read(path: Path) -> None:
    for file in path.rglob("stream.bin"):
        file.unlink()
    assert query(penstock.open(path), "select sum(score) as s").to_pylist()[0]["s"] == pytest.approx(SCORES.sum())


def test_a_question_that_cannot_be_is_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(penstock.InvalidArgumentError, match="its columns are document, plate"):
        query(penstock.open(path), "select nothing from documents")
    with penstock.Writer(tmp_path / "bare", {"t": "u1"}, "raw") as writer:
        writer.append(b"", t=[1])
    with pytest.raises(penstock.InvalidArgumentError, match="no columns"):
        query(penstock.open(tmp_path / "bare"), "select 1")
    assert "select it too" in run("query", path, "select plate", "--out", tmp_path / "x.npy", code=2)


def test_query_prints_and_saves(path: Path, tmp_path: Path) -> None:
    shown = run("query", path, "select document, plate, score limit 3").splitlines()
    assert shown[0].split() == ["document", "plate", "score"] and shown[2].split() == ["1", "p1", "0.1428571"]
    assert "160 more rows" in run("query", path, "select document")
    said = json.loads(run("query", path, "select document where flag", "--json"))
    assert [row["document"] for row in said["rows"]] == list(range(0, 200, 2))
    assert "100 documents" in run("query", path, "select document where flag", "--out", tmp_path / "rows.npy")
    assert np.load(tmp_path / "rows.npy").tolist() == list(range(0, 200, 2))


def test_annotate_takes_arrays_and_tables(path: Path, tmp_path: Path) -> None:
    fingerprint = penstock.open(path).fingerprint
    np.save(tmp_path / "size.npy", np.arange(400).reshape(200, 2))
    table = pyarrow.table(
        {
            "language": pyarrow.array(["en", "de"] * 100).dictionary_encode(),
            "n": pyarrow.array(range(200), pyarrow.int16()),
            "vector": pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(np.arange(600.0)), 3),
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    pyarrow.csv.write_csv(table.select(["n", "language"]).rename_columns(["m", "l"]), tmp_path / "t.csv")
    size = f"size={tmp_path / 'size.npy'}"
    run("annotate", path, size, "--table", tmp_path / "t.parquet", "--remove", "flag,plate")
    said = json.loads(run("annotate", path, "--table", tmp_path / "t.csv", "--columns", "l", "--json"))
    columns = penstock.open(path).columns
    assert said == {"path": str(path), "columns": list(columns), "fingerprint": fingerprint}
    assert list(columns) == ["score", "per.cent", "size", "language", "n", "vector", "l"]
    assert columns["size"].shape == (200, 2) and columns["vector"][5].tolist() == [15, 16, 17]
    assert columns["language"].categories == ["en", "de"] and columns["n"].dtype == np.int16
    assert penstock.verify(path).ok


def test_annotate_says_what_is_wrong(path: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.npy").write_bytes(b"no array")
    pyarrow.parquet.write_table(pyarrow.table({"a": pyarrow.array([1, None] * 100)}), tmp_path / "t.parquet")
    for arguments, said, code in (
        ((), "nothing to be changed", 2),
        (("x",), "not NAME=FILE.npy", 2),
        ((f"x={tmp_path / 'none.npy'}",), "there is no such file", 2),
        ((f"x={tmp_path / 'bad.npy'}",), "not an array that numpy.save wrote", 1),
        (("--columns", "a"), "--columns is of a --table", 2),
        (("--table", tmp_path / "t.parquet", "--columns", "b"), "it has a", 2),
        (("--table", tmp_path / "t.parquet"), "100 values missing", 1),
        (("--remove", "nothing"), "no column nothing", 2),
    ):
        assert said in run("annotate", path, *arguments, code=code)


def test_info_and_show_know_columns(path: Path) -> None:
    said = json.loads(run("info", path, "--json"))
    assert said["columns"] == {"plate": "category of 3", "score": "float32", "per.cent": "int16 [2, 3]", "flag": "bool"}
    assert "plate category of 3, score float32" in run("info", path)
    document = json.loads(run("show", path, "3", "--documents", "--json"))["rows"][0]["spans"][0]
    assert document["columns"] == {"plate": "p0", "score": float(SCORES[3]), "per.cent": [[3] * 3] * 2, "flag": False}
    window = json.loads(run("show", path, "0", "--window", "4", "--json"))["rows"][0]["spans"]
    assert [span["columns"]["plate"] for span in window] == [None, "p1"]
    assert 'plate="p1"' in run("show", path, "0", "--window", "4")
