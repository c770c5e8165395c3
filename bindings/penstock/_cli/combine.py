"""`penstock combine`."""

from __future__ import annotations

import click

from penstock._cli.output import emit_json, json_option


@click.command("combine", short_help="Join datasets into one.")
@click.argument("inputs", nargs=-1, required=True, metavar="DATA...")
@click.option("--out", required=True, metavar="DIR", help="The new dataset's folder.")
@json_option
def command(inputs: tuple[str, ...], out: str, as_json: bool) -> None:
    """Joins datasets, in the order given, into one; shards are linked where the file system can, else copied."""
    import penstock

    penstock.combine(list(inputs), out)
    report_new(out, as_json)


def report_new(out: str, as_json: bool) -> None:
    """Says what was made."""
    import penstock
    from penstock._cli.info import describe

    found = describe((out,), penstock.open(out))
    if as_json:
        emit_json(found)
    else:
        click.echo(f"{out}: {found['records']:,} records, {found['spans']:,} spans, {found['shards']:,} shards")
