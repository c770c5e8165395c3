"""A few mutated files in the hands of Python's readers; `make fuzz` tries a million of each."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import files


@pytest.mark.parametrize("name", ["tar_gzip", "lines_gzip", "arrow"])
def test_mutated_files_are_found_or_harmless(name: str) -> None:
    """In a process of its own, which is killed after a minute of its time."""
    record = files.run(name, 300)
    assert record["bad"] == []
    assert record["counts"]["found"] > 50
    assert record["counts"]["harmless"] > 20
    assert record["counts"].total() == 300
