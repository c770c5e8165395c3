"""`penstock annotate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from penstock._base.words import counted
from penstock._cli.command_help import Command, heading
from penstock._cli.data import bucket_options, given_storage, named_by_user, open_data, passing_option
from penstock._cli.executors import ray_option, workers_of, workers_option
from penstock._cli.output import echo, emit_json, json_option, progress, report_of
from penstock._places.remote import shown

_TABLES = (".parquet", ".pq", ".csv", ".feather", ".arrow", ".jsonl")

_EPILOG = """\b
Examples:
  penstock annotate corpus/ score=scores.npy
  penstock annotate corpus/ --table labels.parquet --columns language
  penstock annotate corpus/ --from-metadata url,lang,score:f4
  penstock annotate corpus/ --remove score
"""


@click.command("annotate", cls=Command, epilog=_EPILOG)
@click.argument("data", metavar="DATA")
@click.argument("columns", nargs=-1, metavar="[NAME=FILE.npy]...")
@click.option(
    "--table",
    metavar="FILE",
    help="A .parquet, .csv, .feather, .arrow or .jsonl file with a row for each document, in their order. "
    "Default: none.",
)
@click.option(
    "--columns",
    "chosen",
    metavar="A,B",
    help="The columns of --table that are added; of .jsonl also KEY:TYPE. Default: all.",
)
@click.option(
    "--from-metadata",
    "keys",
    metavar="KEY[:TYPE],…",
    help="Keys of the documents' metadata that become columns, as url,lang,score:f4,year:category. Types follow from "
    "all values where none is given. Default: none.",
)
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
    keys: str | None,
    remove: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Adds typed columns to a dataset's documents. A column of the same name is replaced.

    NAME=FILE.npy is an array with a value for each document, in their order. A condition (--where) and SQL know columns
    alone, so what stands in metadata is made one by --from-metadata. Records, metadata and fingerprint stay,
    so a job goes on from its state. Programs that have the dataset open must open it again.
    """
    import penstock

    values = dict(_of_file(each) for each in columns)
    if chosen is not None and table is None:
        raise click.UsageError("--columns needs --table")
    if table is not None:
        values |= _of_table(table, chosen)
    values |= dict.fromkeys(remove.split(",") if remove else ())
    names = _names(keys)
    if not values and not names:
        raise click.UsageError("nothing to be changed: give NAME=FILE.npy, --table, --from-metadata or --remove")
    given["workers"] = workers_of(given)
    with progress(f"annotating {shown(data)}", as_json, unit="shards") as update, named_by_user((data,)):
        given |= {"from_metadata": names, "progress": update, "storage": given_storage()}
        fingerprint = penstock.annotate(data, values, **given)
    with report_of(shown(data)):
        there = open_data((data,)).columns
        if as_json:
            emit_json({"path": shown(data), "columns": list(there), "fingerprint": fingerprint})
            return
        echo(f"{shown(data)}: {counted(len(there), 'column')}{': ' if there else ''}{', '.join(there)}")
        for key in names:
            echo(_described(there[key.rpartition(":")[0] or key]))


def _names(text: str | None) -> list[str]:
    names = [] if text is None else [each.strip() for each in text.split(",")]
    if "" in names:
        raise click.UsageError(f"--from-metadata {text}: an empty name: keys are named, as url,lang")
    return names


def _described(column: Any) -> str:
    """ "score: float64, 3 documents without" """
    import numpy as np

    values = np.asarray(column)
    if column.categories is not None:
        kind, lacking = f"category of {counted(len(column.categories), 'value')}", values < 0
    else:
        kind, lacking = str(column.dtype), np.isnan(values) if values.dtype.kind == "f" else np.zeros(0, bool)
    count = int(np.count_nonzero(lacking))
    return f"  {column.name}: {kind}" + (f", missing in {counted(count, 'document')}" if count else "")


def _of_file(text: str) -> tuple[str, Any]:
    import numpy as np

    from penstock._base.errors import IoError
    from penstock._make.errors import InputError
    from penstock._places.paths import local_path

    name, equals, file = text.partition("=")
    if not equals or not name or not file:
        raise click.UsageError(f"{text!r} is not NAME=FILE.npy")
    try:
        return name, np.load(local_path(file), mmap_mode="r")
    except FileNotFoundError:
        raise click.UsageError(f"{file}: there is no such file") from None
    except OSError as error:
        raise IoError(error.errno, f"{file}: {error.strerror or error}", file) from error
    except (ValueError, EOFError) as error:
        raise InputError(f"{file}: not an array that numpy.save wrote: {error}") from None


def _of_table(file: str, chosen: str | None) -> dict[str, Any]:
    from penstock._make.errors import InputError
    from penstock._places.paths import local_path

    path = Path(local_path(file))
    if not path.is_file():
        raise click.UsageError(f"{file}: there is no such file")
    if path.suffix not in _TABLES:
        raise click.UsageError(f"{file}: a table is a {', '.join(_TABLES[:-1])} or {_TABLES[-1]} file")
    if path.suffix == ".jsonl":
        return _of_lines(path, file, chosen)

    import pyarrow
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

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


def _of_lines(path: Path, file: str, chosen: str | None) -> dict[str, Any]:
    """Columns of lines of JSON, each of one document; blank lines are skipped."""
    from penstock._data.metadata_columns import columns_of_rows
    from penstock._make.errors import InputError

    rows = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue  # as `penstock write` does
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                raise InputError(f"{file}, line {number:,}: no JSON: {error}") from None
            if not isinstance(rows[-1], dict):
                raise InputError(f'{file}, line {number:,}: no JSON object, as {{"score": 0.5}}')
    return columns_of_rows(rows, None if chosen is None else chosen.split(","), file)


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
