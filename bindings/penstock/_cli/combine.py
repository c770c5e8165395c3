"""`penstock combine`."""

from __future__ import annotations

import click

from penstock._cli.data import named_by_user, out_option, refuse_existing
from penstock._cli.output import json_option, progress
from penstock._cli.report import report_new
from penstock._places.remote import shown

_EPILOG = """\b
Example:
  penstock combine part1/ part2/ --out corpus/
"""


@click.command("combine", epilog=_EPILOG, short_help="Join datasets into one.")
@click.argument("inputs", nargs=-1, required=True, metavar="DATA...")
@out_option
@click.option("--resume", is_flag=True, help="Go on with a run that was killed: keep its finished shards.")
@click.option("--overwrite", is_flag=True, help="Replace the dataset in --out, once the new one is whole.")
@json_option
def command(inputs: tuple[str, ...], out: str, resume: bool, overwrite: bool, as_json: bool) -> None:
    """Joins datasets, in the order given, into one; shards are linked where the file system can, else copied."""
    import penstock

    refuse_existing(out, overwrite)
    with named_by_user(inputs), progress(f"writing {shown(out)}", as_json) as update:
        penstock.combine(list(inputs), out, resume=resume, overwrite=overwrite, progress=update)
    report_new(out, as_json)
