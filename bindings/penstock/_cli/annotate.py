"""`penstock annotate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from penstock._base.words import counted
from penstock._cli.command_help import Command, heading
from penstock._cli.data import bucket_options, given_storage, named_by_user, open_data, passing_option
from penstock._cli.executors import ray_option, workers_of, workers_option
from penstock._cli.output import echo, emit_json, json_option, progress
from penstock._places.remote import shown

_EPILOG = """\b
Examples:
  penstock annotate corpus/ score=scores.npy
  penstock annotate corpus/ --table labels.parquet --columns language
  penstock annotate corpus/ --remove score
"""


@click.command("annotate", cls=Command, epilog=_EPILOG)
@click.argument("data", metavar="DATA")
@click.argument("columns", nargs=-1, metavar="[NAME=FILE.npy]...")
@click.option(
    "--table",
    metavar="FILE",
    help="A .parquet, .csv, .feather or .arrow file with a row for each document, in their order. Default: none.",
)
@click.option("--columns", "chosen", metavar="A,B", help="The columns of --table that are added. Default: all.")
@click.option("--remove", metavar="A,B", help="Columns of the dataset that are removed. Default: none.")
@workers_option
@heading("Where it runs")
@ray_option
@passing_option
@bucket_options
@json_option
def command(
    data: str,
    columns: tuple[str, ...],
    table: str | None,
    chosen: str | None,
    remove: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Adds typed columns to a dataset's documents. A column of the same name is replaced.

    NAME=FILE.npy is an array with a value for each document, in their order. Records, metadata and fingerprint stay,
    so a job goes on from its state. Programs that have the dataset open must open it again.
    """
    import penstock

    values = dict(_of_file(each) for each in columns)
    if chosen is not None and table is None:
        raise click.UsageError("--columns needs --table")
    if table is not None:
        values |= _of_table(table, chosen)
    values |= dict.fromkeys(remove.split(",") if remove else ())
    if not values:
        raise click.UsageError("nothing to be changed: give NAME=FILE.npy, --table or --remove")
    given["workers"] = workers_of(given)
    with progress(f"annotating {shown(data)}", as_json, unit="shards") as update, named_by_user((data,)):
        fingerprint = penstock.annotate(data, values, progress=update, storage=given_storage(), **given)
    there = list(open_data((data,)).columns)
    if as_json:
        emit_json({"path": shown(data), "columns": there, "fingerprint": fingerprint})
    else:
        echo(f"{shown(data)}: {counted(len(there), 'column')}{': ' if there else ''}{', '.join(there)}")


def _of_file(text: str) -> tuple[str, Any]:
    import numpy as np

    from penstock._make.errors import InputError
    from penstock._places.paths import local_path

    name, equals, file = text.partition("=")
    if not equals or not name or not file:
        raise click.UsageError(f"{text!r} is not NAME=FILE.npy")
    try:
        return name, np.load(local_path(file), mmap_mode="r")
    except FileNotFoundError:
        raise click.UsageError(f"{file}: there is no such file") from None
    except (ValueError, EOFError) as error:
        raise InputError(f"{file}: not an array that numpy.save wrote: {error}") from None


def _of_table(file: str, chosen: str | None) -> dict[str, Any]:
    import pyarrow
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    from penstock._make.errors import InputError
    from penstock._places.paths import local_path

    path = Path(local_path(file))
    if not path.is_file():
        raise click.UsageError(f"{file}: there is no such file")
    try:
        if path.suffix == ".csv":
            table = pyarrow.csv.read_csv(path)
        elif path.suffix in (".feather", ".arrow"):
            table = pyarrow.feather.read_table(path)
        else:
            table = pyarrow.parquet.read_table(path)
    except pyarrow.ArrowException as error:
        raise InputError(f"{file}: {error}") from None
    names = chosen.split(",") if chosen is not None else table.column_names
    if "" in names:
        others = ",".join(name for name in names if name)
        raise click.UsageError(f"{file}: a column without a name, as pandas writes its index: --columns {others}")
    for name in names:
        if name not in table.column_names:
            raise click.UsageError(f"{file} has no column {name}; it has {', '.join(table.column_names)}")
    return {name: _values(table[name], f"{file}, column {name}") for name in names}


def _values(column: Any, where: str) -> Any:
    import pyarrow

    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
        return column.to_pylist()
    if pyarrow.types.is_fixed_size_list(kind):
        return _array(column, where)
    _refuse_missing(column, where)
    return column.to_numpy()


def _array(column: Any, where: str) -> Any:
    """Lists of a fixed size, and lists of them, as one array [rows, sizes…]."""
    import pyarrow

    shape = [len(column)]
    values = column.combine_chunks()
    while pyarrow.types.is_fixed_size_list(values.type):
        _refuse_missing(values, where)
        shape.append(values.type.list_size)
        values = values.flatten()
    _refuse_missing(values, where)
    return values.to_numpy(zero_copy_only=False).reshape(shape)


def _refuse_missing(values: Any, where: str) -> None:
    import pyarrow

    from penstock._make.errors import InputError

    if values.null_count and not pyarrow.types.is_floating(values.type):
        raise InputError(
            f"{where}: {counted(values.null_count, 'value')} missing, which {values.type} has no value for"
        )
