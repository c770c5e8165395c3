"""Runs scenarios under the recorder: FOLDER, NUMBER… of SCENARIOS. Each leaves its log and what was there before."""

from __future__ import annotations

import ctypes
import os
import pickle
import shutil
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from crash.model import Model
from crash.scenarios import SCENARIOS, note


def main(folder: Path, numbers: list[int]) -> None:
    recorder = ctypes.CDLL(None)
    for number in numbers:
        scenario = list(SCENARIOS.values())[number]
        here = folder / str(number)
        root = here / "run"
        root.mkdir(parents=True)
        os.chdir(root)
        scenario.prepare()
        shutil.copytree(root, here / "before", symlinks=True)
        (here / "model").write_bytes(pickle.dumps(Model(root, scenario.unsynced)))
        os.environ["CRASH_REFUSE"] = scenario.refuse
        assert recorder.record_begin(os.fsencode(here / "log"), os.fsencode(root)) == 0
        os.environ["CRASH_RECORD"] = f"{here / 'log'}\n{root}"  # Python has its own idea of what is set
        scenario.act()
        note("done")
        recorder.record_end()
        del os.environ["CRASH_RECORD"]


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), [int(each) for each in sys.argv[2:]])
