"""Questions to a dataset's columns in SQL, which DuckDB answers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import InvalidArgumentError

if TYPE_CHECKING:
    from penstock._data.dataset import Dataset

TABLE = "documents"
_READING = ("SELECT", "MULTI")  # MULTI is a PIVOT; EXPLAIN ANALYZE does what it explains
_QUESTION = "a question is wanted, which has an answer and writes nothing: select …"
DOCUMENT = "document"
RECORDS = "records"
_NO_COLUMN = re.compile(r"\bcount\s*\(\s*\*\s*\)", re.IGNORECASE)
_ALL = re.compile(r"\*|\bcolumns\s*\(", re.IGNORECASE)
_ROW = re.compile(
    r"(?<!from )(?<!join )(?<![\w.])documents\b(?! ?\.)", re.IGNORECASE
)  # as a value: a struct of all columns
_SELECT = re.compile(r"\bselect\b", re.IGNORECASE)
_BEGINS_WITH_SELECT = re.compile(r"\s*select\b", re.IGNORECASE)
_BEGINS_WITHOUT_LIST = re.compile(
    r"[\s(]*(from|table|with|summarize|describe|desc|show|pivot|unpivot)\b", re.IGNORECASE
)
_NEXT_QUESTION = re.compile(
    r";|\b(union|intersect|except)\s+(all\s+|distinct\s+)?(by\s+name\s+)?(?=(select|from|table|with|values)\b)",
    re.IGNORECASE,
)
_FROM = re.compile(r"\bfrom\b", re.IGNORECASE)
_DISTINCT_FROM = re.compile(r"\bis\s+(not\s+)?distinct\s+from\b", re.IGNORECASE)
_AFTER_FROM = re.compile(r"\b(where|group|having|window|qualify|order|limit|offset|using\s+sample)\b", re.IGNORECASE)
_GROUP = re.compile(r"\([^()]*\)")
_QUOTED = re.compile(
    r"""(?P<literal> (?<!\w)e'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*'
                   | (?<![\w$])\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$ )
      | (?P<name> "(?:[^"]|"")*" )
      | (?P<comment> --[^\r\n]* | /\* )""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


def query(dataset: Dataset, sql: str) -> Any:
    """The answer to a question about the table `documents`: the number of each, `document`, `records`, and its columns.

    Only columns whose names stand in the question are read (all of them for `*` and where no select list stands), and
    nothing else of the dataset. `records` is how many a document has, its tokens; a column of that name takes its
    place, and one called `document` is not in the table. Numbers that are missing, NaN, are null, as in conditions.
    Only what reads is answered.

    Args:
        dataset: an opened dataset with documents.
        sql: in DuckDB's dialect; a select without FROM is about `documents`.

    Returns:
        A pyarrow.Table.

    Raises:
        InvalidArgumentError: the dataset has no documents, DuckDB does not understand, or it is no question.
        ModuleNotFoundError: duckdb or pyarrow is not installed.
    """
    import duckdb

    own = _own(dataset)
    if not dataset.columns and not own:
        raise InvalidArgumentError(
            f"{dataset.path}: it has no columns to be asked about: `penstock annotate` adds some{_of_metadata(dataset)}"
        )
    table = _table(dataset, mentioned(sql, [*own, *dataset.columns]))
    connection = duckdb.connect()
    try:
        connection.register(TABLE, table)
        text = _with_from(sql)
        _refuse_other_statements(connection, text)
        answer = connection.sql(text)
        if answer is None:
            raise InvalidArgumentError(f"{sql:.80}: {_QUESTION}")
        return answer.to_arrow_table()
    except duckdb.Error as error:
        there = ", ".join([DOCUMENT, *own, *dataset.columns])
        hint = _of_metadata(dataset) if isinstance(error, duckdb.BinderException) else ""
        raise InvalidArgumentError(f"{error} (the table is {TABLE}, its columns are {there}{hint})") from None
    finally:
        connection.close()


def _own(dataset: Dataset) -> list[str]:
    """The column that the table has of documents' own: `records`, where they have some and no column is called so."""
    names = {name.lower() for name in dataset.columns}
    return [] if dataset.mode == "opaque" or dataset.layout == "ids" or RECORDS in names else [RECORDS]


def _table(dataset: Dataset, names: list[str]) -> Any:
    import pyarrow

    columns = [name for name in names if name in dataset.columns and name.lower() != DOCUMENT]
    count = len(dataset.documents(metadata=False)) if RECORDS in names or not dataset.columns else 0
    if dataset.columns:
        table = _with_nulls(dataset.columns.to_arrow(columns, document=True))
    else:
        table = pyarrow.table({DOCUMENT: np.arange(count, dtype=np.int64)})
    if RECORDS in names and RECORDS not in columns:
        lengths = _native.document_lengths(dataset._native, 0, count)
        table = table.add_column(1, RECORDS, pyarrow.array(lengths.astype(np.int64)))
    return table


