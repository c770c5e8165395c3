"""A plugin of pytest: the second reader reads what the tests open and load, too.

`PYTHONPATH=tests/python pytest -n 2 -p _second_everywhere tests/python` prints how many datasets both read alike, and
of how many loaders the first batches. Others are named with their test; tests of damaged files are among these, where
one of the two refuses, or both.
"""

import os
import weakref
from pathlib import Path
from typing import Any

import penstock
import pytest
from _second_hashes import fingerprint, leaves
from _second_reader import Dataset, Run

_MOST_BYTES = 4 << 20
_MOST_POSITIONS, _MOST_BATCHES = 5_000, 3
_PLACED = {"kind", "window", "lookahead", "phase", "slice"}  # what views say whose rows lie where their number tells
_ORDERS = {"uniform", "sequential", "sequential in fetches", "blocks"}
_open, _next = penstock.open, penstock.Loader.__next__
_alike: set[tuple[str, int]] = set()
_differ: dict[str, str] = {}
_batches: weakref.WeakKeyDictionary[penstock.Loader, int] = weakref.WeakKeyDictionary()
_counts = {"datasets": 0, "loaders": 0, "batches": 0}


def _note(what: str, error: Exception) -> None:
    test = os.environ.get("PYTEST_CURRENT_TEST", "").split(" ")[0]
    _differ[f"{test}: {what}"] = f"{type(error).__name__} {error}".replace("\n", " ")[:150]


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
        for name, values in mine.columns.items():
            assert values.tobytes() == theirs.columns[name][:].tobytes(), f"column {name}"
        _alike.add(key)
        _counts["datasets"] += 1
    except Exception as error:
        _note(path.name, error)


def _opened(path: Any, *arguments: Any, **options: Any) -> Any:
    found = _open(path, *arguments, **options)
    if not arguments and isinstance(path, (str, Path)) and (Path(path) / "dataset.json").is_file():
        _compare(Path(path), found)
    return found


def _known(order: dict[str, Any]) -> bool:
    orders = [*order.get("orders", {}).values(), *(s["order"] for s in order.get("stages", ()) if "order" in s)]
    return all(each["name"] in _ORDERS for each in orders or [order])


def _number(loader: penstock.Loader, name: str | None) -> int:
    """A source's number in the mixture: rows of web@32 are of web."""
    names = getattr(loader.view, "names", [name])
    return names.index(name if name in names else name.rpartition("@")[0])


def _given(loader: penstock.Loader) -> penstock.Batch:
    try:
        is_wanted = _batches.setdefault(loader, 0) < _MOST_BATCHES and loader.position <= _MOST_POSITIONS
        state = loader.state_dict() if is_wanted else None
    except Exception:  # one that is closed, or of another process
        state = None
    batch = _next(loader)
    if state is None:
        return batch
    try:
        run = Run(state)
        if _known(run.order):
            for row, position in enumerate(batch.positions.tolist()):
                if position >= 0:
                    source, *wanted, place = run.row(position)
                    wanted = (_number(loader, run.sources[source].get("name")), *wanted)
                    found = tuple(int(each[row]) for each in (batch.sources, batch.epochs, batch.indices))
                    assert found == wanted, f"position {position}: {found}, {wanted}"
                    first = int(batch.first_records[row])
                    is_told = run.sources[source]["view"].keys() <= _PLACED and isinstance(place, tuple)
                    assert not is_told or first == place[0], f"position {position}: {first}, {place}"
            _counts["loaders"] += _batches[loader] == 0
            _counts["batches"] += 1
            _batches[loader] += 1
    except Exception as error:
        _note("a loader", error)
    return batch


def pytest_configure() -> None:
    penstock.open, penstock.Loader.__next__ = _opened, _given


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of xdist hands on what it found."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["second"] = (_counts, _differ)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    counts, differ = getattr(node, "workeroutput", {}).get("second", ({}, {}))
    _differ.update(differ)
    for what, count in counts.items():
        _counts[what] += count


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    said = "{datasets:,} datasets and {batches:,} batches of {loaders:,} loaders alike".format(**_counts)
    terminalreporter.write_line(f"second reader: {said}, {len(_differ):,} not")
    for place, why in _differ.items():
        terminalreporter.write_line(f"  {place}: {why}")
