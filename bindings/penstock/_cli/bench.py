"""`penstock bench`."""

from __future__ import annotations

import math
import time
from typing import Any

import click

from penstock._base.words import counted
from penstock._cli.command_help import Command, heading
from penstock._cli.data import data_options, open_data
from penstock._cli.output import emit_json, emit_table, human_bytes, json_option, progress
from penstock._places.remote import shown

_EPILOG = """\b
Examples:
  penstock bench corpus/ --window 2048 --batch-size 8
  penstock bench 'tokens/*.bin' --dtype u2 --reader mmap --seconds 20
"""


@click.command("bench", cls=Command, epilog=_EPILOG)
@data_options
@click.option(
    "--window", "-w", type=click.IntRange(1), default=2048, show_default=True, help="Records (tokens) of a window."
)
@click.option("--documents", is_flag=True, help="Read documents instead of windows.")
@click.option("--batch-size", "-b", type=click.IntRange(1), default=8, show_default=True, help="Rows of a batch.")
@click.option(
    "--order",
    type=click.Choice(["uniform", "sequential"]),
    default="uniform",
    show_default=True,
    help="uniform shuffles the whole dataset; sequential reads it from front to back.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 86_400),
    default=5.0,
    show_default=True,
    help="How long to read, in seconds.",
)
@heading("Reading")
@click.option(
    "--reader",
    type=click.Choice(["auto", "pread", "uring", "direct", "mmap"]),
    default="auto",
    show_default=True,
    help="How files are read: auto is uring where the kernel allows it, else pread; direct goes past the page cache; "
    "mmap maps files (then an error of the device ends the process).",
)
@click.option(
    "--threads",
    type=click.IntRange(1),
    help="Threads that read. Default: the loader's own choice, by the cores of this machine.",
)
@click.option("--prefetch", type=click.IntRange(1), default=4, show_default=True, help="Batches read ahead.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the uniform order.")
@json_option
def command(data: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Loads batches for some seconds, as one rank of a training job would, and says how fast they came.

    Files in the page cache are read from there: for a warm figure read them once before.
    """
    if math.isnan(given["seconds"]):  # which is in no range, and click lets it through
        raise click.BadParameter("nan is no time", param_hint="--seconds")
    found = _measure(data, given, as_json)
    if as_json:
        emit_json(found)
        return
    emit_table(
        [
            ("opening", f"{found['open_ms']:,.1f} ms"),
            ("first batch", f"{found['first_batch_ms']:,.1f} ms after that"),
            ("batches", f"{found['batches_per_second']:,.0f} /s of {given['batch_size']:,}"),
            (found["observations"], f"{found['observations_per_second']:,.0f} /s"),
            (
                "read",
                f"{human_bytes(found['megabytes_per_second'] * 1e6)}/s, {found['records_per_second']:,.0f} records/s",
            ),
            ("reader", f"{found['reader']}, {counted(found['threads'], 'thread')}"),
        ]
    )


def _measure(data: tuple[str, ...], given: dict[str, Any], quiet: bool) -> dict[str, Any]:
    import penstock

    begin = time.perf_counter()
    dataset = open_data(data, given["dtype"], given["format"])
    given["documents"] = given["documents"] or dataset.features is not None
    view = dataset.documents() if given["documents"] else dataset.windows(given["window"])
    opened = time.perf_counter()
    options = {name: given[name] for name in ("batch_size", "order", "reader", "threads", "prefetch", "seed")}
    loader = penstock.Loader(view, **options, rank=0, world_size=1, framework="numpy")
    record_bytes = dataset.dtype.itemsize if dataset.dtype is not None else 0
    batches = records = 0
    with loader, progress("reading", quiet, "batches") as update:
        batch = next(loader)
        first = now = time.perf_counter()
        while now - first < given["seconds"]:
            batch = next(loader)
            batches += 1
            records += given["batch_size"] * given["window"] if not given["documents"] else int(batch.offsets[-1])
            now = time.perf_counter()
            if batches % 64 == 0:
                elapsed = now - first
                update(batches, round(batches * given["seconds"] / elapsed))
    seconds = now - first
    return {
        "path": shown(*data),
        "observations": "documents" if given["documents"] else "windows",
        "window": None if given["documents"] else given["window"],
        "batch_size": given["batch_size"],
        "seconds": round(seconds, 3),
        "open_ms": round((opened - begin) * 1e3, 3),
        "first_batch_ms": round((first - opened) * 1e3, 3),
        "batches": batches,
        "batches_per_second": round(batches / seconds, 3),
        "observations_per_second": round(batches * given["batch_size"] / seconds, 3),
        "records_per_second": round(records / seconds),
        "megabytes_per_second": round(records * record_bytes / seconds / 1e6, 3),
        "reader": loader.reader,
        "threads": loader.threads,
    }
