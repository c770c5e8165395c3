"""The parts of a batch that are by span, from docs/loading.md ("Documents of a batch", "Values of documents")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from observations import Given, Span


def spans_of(given: Sequence[Given], metadata: bool | str) -> dict[str, Any]:
    rows = [(number, each.source, span) for number, each in enumerate(given) for span in each.row.spans]
    spans: list[Span] = [span for _, _, span in rows]

    def numbers(values: Any, dtype: Any = np.int64) -> np.ndarray:
        return np.array(list(values), dtype)

    found: dict[str, Any] = {
        "spans.rows": numbers(row for row, _, _ in rows),
        "spans.source": numbers(source for _, source, _ in rows),
        "spans.starts": numbers(each.start for each in spans),
        "spans.stops": numbers(each.stop for each in spans),
        "spans.begins": numbers((each.begins for each in spans), bool),
        "spans.ends": numbers((each.ends for each in spans), bool),
        "spans.offsets": numbers(each.offset for each in spans),
        "spans.ids": numbers((each.place.shard, each.place.entry) for each in spans).reshape(-1, 2),
    }
    if metadata is True:
        found["spans.raw"] = [each.place.raw for each in spans]
        found["spans.metadata"] = [each.place.metadata for each in spans]
    return found


def values_of(
    given: Sequence[Given],
    spans: Sequence[Span],
    values: Mapping[str, np.dtype[Any]],
    categories: Sequence[Mapping[str, list[str]]],
    size: int,
) -> dict[str, np.ndarray]:
    """Columns of documents, one value for each of `spans`; `size` with padding."""
    found = {}
    for name, dtype in values.items():
        base, shape = dtype.subdtype or (dtype, ())
        names_of = [each.get(name) for each in categories]
        out = np.full((size, *shape), -1 if names_of[0] is not None else 0, base)
        for number, (each, span) in enumerate(zip(given, spans, strict=True)):
            value, names = span.place.columns[name], names_of[each.source]
            out[number] = value if names is None else -1 if value is None else names.index(value)
        found[f"columns.{name}"] = out
    return found
