"""Every pair of what a loader takes, beside a plain model of the documentation; `make model` runs many more cases.

It takes half a minute, since it is the contract of all views, orders, columns and mixtures, on any ranks, from any
state, in whatever place: what they give together no other test says again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).parents[2] / "model" / "run.py"


def test_every_pair_gives_what_the_documentation_says(tmp_path: Path) -> None:
    command = [sys.executable, RUN, "--shrink", "--most", "5", "--random", "700", "--json", tmp_path / "model.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    said = json.loads((tmp_path / "model.json").read_text())
    assert (
        said["bad"] == []
        and said["pair"] > 100
        and said["random"] == 700
        and said["refusal"] > said["rules"]
        and said["batches"] > 2_500
    )
