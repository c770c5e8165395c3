"""The list of what was left out, where inputs, lists or datasets are replaced."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("zstandard")
pytest.importorskip("pyarrow")

import _dirty
import penstock
from _dirty import entries, files, write
from _places import Place
from penstock._cli.main import main


@pytest.fixture(scope="module")
def dirty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _dirty.make(tmp_path_factory.mktemp("dirty") / "in")


@pytest.fixture(scope="module")
def expected(dirty: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("expected") / "out"
    write(dirty, out)
    return out


def test_an_entry_has_the_number_that_its_document_has_now(dirty: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    shutil.copy(dirty / "tokenizer.json", folder)
    fills = json.dumps({"text": "x" * 12_000, "url": "u"}).encode()  # a shard ends with it
    (folder / "a.jsonl").write_bytes(fills)
    (folder / "b.jsonl").write_bytes(b"bad\n" + fills)
    (folder / "c.parquet").write_bytes(b"no")
    write(folder, out, "--max-skipped", "1", inputs="[a-c].*", code=1)
    assert len(list(out.glob("000*"))) == 2
    (folder / "a.jsonl").write_bytes(_dirty.line(1) + b"\n" + fills)
    write(folder, out, "--resume", inputs="[a-c].*")
    write(folder, tmp_path / "anew", inputs="[a-c].*")
    assert files(out) == files(tmp_path / "anew")
    assert [each["document"] for each in entries(out / "skipped.jsonl")] == [3, 5]


def test_a_published_dataset_is_compared_with_its_list(dirty: Path, expected: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(expected, out)
    said = write(dirty, out, "--resume", "--max-skipped", "3", code=1)
    assert said["error"].endswith(f"(the list is {out}/skipped.jsonl); the dataset that is there stays as it is")
    assert files(out) == files(expected)
    (out / "skipped.jsonl").unlink()
    said = write(dirty, out, "--resume", code=2)
    assert f"{out}/skipped.jsonl is not there or was changed since the dataset was published" in said["error"]


def test_a_dataset_that_is_replaced_in_python_takes_its_list_with_it(expected: Path, tmp_path: Path) -> None:
    for name in ("writer", "shards"):
        out = tmp_path / name
        shutil.copytree(expected, out)
        shard = 0 if name == "shards" else None
        with penstock.Writer(out, {"token": "u2"}, "json", overwrite=True, shard=shard) as writer:
            writer.append({}, token=[1])
        if shard is not None:
            assert (out / "skipped.jsonl").exists()  # the old dataset is still there
            assert main(["commit", str(out), "--overwrite"]) == 0
        assert penstock.open(out).records == 1
        assert not (out / "skipped.jsonl").exists()


def test_a_dataset_of_a_bucket_that_is_replaced_in_python_takes_its_list_with_it(dirty: Path, place: Place) -> None:
    where = ["--endpoint", place.server, "--region", "us-east-1"]
    write(dirty, place.url, *where, inputs="[dk].*")
    assert "skipped.jsonl" in place.files()
    with penstock.Writer(place.url, {"token": "u2"}, "json", overwrite=True, storage=place.storage) as writer:
        writer.append({}, token=[1])
    assert "dataset.json" in place.files() and "skipped.jsonl" not in place.files()


def test_an_error_sends_no_control_characters_of_the_input_to_the_terminal(
    dirty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.jsonl").write_bytes(rb'{"\u001b[31m": 1, "\u001b[31m": 2}')
    base = ["write", str(tmp_path / "a.jsonl"), "--tokenizer", str(dirty / "tokenizer.json"), "--on-error", "skip"]
    assert main([*base, "--out", str(tmp_path / "out")]) == 1
    assert r'the key "\x1b[31m" stands twice' in capsys.readouterr().err
