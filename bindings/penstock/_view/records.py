"""Records, spans and cells as JSON values. Numbers travel as text where JavaScript would round them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from penstock._base.errors import Error
from penstock._view.decoder import metadata_of

_MOST_ROWS = 512  # of the table of fields
_MOST_GENES = 1000  # of a cell
_LONGEST = 4000  # characters of a value


def is_cells(dataset: Any) -> bool:
    """Whether documents are cells: records that name genes."""
    return dataset.features is not None and dataset.dtype is not None and "gene" in (dataset.dtype.names or ())


def ids_text(values: Any) -> str:
    """Numbers, separated by blanks."""
    return " ".join(map(str, values.tolist()))


def shortened(text: str, longest: int = _LONGEST) -> str:
    """A value's text; of a long one the beginning, and how long it is."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"


def value_text(value: Any, longest: int = _LONGEST) -> str:
    """A text as it is, anything else as JSON."""
    return shortened(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str), longest)


def pairs_of(
    span: Any, columns: Mapping[str, Any], dataset: Any, longest: int = _LONGEST
) -> list[tuple[str, str]] | str | None:
    """The metadata of a span: names and texts of an object's members, the text of anything else, None of nothing.

    Args:
        span: of a batch with entries.
        columns: its value of each column; members that say the same are left out.
        dataset: whose columns they are.
        longest: characters of a text.
    """
    try:
        value = metadata_of(span)
    except Error as error:  # one entry that cannot be decoded leaves the others to be seen
        return str(error)
    return _pairs(value, columns, dataset, longest)


def _pairs(value: Any, columns: Mapping[str, Any], dataset: Any, longest: int) -> list[tuple[str, str]] | str | None:
    if isinstance(value, dict):
        return [
            (str(name), value_text(each, longest))
            for name, each in value.items()
            if name not in columns or not _is_repeated(each, dataset.columns[name], columns[name])
        ]
    return None if value is None else value_text(value, longest)


def _is_repeated(value: Any, column: Any, told: Any) -> bool:
    """True where a column's value `told` says what the metadata say."""
    if column._categories is not None:
        return bool(value == (None if told < 0 else column._categories[int(told)]))
    if len(column.shape) > 1:
        return False
    if value is None:
        return bool(told != told)  # NaN stands for a value that is missing
    if not isinstance(value, (bool, int, float)):
        return False
    with np.errstate(all="ignore"):
        try:
            return bool(column.dtype.type(value) == told or (value != value and told != told))
        except OverflowError:  # an integer that the column cannot have
            return False


def span_json(span: Any, columns: dict[str, Any], dataset: Any) -> dict[str, Any]:
    """What is known of a span beside its records.

    Args:
        span: of a batch with entries.
        columns: its value of each column; metadata that say the same are left out.
        dataset: whose columns they are.
    """
    problem = None
    try:
        value = metadata_of(span)
    except Error as error:  # one entry that cannot be decoded leaves the others to be seen
        value, problem = None, str(error)
    return {
        "shard": span.id.shard,
        "entry": span.id.entry,
        "start": span.start,
        "stop": span.stop,
        "begins": span.begins,
        "ends": span.ends,
        "offset": span.offset,
        "metadata": _pairs(value, columns, dataset, _LONGEST),
        "problem": problem,
        "columns": [(name, cell_text(dataset.columns[name], value)) for name, value in columns.items()],
    }


def cell_text(column: Any, value: Any, longest: int = _LONGEST) -> str:
    """A document's value of a column."""
    if column._categories is not None:
        return "null" if value < 0 else shortened(column._categories[int(value)], longest)
    return _cell(value, longest)


def field_table(fields: dict[str, Any], ids: str | None) -> dict[str, Any] | None:
    """The first records as a table; None where the ids say all."""
    if not fields or list(fields) == [ids]:
        return None
    columns = [[_cell(each) for each in values[:_MOST_ROWS]] for values in fields.values()]
    length = len(next(iter(fields.values())))
    return {"names": list(fields), "rows": list(zip(*columns, strict=True)), "records": length}


def _cell(value: Any, longest: int = _LONGEST) -> str:
    """NumPy's scalar (a float32 with as many digits as it has) or array."""
    if isinstance(value, np.ndarray):
        return shortened(json.dumps(value.tolist(), default=str), longest)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"  # as a condition has it
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value)


def cell_genes(fields: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """The genes of a cell with their counts, the largest first.

    Args:
        fields: of the cell's records.
        names: of genes, by number.
    """
    numbers = fields["gene"]
    values = {name: array for name, array in fields.items() if name != "gene" and array.ndim == 1}
    first = next(iter(values.values()), None)
    order = np.arange(len(numbers)) if first is None else np.argsort(-first.astype(np.float64), kind="stable")
    shown = order[:_MOST_GENES]
    rows = [
        {
            "gene": int(numbers[at]),
            "name": names[int(numbers[at])] if int(numbers[at]) < len(names) else None,
            "values": [float(array[at]) for array in values.values()],
        }
        for at in shown
    ]
    return {
        "fields": list(values),
        "rows": rows,
        "count": len(numbers),
        "sums": [float(array.astype(np.float64).sum()) for array in values.values()],
    }
