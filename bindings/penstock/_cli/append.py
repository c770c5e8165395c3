"""`penstock append`."""

from __future__ import annotations

import click

from penstock._cli.data import named_by_user
from penstock._cli.output import json_option, progress
from penstock._cli.report import report_new
from penstock._places.remote import shown

_EPILOG = """\b
Examples:
  penstock append corpus/ more/
  penstock append corpus/ monday/ tuesday/ --resume
"""


@click.command("append", epilog=_EPILOG, short_help="Add the shards of other datasets to the end of one.")
@click.argument("data", metavar="DATASET")
@click.argument("more", nargs=-1, required=True, metavar="MORE...")
@click.option("--resume", is_flag=True, help="Do nothing if DATASET ends with the shards of MORE already.")
@json_option
def command(data: str, more: tuple[str, ...], resume: bool, as_json: bool) -> None:
    """Adds the shards of the datasets MORE, in this order, behind those of DATASET.

    Shards are linked where the file system can, else copied; those of DATASET keep their numbers, and whoever has it
    open reads on. A job on DATASET goes on from its state by penstock.Loader(…, on_mismatch="grown").
    """
    import penstock

    with progress(f"appending to {shown(data)}", as_json, unit="shards") as update, named_by_user((data, *more)):
        penstock.append(data, more, progress=update, resume=resume)
    report_new(data, as_json)
