"""A few mutated files in the hands of Python's readers; `make fuzz` tries a million of each."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import penstock
import pytest
from penstock._make.errors import InputError

sys.path.insert(0, str(Path(__file__).parent))

import files
import files_seeds


@pytest.mark.parametrize("name", ["tar_gzip", "lines_gzip", "arrow", "s3_xml"])
def test_mutated_files_are_found_or_harmless(name: str) -> None:
    """In a process of its own, which is killed after a minute of its time."""
    record = files.run(name, 300)
    assert record["bad"] == []
    assert record["counts"]["found"] > 50
    assert record["counts"]["harmless"] > 20
    assert record["counts"].total() == 300


@pytest.mark.parametrize(
    ("name", "seeds"),
    [("parquet", files_seeds.parquets), ("parquet_text", files_seeds.text_parquets), ("arrow", files_seeds.arrows)],
)
def test_a_columns_name_that_is_no_utf_8_is_damage(tmp_path: Path, name: str, seeds: Callable[[], list[bytes]]) -> None:
    """pyarrow raises UnicodeDecodeError where the name is asked for."""
    path = tmp_path / f"input{files.TARGETS[name].suffix}"
    for data in seeds():
        for column in (b"url", b"tags", b"text", b"tokens", b"input_ids"):
            if column not in data:
                continue
            path.write_bytes(data.replace(column, b"\xff" + column[1:]))
            with pytest.raises((penstock.Error, InputError), match=path.name):
                files.TARGETS[name].read(path, 0)
