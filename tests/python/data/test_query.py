"""Columns as tables: Arrow, SQL, and the commands annotate, query, info and show."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pyarrow
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from _refused import refused
from penstock._cli.main import main
from penstock._data import duplicates
from penstock._data.query import mentioned, query

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


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command prints, or says of an error."""

    def call(*arguments: object, code: int = 0) -> str:
        capsys.readouterr()
        ended = main([str(each) for each in arguments])
        said = capsys.readouterr()
        assert ended == code, said.err
        return said.out if code == 0 else said.err

    return call


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
        ("select document where 1 = 1 or 'a' = $$b.c * a$$ -- a *\n /* a /* * */ a */", []),
        ("select substring('x' from 1) from documents", []),
        *(
            (sql, ["a", "b.c", 'd"e'])
            for sql in (
                "from documents",
                "-- select\nFROM documents where document < 'select'",
                "with t as (select 1) from documents",
                "select x from (from documents)",
                "select document from documents union all by name from documents",
                "summarize documents",
                "table documents",
                "describe documents",
                "select documents from documents",
            )
        ),
    ],
)
def test_only_columns_of_the_question_are_read(sql: str, needed: list[str]) -> None:
    found = mentioned(sql, ["a", "b.c", 'd"e'])
    assert set(needed) <= set(found) and (needed or not found)


def test_all_columns_are_there_without_a_select_list(path: Path) -> None:
    penstock.annotate(path, {"half": np.arange(200, dtype="f2"), "halves": np.zeros((200, 3), "f2")})
    for file in path.rglob("stream.bin"):
        file.unlink()  # records are not read
    dataset = penstock.open(path)
    there = ["document", "records", *dataset.columns]
    for sql in ("from documents", "table documents"):
        assert query(dataset, sql).column_names == there
    for sql in ("summarize documents", "/* which? */ describe documents;"):
        assert query(dataset, sql)["column_name"].to_pylist() == there
    assert list(query(dataset, "select documents from documents limit 1").to_pylist()[0]["documents"]) == there
    found = query(dataset, "select count(*) as n, max(half) as most from documents where half > 150")
    assert found.to_pylist() == [{"n": 49, "most": 199.0}]
    assert dataset.columns.to_arrow(["halves"]).num_rows == 200


@pytest.mark.parametrize(
    "sql, rows",
    [
        ("select document where plate = 'from a'", []),
        ("select document where plate = 'p1' -- from where", [i for i in range(200) if PLATES[i] == "p1"]),
        ("select document, 'where' as w /* /* from */ where */ ; -- all", list(range(200))),
        ('select document, score as "from" limit 2', [0, 1]),
        ("-- a question\nselect document where document = 7 or plate = e'a\\' from'", [7]),
        ("select document where plate is not distinct from 'p2' limit 1", [2]),
        ("select document, rank() over (order by score desc) as r qualify r <= 2 order by r", [199, 198]),
        ("select document where score = (select max(score) from documents where flag)", [198]),
        ("select document where document = 3 union all select document where document = 5", [3, 5]),
        ("pivot (select 7 as document from documents limit 1) on document using count(*) group by document", [7]),
        ("with t as (select document where document = 1) select document from t", None),
    ],
)
def test_from_is_added_to_a_select_alone(path: Path, sql: str, rows: list[int] | None) -> None:
    if rows is None:
        refused("FROM clause is missing", query, penstock.open(path), sql)
    else:
        assert query(penstock.open(path), sql)["document"].to_pylist() == rows


def test_a_question_that_cannot_be_is_refused(run: Any, path: Path, tmp_path: Path) -> None:
    refused("its columns are document, records, plate", query, penstock.open(path), "select nothing from documents")
    with penstock.Writer(tmp_path / "bare", None, "raw") as writer:
        writer.append(metadata=b"")
    refused("no columns", query, penstock.open(tmp_path / "bare"), "select 1")
    with penstock.Writer(tmp_path / "hidden", {"t": "u1"}, "raw", columns={"document": "i4", "x": "i4"}) as writer:
        for x in 5, 6:
            writer.append(b"", t=[1], columns={"document": 9, "x": x})
    hidden = query(penstock.open(tmp_path / "hidden"), "from documents")
    assert hidden.to_pylist() == [{"document": 0, "records": 1, "x": 5}, {"document": 1, "records": 1, "x": 6}]
    assert "select it too" in run("query", path, "select plate", "--out", tmp_path / "x.npy", code=2)


