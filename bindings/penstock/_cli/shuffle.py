"""`penstock shuffle`."""

from __future__ import annotations

from typing import Any

import click

from penstock._cli.command_help import Command, heading
from penstock._cli.data import bucket_options, given_storage, named_by_user, out_or_bucket_option, refuse_existing
from penstock._cli.executors import cluster_of, ray_option
from penstock._cli.output import SizeType, json_option, progress
from penstock._cli.report import report_new
from penstock._places.remote import shown

_EPILOG = """\b
Examples:
  penstock shuffle corpus/ --documents --seed 1 --out shuffled/
  penstock shuffle corpus/ --window 2048 --seed 1 --memory 4GiB --out shuffled/
"""


@click.command("shuffle", cls=Command, epilog=_EPILOG)
@click.argument("data", metavar="DATA")
@click.option(
    "--window",
    type=click.IntRange(1),
    metavar="W",
    help="Shuffle windows of W records (tokens). Default: none; give this or --documents.",
)
@click.option("--documents", is_flag=True, help="Shuffle documents.")
@click.option("--seed", type=click.IntRange(0, (1 << 64) - 1), required=True, help="Seed of the permutation.")
@out_or_bucket_option
@click.option(
    "--memory",
    type=SizeType(),
    default="1GiB",
    show_default=True,
    help="Bytes of memory to work in, such as 512M or 4GiB.",
)
@click.option("--workers", type=click.IntRange(1), help="Number of processes, each with --memory. Default: one.")
@click.option("--resume", is_flag=True, help="Go on with an interrupted run: keep its finished shards.")
@click.option("--overwrite", is_flag=True, help="Replace the dataset in --out, once the new one is whole.")
@heading("Files of the dataset")
@click.option(
    "--shard-size",
    type=SizeType(),
    default="1GiB",
    show_default=True,
    help="Bytes of a shard of the new dataset, such as 64M or 1GiB.",
)
@heading("Where it runs")
@ray_option
@click.option(
    "--scratch",
    metavar="DIR",
    help="Folder for a temporary file as large as DATA. Default: that of --out, or of temporary files.",
)
@bucket_options
@json_option
def command(data: str, out: str, as_json: bool, **given: Any) -> None:
    """Writes a dataset again with its windows or documents in the order of a permutation.

    A window's records and spans stay together, and so do a document's. The input is read once from front to back and
    put aside in a scratch file of the same size, and the result is written from front to back. The bytes are the same
    for any --memory, and for any number of workers.
    """
    import penstock

    if (given["window"] is None) == (not given["documents"]):
        raise click.UsageError("what is shuffled: give --window W or --documents, one of them")
    refuse_existing(out, given["resume"] or given["overwrite"])
    given["workers"] = cluster_of(given) or given["workers"] or 1
    named = [data] if given["scratch"] is None else [data, given["scratch"]]
    with progress(f"shuffling {shown(data)}", as_json) as update, named_by_user(named):
        penstock.shuffle(
            data,
            out,
            progress=update,
            storage=given_storage(),
            uploading=lambda done, total: update(done, total, label=f"uploading to {shown(out)}"),
            **given,
        )
    report_new(out, as_json)
