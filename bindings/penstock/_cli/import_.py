"""`penstock import`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from penstock._base.words import counted
from penstock._cli.command_help import Command, heading
from penstock._cli.data import (
    bucket_options,
    given_storage,
    in_options,
    named_by_user,
    out_or_bucket_option,
    scratch_option,
    sides_as_options,
)
from penstock._cli.executors import cluster_of, default_workers, ray_option
from penstock._cli.output import (
    SizeType,
    echo,
    emit_json,
    emit_table,
    human_bytes,
    human_seconds,
    json_option,
    progress,
    report_of,
)
from penstock._places.remote import shown

_EPILOG = """\b
Examples:
  penstock import 'tokenized/*.ds' --out corpus/
  penstock import train.bin --dtype u2 --end-of-document 50256 --out corpus/
  penstock import 'fineweb_train_*.bin' --begin-of-document 50256 --out corpus/
  penstock import 'part-*.parquet' --column input_ids --metadata url,date --out corpus/
  penstock import plate1.h5ad plate2.h5ad --out cells/ --obs drug,cell_line --obsm X_pca
  penstock import filtered_feature_bc_matrix.h5 --out cells/
  penstock import multiome.h5mu --modality rna --out cells/
  penstock import counts.h5ad normalised.h5ad --x normalised.h5ad=layers/counts --out cells/
"""
_CELLS = {"h5ad": (".h5ad", ".h5", ".hdf5", ".h5mu"), "zarr": (".zarr",), "mtx": (), "soma": ()}
_IN_FOLDERS = ("matrix.mtx", "matrix.mtx.gz", "__tiledb_group.tdb")  # of 10x, of SOMA experiments
_OF_CELLS = ("x", "layers", "obs", "obsm", "join", "modality", "raw")
_OF_TOKENS = ("column", "metadata", "dtype", "end_of_document", "begin_of_document", "shard_size")
_FORMATS = ("raw", "megatron", "datatrove", "olmo", "litdata", "mds", "huggingface", "parquet", "webdataset")


def _names(context: click.Context, option: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = tuple(name.strip() for name in value.split(",")) if value.strip() else ()
    if "" in names or len(set(names)) < len(names):
        raise click.BadParameter(f'"{value}": name each once, as in a,b')
    return names


@click.command("import", cls=Command, epilog=_EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@out_or_bucket_option
@click.option(
    "--format",
    type=click.Choice([*_FORMATS, *_CELLS]),
    metavar="FORMAT",
    help=f"Format of all inputs: {', '.join([*_FORMATS, *_CELLS])}. Default: told by name and content.",
)
@click.option("--workers", type=click.IntRange(1), help="Number of workers. Default: one for each core.")
@click.option("--resume", is_flag=True, help="Go on with an interrupted run: keep its finished shards.")
@click.option("--overwrite", is_flag=True, help="Replace the dataset in --out, once the new one is whole.")
@heading("Token files")
@click.option(
    "--dtype",
    metavar="T",
    help="Tokens: u1, u2 or u4. Of bare files the type that they hold, of others the type to store. Default: the type "
    "that the files state.",
)
@click.option("--column", metavar="C", help="Tokens: name of the column that holds them. Default: tokens or input_ids.")
@click.option(
    "--metadata",
    callback=_names,
    metavar="A,B|all",
    help="Tokens: columns or keys that are kept with each document, as JSON. Default: none.",
)
@click.option(
    "--end-of-document",
    type=click.IntRange(0),
    metavar="ID",
    help="Bare token files: a document ends with each token ID, as in nanoGPT's files with 50256 of GPT-2. Default: no "
    "documents.",
)
@click.option(
    "--begin-of-document",
    type=click.IntRange(0),
    metavar="ID",
    help="Bare token files: a document begins with each token ID, as in llm.c's and modded-nanogpt's files with 50256. "
    "Default: no documents.",
)
@click.option(
    "--shard-size",
    type=SizeType(),
    default="1GiB",
    show_default=True,
    help="Tokens: bytes of input for a shard, such as 64M or 1GiB.",
)
@heading("Single cells")
@click.option(
    "--x",
    multiple=True,
    metavar="X|raw|layers/NAME",
    help="Cells: where the counts are; INPUT=layers/NAME says it of one input, named as it is given. May be repeated. "
    "Default: X.",
)
@click.option(
    "--layers",
    callback=_names,
    metavar="A,B",
    help="Cells: layers that become fields beside the counts. Default: none.",
)
@click.option("--obs", callback=_names, metavar="A,B", help="Cells: columns of obs that are kept. Default: all.")
@click.option(
    "--obsm", callback=_names, metavar="A,B", help="Cells: dense arrays of obsm that become columns. Default: none."
)
@click.option(
    "--join",
    type=click.Choice(["exact", "inner", "outer"]),
    default="exact",
    show_default=True,
    help="Cells of several files: exact refuses files whose genes differ; inner keeps the genes that all files have, "
    "outer those that any file has.",
)
@click.option(
    "--modality",
    metavar="NAME",
    help="Cells: of MuData (.h5mu) the modality, of SOMA the measurement; else the only one.",
)
@click.option("--raw", is_flag=True, help="Cells: keep raw too, for an export, with each cell's name.")
@heading("Where it runs")
@ray_option
@scratch_option
@bucket_options
@json_option
def command(inputs: tuple[str, ...], out: str, as_json: bool, **given: Any) -> None:
    """Makes a dataset of files of other formats: token files, or AnnData's .h5ad and zarr, MuData's .h5mu and 10x's
    .h5 and matrix.mtx.

    INPUT is a file, a folder, a glob or, of tokens, an address. Of tokens each document, row or sample becomes a
    document. Of cells each becomes a document of (gene, count) records, with obs as columns and genes as features.
    The bytes written are the same for any number of workers.
    """
    cells = _are_cells(inputs, given["format"])
    _refuse(_OF_TOKENS if cells else _OF_CELLS, "AnnData" if cells else "token files")
    given["workers"] = cluster_of(given) or given["workers"] or default_workers()
    if cells:
        _import_cells(inputs, out, as_json, {name: each for name, each in given.items() if name not in _OF_TOKENS})
    else:
        _import_tokens(inputs, out, as_json, {name: each for name, each in given.items() if name not in _OF_CELLS})


def _are_cells(inputs: Sequence[str], format: str | None) -> bool:
    if format is not None:
        return format in _CELLS
    endings = tuple(each for suffixes in _CELLS.values() for each in suffixes)
    found = {
        Path(each.rstrip("/")).suffix.lower() in endings
        or each.lower().endswith((".mtx", ".mtx.gz"))
        or any((Path(each) / name).is_file() for name in _IN_FOLDERS)
        for each in inputs
    }
    if len(found) > 1:
        raise click.UsageError("AnnData and token files: import them apart")
    return found.pop()


def _refuse(names: Sequence[str], what: str) -> None:
    """Options that were given and are of the other kind of import."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} is not for {what}: leave it out")


