"""How documents and their records are shared out among datasets, and among the values of a column."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._view.exhibit import MOST_LENGTHS, Exhibit
from penstock._view.rows import Wanted, numbers

_MOST_BARS = 40
_BINS = 24
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS = {"and", "or", "not", "in", "is", "null", "true", "false"}


def by_dataset(exhibits: Mapping[str, Exhibit]) -> dict[str, Any]:
    """Documents, records and bytes of each dataset."""
    bars = [
        {
            "name": name,
            "dataset": at,
            "documents": each.facts["spans"],
            "records": each.facts["records"],
            "bytes": each.facts["size_bytes"],
        }
        for at, (name, each) in enumerate(exhibits.items())
    ]
    return {"bars": bars, "rest": 0}


def by_column(exhibit: Exhibit, name: str, wanted: Wanted) -> dict[str, Any]:
    """Documents and records of each value of a column, or of each range of its numbers.

    Args:
        exhibit: whose documents.
        name: of the column.
        wanted: the documents that count.

    Returns:
        {"bars": [{name, where, documents, records}], "rest": values that have no bar}; `where` is the condition that
        chooses a bar's documents, beside `wanted`'s; `records` None where documents have none.
    """
    if name not in exhibit.dataset.columns:
        raise InvalidArgumentError(f"there is no column {name:.80}")
    column = exhibit.dataset.columns[name]
    if len(column.shape) > 1:
        raise InvalidArgumentError(f"column {name:.80}: its values are arrays, which cannot be counted")
    chosen = numbers(exhibit, wanted.chosen)
    if len(chosen) > MOST_LENGTHS:
        raise InvalidArgumentError(f"{len(chosen):,} documents: at most {MOST_LENGTHS:,} are counted")
    values = column[:] if isinstance(chosen, range) else column[chosen]
    lengths = None
    if exhibit.dataset.mode != "opaque":
        lengths = exhibit.lengths if isinstance(chosen, range) else exhibit.lengths[chosen]
    if column._categories is not None:
        return _by_category(name, values, lengths, column._categories)
    if values.dtype.kind == "b":
        quoted = in_quotes(name)
        found = [(quoted, "true", values), (f"not {quoted}", "false", ~values)]
        return {"bars": [_bar(said, where, which, lengths) for where, said, which in found], "rest": 0}
    return _by_number(name, values, lengths)


def in_quotes(name: str) -> str:
    """A column's name as a condition has it."""
    if _WORD.fullmatch(name) and name.lower() not in _KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def _bar(name: str, where: str, which: npt.NDArray[np.bool_], lengths: npt.NDArray[Any] | None) -> dict[str, Any]:
    records = None if lengths is None else int(lengths[which].sum(dtype=np.int64))
    return {"name": name, "where": where, "documents": int(which.sum()), "records": records}


def _by_category(
    name: str, codes: npt.NDArray[Any], lengths: npt.NDArray[Any] | None, categories: tuple[str, ...]
) -> dict[str, Any]:
    size = len(categories) + 1
    counts = np.bincount(codes + 1, minlength=size)  # place 0: documents without one
    records = None if lengths is None else np.bincount(codes + 1, weights=lengths, minlength=size)
    order = [int(at) for at in np.argsort(-counts, kind="stable") if counts[at]]
    quoted = in_quotes(name)
    bars = []
    for at in order[:_MOST_BARS]:
        value = None if at == 0 else categories[at - 1]
        where = f"{quoted} is null" if value is None else "{} = '{}'".format(quoted, value.replace("'", "''"))
        bars.append(
            {
                "name": "null" if value is None else value[:200],
                "where": where,
                "documents": int(counts[at]),
                "records": None if records is None else int(records[at]),
            }
        )
    return {"bars": bars, "rest": max(len(order) - _MOST_BARS, 0)}


def _by_number(name: str, values: npt.NDArray[Any], lengths: npt.NDArray[Any] | None) -> dict[str, Any]:
    quoted = in_quotes(name)
    is_float = values.dtype.kind == "f"
    known = np.isfinite(values) if is_float else np.ones(len(values), bool)
    some = values[known]
    bars: list[dict[str, Any]] = []
    if len(some):
        edges = _edges(some)
        places = np.searchsorted(edges, some, "right") - 1
        weights = None if lengths is None else np.bincount(places, lengths[known], len(edges))
        counts = np.bincount(places, minlength=len(edges))
        for at, low in enumerate(edges.tolist()):
            last = at + 1 == len(edges)
            high = None if last else edges[at + 1].item()
            upper = f" and {quoted} <= {_number(some.max())}" if last else f" and {quoted} < {_number(high)}"
            bars.append(
                {
                    "name": f"{low:,.6g}" if is_float else f"{low:,}",
                    "where": f"{quoted} >= {_number(low)}{upper}",
                    "documents": int(counts[at]),
                    "records": None if weights is None else int(weights[at]),
                }
            )
    if is_float and np.isnan(values).any():
        bars.append(_bar("NaN", f"{quoted} is null", np.isnan(values), lengths))
    return {"bars": bars, "rest": 0, "numeric": True}


def _edges(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Where the ranges begin: the first at the least value; of few integers one for each."""
    low, high = values.min(), values.max()
    if values.dtype.kind != "f":
        size = -(-(int(high) - int(low) + 1) // _BINS)
        return np.array(range(int(low), int(high) + 1, size), values.dtype)
    edges = np.linspace(np.float64(low), np.float64(high), _BINS + 1)[:-1]
    return np.unique(edges) if high > low else np.array([low], np.float64)


def _number(value: Any) -> str:
    plain = value.item() if hasattr(value, "item") else value
    return repr(plain)
