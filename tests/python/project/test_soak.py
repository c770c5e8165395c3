"""A little of each long run; `make soak` has them whole: tests/soak. Resumes beside the model are in test_model.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SOAK = Path(__file__).parents[2] / "soak" / "soak.py"

DEAF = """
import signals, sys
from pathlib import Path

class Deaf(signals.Verb):
    def command(self, data, out, again=False):
        return [sys.executable, "-c", "import time; time.sleep(1.5)"]

signals.signal.signal(signals.signal.SIGTERM, signals.signal.SIG_IGN)  # as it inherits it
trials = signals.Signals(Path(sys.argv[1]), ["ranks"])
trials._verbs["ranks"] = Deaf("ranks", "", "", "", "")
print(trials.one("ranks", 199))
try:
    print(trials.one("ranks", 19))
except signals.WrongError as error:
    print(error)
"""


def test_a_command_that_a_signal_does_not_end_is_wrong_but_near_its_own_end(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DEAF, str(tmp_path / "work")]
    at = {**os.environ, "PYTHONPATH": f"{SOAK.parent}:{SOAK.parents[1] / 'python'}"}
    done = subprocess.run(command, env=at, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    near_end, early = done.stdout.splitlines()[-2:]
    assert near_end == "SIGTERM: done"
    assert early.startswith("SIGTERM did not end it"), early


def test_a_little_of_each_long_run(tmp_path: Path) -> None:
    command = [sys.executable, str(SOAK), "--short", "--state", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    state = json.loads((tmp_path / "state.json").read_text())
    assert state["bad"] == []
    assert state["rate"]["columns"]["batches"] > 0 and state["rate"]["columns"]["position"] > 0
    assert state["loaders"]["own"]["loaders"] > 0
    assert state["signals"]["append"]["next"] == 2