def _import_tokens(inputs: Sequence[str], out: str, as_json: bool, given: dict[str, Any]) -> None:
    import penstock

    metadata = given.pop("metadata") or ()
    with named_by_user(inputs), sides_as_options(), progress(f"writing {shown(out)}", as_json) as update:
        done = penstock.import_tokens(
            inputs,
            out,
            metadata="all" if metadata == ("all",) else metadata,
            storage=given_storage(),
            progress=update,
            **given,
        )
    with report_of(shown(out)):
        if as_json:
            emit_json({**vars(done), "path": shown(out)})
            return
        _report_tokens(shown(out), done)


def _report_tokens(out: str, done: Any) -> None:
    record_bytes = sum(int(each[-1]) for each in done.fields.values())
    rate = human_bytes(done.records * record_bytes / max(done.seconds, 1e-9))
    none = (
        "none: say with --end-of-document or --begin-of-document where they are, or read windows"
        if done.codec is None
        else ""
    )
    rows = [
        ("dataset", out),
        ("documents", none or f"{done.documents:,}"),
        ("tokens" if "token" in done.fields else "records", f"{done.records:,} of {_fields(done)}"),
        ("shards", _shards(done)),
        ("took", f"{human_seconds(done.seconds)}: {rate}/s"),
    ]
    emit_table(rows)
    for note in done.notes:
        echo(f"note: {in_options(note)}")


def _import_cells(inputs: Sequence[str], out: str, as_json: bool, given: dict[str, Any]) -> None:
    import penstock

    given["layers"], given["obsm"] = given["layers"] or (), given["obsm"] or ()
    given["x"] = _places(given["x"], inputs)
    given["storage"] = given_storage()
    with named_by_user(inputs), progress(f"writing {shown(out)}", as_json, "cells") as update:

        def prepare(what: str, done: int, total: int) -> None:
            update(done, total, label=what)

        done = penstock.import_anndata(inputs, out, progress=update, preparing=prepare, **given)
    with report_of(shown(out)):
        if as_json:
            emit_json(vars(done))
            return
        _report_cells(done)


def _places(options: Sequence[str], inputs: Sequence[str]) -> Any:
    """The counts' place in all inputs, or in each by its name."""
    of_one = {name: place for name, place in map(_named_place, options) if name}
    of_all = [place for name, place in map(_named_place, options) if not name]
    for name in of_one:
        if name not in inputs:
            raise click.UsageError(f"--x {name}={of_one[name]}: no input is named so: they are {' '.join(inputs):.300}")
    if len(of_all) > 1:
        raise click.UsageError(
            f"--x {of_all[0]} --x {of_all[1]}: one place for all inputs, others as INPUT={of_all[1]}"
        )
    if not of_one:
        return of_all[0] if of_all else "X"
    return {**dict.fromkeys(inputs, of_all[0] if of_all else "X"), **of_one}


def _named_place(option: str) -> tuple[str, str]:
    """(input or "", place) of INPUT=PLACE, or of a place, which may be a layer with = in its name."""
    if option in ("X", "raw") or option.startswith("layers/"):
        return "", option
    found = re.fullmatch(r"(.+?)=(X|raw|layers/.+)", option)
    if found is None:
        raise click.UsageError(f"--x {option}: X, raw or layers/NAME is wanted, of one input INPUT=layers/NAME")
    return found[1], found[2]


def _report_cells(done: Any) -> None:
    rows = [
        ("dataset", done.path),
        ("cells", f"{done.cells:,}"),
        ("genes", f"{done.genes:,}"),
        ("records", f"{done.records:,}" + (f" of {_fields(done)}" if done.fields else "")),
        ("columns", ", ".join(done.columns) or "none"),
        ("shards", _shards(done)),
        ("took", f"{human_seconds(done.seconds)}: {counted(round(done.cells / max(done.seconds, 1e-9)), 'cell')}/s"),
    ]
    emit_table(rows)
    if done.left_out:
        echo(f"left out: {', '.join(done.left_out)}")
    if done.altered:
        echo(f"otherwise after an export: {', '.join(done.altered)}")
    for note in done.notes:
        echo(f"note: {note}")


def _fields(done: Any) -> str:
    return ", ".join(f"{name} {dtype.lstrip('<')}" for name, dtype in done.fields.items())


def _shards(done: Any) -> str:
    return f"{done.shards:,}" + (f", {done.kept_shards:,} of an earlier run" if done.kept_shards else "")
