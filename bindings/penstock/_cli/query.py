"""`penstock query`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from penstock._base.words import counted
from penstock._cli.command_help import Command
from penstock._cli.data import open_data, storage_options
from penstock._cli.output import echo, emit_json, json_option, progress
from penstock._places.remote import shown

_ROWS_SHOWN = 40
_KINDS = (".npy", ".csv", ".parquet")


_EPILOG = """\b
Examples:
  penstock query cells/ "select plate, count(*) from documents group by plate"
  penstock query cells/ "select document where plate = 'p7' and score > 0.5" --out rows.npy
  penstock query corpus/ --duplicates --out again.npy
"""


@click.command("query", cls=Command, epilog=_EPILOG)
@click.argument("data", metavar="DATA")
@click.argument("sql", metavar="[SQL]", required=False)
@click.option(
    "--duplicates",
    is_flag=True,
    help="Instead of SQL: find the documents that repeat an earlier one, the same ids in the same order. Reads all "
    "records.",
)
@click.option(
    "--where",
    metavar="CONDITION",
    help="With --duplicates: look at documents alone whose columns are so. Default: at all.",
)
@click.option(
    "--out",
    metavar="FILE",
    help="FILE.npy: numbers of the documents that were found, int64, for view.select(…) and `convert --without`. "
    "FILE.csv, FILE.parquet: the answer as a table. Default: print the answer.",
)
@storage_options
@json_option
def command(data: str, sql: str | None, duplicates: bool, where: str | None, out: str | None, as_json: bool) -> None:
    """Answers a question about the columns of a dataset's documents, in DuckDB's SQL; or finds duplicates.

    The table is called documents (a select without FROM is about it): a row for each document, its number in
    `document`, how many records it has in `records`, and its columns. Metadata is not read.
    """
    import numpy as np

    from penstock._data.query import documents_of, query
    from penstock._places.paths import local_path

    if duplicates != (sql is None) or (where is not None and not duplicates):
        raise click.UsageError("what is asked: give SQL; or --duplicates, which --where CONDITION may go with")
    kind = None if out is None else _kind_of(out, (".npy",) if sql is None else _KINDS)
    dataset = open_data((data,))
    if sql is None:
        _duplicates(dataset, data, where, out, as_json)
        return
    answer = query(dataset, sql)
    if out is not None:
        numbers = documents_of(answer) if kind == ".npy" else None
        with open(local_path(out), "wb") as file:  # noqa: PTH123
            if numbers is not None:
                np.save(file, numbers)
            else:
                _write_table(answer, file, kind)
    if as_json:
        path = {"path": shown(data)}
        emit_json({**path, "out": out, "rows": answer.num_rows} if out else {**path, "rows": answer.to_pylist()})
    elif out is not None:
        echo(f"{out}: {counted(answer.num_rows, 'document' if kind == '.npy' else 'row')}")
    else:
        _draw(answer)


def _kind_of(out: str, kinds: Sequence[str]) -> str:
    """The ending of a file's name, which says how it is written."""
    for kind in kinds:
        if out.lower().endswith(kind):
            return kind
    raise click.UsageError(f"--out {out}: the name must end in {' or '.join(kinds)}")


def _write_table(answer: Any, file: Any, kind: str | None) -> None:
    if kind == ".csv":
        import pyarrow.csv

        pyarrow.csv.write_csv(answer, file)
    else:
        import pyarrow.parquet

        pyarrow.parquet.write_table(answer, file)


def _duplicates(dataset: Any, data: str, where: str | None, out: str | None, as_json: bool) -> None:
    """Prints how many documents repeat another one, and writes their numbers or prints the first ones."""
    import numpy as np

    import penstock
    from penstock._places.paths import local_path

    with progress(f"comparing {shown(data)}", as_json, "documents") as update:
        found = penstock.duplicates(dataset, where=where, progress=update)
    if out is not None:
        with open(local_path(out), "wb") as file:  # noqa: PTH123
            np.save(file, found)
    if as_json:
        path = {"path": shown(data), "duplicates": len(found)}
        emit_json({**path, "out": out} if out else {**path, "documents": found.tolist()})
        return
    echo(f"{out or shown(data)}: {counted(len(found), 'document')} that repeat{'' if len(found) - 1 else 's'} another")
    if out is None and len(found):
        more = f", … {len(found) - _ROWS_SHOWN:,} more (--out FILE.npy has all)" if len(found) > _ROWS_SHOWN else ""
        echo(f"{', '.join(map(str, found[:_ROWS_SHOWN].tolist()))}{more}")
    elif out is not None and len(found):
        echo(f"leave them out: penstock convert {shown(data)} --without {out} --out DIR")


def _draw(answer: Any) -> None:
    first = answer.slice(0, _ROWS_SHOWN).to_pylist()
    cells = [[_words(value) for value in row.values()] for row in first]
    names = [str(name) for name in answer.column_names]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    for line in (names, *cells):
        echo("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())
    if answer.num_rows > len(first):
        echo(f"… {counted(answer.num_rows - len(first), 'more row')} (--json shows all)")


def _words(value: Any) -> str:
    text = "" if value is None else f"{value:.7g}" if isinstance(value, float) else str(value)
    text = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
    return text if len(text) <= 60 else f"{text[:59]}…"
