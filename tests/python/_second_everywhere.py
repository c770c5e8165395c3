"""A plugin of pytest: the second reader reads what the tests open, too.

`PYTHONPATH=tests/python pytest -p _second_everywhere tests/python` prints how many datasets both read alike. Others are
named with the test that opened them; tests of damaged files are among these, where one of the two refuses, or both.
"""

import os
from pathlib import Path
from typing import Any

import penstock
import pytest
from _second_hashes import fingerprint, leaves
from _second_reader import Dataset

_MOST_BYTES = 4 << 20
_open = penstock.open
_alike: set[tuple[str, int]] = set()
_differ: dict[str, str] = {}


def _compare(path: Path, theirs: penstock.Dataset) -> None:
    manifest = path / "dataset.json"
    key = (str(path), manifest.stat().st_mtime_ns)
    if key in _alike or sum(each.stat().st_size for each in path.rglob("*")) > _MOST_BYTES:
        return
    try:
        mine = Dataset(path)
        assert fingerprint(mine) == theirs.fingerprint, "fingerprint"
        assert len(mine.stream) == theirs.records, "records"
        if theirs.records and theirs.mode != "opaque":
            batch = theirs.windows(theirs.records, metadata=theirs.mode == "stream").read([0])
            both = zip(leaves(batch.records[0]), leaves(mine.stream), strict=True)
            assert all(a.tobytes() == b.tobytes() for a, b in both), "the records' bytes"
            spans = [(s.start, s.stop, bytes(s.raw)) for s in batch.spans] if theirs.mode == "stream" else []
            wanted = mine.spans_of(0, theirs.records) if theirs.mode == "stream" else []
            assert spans == [(first, stop, entry) for first, stop, _, _, entry in wanted], "spans"
        _alike.add(key)
    except Exception as error:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").split(" ")[0]
        _differ[f"{test}: {path.name}"] = f"{type(error).__name__} {error}".replace("\n", " ")[:150]


def _opened(path: Any, *arguments: Any, **options: Any) -> Any:
    found = _open(path, *arguments, **options)
    if not arguments and isinstance(path, (str, Path)) and (Path(path) / "dataset.json").is_file():
        _compare(Path(path), found)
    return found


def pytest_configure() -> None:
    penstock.open = _opened


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"second reader: {len(_alike):,} datasets alike, {len(_differ):,} not")
    for place, why in _differ.items():
        terminalreporter.write_line(f"  {place}: {why}")
