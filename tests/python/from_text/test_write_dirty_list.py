"""The list of what was left out, where inputs, lists or datasets are replaced."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import penstock
import pytest
from _dirty import entries, files, folder_of, line, write
from penstock._cli.main import main


def test_an_entry_has_the_number_that_its_document_has_now(dirty: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    fills = json.dumps({"text": "x" * 12_000, "url": "u"}).encode()  # a shard ends with it
    folder = folder_of(dirty, tmp_path / "in", a_jsonl=fills, b_jsonl=[b"bad", fills], c_parquet=b"no")
    write(folder, out, "--max-skipped", "1", inputs="[a-c].*", code=1)
    assert len(list(out.glob("000*"))) == 2
    (folder / "a.jsonl").write_bytes(line(1) + b"\n" + fills)
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


def test_a_list_of_a_dataset_that_is_replaced_goes_with_it(dirty: Path, expected: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(expected, out)
    before = files(out)
    said = write(dirty, out, "--overwrite", "--max-skipped", "15", code=1)
    assert "the old dataset stays" in said["error"]
    assert {name: data for name, data in files(out).items() if name in before} == before
    write(dirty, out, "--overwrite", "--resume", inputs="[bk].*")
    assert [each["file"] for each in entries(out / "skipped.jsonl")] == ["b.jsonl.gz"]
    assert {name for name in files(out) if "/" not in name} == {"dataset.json", "skipped.jsonl"}
    write(dirty, out, "--overwrite", "--on-error", "stop", inputs="k.*")
    assert {name for name in files(out) if "/" not in name} == {"dataset.json"}


@pytest.mark.parametrize("shard", [None, 0])
def test_a_dataset_that_is_replaced_in_python_takes_its_list_with_it(
    expected: Path, tmp_path: Path, shard: int | None
) -> None:
    out = tmp_path / "out"
    shutil.copytree(expected, out)
    with penstock.Writer(out, {"token": "u2"}, "json", overwrite=True, shard=shard) as writer:
        writer.append({}, token=[1])
    if shard is not None:
        assert (out / "skipped.jsonl").exists()  # the old dataset is still there
        assert main(["commit", str(out), "--overwrite"]) == 0
    assert penstock.open(out).records == 1
    assert not (out / "skipped.jsonl").exists()
