"""`penstock convert`."""

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
)
from penstock._cli.executors import ray_option, workers_of, workers_option
from penstock._cli.output import json_option, progress
from penstock._cli.report import report_new
from penstock._places.remote import shown

_EPILOG = """\b
Examples:
  penstock convert corpus/ --layout ids --out corpus-ids/
  penstock convert s3://bucket/corpus --layout ids --out s3://bucket/corpus-ids
"""


@click.command("convert", cls=Command, epilog=_EPILOG)
@click.argument("data", metavar="DATA")
@click.option(
    "--layout",
    type=click.Choice(["compact", "ids"]),
    required=True,
    help="Layout of the new dataset: ids stores the document's number in each record, compact does not.",
)
@out_or_bucket_option
@workers_option
@click.option("--resume", is_flag=True, help="Go on with a run that did not end: keep its finished shards.")
@click.option("--overwrite", is_flag=True, help="Replace the dataset in --out, once the new one is whole.")
@heading("Where it runs")
@ray_option
@passing_option
@bucket_options
@json_option
def command(data: str, layout: str, out: str, as_json: bool, **given: Any) -> None:
    """Writes a dataset again with its spans in another layout; records and entries stay as they are."""
    import penstock

    refuse_existing(out, given["resume"] or given["overwrite"])
    given["workers"] = workers_of(given)
    with named_by_user((data,)), progress(f"converting {shown(data)}", as_json) as update:
        penstock.convert(data, out, layout, progress=update, storage=given_storage(), **given)
    report_new(out, as_json)
