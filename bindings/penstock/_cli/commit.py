"""`penstock commit`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from penstock._cli.command_help import Command
from penstock._cli.data import bucket_options, given_storage
from penstock._cli.output import json_option
from penstock._cli.report import report_new
from penstock._make.errors import UsageError

_EPILOG = """\b
Examples:
  penstock commit corpus/ --shards 64
  penstock commit s3://bucket/corpus --run-id 2024-06
"""


@click.command("commit", cls=Command, epilog=_EPILOG)
@click.argument("data", metavar="DIR|URL")
@click.option(
    "--shards",
    type=click.IntRange(1),
    help="Number of shards that must be there. Default: all from 0 on, without a gap.",
)
@click.option("--run-id", help="Name of the run that the writers were given. Default: none.")
@click.option(
    "--overwrite", is_flag=True, help="Replace the dataset in DIR; its writers must have been given overwrite=True."
)
@bucket_options
@json_option
def command(data: str, as_json: bool, **given: Any) -> None:
    """Publishes the finished shards of a folder as one dataset: what writers made with penstock.Writer(shard=K).

    A shard that is missing is an error, and nothing is published.
    """
    import penstock
    from penstock._make.folders import folder_of

    storage, run = given_storage(), given["run_id"]
    if not folder_of(data, storage).is_there():
        what = "a file" if Path(data).exists() else "no such folder"
        raise UsageError(f"{data}: {what}: give the folder that penstock.Writer(…, shard=K) wrote to")
    penstock.commit(data, shards=given["shards"], run=run, overwrite=given["overwrite"], storage=storage)
    report_new(data, as_json)
