"""Records runs, and checks the states that a crash at each of their calls may leave."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crash.check import Check, Result
from crash.entries import Entry, library, read
from crash.model import Model, State
from crash.scenarios import SCENARIOS
from crash.states import moments

_MOST_PROBLEMS = 20  # of one scenario; then its other states are not looked at


@dataclass(frozen=True)
class Record:
    """What a run did, from what was there before to what it made."""

    name: str
    model: Model
    entries: list[Entry]
    result: Result


@dataclass
class Found:
    """What came of the states of one scenario."""

    name: str
    entries: int = 0
    states: int = 0
    checked: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    problems: list[tuple[int, str]] = field(default_factory=list)


def memory() -> Path | None:
    """The folder of files in memory, where it is: what a disk makes of thousands of syncs is not what is asked."""
    found = Path("/dev/shm")
    return found if os.access(found, os.W_OK) else None


def record(names: Sequence[str], folder: Path) -> list[Record]:
    """Runs these scenarios, one after the other in one process.

    Raises:
        RuntimeError: there is no compiler of C; a run failed; the recorder missed a call.
    """
    built = library(folder)
    if built is None:
        raise RuntimeError("no compiler of C")
    numbers = [list(SCENARIOS).index(name) for name in names]
    command = [sys.executable, str(Path(__file__).parent / "recorded.py"), str(folder), *map(str, numbers)]
    done = subprocess.run(command, env={**os.environ, "LD_PRELOAD": str(built)}, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{names}: the run failed: {done.stderr[-3000:]}")
    records = []
    for name, number in zip(names, numbers, strict=True):
        here = folder / str(number)
        model = pickle.loads((here / "model").read_bytes())
        records.append(Record(name, model, read(here / "log"), Result.of(here / "before", here / "run")))
        _check_whole(records[-1])
    return records


def _check_whole(record: Record) -> None:
    """Compares what the record comes to with what the run left: a call that the recorder does not know is seen."""
    model = copy.deepcopy(record.model)
    for entry in record.entries:
        model.apply(entry)
    state: State = model.state(lambda: True, lambda file: file.seen)
    replayed = {path: leaf.data for path, leaf in state.items() if leaf is not None}
    after = record.result.after
    wrong = [name for name in sorted({*replayed, *after}) if replayed.get(name) != after.get(name)]
    if wrong:
        raise RuntimeError(f"{record.name}: the record does not tell all that was done: {wrong}")


def replay(
    record: Record,
    chosen: Callable[[int, int], bool] = lambda count, number: True,
    entries: Sequence[Entry] | None = None,
    most: int | None = None,
) -> Found:
    """Checks the states of a record for which `chosen` says so, by how many there were before and by number.

    Args:
        record: of the run.
        chosen: says so.
        entries: others than those of the record.
        most: so many of them, evenly spread, the last one among them; None: all.
    """
    given = record.entries if entries is None else entries
    states = list(moments(copy.deepcopy(record.model), given))
    found, check = Found(record.name, len(given), len(states)), Check(SCENARIOS[record.name], record.result)
    asked = [each for count, each in enumerate(states) if chosen(count, each.number)]
    if most is not None:
        share = min(most, len(asked))
        asked = [asked[(i + 1) * len(asked) // share - 1] for i in range(share)]
    with tempfile.TemporaryDirectory(prefix="penstock-crash-", dir=memory()) as folder:
        for moment in asked:
            found.checked += 1
            try:
                check(moment, Path(folder) / str(moment.number))
            except Exception as error:
                where = f"{moment.entries} of {len(given)} calls, {moment.kind}"
                if moment.entries:
                    where += f", the last was: {given[moment.entries - 1]}"
                lines = traceback.format_exception_only(error)
                found.problems.append((moment.number, f"{where}: {''.join(lines).strip()[:600]}"))
            if len(found.problems) >= _MOST_PROBLEMS:
                break
    found.outcomes = check.outcomes
    return found


def without(entries: Iterable[Entry], what: str) -> list[Entry]:
    """The record of a writer that does less: "files" and "folders" are not synced."""
    return [each for each in entries if each.kind != "F" or (what == "folders") != bool(each.size)]
