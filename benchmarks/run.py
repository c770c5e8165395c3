"""Measures penstock on this machine and prints a table: `make bench`, or `python benchmarks/run.py --help`."""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import importing
import opening
import permutation
import ready_batch
import throughput
from results import Result, machine, number
from rich.console import Console
from rich.table import Table
from workloads import FULL, QUICK, Corpora

MEASUREMENTS = {
    "permutation": permutation.measure,
    "import": importing.measure,
    "opening": opening.measure,
    "ready": ready_batch.measure,
    "throughput": throughput.measure,
}


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=MEASUREMENTS, action="append", help="one measurement; may be repeated")
    parser.add_argument(
        "--quick", action="store_true", help="small corpora, few repeats: whether it runs, not how fast"
    )
    parser.add_argument(
        "--dir", type=Path, help="where corpora are kept for the next time (2 GB); else they are removed"
    )
    parser.add_argument("--json", type=Path, help="file for the results")
    return parser.parse_args(given)


@contextlib.contextmanager
def cache_folder(chosen: Path | None) -> Iterator[Path]:
    """`chosen`, or a folder beside the repository's build that is removed in the end."""
    if chosen is not None:
        yield chosen
        return
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        yield Path(folder)


def table(results: list[Result], command: str) -> Table:
    out = Table(title=f"{machine()}\n{command}", title_justify="left", title_style="", show_edge=False)
    for column, justify in (("measurement", "left"), ("figure", "left"), ("median", "right"), ("spread", "right")):
        out.add_column(column, justify=justify, no_wrap=column != "figure")
    for column, justify in (("target", "right"), ("repeats", "right"), ("bytes", "right"), ("cache", "left")):
        out.add_column(column, justify=justify, no_wrap=column != "cache")
    for result in results:
        reached = {True: "green", False: "red", None: ""}[result.reached]
        out.add_row(
            result.name,
            result.what,
            f"{number(result.median)} {result.unit}",
            f"{number(min(result.values))} – {number(max(result.values))}",
            f"[{reached}]{result.target}[/{reached}]" if reached else result.target,
            str(len(result.values)),
            f"{result.bytes:,}" if result.bytes else "",
            result.cache,
        )
    return out


def main() -> None:
    options = arguments()
    command = shlex.join(["python", "benchmarks/run.py", *sys.argv[1:]])
    size = QUICK if options.quick else FULL
    results: list[Result] = []
    with cache_folder(options.dir) as folder:
        corpora = Corpora(folder, size)
        for name in options.only or MEASUREMENTS:
            print(f"measuring: {name}", file=sys.stderr, flush=True)
            results += MEASUREMENTS[name](corpora)
    Console(width=None if sys.stdout.isatty() else 160).print(table(results, command))
    if options.json:
        lines = [result.as_json(machine(), command) for result in results]
        options.json.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
