"""The fault suite in small: `make faults` runs it in full, and docs/reliability.md has its figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).parents[2] / "faults" / "run.py"


def test_damaged_and_hostile_files_are_found_or_harmless(tmp_path: Path) -> None:
    command = [sys.executable, RUN, "--trials", "1", "--megabytes", "4", "--json", tmp_path / "faults.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    said = json.loads((tmp_path / "faults.json").read_text())
    assert said["bad"] == []
    assert done.returncode == 0, done.stderr[-2000:]
    assert said["trials"] > 200
    assert sum(each.get("found", 0) for each in said["counts"]) > 100
