"""Questions to a dataset's columns in SQL, which DuckDB answers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from penstock._errors import InvalidArgumentError

if TYPE_CHECKING:
    from penstock._dataset import Dataset

TABLE = "documents"
DOCUMENT = "document"
_NO_COLUMN = re.compile(r"\bcount\s*\(\s*\*\s*\)", re.IGNORECASE)
_ALL = re.compile(r"\*|\bcolumns\s*\(", re.IGNORECASE)
_FROM = re.compile(r"\bfrom\b", re.IGNORECASE)
_AFTER_FROM = re.compile(r"\b(where|group|having|window|qualify|order|limit|offset|using\s+sample)\b", re.IGNORECASE)


def query(dataset: Dataset, sql: str) -> Any:
    """The answer to a question about the table `documents`: the number of each, `document`, and its columns.

    Only columns whose names stand in the question are read (with `*` all of them), and nothing else of the dataset.

    Args:
        dataset: an opened dataset with columns.
        sql: in DuckDB's dialect; without a FROM it is about `documents`.

    Returns:
        A pyarrow.Table.

    Raises:
        InvalidArgumentError: the dataset has no columns, or DuckDB does not understand.
        ModuleNotFoundError: duckdb and pyarrow are not installed: `pip install 'penstock[query]'`.
    """
    import duckdb

    if not dataset.columns:
        raise InvalidArgumentError(
            f"{dataset.path}: it has no columns to be asked about: `penstock annotate` adds some"
        )
    table = dataset.columns.to_arrow(mentioned(sql, dataset.columns), document=True)
    connection = duckdb.connect()
    try:
        connection.register(TABLE, table)
        answer = connection.sql(_with_from(sql))
        if answer is None:
            raise InvalidArgumentError(f"{sql:.80}: a question is wanted, which has an answer: select …")
        return answer.to_arrow_table()
    except duckdb.Error as error:
        there = ", ".join([DOCUMENT, *dataset.columns])
        raise InvalidArgumentError(f"{error} (the table is {TABLE}, its columns are {there})") from None
    finally:
        connection.close()


def mentioned(sql: str, names: Iterable[str]) -> list[str]:
    """Columns that a question may need: those whose names stand in it, all of them where it has a `*`.

    >>> mentioned("select count(*) from documents where Plate = 'p1'", ["plate", "score"])
    ['plate']
    """
    text = _NO_COLUMN.sub("", sql).lower()
    # In SQL a quote inside of a quoted name is doubled.
    return [
        name for name in names if _ALL.search(text) or name.lower() in text or name.replace('"', '""').lower() in text
    ]


def documents_of(answer: Any) -> npt.NDArray[np.int64]:
    """The documents that an answer names: its column `document`, int64 [rows].

    Raises:
        InvalidArgumentError: it has no such column.
    """
    if DOCUMENT not in answer.column_names:
        raise InvalidArgumentError(
            f"the answer has the columns {', '.join(answer.column_names)}, and not {DOCUMENT}: select it too"
        )
    return np.asarray(answer[DOCUMENT].to_numpy(), np.int64)


def _with_from(sql: str) -> str:
    if _FROM.search(sql):
        return sql
    place = _AFTER_FROM.search(sql)
    at = len(sql.rstrip().rstrip(";")) if place is None else place.start()
    return f"{sql[:at]} FROM {TABLE} {sql[at:]}"
