"""A little of each long run; `make soak` has them whole: tests/soak. Resumes beside the model are in test_model.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SOAK = Path(__file__).parents[2] / "soak" / "soak.py"


def test_a_little_of_each_long_run(tmp_path: Path) -> None:
    command = [sys.executable, str(SOAK), "--short", "--state", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    state = json.loads((tmp_path / "state.json").read_text())
    assert state["bad"] == []
    assert state["rate"]["columns"]["batches"] > 0 and state["rate"]["columns"]["position"] > 0
    assert state["loaders"]["own"]["loaders"] > 0
    assert state["signals"]["append"]["next"] == 2
