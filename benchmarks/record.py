"""The files of a run, `--json` and `--markdown`: written anew as each measurement ends, so a killed run keeps them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from results import Result, machine, number, versions
from rich.table import Table

COLUMNS = ("measurement", "figure", "median", "spread", "target", "repeats", "bytes", "cache")
QUICK_RUN = "QUICK RUN: shows that each measurement runs. The figures mean nothing: do not record them."


@dataclass
class Record:
    """Lines of one run. The files are as of the last `add`; a reader never sees half of one. One thread."""

    command: str
    quick: bool = False
    json: Path | None = None
    markdown: Path | None = None
    results: list[Result] = field(default_factory=list)

    def add(self, results: list[Result]) -> None:
        """Appends the lines of a measurement and writes both files."""
        self.results += results
        self.write()

    def write(self) -> None:
        """Writes both files."""
        replace_file(self.markdown, self.as_markdown())
        replace_file(self.json, json.dumps(self.lines(), indent=1) + "\n")

    def lines(self) -> list[dict[str, Any]]:
        """Records for `--json` and for charts."""
        return [each.as_json(machine(), versions(), self.command) | {"quick": self.quick} for each in self.results]

    def as_markdown(self) -> str:
        """The table of docs/benchmarks.md."""
        lines = [
            *([f"**{QUICK_RUN}**", ""] if self.quick else []),
            f"{machine()}; {versions()}; `{self.command}`",
            "",
            "| " + " | ".join(COLUMNS) + " |",
            "|" + " --- |" * len(COLUMNS),
        ]
        return "\n".join([*lines, *("| " + " | ".join(texts(result)) + " |" for result in self.results)]) + "\n"

    def table(self) -> Table:
        """For the terminal; missed targets are red, but for those of a quick run."""
        title = "\n".join([*([QUICK_RUN] if self.quick else []), machine(), versions(), self.command])
        out = Table(title=title, title_justify="left", title_style="", show_edge=False)
        for column in COLUMNS:
            right = column in ("median", "spread", "target", "repeats", "bytes")
            out.add_column(column, justify="right" if right else "left", no_wrap=column not in ("figure", "cache"))
        for result in self.results:
            style = {True: "green", False: "red", None: None}[None if self.quick else result.reached]
            out.add_row(*texts(result), style=style)
        return out


def texts(result: Result) -> tuple[str, ...]:
    """The line as text, by COLUMNS."""
    return (
        result.name,
        result.what,
        f"{number(result.median)} {result.unit}",
        f"{number(min(result.values))} – {number(max(result.values))}",
        result.target,
        str(len(result.values)),
        f"{result.bytes:,}" if result.bytes else "",
        result.cache,
    )


def replace_file(path: Path | None, text: str) -> None:
    """Replaces the file in one step; None: there is none."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.unfinished")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
