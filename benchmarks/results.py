"""What a measurement gives: one line each, with all that is needed to judge and repeat it."""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any


class SkippedError(Exception):
    """Why something cannot be measured here, in words."""


def left_out(what: str, why: str) -> None:
    """Says on stderr that a measurement, or a part of one, is missing from the results."""
    print(f"left out: {what}: {why}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Result:
    """Median and spread of several repeats."""

    name: str  # the measurement: "opening"
    what: str  # the figure: "first batch, position 0"
    unit: str
    values: tuple[float, ...]  # one each repeat
    cache: str  # what was done about the page cache
    bytes: int = 0  # of records that one operation delivers
    at_most: float | None = None  # the targets of the design, where there is one
    at_least: float | None = None
    at: dict[str, float] = field(default_factory=dict)  # where a chart puts it: {"tokens": 1e9, "shards": 100}

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def reached(self) -> bool | None:
        """Whether the median is on the right side of its target; None without one."""
        if self.at_most is not None:
            return self.median <= self.at_most
        return None if self.at_least is None else self.median >= self.at_least

    @property
    def target(self) -> str:
        if self.at_most is not None:
            return f"≤ {number(self.at_most)}"
        return "" if self.at_least is None else f"≥ {number(self.at_least)}"

    def as_json(self, machine: str, versions: str, command: str) -> dict[str, Any]:
        """The line as a record; `command` repeats it."""
        return asdict(self) | {
            "median": self.median,
            "lowest": min(self.values),
            "highest": max(self.values),
            "repeats": len(self.values),
            "reached": self.reached,
            "machine": machine,
            "versions": versions,
            "command": command,
        }


def number(value: float) -> str:
    """Three or four digits that count: 0.873, 12.4, 1,234.

    >>> number(0.87312), number(12.44), number(123456.7)
    ('0.873', '12.4', '123,457')
    """
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.3g}"


def alternate(repeats: int, measurements: Sequence[Callable[[], float]]) -> list[tuple[float, ...]]:
    """Runs the measurements in turn, `repeats` times, so that what the machine does meanwhile meets all alike.

    Returns:
        The values of each measurement.
    """
    rounds = [[measure() for measure in measurements] for _ in range(repeats)]
    return [tuple(values) for values in zip(*rounds, strict=True)]


def ratios(values: Iterable[float], others: Iterable[float]) -> tuple[float, ...]:
    """Quotients of what was measured side by side."""
    return tuple(value / other for value, other in zip(values, others, strict=True))


def warm(files: Iterable[Path]) -> None:
    """Reads the files from end to end, so that the page cache holds them."""
    for file in files:
        with file.open("rb", buffering=0) as stream:
            while stream.read(8 << 20):
                pass


def make_folders(*files: Path | None) -> None:
    """Before anything is measured: what could not be written would be lost."""
    for file in files:
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)


def machine() -> str:
    """Processor, cores, memory, kernel and Python in one line; nothing that names the machine."""
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    models = [line.partition(":")[2].strip() for line in cpuinfo.splitlines() if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{models[0] if models else platform.machine()} ({vector_form()}), {len(os.sched_getaffinity(0))} cores, "
        f"{memory:.0f} GiB, {platform.system()} {platform.release().split('-')[0]}, Python {platform.python_version()}"
    )


def versions() -> str:
    """Of penstock and of what it is measured with and beside."""
    found = [f"{name} {metadata.version(name)}" for name in ("penstock", "numpy", "torch", "numba") if installed(name)]
    if shutil.which("fio") is not None:
        done = subprocess.run(["fio", "--version"], capture_output=True, text=True, check=False)
        found.append(done.stdout.strip().replace("-", " "))
    return ", ".join(found)


def installed(name: str) -> bool:
    """Whether there is a distribution of this name; a checkout of penstock is none."""
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def vector_form() -> str:
    """The form of the permutation that this processor gets: see shuffle/dispatch.cpp."""
    flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split())
    if {"avx512f", "avx512dq", "avx512vl", "avx512bw"} <= flags:
        return "AVX-512"
    return "AVX2" if "avx2" in flags else "generic"
