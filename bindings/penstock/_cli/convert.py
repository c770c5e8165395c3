"""`penstock convert`."""

from __future__ import annotations

import click

from penstock._cli.output import json_option


@click.command("convert", short_help="Change a dataset's layout of spans.")
@click.argument("data", metavar="DATA")
@click.option("--layout", type=click.Choice(["compact", "ids"]), required=True, help="Of the new dataset.")
@click.option("--out", required=True, metavar="DIR", help="The new dataset's folder.")
@json_option
def command(data: str, layout: str, out: str, as_json: bool) -> None:
    """Writes a dataset again with its spans in another layout; records and entries stay as they are."""
    import penstock
    from penstock._cli.combine import report_new

    penstock.convert(data, out, layout)
    report_new(out, as_json)
