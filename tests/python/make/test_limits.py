"""Full disks, few descriptors, little memory, mounts that turn read-only, stale handles, all of them real: one of each.

`make faults` has them all: tests/faults/limits.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).parents[2] / "faults" / "limits" / "run.py"


def test_what_is_short_is_said_and_nothing_wrong_is_published(tmp_path: Path) -> None:
    """Where nothing can be mounted only what needs no mount is tried."""
    report = tmp_path / "report.json"
    command = [sys.executable, str(RUN), "--short", "--json", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(report.read_text())
    outcomes = {(each["matter"], each["outcome"]) for each in found["tried"]}
    assert {matter for matter, _ in outcomes} >= {"descriptors", "memory of RLIMIT_AS"}
    assert {("memory of RLIMIT_AS", "error"), ("space", "error"), ("a far file system", "error")} <= outcomes | {
        (name, "error") for name in found["left_out"]
    }
