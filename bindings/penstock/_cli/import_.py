"""`penstock import`."""

from __future__ import annotations

from typing import Any

import click

from penstock._cli.data import named_by_user
from penstock._cli.executors import cluster_of, default_workers, ray_option
from penstock._cli.output import echo, emit_json, emit_table, human_seconds, json_option, progress, report_of
from penstock._words import counted

_EPILOG = """\b
Examples:
  penstock import plate1.h5ad plate2.h5ad --out cells/ --obs drug,cell_line --obsm X_pca
  penstock import atlas.zarr --x raw --out cells/ --workers 8
"""


def _names(context: click.Context, option: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = tuple(name.strip() for name in value.split(",")) if value.strip() else ()
    if "" in names or len(set(names)) < len(names):
        raise click.BadParameter(f'"{value}": name each once, as in a,b')
    return names


@click.command("import", epilog=_EPILOG, short_help="Make a dataset of single cells.")
@click.argument("files", nargs=-1, required=True, metavar="FILES...")
@click.option("--out", required=True, metavar="DIR", help="The dataset's folder.")
@click.option("--format", type=click.Choice(["h5ad", "zarr"]), help="Of all files; else by the extension.")
@click.option("--x", default="X", show_default=True, metavar="X|raw|layers/NAME", help="Where the counts are.")
@click.option("--layers", callback=_names, metavar="A,B", help="Layers that become fields beside the counts.")
@click.option("--obs", callback=_names, metavar="A,B", help="Columns of obs that are kept; else all.")
@click.option("--obsm", callback=_names, metavar="A,B", help="Dense arrays of obsm that become columns.")
@click.option(
    "--join",
    type=click.Choice(["exact", "inner", "outer"]),
    default="exact",
    show_default=True,
    help="Several files: their genes are the same; else those of all files, or of any.",
)
@click.option("--workers", type=click.IntRange(1), help="Processes; else one for each core.")
@ray_option
@click.option("--resume", is_flag=True, help="Keep the finished shards of an earlier run that were made of the same.")
@click.option("--overwrite", is_flag=True, help="Replace the dataset that is there, once the new one is whole.")
@json_option
def command(files: tuple[str, ...], out: str, as_json: bool, **given: Any) -> None:
    """Makes a dataset of AnnData: a document a cell, (gene, count) records, obs as columns, genes as features.

    FILES are .h5ad files or zarr stores, whose cells go one after the other.
    """
    import penstock

    given["layers"], given["obsm"] = given["layers"] or (), given["obsm"] or ()
    given["workers"] = cluster_of(given) or given["workers"] or default_workers()
    with named_by_user(files), progress(f"writing {out}", as_json, "cells") as update:

        def prepare(what: str, done: int, total: int) -> None:
            update(done, total, label=what)

        done = penstock.import_anndata(files, out, progress=update, preparing=prepare, **given)
    with report_of(out):
        _report(done, as_json)


def _report(done: Any, as_json: bool) -> None:
    if as_json:
        emit_json(vars(done))
        return
    fields = ", ".join(f"{name} {dtype.lstrip('<')}" for name, dtype in done.fields.items())
    rows = [
        ("dataset", done.path),
        ("cells", f"{done.cells:,}"),
        ("genes", f"{done.genes:,}"),
        ("records", f"{done.records:,}" + (f" of {fields}" if fields else "")),
        ("columns", ", ".join(done.columns) or "none"),
        ("shards", f"{done.shards:,}" + (f", {done.kept_shards:,} of an earlier run" if done.kept_shards else "")),
        ("took", f"{human_seconds(done.seconds)}: {counted(round(done.cells / max(done.seconds, 1e-9)), 'cell')}/s"),
    ]
    emit_table(rows)
    if done.left_out:
        echo(f"left out: {', '.join(done.left_out)}")
