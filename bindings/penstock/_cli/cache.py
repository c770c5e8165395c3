"""`penstock cache`."""

from __future__ import annotations

import click

from penstock._cli.command_help import Command
from penstock._cli.output import emit_json, emit_table, human_bytes, json_option

_EPILOG = """\b
Examples:
  penstock cache /scratch/penstock
  penstock cache /scratch/penstock --clear
"""


@click.command("cache", cls=Command, epilog=_EPILOG)
@click.argument("folder", metavar="DIR")
@click.option("--clear", is_flag=True, help="Remove all that is kept in DIR.")
@json_option
def command(folder: str, clear: bool, as_json: bool) -> None:
    """Shows which datasets the cache in DIR (cache= of penstock.open) keeps a part of, and how large it is.

    --clear removes what a cache made there, and no other file. Jobs that read through it go on, at worst
    without a cache to their end.
    """
    from penstock._data import cache as _cache

    if clear:
        removed = _cache.clear(folder)
        if as_json:
            emit_json({"removed_bytes": removed})
        else:
            click.echo(f"removed {human_bytes(removed)}")
        return
    found = _cache.look(folder)
    if as_json:
        emit_json(
            [
                {
                    "address": each.address,
                    "folder": str(each.folder),
                    "dataset_bytes": each.dataset_bytes,
                    "kept_bytes": each.kept_bytes,
                    "share": each.share,
                }
                for each in found
            ]
        )
        return
    if not found:
        click.echo("nothing is kept")
        return
    rows = []
    for each in found:
        words = human_bytes(each.kept_bytes)
        if each.dataset_bytes is not None and each.share is not None:
            words += f" of {human_bytes(each.dataset_bytes)}, {each.share:.1%} of it may be kept"
        rows.append((each.address or str(each.folder), words))
    emit_table(rows)
