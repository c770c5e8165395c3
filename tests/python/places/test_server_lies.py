"""The short form of tests/faults/servers: each lie at one operation or two, and some bytes at which replies are cut."""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("obstore")
pytest.importorskip("pyarrow")
sys.path.insert(0, str(Path(__file__).parents[2] / "faults"))

from servers import cuts, run, trials
from servers.lies import LIES
from servers.trials import Trial

AT_ONCE = 12  # they wait


def chosen() -> list[Trial]:
    """Trials of each lie at one operation, another one each time, to which it is told twice, or of the next lie always.

    What waits for a silent server through obstore or to its end takes seconds: that is for `make faults`.
    """
    found = []
    for number, (name, lie) in enumerate(LIES.items()):
        able = [each for each in trials.plan() if each.lie == name]
        able = [each for each in able if each.operation != "writing in parts"] or able  # of files that are large
        for passes in (number % 2 == 0, number % 2 == 1):
            mine = [each for each in able if each.passes == passes and (passes or is_native(each))]
            if mine and not (passes and lie.is_slow):
                found.append(mine[number % len(mine)])
                break
    return found


def is_native(trial: Trial) -> bool:
    return trials.OPERATIONS[trial.operation].is_native


def test_lies_are_no_data() -> None:
    planned = chosen()
    for name in trials.OPERATIONS:  # obstore keeps what its first call opens
        trials.honest(name)
    before = run.resources()
    done = run.run(planned, AT_ONCE)
    assert len(done) == len(planned) > 70
    bad = [f"{each.trial}: {each.what}" for each in done if each.outcome == "wrong"]
    assert not bad, "\n".join(bad)
    told = [each for each in done if each.outcome != "not told"]
    assert len(told) > 0.9 * len(done)
    assert {each.trial.lie for each in told} == set(LIES)
    assert run.left_behind(before) == ""


#: Lies that longer runs found, behind honest answers; silent lists of a bucket are in test_deadline.py.
FOUND = (
    Trial("zeros", "cache", passes=False, skip=1),
    Trial("other bytes", "cache", passes=False, skip=1),
    Trial("409", "writing", passes=True, skip=1),
)


@pytest.mark.parametrize("trial", FOUND, ids=str)
def test_lies_behind_honest_answers_are_no_data(trial: Trial) -> None:
    [done] = run.run([trial], 1)
    assert done.outcome in ("exact", "error"), done.what


def test_replies_that_are_cut_anywhere_are_asked_for_again() -> None:
    planned = list(cuts.plan(step=31, first=7, done=("view", "opening", "writing")))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_ONCE) as threads:
        problems = [each for each in threads.map(lambda cut: cuts.run(cut, Path(folder)), planned) if each]
    assert not problems, "\n".join(problems)
    assert len(planned) > 50