def _refuse_other_statements(connection: Any, sql: str) -> None:
    """Refuses what may write: a file by COPY or EXPORT, a database by ATTACH, a setting.

    Raises:
        InvalidArgumentError: no SELECT, or what is like one: FROM, WITH, DESCRIBE, SUMMARIZE, PIVOT.
    """
    for statement in connection.extract_statements(sql):
        kind = statement.type.name
        if kind not in _READING:
            raise InvalidArgumentError(f"{sql:.80}: {kind} is refused: {_QUESTION}")


def _with_nulls(table: Any) -> Any:
    """Null for NaN, as conditions have it; else `score > 0.5` would find documents without a score, as DuckDB sorts."""
    import pyarrow

    for at, field in enumerate(table.schema):
        if pyarrow.types.is_floating(field.type):
            values = pyarrow.array(table[field.name].to_numpy(), from_pandas=True)
            table = table.set_column(at, field.name, values)
    return table


def _of_metadata(dataset: Dataset) -> str:
    if dataset.codec in (None, "boundaries", "raw"):
        return ""
    return "; a key of metadata becomes a column by `penstock annotate --from-metadata KEY`"


def mentioned(sql: str, names: Iterable[str]) -> list[str]:
    """Columns that a question may need: those whose names stand in it, or all of them.

    All where it has a `*`, no select list, or the table as a value. Literals and comments name nothing.

    >>> mentioned("select count(*) from documents where Plate = 'score'", ["plate", "score"])
    ['plate']
    >>> mentioned("from documents", ["plate", "score"])
    ['plate', 'score']
    """
    bare = _NO_COLUMN.sub("", _masked(sql, names=True))
    if _ALL.search(bare) or _ROW.search(" ".join(bare.split())) or _without_list(bare):
        return list(names)
    text = _masked(sql, names=False).lower()
    # In SQL a quote inside of a quoted name is doubled.
    return [name for name in names if name.lower() in text or name.replace('"', '""').lower() in text]


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
    outer = _levels(_masked(sql, names=True))[0]
    for begin, end in reversed(_questions(outer)):
        text = _DISTINCT_FROM.sub(lambda match: "." * len(match[0]), outer[begin:end])
        if not _BEGINS_WITH_SELECT.match(text) or _FROM.search(text):
            continue
        place = _AFTER_FROM.search(text)
        at = begin + (len(text.rstrip()) if place is None else place.start())
        sql = f"{sql[:at]} FROM {TABLE} {sql[at:]}"
    return sql


def _without_list(bare: str) -> bool:
    """Whether some question of the text has no select list, which means all columns."""
    outer, *inner = _levels(bare)
    parts = [(outer[begin:end], True) for begin, end in _questions(outer)]
    parts += [(level[begin:end], False) for level in inner for begin, end in _questions(level)]
    return any(
        not _SELECT.search(part) and (re.search(r"\w", part) if is_outer else _BEGINS_WITHOUT_LIST.match(part))
        for part, is_outer in parts
    )


def _questions(level: str) -> list[tuple[int, int]]:
    """Where the parts of a text begin and end that `;` and set operators divide."""
    cuts = [match.span() for match in _NEXT_QUESTION.finditer(level)]
    return list(zip([0, *(end for _, end in cuts)], [*(begin for begin, _ in cuts), len(level)], strict=True))


def _levels(bare: str) -> list[str]:
    """The text outside of parentheses, in its length, then each pair's; dots are in the place of pairs within."""
    levels = []
    while groups := _GROUP.findall(bare):
        levels += groups
        bare = _GROUP.sub(lambda match: "." * len(match[0]), bare)
    return [bare, *levels]


def _masked(sql: str, *, names: bool) -> str:
    """The text in its length with dots for literals, blanks for comments, and with `names` dots for quoted names."""
    parts, at = [], 0
    while match := _QUOTED.search(sql, at):
        parts.append(sql[at : match.start()])
        at = _comment_end(sql, match.end()) if match["comment"] == "/*" else match.end()
        if match["name"] is not None and not names:
            parts.append(match["name"])
        else:
            parts.append((" " if match["comment"] else ".") * (at - match.start()))
    return "".join(parts) + sql[at:]


def _comment_end(sql: str, at: int) -> int:
    depth = 1  # DuckDB's comments nest
    for match in _COMMENT_EDGE.finditer(sql, at):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    return len(sql)