@pytest.mark.parametrize(
    "sql",
    [
        "copy documents to '{file}'",
        "select 1; copy (select plate from documents) to '{file}' (format parquet)",
        "explain analyze copy documents to '{file}'",
        "attach '{file}' as other",
        "export database '{file}'",
        "create table more as from documents",
        "set threads = 1",
    ],
)
def test_a_statement_that_may_write_is_refused(run: Any, path: Path, tmp_path: Path, sql: str) -> None:
    file = tmp_path / "written"
    said = run("query", path, sql.format(file=file), code=2)
    assert "a question is wanted, which has an answer and writes nothing" in said and not file.exists()


def test_a_number_that_is_missing_is_null_as_in_conditions(path: Path) -> None:
    scores = SCORES.copy()
    scores[::3] = np.nan
    penstock.annotate(path, {"score": scores, "fine": scores.astype("f8"), "half": scores.astype("f2")})
    dataset = penstock.open(path)
    for name in ("score", "fine", "half"):
        for condition in ("{} is null", "{} is not null", "{} > 20", "not {} > 20", "{} < 20 or {} is null"):
            text = condition.format(name, name)
            found = query(dataset, f"select document where {text}")["document"].to_pylist()
            assert found == dataset.where(text).numbers.tolist()
        assert query(dataset, f"select count({name}) as n")["n"].to_pylist() == [133]
    refused("SQL has like: `penstock query", dataset.where, "plate like 'p%'")
    refused("it has no functions; what is missing, NaN too, is null", dataset.where, "isnan(score)")


def test_a_key_of_metadata_that_is_no_column_is_answered_by_the_command(run: Any, tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "d", {"token": "u2"}, "json") as writer:
        writer.append(token=[1], metadata={"lang": "en"})
    command = "penstock annotate"
    assert command in run("query", tmp_path / "d", "select lang", code=2)
    assert "--from-metadata" in run("query", tmp_path / "d", "select lang", code=2)
    assert "--from-metadata" in run("show", tmp_path / "d", "--where", "lang = 'en'", code=2)
    penstock.annotate(tmp_path / "d", {"score": [1.0]})
    assert "--from-metadata" in run("query", tmp_path / "d", "select lang", code=2)
    assert "--from-metadata" in run("show", tmp_path / "d", "--where", "lang = 'en'", code=2)
    with penstock.Writer(tmp_path / "bare", {"token": "u2"}, columns={"score": "f4"}) as writer:
        writer.append(token=[1], columns={"score": 1})
    assert "--from-metadata" not in run("query", tmp_path / "bare", "select lang", code=2)


def test_query_prints_and_saves(run: Any, path: Path, tmp_path: Path) -> None:
    shown = run("query", path, "select document, plate, score limit 3").splitlines()
    assert shown[0].split() == ["document", "plate", "score"] and shown[2].split() == ["1", "p1", "0.1428571"]
    assert "160 more rows" in run("query", path, "select document")
    said = json.loads(run("query", path, "select document where flag", "--json"))
    assert [row["document"] for row in said["rows"]] == list(range(0, 200, 2))
    assert "100 documents" in run("query", path, "select document where flag", "--out", tmp_path / "rows.npy")
    assert np.load(tmp_path / "rows.npy").tolist() == list(range(0, 200, 2))


def test_annotate_takes_arrays_and_tables(run: Any, path: Path, tmp_path: Path) -> None:
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
    (tmp_path / "index.csv").write_text(",a,b\n" + "".join(f"{n},1,2\n" for n in range(200)))  # as pandas writes it
    assert "--columns a,b" in run("annotate", path, "--table", tmp_path / "index.csv", code=2)
    assert list(columns) == ["score", "per.cent", "size", "language", "n", "vector", "l"]
    assert columns["size"].shape == (200, 2) and columns["vector"][5].tolist() == [15, 16, 17]
    assert columns["language"].categories == ["en", "de"] and columns["n"].dtype == np.int16
    assert penstock.verify(path).ok


