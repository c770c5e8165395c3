"""`penstock convert`."""

from __future__ import annotations

import click

from penstock._cli.data import named_by_user, out_option, refuse_existing
from penstock._cli.output import json_option
from penstock._cli.report import report_new

_EPILOG = """\b
Example:
  penstock convert corpus/ --layout ids --out corpus-ids/
"""


@click.command("convert", epilog=_EPILOG, short_help="Change a dataset's layout of spans.")
@click.argument("data", metavar="DATA")
@click.option(
    "--layout",
    type=click.Choice(["compact", "ids"]),
    required=True,
    help="Layout of the new dataset: ids stores the document's number in each record, compact does not.",
)
@out_option
@click.option("--overwrite", is_flag=True, help="Replace the dataset in --out, once the new one is whole.")
@json_option
def command(data: str, layout: str, out: str, overwrite: bool, as_json: bool) -> None:
    """Writes a dataset again with its spans in another layout; records and entries stay as they are."""
    import penstock

    refuse_existing(out, overwrite)
    with named_by_user((data,)):
        penstock.convert(data, out, layout, overwrite=overwrite)
    report_new(out, as_json)
