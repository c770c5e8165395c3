"""What was measured, as lines for the JSON file and as tables."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import ranks
from fleet import MAPPED, Member
from job import GLOBAL_BATCH, RESUMED_BATCHES
from measure import Block, Fleet, Variant
from results import Result, number, ratios

#: The targets of the design, against peers that shuffle globally.
TRAINING_THREAD = {"int64": 2.0, "int32": 2.5, "uint32": 2.5}
BACKGROUND = 10.0
COLD = 2.0
ONE_CORE = "one core"
TOKENS = 1e6  # a unit of speed
NO_PEERS = ("bare_gather", MAPPED)  # shown beside the peers, with no target: no loader, and penstock itself
Runs = list[dict[str, Any]]


@dataclass(frozen=True)
class Figure:
    """One figure of a run."""

    what: str
    unit: str
    of: Callable[[dict[str, Any]], float]
    below: bool = False  # whether penstock's is to be below every peer's


SPEED = Figure("throughput", "batches/s", lambda run: run["batches_per_s"])
CPU = Figure("processor time of all threads and processes", "ms a batch", lambda run: run["cpu_ms"])
STARTUP = (
    Figure("from nothing to the first batch", "ms", lambda run: run["import_ms"] + run["first_ms"], below=True),
    Figure("of this the interpreter's start and imports", "ms", lambda run: run["import_ms"]),
    Figure("of this the rest", "ms", lambda run: run["first_ms"]),
    Figure("resident memory", "MiB", lambda run: run["resident_mib"], below=True),
    Figure("anonymous memory", "MiB", lambda run: run["anonymous_mib"]),
    Figure("RSS of its processes, added up", "MiB", lambda run: run["rss_mib"]),
)


class Report:
    """Tables and lines of one run."""

    def __init__(self, fleet: Fleet, steady: list[Block], cold: list[Block], forced: str) -> None:
        self.fleet = fleet
        self.repeats = fleet.size.repeats
        self.steady = steady
        self.one_core: list[Block] = []
        self.cold = cold
        self.forced = forced
        self.facts: dict[str, dict[str, Any]] = {}
        self.ranks: dict[str, dict[str, Any]] = {}

    # ---- lines ----

    def lines(self) -> list[Result]:
        """Every figure with its repeats, and the ratios with their targets."""
        found = [line for block in [*self.steady, *self.one_core] for line in self._speeds(block, "warm")]
        found += [line for block in self.cold for line in self._speeds(block, f"cold: {self.forced}")]
        found += [line for block in [*self.steady, *self.one_core] for line in self._startup(block)]
        return found

    def _speeds(self, block: Block, cache: str) -> list[Result]:
        lines = []
        for variant in self._whole(block):
            rates = values(block.runs[variant], "batches_per_s")
            where = f"{place(block)}, {variant.dtype}, {variant.setting.name}"
            lines.append(self._line(variant, where, "batches/s", rates, cache))
            compared = self._compared(block, variant, SPEED)
            if compared is not None:
                target = self._target(block, variant)
                what = f"{where}: penstock / this"
                lines.append(self._line(variant, what, "ratio", compared, cache, at_least=target))
            spent = values(block.runs[variant], "cpu_ms")
            lines.append(self._line(variant, f"{where}: {CPU.what}", CPU.unit, spent, cache))
            compared = self._compared(block, variant, CPU)
            if compared is not None:
                lines.append(self._line(variant, f"{where}: {CPU.what}: penstock / this", "ratio", compared, cache))
            compared = self._compared_to_mapped(block, variant)
            if compared is not None:
                what = f'{where}: penstock, reader="mmap" / this'
                lines.append(self._line(variant, what, "ratio", compared, cache))
        return lines

    def _startup(self, block: Block) -> list[Result]:
        lines = []
        for variant in self._whole(block):
            where = f"{place(block)}, {variant.dtype}, {variant.setting.name}"
            for figure in STARTUP:
                own = tuple(figure.of(run) for run in block.runs[variant])
                lines.append(self._line(variant, f"{figure.what}: {where}", figure.unit, own, "warm"))
                compared = self._compared(block, variant, figure)
                if compared is not None:
                    what = f"{figure.what}: {where}: penstock / this"
                    target = 1.0 if figure.below and variant.member.key not in NO_PEERS else None
                    lines.append(self._line(variant, what, "ratio", compared, "warm", at_most=target))
        return lines

    def _compared(self, block: Block, variant: Variant, figure: Figure) -> tuple[float, ...] | None:
        """Penstock's figure over this one's, round by round; None where there is nothing to compare."""
        return self._quotient(block, block.penstock, variant, figure)

    def _compared_to_mapped(self, block: Block, variant: Variant) -> tuple[float, ...] | None:
        """The same of penstock with mapped files, and of speed."""
        if block.mapped is None or variant is block.penstock:
            return None
        return self._quotient(block, block.mapped, variant, SPEED)

    def _quotient(self, block: Block, ours: Variant, theirs: Variant, figure: Figure) -> tuple[float, ...] | None:
        if theirs is ours or not block.whole(ours, self.repeats):
            return None
        return ratios(*([figure.of(run) for run in block.runs[variant]] for variant in (ours, theirs)))

    def _line(
        self,
        variant: Variant,
        what: str,
        unit: str,
        found: tuple[float, ...],
        cache: str,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> Result:
        item = np.dtype(variant.dtype).itemsize
        setup = self.fleet.base(variant.member)
        size = setup.batch * setup.window * item if unit == "batches/s" else 0
        return Result(variant.member.name, what, unit, found, cache, size, at_most, at_least)

    def _whole(self, block: Block) -> list[Variant]:
        """Variants that ran in every round: what was measured side by side."""
        return [variant for variant in block.order(0) if block.whole(variant, self.repeats)]

    def _target(self, block: Block, variant: Variant) -> float | None:
        if block.one_core or not variant.member.uniform or variant.member.key in NO_PEERS:
            return None
        if block.background is None:
            return COLD
        return BACKGROUND if block.background else TRAINING_THREAD[variant.dtype]

    # ---- tables ----

    def markdown(self, head: str) -> str:
        parts = [head]
        if self.steady:
            parts += ["### Warm: batches/s, and penstock's own beside them\n", self._speed_table(self.steady)]
            parts.append(meanwhile(self.steady))
        if self.one_core:
            parts += ["### Warm, all threads and processes on one core\n", self._speed_table(self.one_core)]
            parts.append(meanwhile(self.one_core))
        if self.cold:
            parts += [f"### Cold: {self.forced}\n", self._cold_table()]
        if self.steady:
            parts += ["### From nothing to the first batch, and memory\n", self._startup_table(self.steady)]
        if self.one_core:
            parts += [
                "### From nothing to the first batch, and memory, on one core\n",
                self._startup_table(self.one_core),
            ]
        if self.facts:
            parts += ["### What each does\n", self._facts_table()]
        if self.ranks:
            parts += [f"### On several ranks, global batches of {GLOBAL_BATCH}\n", self._ranks_table()]
        parts.append(self._notes())
        if self.fleet.failures:
            parts += ["### What failed\n", "\n".join(f"- {line}" for line in self.fleet.failures) + "\n"]
        return "\n".join(parts)

    def _speed_table(self, blocks: list[Block]) -> str:
        rows = []
        for block in blocks:
            for variant in self._whole(block):
                runs = block.runs[variant]
                row = [place(block), variant.dtype, variant.member.name, variant.setting.name]
                rates = values(runs, "batches_per_s")
                setup = self.fleet.base(variant.member)
                tokens = statistics.median(rates) * setup.batch * setup.window / TOKENS
                row += [spread_of(rates), number(tokens), *self._ratio(block, variant)]
                mapped = self._compared_to_mapped(block, variant)
                row.append(spread_of(mapped) if mapped else "")
                spent = self._compared(block, variant, CPU)
                rows.append([*row, spread_of(values(runs, "cpu_ms")), spread_of(spent) if spent else ""])
        head = ["loading in", "dtype", "peer", "setting", "batches/s", "10^6 tokens/s", "penstock / this", "target"]
        head += ['penstock, reader="mmap" / this', "CPU ms a batch", "CPU: penstock / this"]
        return table(head, rows)

    def _ratio(self, block: Block, variant: Variant) -> tuple[str, str]:
        compared = self._compared(block, variant, SPEED)
        if compared is None:
            return "", ""
        target = self._target(block, variant)
        if target is None:
            return spread_of(compared), ""
        return spread_of(compared), f"≥ {number(target)}: {'yes' if statistics.median(compared) >= target else 'no'}"

    def _cold_table(self) -> str:
        rows = []
        for block in self.cold:
            for variant in self._whole(block):
                runs = block.runs[variant]
                first = spread_of(values(runs, "first_ms"))
                read = spread_of(values(runs, "disk_mb_per_s"))
                left = spread_of(values(runs, "cached_after_mib"))
                epoch = f"{100 * statistics.median(values(runs, 'epoch')):.0f} %"
                row = [variant.dtype, variant.member.name, variant.setting.name]
                rows.append([*row, spread_of(values(runs, "batches_per_s")), read, epoch, left, first])
                rows[-1] += self._ratio(block, variant)
        head = ["dtype", "peer", "setting", "batches/s", "device reads MB/s", "of the epoch", "cached after, MiB"]
        return table([*head, "first batch ms", "penstock / this", "target"], rows)

    def _startup_table(self, blocks: list[Block]) -> str:
        rows, seen = [], set()
        for block in blocks:
            for variant in self._whole(block):
                if variant in seen:  # penstock is in two blocks of a dtype
                    continue
                seen.add(variant)
                row = [variant.dtype, variant.member.name, variant.setting.name]
                row += [spread_of(tuple(figure.of(run) for run in block.runs[variant])) for figure in STARTUP]
                compared = [self._compared(block, variant, figure) for figure in STARTUP if figure.below]
                rows.append(row + [spread_of(one) if one else "" for one in compared])
        head = ["dtype", "peer", "setting", *(f"{figure.what}, {figure.unit}" for figure in STARTUP)]
        head += [f"{figure.what}: penstock / this" for figure in STARTUP if figure.below]
        return table(head, rows)

    def _facts_table(self) -> str:
        rows = []
        for key, fact in self.facts.items():
            resumes = fact.get("resume_ms") or []
            rows.append(
                [
                    self.fleet.members[key].name,
                    self.fleet.members[key].order,
                    number(fact["spread"]) if "spread" in fact else "",
                    exact(fact),
                    spread_of(tuple(resumes)) if resumes else "",
                    str(fact.get("state_bytes", "")),
                ]
            )
        head = ["peer", "order", "distance of neighbours (1: uniform)", "exact resume", "resume to next batch, ms"]
        return table([*head, "state bytes"], rows)

    def _ranks_table(self) -> str:
        given = (self.fleet.members, self.ranks, self.fleet.size.observations)
        head, *rows = ranks.rows(*given)
        return "\n".join([table(head, rows), *(f"- {line}" for line in ranks.refusals(*given))]) + "\n"

    def _notes(self) -> str:
        lines = []
        for member in self.fleet.members.values():
            versions = ", ".join(f"{name} {version}" for name, version in member.versions.items())
            lines.append(f"- {member.name} ({versions}){': ' + member.note if member.note else ''}")
        return "\n".join(lines) + "\n"

    def as_json(self, machine: str, versions: str, command: str) -> dict[str, Any]:
        lines = self.lines()
        return {
            "machine": machine,
            "versions": versions,
            "command": command,
            "cold": self.forced,
            "lines": [line.as_json(machine, versions, command) for line in lines],
            "peers": {key: self._described(key, member) for key, member in self.fleet.members.items()},
            "failures": self.fleet.failures,
        }

    def _described(self, key: str, member: Member) -> dict[str, Any]:
        found = {"name": member.name, "order": member.order, "versions": member.versions, "note": member.note}
        found |= self.facts.get(key, {})
        return found | ({"ranks": self.ranks[key]} if key in self.ranks else {})


def meanwhile(blocks: list[Block]) -> str:
    """What else the machine did while the batches were counted."""
    runs = [run for block in blocks for each in block.runs.values() for run in each if "others_cores" in run]
    if not runs:
        return ""
    others, stolen = (spread_of(values(runs, key)) for key in ("others_cores", "stolen_cores"))
    return f"Meanwhile other processes kept {others} cores busy, and the host took {stolen}.\n"


def place(block: Block) -> str:
    if block.one_core:
        return ONE_CORE
    if block.background is None:
        return "where it is fastest"
    return "the background" if block.background else "the training thread"


def values(runs: Runs, key: str) -> tuple[float, ...]:
    return tuple(float(run[key]) for run in runs)


def spread_of(found: tuple[float, ...]) -> str:
    """Median and range: 123 [100 – 140]."""
    median = number(statistics.median(found))
    return median if len(found) == 1 else f"{median} [{number(min(found))} – {number(max(found))}]"


def exact(fact: dict[str, Any]) -> str:
    if fact.get("state") != "saved":
        return str(fact.get("state", ""))
    equal = fact["equal_batches"]
    return "yes" if equal == RESUMED_BATCHES else f"no: {equal} of {RESUMED_BATCHES} batches"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    cells = ([cell.replace("|", "/") for cell in row] for row in rows)
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in cells)]) + "\n"
