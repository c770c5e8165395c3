"""Measures penstock on this machine and prints a table: `make bench`, or `python benchmarks/run.py --help`."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path

import ablation
import balance
import cells
import checks
import cold
import cold_blocks
import counting
import custom_order
import document_columns
import draws
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
import per_shard
import permutation
import ready_batch
import remote
import shards
import shuffling
import sizes
import stalls
import text_writing
import throughput
import token_files
import training
import transforms
import uneven
import view
import where
import writing
from record import Record, texts
from results import SkippedError, left_out, make_folders
from rich.console import Console
from workloads import FULL, QUICK, Corpora

MEASUREMENTS = {
    "permutation": permutation.measure,
    "import": importing.measure,
    "opening": opening.measure,
    "shards": shards.measure,
    "per-shard": per_shard.measure,
    "ready": ready_batch.measure,
    "throughput": throughput.measure,
    "columns": document_columns.measure,
    "transforms": transforms.measure,
    "metrics": counting.measure,
    "cold": cold.measure,
    "blocks": cold_blocks.measure,
    "stalls": stalls.measure,
    "training": training.measure,
    "sizes": sizes.measure,
    "ablation": ablation.measure,
    "writer": writing.measure,
    "token-files": token_files.measure,
    "text": text_writing.measure,
    "remote": remote.measure,
    "shuffle": shuffling.measure,
    "memory": memory.measure,
    "layouts": layouts.measure,
    "checks": checks.measure,
    "node": loaders_on_a_node.measure,
    "mixing": mixing.measure,
    "mixture": mixture.measure,
    "draws": draws.measure,
    "custom": custom_order.measure,
    "learning": learning.measure,
    "cells": cells.measure,
    "packing": packing.measure,
    "balance": balance.measure,
    "uneven": uneven.measure,
    "cache": local_cache.measure,
    "where": where.measure,
    "view": view.measure,
}


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=MEASUREMENTS, action="append", help="one measurement; may be repeated")
    parser.add_argument(
        "--quick", action="store_true", help="each in its smallest form, a minute in all: shows that they run"
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


def measure_all(names: Iterable[str], corpora: Corpora, record: Record) -> list[str]:
    """Adds the lines of each measurement to the record as it ends.

    Returns:
        Measurements that failed; the others ran all the same.
    """
    failed = []
    for name in names:
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        begin = time.perf_counter()
        try:
            added = MEASUREMENTS[name](corpora)
            record.add(added)
            print("\n".join(" | ".join(texts(each)) for each in added), flush=True)  # a killed run keeps them
        except SkippedError as error:
            left_out(name, str(error))
        except Exception:
            traceback.print_exc()
            failed.append(name)
        print(f"measured: {name}: {time.perf_counter() - begin:.1f} s", file=sys.stderr, flush=True)
    return failed


def main() -> None:
    options = arguments()
    # What repeats the measurement; where its files are is this machine's business.
    chosen = [word for name in options.only or () for word in ("--only", name)]
    command = shlex.join(["python", "benchmarks/run.py", *(["--quick"] if options.quick else []), *chosen])
    record = Record(command, options.quick, options.json, options.markdown)
    make_folders(options.json, options.markdown)
    with cache_folder(options.dir) as folder:
        corpora = Corpora(folder, QUICK if options.quick else FULL)
        failed = measure_all(options.only or MEASUREMENTS, corpora, record)
    record.write()  # also where everything was left out
    Console(width=None if sys.stdout.isatty() else 160).print(record.table())
    if options.charts:
        import charts

        charts.draw(record.lines(), options.charts)
    if failed:
        sys.exit(f"benchmarks/run.py: failed: {', '.join(failed)}; see the tracebacks above")


if __name__ == "__main__":
    main()
