"""Holds the hot paths to a budget of instructions: counted by valgrind's callgrind, which repeats, they need no quiet
machine.

    python benchmarks/budget.py build/release/benchmarks/penstock_budget            # fails where a limit is exceeded
    python benchmarks/budget.py build/release/benchmarks/penstock_budget --update   # makes what is counted the limit

What is counted is in budget.cpp, the limits are in budget.json: instructions of one item (an index, a window, a value),
as g++ of one version compiles it, without AVX-512, which valgrind does not know. Instructions are not time: a change
that needs more of them and is faster raises the limit, and its commit says why.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMITS = Path(__file__).with_name("budget.json")
MARGIN = 0.02  # what another build of the same compiler or of the C library may differ by


@dataclass(frozen=True)
class Counted:
    """Instructions of one item, by path; which compiler made them."""

    compiler: str
    instructions: dict[str, float]


def count(program: Path) -> Counted:
    """Runs the program under callgrind.

    Raises:
        RuntimeError: It fails, or what callgrind wrote is not one count a path.
    """
    with tempfile.TemporaryDirectory() as folder:
        run([str(program), "make", folder])
        out = Path(folder) / "callgrind"
        valgrind = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}"]
        valgrind += ["--toggle-collect=collected_*", "--dump-after=workload_*"]
        said = [json.loads(line) for line in run([*valgrind, str(program), "measure", folder]).splitlines()]
        totals = [total(Path(f"{out}.{number}")) for number in range(1, len(said))]
    instructions = {
        path["name"]: round(instructions / path["items"], 3)
        for path, instructions in zip(said[1:], totals, strict=True)
    }
    return Counted(said[0]["compiler"], instructions)


def run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


def total(dump: Path) -> int:
    """Instructions that one dump of callgrind counts."""
    lines = dump.read_text(encoding="utf-8").splitlines() if dump.exists() else []
    found = [line for line in lines if line.startswith("totals:")]
    if not found:
        raise RuntimeError(f"callgrind wrote no {dump.name}: is a workload_* of budget.cpp inlined?")
    return int(found[0].split()[1])


def problems(counted: Counted, limits: dict[str, Any]) -> list[str]:
    """What exceeds its limit or has none, in words."""
    found = []
    for path, now in counted.instructions.items():
        was = limits["instructions"].get(path)
        if was is None:
            found.append(f"{path}: {now:,} instructions, and {LIMITS.name} has no limit: add it by --update")
        elif now > was * (1 + MARGIN):
            found.append(
                f"{path}: {now:,} instructions, the limit is {was:,} (and {MARGIN:.0%}): {now / was - 1:+.1%}. "
                "Where that is worth it, raise the limit by --update and say why in the commit"
            )
    return found


def table(counted: Counted, limits: dict[str, Any]) -> str:
    """One line a path: instructions of an item, the limit, the difference."""
    lines = []
    for path, now in counted.instructions.items():
        was = limits["instructions"].get(path)
        difference = "" if was is None else f"{was:12,.2f} {now / was - 1:+8.1%}"
        lines.append(f"{path:40} {now:12,.2f} {difference}")
    lines += [f"{path:40} {'not here':>12}" for path in limits["instructions"] if path not in counted.instructions]
    return "\n".join(lines)


def update(counted: Counted, limits: dict[str, Any]) -> None:
    """Writes budget.json; limits of paths that this machine does not have stay."""
    kept = limits["instructions"] if limits["compiler"] == counted.compiler else {}
    written = {"compiler": counted.compiler, "instructions": kept | counted.instructions}
    LIMITS.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path, help="penstock_budget, built with PENSTOCK_BUILD_BENCHMARKS, Release")
    parser.add_argument("--update", action="store_true", help="make what is counted the limit")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("budget: valgrind is not installed: apt-get install valgrind")
    if not options.program.exists():
        sys.exit(f"budget: no {options.program}: build with -DPENSTOCK_BUILD_BENCHMARKS=ON")
    limits = json.loads(LIMITS.read_text(encoding="utf-8")) if LIMITS.exists() else {"compiler": "", "instructions": {}}
    counted = count(options.program.resolve())
    print(table(counted, limits))
    if options.update:
        update(counted, limits)
    elif counted.compiler != limits["compiler"]:
        print(f"budget: the limits are of {limits['compiler']}, this is {counted.compiler}: nothing is compared")
    else:
        found = problems(counted, limits)
        sys.exit("\n".join(f"budget: {problem}" for problem in found) if found else 0)


if __name__ == "__main__":
    main()
