"""`penstock combine`."""

from __future__ import annotations

import click

from penstock._cli.data import named_by_user, out_option, refuse_existing
from penstock._cli.output import json_option
from penstock._cli.report import report_new

_EPILOG = """\b
Example:
  penstock combine part1/ part2/ --out corpus/
"""


@click.command("combine", epilog=_EPILOG, short_help="Join datasets into one.")
@click.argument("inputs", nargs=-1, required=True, metavar="DATA...")
@out_option
@json_option
def command(inputs: tuple[str, ...], out: str, as_json: bool) -> None:
    """Joins datasets, in the order given, into one; shards are linked where the file system can, else copied."""
    import penstock

    refuse_existing(out)
    with named_by_user(inputs):
        penstock.combine(list(inputs), out)
    report_new(out, as_json)
