"""Whatever a crash leaves of a run is no dataset, the old one or the new one: see tests/faults/crash.

All states of all runs are checked by `make faults`; here a sample of each run's.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "faults"))

from crash.entries import library
from crash.replay import Record, memory, record, replay, without
from crash.scenarios import SCENARIOS

SHORT = [name for name, scenario in SCENARIOS.items() if not scenario.is_long]
STATES = 8  # of each run


@pytest.fixture(scope="module")
def records() -> Iterator[dict[str, Record]]:
    with tempfile.TemporaryDirectory(prefix="penstock-crash-", dir=memory()) as folder:
        if library(Path(folder)) is None:
            pytest.skip("no C compiler for the recorder")
        yield {each.name: each for each in record(SHORT, Path(folder))}


@pytest.mark.parametrize("name", SHORT)
def test_a_crash_leaves_no_dataset_or_a_whole_one(records: dict[str, Record], name: str) -> None:
    found = replay(records[name], most=STATES)
    assert not found.problems, found.problems[:3]
    assert found.checked == STATES


@pytest.mark.parametrize("what", ["files", "folders"])
def test_a_writer_that_does_not_sync_is_found(records: dict[str, Record], what: str) -> None:
    made = records["commit"]
    assert replay(made, entries=without(made.entries, what), most=STATES).problems
