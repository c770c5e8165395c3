"""`penstock convert --where` and `--without`: the dataset without some of its documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock._cli.main import main

COUNT = 200


def write(path: Path, codec: str = "json", opaque: bool = False) -> penstock.Dataset:
    columns: dict[str, Any] = {"lang": "category", "score": "f4", "pair": ("i2", (2,))}
    fields = None if opaque else {"token": "u2", "loss": "u1"}
    tokenizer = {"name": "t", "vocabulary_size": 300, "end_of_document": 0}
    with penstock.Writer(path, fields, codec, columns=columns, shard_size=600, tokenizer=tokenizer) as writer:
        for n in range(COUNT):
            values = {"lang": ["en", "de", None][n % 3], "score": n / 4, "pair": [n, -n]}
            records = {} if opaque else {"token": np.arange(n % 7), "loss": np.ones(n % 7, "u1")}
            writer.append(**records, **({} if codec == "boundaries" else {"metadata": {"n": n}}), columns=values)
    return penstock.open(path)


def same(found: penstock.Dataset, given: penstock.Dataset, numbers: list[int]) -> None:
    names = list(given.columns)
    one, other = found.documents(columns=names), given.documents(columns=names).select(numbers)
    assert len(one) == len(other) == len(numbers)
    for a, b in zip(one, other, strict=True):
        for name in given.dtype.names if given.dtype is not None else ():
            np.testing.assert_array_equal(a[name], b[name])
        if given.codec != "boundaries":
            assert a.metadata == b.metadata
    assert list(found.columns) == names and found.tokenizer == given.tokenizer and found.codec == given.codec
    for name in names:
        a, b = found.columns[name], given.columns[name]
        assert a.dtype == b.dtype
        if b.categories is None:
            np.testing.assert_array_equal(a[:], b[:][numbers])
        else:
            texts = [[None if code < 0 else each.categories[code] for code in each[:]] for each in (a, b)]
            assert texts[0] == [texts[1][number] for number in numbers]


@pytest.mark.parametrize(("codec", "opaque"), [("json", False), ("boundaries", False), ("json", True)])
def test_what_a_condition_does_not_choose_is_left_out(tmp_path: Path, codec: str, opaque: bool) -> None:
    given = write(tmp_path / "d", codec, opaque)
    fingerprints = set()
    for workers in (1, 2):
        out = tmp_path / f"out{workers}"
        fingerprints.add(penstock.convert(tmp_path / "d", out, where="lang = 'de' and score > 10", workers=workers))
        numbers = [n for n in range(COUNT) if n % 3 == 1 and n / 4 > 10]  # the first shards keep nothing
        same(penstock.open(out), given, numbers)
        assert penstock.verify(out).ok
    assert len(fingerprints) == 1 and fingerprints != {given.fingerprint}


def test_documents_that_were_found_are_left_out_by_their_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = write(tmp_path / "d")
    gone = [0, 17, 150, COUNT - 1]
    np.save(tmp_path / "rows.npy", np.array(gone[1:]))
    command = ["convert", str(tmp_path / "d"), "--out", str(tmp_path / "out")]
    assert main([*command, "--without", "0", "--without", str(tmp_path / "rows.npy")]) == 0
    same(penstock.open(tmp_path / "out"), given, [n for n in range(COUNT) if n not in gone])
    assert main([*command, "--without", "0,17", "--without", "150,199", "--overwrite"]) == 0
    same(penstock.open(tmp_path / "out"), given, [n for n in range(COUNT) if n not in gone])
    assert main([*command, "--without", "0,,x", "--overwrite"]) == 2
    assert main([*command, "--without", "0", "--layout", "ids", "--overwrite"]) == 2
    assert "one run does one of them" in capsys.readouterr().err
    mask = np.arange(COUNT) % 2 == 0
    penstock.convert(tmp_path / "d", tmp_path / "odd", where="score < 20", without=mask)
    same(penstock.open(tmp_path / "odd"), given, list(range(1, 80, 2)))


def test_a_run_that_did_not_end_goes_on_and_another_choice_is_made_anew(tmp_path: Path) -> None:
    given = write(tmp_path / "d")
    calls = 0

    def stop(done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        penstock.convert(tmp_path / "d", out, where="score > 10", progress=stop)
    kept = {file: file.stat().st_mtime_ns for file in out.rglob("shard.json")}
    assert kept
    penstock.convert(tmp_path / "d", out, where="score > 10", resume=True)
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    same(penstock.open(out), given, list(range(41, COUNT)))
    before = penstock.open(out).fingerprint
    assert penstock.convert(tmp_path / "d", out, where="score > 10", resume=True) == before  # it is there
    with pytest.raises(penstock.InvalidArgumentError, match="made of other input or options"):
        penstock.convert(tmp_path / "d", out, where="score > 11", resume=True)
    calls = 0
    with pytest.raises(KeyboardInterrupt):
        penstock.convert(tmp_path / "d", tmp_path / "other", where="score > 10", progress=stop)
    penstock.convert(tmp_path / "d", tmp_path / "other", where="score > 11", resume=True)
    same(penstock.open(tmp_path / "other"), given, list(range(45, COUNT)))


def test_features_come_along(tmp_path: Path) -> None:
    with penstock.Writer(
        tmp_path / "cells",
        {"gene": "u4", "count": "f4"},
        columns={"plate": "category"},
        features={"names": ["a", "b", "c"]},
    ) as writer:
        for n in range(6):
            writer.append(gene=[0, 2], count=[1, n], columns={"plate": f"p{n % 2}"})
    penstock.convert(tmp_path / "cells", tmp_path / "out", where="plate = 'p1'")
    found = penstock.open(tmp_path / "out")
    assert found.features is not None and len(found.cells("dense")) == 3 and penstock.verify(tmp_path / "out").ok


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "what is converted: give layout=; or where= or without="),
        ({"layout": "ids", "where": "score > 1"}, "what is converted"),
        ({"where": "score > 1000"}, "all of 200 documents would be left out"),
        ({"where": "score >= 0"}, "none of 200 documents would be left out"),
        ({"where": "scor > 1"}, "is score meant"),
        ({"without": [200]}, "there is no document 200: they are from 0 to 199"),
        ({"without": [-1]}, "there is no document -1"),
        ({"without": [0.5]}, "numbers of documents are wanted"),
        ({"without": np.ones(3, bool)}, r"a mask of shape \[3\]: \[200\] wanted"),
    ],
)
def test_what_cannot_be_is_refused_and_writes_nothing(tmp_path: Path, arguments: Any, words: str) -> None:
    write(tmp_path / "d")
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        penstock.convert(tmp_path / "d", tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()


def test_datasets_without_documents_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "d", "boundaries")
    penstock.Writer(tmp_path / "stream", {"token": "u2"}, None).close()
    with penstock.Writer(tmp_path / "stream", {"token": "u2"}, None, overwrite=True) as writer:
        writer.append_batch(token=[1, 2, 3])
    for name, words in (("stream", "it has no documents"),):
        assert main(["convert", str(tmp_path / name), "--without", "0", "--out", str(tmp_path / "o")]) == 2
        assert words in capsys.readouterr().err
    for text in ("1,00", "x", "-1"):
        assert main(["convert", str(tmp_path / "d"), "--without", text, "--out", str(tmp_path / "o")]) == 2
        assert "the number of one document is wanted" in capsys.readouterr().err


def test_a_number_with_commas_is_no_list_where_there_is_such_a_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with penstock.Writer(tmp_path / "d", {"token": "u1"}) as writer:
        writer.append_batch(token=np.zeros(1200, "u1"), lengths=np.ones(1200, int))
    command = ["convert", str(tmp_path / "d"), "--out", str(tmp_path / "out"), "--without"]
    assert main([*command, "1,100"]) == 2
    assert "a list, or one number? Give --without 1100, or --without 1 --without 100" in capsys.readouterr().err
    assert main([*command, "1,200"]) == 0 and len(penstock.open(tmp_path / "out").documents()) == 1198