def test_annotate_takes_the_table_that_columns_give(run: Any, path: Path, tmp_path: Path) -> None:
    before = penstock.open(path).columns
    pyarrow.feather.write_feather(before.to_arrow(), tmp_path / "t.feather")
    pyarrow.parquet.write_table(before.to_arrow(), tmp_path / "t.parquet", row_group_size=70)
    for name in ("t.feather", "t.parquet"):
        expected = {each: np.asarray(column) for each, column in penstock.open(path).columns.items()}
        run("annotate", path, "--remove", ",".join(expected))
        run("annotate", path, "--table", tmp_path / name)
        after = penstock.open(path).columns
        assert after["per.cent"].shape == (200, 2, 3) and list(after) == list(expected)
        for each, values in expected.items():
            np.testing.assert_array_equal(after[each], values)


def test_annotate_says_what_is_wrong(run: Any, path: Path, tmp_path: Path) -> None:
    pair = pyarrow.list_(pyarrow.int32(), 2)
    columns = {
        "list": pyarrow.array([[1, 2], None] * 100, pair),
        "item": pyarrow.array([[1, 2], [3, None]] * 100, pair),
        "inner": pyarrow.array([[[1, 2]], [None]] * 100, pyarrow.list_(pair, 1)),
        "number": pyarrow.array([1, None] * 100),
        "ragged": pyarrow.array([[1, 2], [3]] * 100),
        "float": pyarrow.array([[1.0, None]] * 200, pyarrow.list_(pyarrow.float32(), 2)),
    }
    table = ("--table", tmp_path / "t.feather", "--columns")
    pyarrow.feather.write_feather(pyarrow.table(columns), table[1])
    (tmp_path / "bad.npy").write_bytes(b"no array")
    for arguments, said, code in (
        *((((*table, name), f"column {name}: 100 values missing", 1)) for name in ("list", "item", "inner", "number")),
        ((*table, "ragged"), "categories are strings", 2),
        ((*table, "b"), "it has list, item", 2),
        ((), "nothing to be changed", 2),
        (("x",), "not NAME=FILE.npy", 2),
        ((f"x={tmp_path / 'none.npy'}",), "there is no such file", 2),
        ((f"x={tmp_path / 'bad.npy'}",), "not an array that numpy.save wrote", 1),
        (("--columns", "a"), "--columns needs --table", 2),
        (("--remove", "nothing"), "no column nothing", 2),
    ):
        assert said in run("annotate", path, *arguments, code=code)
    run("annotate", path, *table, "float")
    np.testing.assert_array_equal(penstock.open(path).columns["float"][5], np.array([1, np.nan], "f4"))


def test_info_and_show_know_columns(run: Any, path: Path) -> None:
    said = json.loads(run("info", path, "--json"))
    assert said["columns"] == {"plate": "category of 3", "score": "float32", "per.cent": "int16 [2, 3]", "flag": "bool"}
    assert "plate category of 3, score float32" in run("info", path)
    document = json.loads(run("show", path, "3", "--documents", "--json"))["rows"][0]["spans"][0]
    assert document["columns"] == {"plate": "p0", "score": float(SCORES[3]), "per.cent": [[3] * 3] * 2, "flag": False}
    window = json.loads(run("show", path, "0", "--window", "4", "--json"))["rows"][0]["spans"]
    assert [span["columns"]["plate"] for span in window] == [None, "p1"]
    assert 'plate="p1"' in run("show", path, "0", "--window", "4")


