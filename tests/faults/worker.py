"""Does trials in a process of its own: reads a line of JSON for each, and writes one.

A trial is all of (kind, dataset, checks, seed), so that any of them can be done again alone.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ["PENSTOCK_TRACEBACK"] = "1"

import corpora
import damage
import hostile
import look

ADDRESS_SPACE = 12 << 30  # a claim that is believed ends the trial, not the machine


class Trials:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._whole: dict[tuple[str, str], look.Seen] = {}

    def run(self, kind: str, name: str, checks: str, seed: int, size: int) -> dict[str, Any]:
        clean, twin = self._root / "clean" / name, self._root / "twin" / name
        if not clean.exists():
            corpora.make(name, clean, 0)
            corpora.make(name, twin, 1)
        if (name, checks) not in self._whole:
            self._whole[name, checks] = whole = look.read(name, clean, checks)
            assert not whole.errors and not whole.strays, (name, whole)
        with tempfile.TemporaryDirectory(dir=self._root) as scratch:
            folder = Path(scratch) / name
            shutil.copytree(clean, folder)
            return self._run(kind, name, checks, seed, folder, twin, size)

    def _run(self, kind: str, name: str, checks: str, seed: int, folder: Path, twin: Path, size: int) -> dict[str, Any]:
        rng = random.Random(f"{kind}/{name}/{checks}/{seed}")
        promised = False
        if kind in damage.KINDS:
            what, file = damage.do(kind, rng, name, folder, twin)
            promised = damage.promises(kind, name, checks, file)
            what = f"{file}: {what}"
        elif kind == "manifest: 100 MB":
            what = hostile.huge(rng, name, folder, size)
        else:
            what = hostile.KINDS[kind][0](rng, name, folder)
        before = _reset_peak()
        seen = look.read(name, folder, checks)
        whole = self._whole[name, checks]
        lost = [step for step, digest in seen.digests.items() if digest != whole.digests[step]]
        if kind in hostile.KINDS or seed % 8 == 0:
            used = look.use_tools(
                name, folder, folder.parent, all_of_it="sparse" not in what and kind != "manifest: 100 MB"
            )
            seen.strays += used.strays
            seen.errors += used.errors if kind in hostile.KINDS else []
        return {
            "what": what,
            "errors": seen.errors[:3],
            "strays": seen.strays,
            "lost": lost if kind in damage.KINDS else [],
            "promised": promised,
            "memory": _peak() - before,
        }


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) << 10
    return 0


def _reset_peak() -> int:
    """Memory in use now; the kernel's mark of the most goes back to it."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


def main() -> None:
    root = Path(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing that a command prints is an answer
    trials = Trials(root)
    for line in sys.stdin:
        answers.write(json.dumps(trials.run(**json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
