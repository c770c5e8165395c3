"""`penstock combine`."""

from __future__ import annotations

from typing import Any

import click

from penstock._cli.command_help import Command, heading
from penstock._cli.data import (
    bucket_options,
    given_storage,
    named_by_user,
    out_or_bucket_option,
    passing_option,
    refuse_existing,
    warnings_as_notes,
)
from penstock._cli.executors import ray_option, workers_of, workers_option
from penstock._cli.output import json_option, progress
from penstock._cli.report import report_new
from penstock._places.remote import shown

_EPILOG = """\b
Examples:
  penstock combine part1/ part2/ --out corpus/
  penstock combine s3://bucket/part1 part2/ --out s3://bucket/corpus
"""


@click.command("combine", cls=Command, epilog=_EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="DATA...")
@out_or_bucket_option
@workers_option
@click.option("--resume", is_flag=True, help="Go on with a run that was killed: keep its finished shards.")
@click.option("--overwrite", is_flag=True, help="Replace the dataset in --out, once the new one is whole.")
@heading("Where it runs")
@ray_option
@passing_option
@bucket_options
@json_option
def command(inputs: tuple[str, ...], out: str, overwrite: bool, as_json: bool, **given: Any) -> None:
    """Joins datasets, in the order given, into one; shards are linked where the file system can, else copied.

    In a bucket, shards of the same bucket are copied on its server; others pass through this machine.
    """
    import penstock

    refuse_existing(out, overwrite)
    given["workers"] = workers_of(given)
    with warnings_as_notes(), named_by_user(inputs), progress(f"writing {shown(out)}", as_json) as update:
        penstock.combine(list(inputs), out, overwrite=overwrite, progress=update, storage=given_storage(), **given)
    report_new(out, as_json)
