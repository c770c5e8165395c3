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

import ablation
import balance
import cells
import checks
import cold
import cold_blocks
import counting
import document_columns
import importing
import layouts
import learning
import loaders_on_a_node
import local_cache
import memory
import mixing
import mixture
import opening
import packing
import permutation
import ready_batch
import remote
import shards
import shuffling
import sizes
import stalls
import throughput
import training
import writing
from results import Result, SkippedError, machine, make_folders, number, versions
from rich.console import Console
from rich.table import Table
from workloads import FULL, QUICK, Corpora

MEASUREMENTS = {
    "permutation": permutation.measure,
    "import": importing.measure,
    "opening": opening.measure,
    "shards": shards.measure,
    "ready": ready_batch.measure,
    "throughput": throughput.measure,
    "columns": document_columns.measure,
    "metrics": counting.measure,
    "cold": cold.measure,
    "blocks": cold_blocks.measure,
    "stalls": stalls.measure,
    "training": training.measure,
    "sizes": sizes.measure,
    "ablation": ablation.measure,
    "writer": writing.measure,
    "remote": remote.measure,
    "shuffle": shuffling.measure,
    "memory": memory.measure,
    "layouts": layouts.measure,
    "checks": checks.measure,
    "node": loaders_on_a_node.measure,
    "mixing": mixing.measure,
    "mixture": mixture.measure,
    "learning": learning.measure,
    "cells": cells.measure,
    "packing": packing.measure,
    "balance": balance.measure,
    "cache": local_cache.measure,
}


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=MEASUREMENTS, action="append", help="one measurement; may be repeated")
    parser.add_argument(
        "--quick", action="store_true", help="small corpora, few repeats: whether it runs, not how fast"
    )
    parser.add_argument(
        "--dir", type=Path, help="where corpora are kept for the next time (8 GB); else they are removed"
    )
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--markdown", type=Path, help="file for the table, as docs/benchmarks.md has it")
    parser.add_argument("--charts", type=Path, help="folder for the charts that docs/benchmarks.md shows")
    return parser.parse_args(given)


@contextlib.contextmanager
def cache_folder(chosen: Path | None) -> Iterator[Path]:
    """`chosen`, or a temporary folder that is removed in the end."""
    if chosen is not None:
        yield chosen
        return
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        yield Path(folder)


COLUMNS = ("measurement", "figure", "median", "spread", "target", "repeats", "bytes", "cache")


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


def table(results: list[Result], command: str) -> Table:
    """For the terminal; targets that were missed are red."""
    out = Table(title=f"{machine()}\n{versions()}\n{command}", title_justify="left", title_style="", show_edge=False)
    for column in COLUMNS:
        right = column in ("median", "spread", "target", "repeats", "bytes")
        out.add_column(column, justify="right" if right else "left", no_wrap=column not in ("figure", "cache"))
    for result in results:
        style = {True: "green", False: "red", None: None}[result.reached]
        out.add_row(*texts(result), style=style)
    return out


def markdown(results: list[Result], command: str) -> str:
    """For the documentation."""
    lines = [
        f"{machine()}; {versions()}; `{command}`",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|" + " --- |" * len(COLUMNS),
    ]
    return "\n".join([*lines, *("| " + " | ".join(texts(result)) + " |" for result in results)]) + "\n"


def main() -> None:
    options = arguments()
    # What repeats the measurement; where its files are is this machine's business.
    chosen = [word for name in options.only or () for word in ("--only", name)]
    command = shlex.join(["python", "benchmarks/run.py", *(["--quick"] if options.quick else []), *chosen])
    size = QUICK if options.quick else FULL
    make_folders(options.json, options.markdown)
    results: list[Result] = []
    with cache_folder(options.dir) as folder:
        corpora = Corpora(folder, size)
        for name in options.only or MEASUREMENTS:
            print(f"measuring: {name}", file=sys.stderr, flush=True)
            try:
                results += MEASUREMENTS[name](corpora)
            except SkippedError as error:
                print(f"skipped: {name}: {error}", file=sys.stderr)
    Console(width=None if sys.stdout.isatty() else 160).print(table(results, command))
    if options.markdown:
        options.markdown.write_text(markdown(results, command), encoding="utf-8")
    lines = [result.as_json(machine(), versions(), command) for result in results]
    if options.json:
        options.json.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    if options.charts:
        import charts

        charts.draw(lines, options.charts)


if __name__ == "__main__":
    main()