def test_records_of_documents_are_in_the_table(run: Any, path: Path, tmp_path: Path) -> None:
    repeated(tmp_path)
    dataset = penstock.open(tmp_path / "r")
    lengths = [len(row["token"]) for row in dataset.documents()]
    assert query(dataset, "select records")["records"].to_pylist() == lengths
    found = query(dataset, "select document where records > 10 and good")["document"].to_pylist()
    assert found == [n for n, length in enumerate(lengths) if length > 10 and n % 3]
    with penstock.Writer(tmp_path / "bare", {"token": "u2"}) as writer:  # no columns
        writer.append(token=[1, 2])
    assert query(penstock.open(tmp_path / "bare"), "from documents").to_pylist() == [{"document": 0, "records": 2}]
    assert query(penstock.open(tmp_path / "bare"), "select count(*) as n").to_pylist() == [{"n": 1}]
    penstock.annotate(tmp_path / "bare", {"Records": [7.5]})  # a column of that name is meant
    assert query(penstock.open(tmp_path / "bare"), "select records").to_pylist() == [{"Records": 7.5}]
    penstock.convert(path, tmp_path / "ids", "ids")  # where documents have no lengths
    assert query(penstock.open(tmp_path / "ids"), "select count(*) as n where flag").to_pylist() == [{"n": 100}]


def repeated(tmp_path: Path) -> list[int]:
    """Writes documents of which some repeat another one; gives the numbers of those."""
    rows = [np.random.default_rng(n % 11).integers(0, 50, n % 11 % 4 * 10) for n in range(60)]
    with penstock.Writer(tmp_path / "r", {"token": "u2"}, columns={"good": "?"}, shard_size=900) as writer:
        for n, row in enumerate(rows):
            writer.append(token=row, columns={"good": n % 3 > 0})
    return [n for n, row in enumerate(rows) if len(row) and n >= 11]


@pytest.mark.parametrize("at_once", [1 << 22, 7])
def test_duplicates_are_found_and_left_out(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(duplicates, "_COMPARED", at_once)
    again = repeated(tmp_path)
    out = tmp_path / "again.npy"
    said = run("query", tmp_path / "r", "--duplicates", "--out", out)
    assert f"{len(again)} documents that repeat another" in said and np.load(out).tolist() == again
    assert json.loads(run("query", tmp_path / "r", "--duplicates", "--json"))["documents"] == again
    run("convert", tmp_path / "r", "--without", out, "--out", tmp_path / "unique")
    assert "0 documents that repeat" in run("query", tmp_path / "unique", "--duplicates")
    assert penstock.duplicates(penstock.open(tmp_path / "r"), where="good").tolist() == [
        n for n in again if n % 3 and any(m % 3 for m in range(n % 11, n, 11))
    ]


def test_documents_that_a_hash_takes_together_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again = repeated(tmp_path)
    monkeypatch.setattr(duplicates, "sums", lambda tokens, offsets, begin: np.zeros(len(offsets) - 1, np.uint64))
    assert penstock.duplicates(penstock.open(tmp_path / "r")).tolist() == again


def test_duplicates_of_no_ids_are_refused(run: Any, tmp_path: Path) -> None:
    repeated(tmp_path)
    for arguments, words in [
        ((), "--duplicates"),
        (("select 1", "--duplicates"), "--duplicates"),
        (("select 1", "--where", "good"), "--duplicates"),
        (("--duplicates", "--out", "again.csv"), "must end in .npy"),
        (("select document", "--out", "k.txt"), "must end in .npy or .csv or .parquet"),
    ]:
        assert words in run("query", tmp_path / "r", *arguments, code=2)
    with penstock.Writer(tmp_path / "f", {"x": "f4"}, "json") as writer:
        writer.append(x=[1], metadata={})
    assert "no field of ids" in run("query", tmp_path / "f", "--duplicates", code=2)


def test_the_name_of_a_file_says_how_an_answer_is_written(run: Any, path: Path, tmp_path: Path) -> None:
    sql = "select plate, count(*) as n group by plate order by n"
    assert "4 rows" in run("query", path, sql, "--out", tmp_path / "a.csv")
    assert "4 rows" in run("query", path, sql, "--out", tmp_path / "a.parquet")
    rows = pyarrow.parquet.read_table(tmp_path / "a.parquet").to_pydict()
    assert pyarrow.csv.read_csv(tmp_path / "a.csv")["n"].to_pylist() == rows["n"] and sum(rows["n"]) == 200
