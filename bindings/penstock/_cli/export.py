"""`penstock export`."""

from __future__ import annotations

from typing import Any

import click

from penstock._base.words import counted
from penstock._cli.command_help import Command
from penstock._cli.data import data_options, open_data
from penstock._cli.output import echo, emit_json, emit_table, human_seconds, json_option, progress, report_of

_EPILOG = """\b
Examples:
  penstock export corpus/ --to megatron --out corpus_text_document --drop metadata
  penstock export corpus/ --to mds --window 2048 --drop metadata --out mds/
  penstock export cells/ --to h5ad --out cells.h5ad
"""

_IN_PLACE = (
    "of .h5ad files in place only X, obs and var are read: cells are named by their numbers, and obsm, layers, raw and "
    "uns are left out; `penstock import` takes names, and what --obsm and --layers say"
)


@click.command("export", cls=Command, epilog=_EPILOG)
@data_options
@click.option(
    "--to",
    type=click.Choice(["megatron", "datatrove", "mds", "h5ad"]),
    required=True,
    help="Format of the files; h5ad is for single cells.",
)
@click.option(
    "--out",
    required=True,
    metavar="PATH",
    help="What is made: a file, of megatron the prefix of two files, of mds a folder.",
)
@click.option(
    "--window", type=click.IntRange(1), metavar="W", help="Write sequences of W records (tokens). Default: documents."
)
@click.option(
    "--drop",
    metavar="A,B",
    help="Leave out what the format cannot hold: metadata, columns, features, fields; of datatrove also empty, the "
    "documents without tokens. Default: nothing.",
)
@json_option
def command(
    data: tuple[str, ...],
    dtype: str | None,
    format: str | None,
    to: str,
    out: str,
    window: int | None,
    drop: str | None,
    as_json: bool,
) -> None:
    """Writes a dataset as token files, or a dataset of cells as an .h5ad file.

    What the format cannot hold is refused, or left out where --drop names it. Cells are written with records as X and
    layers, columns as obs and obsm, features as var.
    """
    if to == "h5ad":
        for name, given in (("--window", window), ("--drop", drop)):
            if given is not None:
                raise click.UsageError(f"{name} is for token files, not h5ad: leave it out")
        _export_cells(open_data(data, dtype, format), out, as_json)
        return
    names = [] if drop is None else [name.strip() for name in drop.split(",")]
    if "" in names or len(set(names)) < len(names):
        raise click.UsageError(f'--drop "{drop}": name each once, as in metadata,loss')
    _export_tokens(open_data(data, dtype, format), to, out, window, names, as_json)


def _export_tokens(dataset: Any, to: str, out: str, window: int | None, drop: list[str], as_json: bool) -> None:
    import penstock

    with progress(f"writing {out}", as_json) as update:
        done = penstock.export(dataset, out, to=to, window=window, drop=drop, progress=update)
    with report_of(out):
        if as_json:
            emit_json(vars(done))
            return
        rows = [
            ("files", ", ".join(done.paths)),
            ("documents" if window is None else "windows", f"{done.sequences:,}"),
            ("records", f"{done.records:,}"),
            ("took", human_seconds(done.seconds)),
        ]
        emit_table(rows)
        if done.left_out:
            echo(f"left out: {', '.join(done.left_out)}")


def _export_cells(dataset: Any, out: str, as_json: bool) -> None:
    from penstock._from.cells.exporting import export_h5ad
    from penstock._places.paths import local_path

    with progress(f"writing {out}", as_json, "cells") as update:
        lost: list[str] = []
        cells = export_h5ad(dataset, local_path(out), update, lost)
    notes = [_IN_PLACE] if dataset.kind == "h5ad" else []
    if lost:
        notes.append(f"the file lacks these of the imported AnnData, or has them otherwise: {', '.join(lost)}")
    with report_of(out):
        if as_json:
            emit_json({"path": out, "cells": cells, "genes": len(dataset.features), "notes": notes})
            return
        echo(f"{out}: {counted(cells, 'cell')}, {counted(len(dataset.features), 'gene')}")
        for note in notes:
            echo(f"note: {note}")
