"""`penstock query`."""

from __future__ import annotations

from typing import Any

import click

from penstock._base.words import counted
from penstock._cli.command_help import Command
from penstock._cli.data import open_data, storage_options
from penstock._cli.output import echo, emit_json, json_option
from penstock._places.remote import shown

_ROWS_SHOWN = 40


_EPILOG = """\b
Examples:
  penstock query cells/ "select plate, count(*) from documents group by plate"
  penstock query cells/ "select document where plate = 'p7' and score > 0.5" --out rows.npy
"""


@click.command("query", cls=Command, epilog=_EPILOG)
@click.argument("data", metavar="DATA")
@click.argument("sql", metavar="SQL")
@click.option(
    "--out",
    metavar="FILE.npy",
    help="File for the numbers of the documents that were found, int64, for view.select(…). Default: print the answer.",
)
@storage_options
@json_option
def command(data: str, sql: str, out: str | None, as_json: bool) -> None:
    """Answers a question about the columns of a dataset's documents, in DuckDB's SQL.

    The table is called documents (a select without FROM is about it): a row for each document, its number in
    `document`, and its columns. Records and metadata are not read.
    """
    import numpy as np

    from penstock._data.query import documents_of, query
    from penstock._places.paths import local_path

    answer = query(open_data((data,)), sql)
    if out is not None:
        with open(local_path(out), "wb") as file:  # noqa: PTH123
            np.save(file, documents_of(answer))
    if as_json:
        path = {"path": shown(data)}
        emit_json({**path, "out": out, "rows": answer.num_rows} if out else {**path, "rows": answer.to_pylist()})
    elif out is not None:
        echo(f"{out}: {counted(answer.num_rows, 'document')}")
    else:
        _draw(answer)


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
