"""Columns that are keys of metadata, and of lines of JSON: `annotate --from-metadata`, `--table FILE.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock._cli.main import main

ENTRIES: list[dict[str, Any]] = [
    {
        "url": f"numbers/{number}",
        "lang": [None, "en", "de"][number % 3],
        "score": number / 4 if number % 5 else None,
        "stars": number % 7,
        "ok": number % 2 == 0,
        "mixed": number if number % 2 else number / 2,
        "meta": {"year": 2000 + number, "deep": {"x": number}},
        **({"seldom": number} if number % 10 == 0 else {}),
    }
    for number in range(300)
]


@pytest.fixture(params=["json", "msgpack"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with penstock.Writer(tmp_path / "d", {"token": "u2"}, request.param, shard_size=500) as writer:
        for number, entry in enumerate(ENTRIES):
            writer.append(token=[number] * (number % 4), metadata=entry)
    return tmp_path / "d"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def call(*arguments: object, code: int = 0) -> str:
        capsys.readouterr()
        ended = main([str(each) for each in arguments])
        said = capsys.readouterr()
        assert ended == code, said.err
        return said.out if code == 0 else said.err

    return call


def texts(column: Any) -> list[str | None]:
    return [None if code < 0 else column.categories[code] for code in column[:].tolist()]


def test_keys_become_columns_whose_types_follow_from_all_values(path: Path) -> None:
    before = penstock.open(path)
    assert len(before.shards) > 2
    keys = ["url", "lang", "score", "stars", "ok", "mixed", "seldom", "meta.year", "meta.deep.x:u2", "stars:category"]
    assert penstock.annotate(path, from_metadata=keys[:-1]) == before.fingerprint
    columns = penstock.open(path).columns
    for name in ("url", "lang"):
        assert texts(columns[name]) == [entry[name] for entry in ENTRIES]
    for name, dtype in (("score", "f8"), ("stars", "i8"), ("ok", "?"), ("mixed", "f8"), ("seldom", "f8")):
        values = [np.nan if entry.get(name) is None else entry[name] for entry in ENTRIES]
        assert columns[name].dtype == dtype
        np.testing.assert_array_equal(columns[name][:], np.array(values, dtype))
    assert columns["meta.year"][7] == 2007 and columns["meta.deep.x"].dtype == "u2"
    penstock.annotate(path, {"seldom": None}, from_metadata=[keys[-1]])
    columns = penstock.open(path).columns
    assert "seldom" not in columns and texts(columns["stars"]) == [str(entry["stars"]) for entry in ENTRIES]
    assert penstock.verify(path).ok


def test_the_command_says_types_and_what_is_missing(run: Any, path: Path) -> None:
    said = run("annotate", path, "--from-metadata", "lang, score:f4,ok")
    assert said.splitlines() == [
        f"{path}: 3 columns: lang, score, ok",
        "  lang: category of 2 values, missing in 100 documents",
        "  score: float32, missing in 60 documents",
        "  ok: bool",
    ]
    found = json.loads(run("query", path, "select count(*) as n where lang = 'en' and score > 70", "--json"))
    assert found["rows"] == [{"n": sum(e["lang"] == "en" and (e["score"] or 0) > 70 for e in ENTRIES)}]
    for keys, words in {
        "lagn": "no document's metadata has a value of 'lagn'; the first one's are \"url\", \"lang\"",
        "meta": "metadata key meta: document 0 has {'year': 2000",
        "lang,lang": "lang: this key is named twice",
        "url:f4": "'numbers/0' of document 0 is no float32",
        "score:i4": "60 documents without a value, the first is 0; int32 has none for it: score:f8 has NaN",
        "stars:u1,score:words": "column score",
        "lang,": "an empty name",
    }.items():
        assert words in run("annotate", path, "--from-metadata", keys, code=2)


def test_values_of_several_kinds_want_a_type(tmp_path: Path, run: Any) -> None:
    with penstock.Writer(tmp_path / "d", {"token": "u2"}, "json") as writer:
        for entry in ({"a": "x", "b": 1 << 53, "c": True}, {"a": 1, "b": (1 << 53) + 1, "c": 1}, {"a": None}):
            writer.append(token=[1], metadata=entry)
    assert "text in document 0 and an integer in document 1: say a type, a:category" in run(
        "annotate", tmp_path / "d", "--from-metadata", "a", code=2
    )
    assert "9007199254740993 of document 1 is not exact as a float" in run(
        "annotate", tmp_path / "d", "--from-metadata", "b", code=2
    )
    run("annotate", tmp_path / "d", "--from-metadata", "a:category,b:f8,c:f4")
    columns = penstock.open(tmp_path / "d").columns
    assert texts(columns["a"]) == ["x", "1", None] and columns["c"][:2].tolist() == [1, 1] and np.isnan(columns["b"][2])


def test_metadata_without_keys_is_refused(tmp_path: Path, run: Any) -> None:
    for codec, entry, words in (
        ("boundaries", None, "`penstock write --metadata url` keeps these columns of its inputs"),
        ("raw", b"x", "raw bytes, which have no keys"),
        ("json", [1], "the metadata of document 0 is list, which has no keys"),
    ):
        with penstock.Writer(tmp_path / codec, {"token": "u2"}, codec) as writer:
            writer.append(token=[1], **({} if entry is None else {"metadata": entry}))
        assert words in run("annotate", tmp_path / codec, "--from-metadata", "url", code=2)
    with penstock.Writer(tmp_path / "c", {"token": "u2"}, "json") as writer:
        writer.append(token=[1], metadata={"url": "x"})
    penstock.convert(tmp_path / "c", tmp_path / "ids", "ids")
    assert "`penstock convert --layout compact` first" in run(
        "annotate", tmp_path / "ids", "--from-metadata", "url", code=2
    )


def test_opaque_documents_have_keys_too(tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "d", None, "json") as writer:
        for number in range(5):
            writer.append(metadata={"n": number})
    penstock.annotate(tmp_path / "d", from_metadata=["n"])
    assert penstock.open(tmp_path / "d").columns["n"][:].tolist() == list(range(5))


def test_a_table_of_lines_of_json(run: Any, path: Path, tmp_path: Path) -> None:
    rows = [{"score": number / 8, "label": "ab"[number % 2], **({"x": 1} if number else {})} for number in range(300)]
    table = tmp_path / "labels.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" + " \n" * (number % 7 == 0) for number, row in enumerate(rows)))
    assert f"{path}: 3 columns: score, label, x" in run("annotate", path, "--table", table)
    columns = penstock.open(path).columns
    assert columns["score"][9] == 9 / 8 and texts(columns["label"])[:3] == ["a", "b", "a"] and np.isnan(columns["x"][0])
    run("annotate", path, "--table", table, "--columns", "score:f2")
    assert penstock.open(path).columns["score"].dtype == np.float16
    (tmp_path / "few.jsonl").write_text('{"score": 1}\n')
    (path / "skipped.jsonl").write_text("{}\n")
    assert "has 300 documents: skipped.jsonl lists those that `penstock write` left out" in run(
        "annotate", path, "--table", tmp_path / "few.jsonl", code=2
    )
    for text, words, code in (
        ('{"score": 1}\nno\n', "line 2: no JSON", 1),
        ('{"score": 1}\n\n[2]\n', "line 3: no JSON object", 1),
    ):
        (tmp_path / "bad.jsonl").write_text(text)
        assert words in run("annotate", path, "--table", tmp_path / "bad.jsonl", code=code)
    (tmp_path / "labels.txt").write_text("x")
    assert "a table is a .parquet, .pq, .csv, .feather, .arrow or .jsonl file" in run(
        "annotate", path, "--table", tmp_path / "labels.txt", code=2
    )
