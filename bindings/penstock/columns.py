"""Columns: arrays that the loader's threads compute beside the fields; `Loader(columns=…)` takes them.

A batch's records, end to end and without the lookahead, are sequences: one begins where a row does and where a document
does. Where the dataset has spans, those are its documents; else a token bounds them, which its tokenizer notes or
`dataset.windows(…, end_of_document=…)`, or `begin_of_document=…`, says.

Examples:
    >>> import os, tempfile, penstock
    >>> path = os.path.join(tempfile.mkdtemp(), "corpus")
    >>> with penstock.Writer(path, fields={"token": "u2"}, metadata="json") as writer:
    ...     for length in (3, 7, 6):
    ...         writer.append(token=range(length), metadata=None)
    >>> view = penstock.open(path).windows(8)
    >>> options = dict(order="sequential", columns=["cu_seqlens", "position_ids"], framework="numpy")
    >>> batch = next(penstock.Loader(view, batch_size=2, max_documents=6, **options))
    >>> batch["token"].tolist()
    [[0, 1, 2, 0, 1, 2, 3, 4], [5, 6, 0, 1, 2, 3, 4, 5]]
    >>> batch.cu_seqlens.tolist(), batch.max_seqlen
    ([0, 3, 8, 10, 16, 16, 16], 8)
    >>> batch.position_ids.tolist()
    [[0, 1, 2, 0, 1, 2, 3, 4], [0, 1, 0, 1, 2, 3, 4, 5]]
"""

from penstock._data.column_kinds import (
    Column,
    CuSeqlens,
    DocumentIds,
    FillInTheMiddle,
    Labels,
    LossMask,
    Names,
    PerRow,
    PerSpan,
    PositionIds,
    SpanCorruption,
)
from penstock._data.column_specs import resolve
from penstock._data.given_row import Row, RowSpan

__all__ = [
    "Column",
    "CuSeqlens",
    "DocumentIds",
    "FillInTheMiddle",
    "Labels",
    "LossMask",
    "Names",
    "PerRow",
    "PerSpan",
    "PositionIds",
    "Row",
    "RowSpan",
    "SpanCorruption",
    "resolve",
]
