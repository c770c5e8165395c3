"""`penstock export`."""

from __future__ import annotations

from typing import Any

import click

from penstock._cli.data import open_data, storage_options
from penstock._cli.output import echo, emit_json, json_option, progress, report_of
from penstock._words import counted


@click.command("export", short_help="Write single cells as AnnData.")
@click.argument("data", nargs=-1, required=True, metavar="DATA...")
@storage_options
@click.option("--to", "format", type=click.Choice(["h5ad"]), required=True, help="What is written.")
@click.option("--out", required=True, metavar="FILE", help="The new file.")
@json_option
def command(data: tuple[str, ...], format: str, out: str, as_json: bool) -> None:
    """Writes a dataset of cells as an .h5ad file: records as X and layers, columns as obs and obsm, features as var."""
    from penstock._anndata.exporting import export_h5ad
    from penstock._paths import local_path

    dataset: Any = open_data(data)
    with progress(f"writing {out}", as_json, "cells") as update:
        cells = export_h5ad(dataset, local_path(out), update)
    with report_of(out):
        if as_json:
            emit_json({"path": out, "cells": cells, "genes": len(dataset.features)})
        else:
            echo(f"{out}: {counted(cells, 'cell')}, {counted(len(dataset.features), 'gene')}")
