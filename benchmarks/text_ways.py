"""One way of making shards, what it took, and its lines; the command line of penstock as one."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from results import Result
from usage import Usage, usage

STATE = "input read or written before, so mostly cached; output synced"
MIB_A_WORKER, MIB_BESIDE = 1024, 256


@dataclass
class Way:
    """One way to do the job, and its runs."""

    what: str
    bytes: int  # that figures are a GB of: JSON lines, whatever form they are in, or what is written
    run: Callable[[], Usage]
    workers: int = 0  # of penstock; memory has a limit then
    runs: list[Usage] = field(default_factory=list)

    def each(self, of: Callable[[Usage], float]) -> tuple[float, ...]:
        return tuple(of(run) for run in self.runs)

    @property
    def cpu(self) -> tuple[float, ...]:
        """Seconds a GB."""
        return self.each(lambda run: run.cpu / self.bytes * 1e9)

    @property
    def wall(self) -> tuple[float, ...]:
        """Seconds a GB."""
        return self.each(lambda run: run.wall / self.bytes * 1e9)

    def lines(self) -> list[Result]:
        most = self.workers * MIB_A_WORKER + MIB_BESIDE if self.workers else None
        speed = tuple(1000 / seconds for seconds in self.wall)
        return [
            line(f"{self.what}: CPU", "s/GB", self.cpu, self.bytes),
            line(f"{self.what}: by the clock", "MB/s", speed, self.bytes),
            line(f"{self.what}: memory", "MiB", self.each(lambda run: run.held_mib), self.bytes, at_most=most),
        ]


def line(
    what: str,
    unit: str,
    values: Iterable[float],
    size: int,
    at_most: float | None = None,
    at_least: float | None = None,
) -> Result:
    return Result("text", what, unit, tuple(values), STATE, size, at_most, at_least)


def workers_of(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


def penstock(verb: str, file: Path, out: Path, workers: int, *options: str, keep: bool = False) -> Usage:
    """A run of the command line; what it wrote is removed, unless it is kept."""
    command = [sys.executable, "-m", "penstock", verb, str(file), "--out", str(out), "--workers", str(workers)]
    found = usage([*command, "--json", *options])
    if not keep:
        shutil.rmtree(out)
    return found


def in_turn(ways: list[Way], repeats: int) -> list[Way]:
    """Runs each, and all again."""
    for _ in range(repeats):
        for way in ways:
            way.runs.append(way.run())
    return ways
