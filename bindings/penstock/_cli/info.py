"""`penstock info`."""

from __future__ import annotations

from typing import Any

import click

from penstock._cli.data import data_options, open_data
from penstock._cli.output import emit_json, emit_table, json_option
from penstock._view.describe import describe, id_bytes

_EPILOG = """\b
Examples:
  penstock info corpus/
  penstock info 'tokens/*.bin' --dtype u2
"""


@click.command("info", epilog=_EPILOG, short_help="What a dataset is.")
@data_options
@json_option
def command(data: tuple[str, ...], dtype: str | None, format: str | None, as_json: bool) -> None:
    """Shows fields, sizes, tokenizer and fingerprint of a dataset, or of token files in place.

    DATA is a dataset's folder; a Megatron prefix; .bin or .npy files (with --dtype where they do not say it).
    """
    dataset = open_data(data, dtype, format)
    described = describe(data, dataset)
    if as_json:
        emit_json(described)
        return
    notices = described.pop("notices")
    if not described["columns"]:
        del described["columns"]
    found = {name: _words(name, value) for name, value in described.items()}
    if id_bytes(dataset.layout):
        found["record_bytes"] += f", of which {id_bytes(dataset.layout)} metadata_id"
    emit_table([(name.replace("_", " "), words) for name, words in found.items()])
    for notice in notices:
        click.echo(f"note: {notice}", err=True)


def _words(name: str, value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {each}" for key, each in value.items()) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)
