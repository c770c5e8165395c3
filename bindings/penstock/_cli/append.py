"""`penstock append`."""

from __future__ import annotations

from typing import Any

import click

from penstock._cli.command_help import Command, heading
from penstock._cli.data import bucket_options, given_storage, named_by_user, passing_option, warnings_as_notes
from penstock._cli.executors import ray_option, workers_of, workers_option
from penstock._cli.output import json_option, progress
from penstock._cli.report import report_new
from penstock._places.remote import shown

_EPILOG = """\b
Examples:
  penstock append corpus/ more/
  penstock append corpus/ monday/ tuesday/ --resume
  penstock append s3://bucket/corpus s3://bucket/monday tuesday/
"""


@click.command("append", cls=Command, epilog=_EPILOG)
@click.argument("data", metavar="DATASET")
@click.argument("more", nargs=-1, required=True, metavar="MORE...")
@click.option("--resume", is_flag=True, help="Do nothing if DATASET ends with the shards of MORE already.")
@workers_option
@heading("Where it runs")
@ray_option
@passing_option
@bucket_options
@json_option
def command(data: str, more: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Adds the shards of the datasets MORE, in this order, behind those of DATASET.

    Shards are linked where the file system can, else copied; those of DATASET keep their numbers, and whoever has it
    open reads on. A job on DATASET goes on from its state by penstock.Loader(…, on_mismatch="grown").
    """
    import penstock

    given["workers"] = workers_of(given)
    label = f"appending to {shown(data)}"
    with warnings_as_notes(), progress(label, as_json, unit="shards") as update, named_by_user((data, *more)):
        penstock.append(data, more, progress=update, storage=given_storage(), **given)
    report_new(data, as_json)
