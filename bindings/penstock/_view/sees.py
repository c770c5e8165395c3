"""Rows as training sees them: inputs and labels, the loss, padding, borders of documents, fill-in-the-middle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock._base.errors import InvalidArgumentError
from penstock._data.column_kinds import FillInTheMiddle, Labels, LossMask
from penstock._load.loader import Loader
from penstock._view.exhibit import MOST_WINDOW, Exhibit

KINDS = ("windows", "packed", "padded")


@dataclass(frozen=True)
class Form:
    """How rows are made.

    Attributes:
        kind: one of KINDS.
        window: records of a row.
        cross: whether labels go on over the borders of documents; of windows alone.
        middle: the tokens (prefix, middle, suffix) of fill-in-the-middle; None: it is not wanted.
        rate: of pieces that are rearranged, in hundredths.
        seed: of the loader.
    """

    kind: str = "windows"
    window: int = 256
    cross: bool = True
    middle: tuple[int, int, int] | None = None
    rate: int = 100
    seed: int = 0


def sees(exhibit: Exhibit, form: Form, index: int, document: int | None = None, record: int = 0) -> dict[str, Any]:
    """Row `index`, or the one that has a record of a document, as a loader gives it.

    Returns:
        {"index", "count", "ids", "pieces", "special", "labels", "loss", "documents" (the number of the piece at each
        place, -1 in padding), "spans", "waste"}.

    Raises:
        InvalidArgumentError: a form that cannot be, or no such row.
    """
    if not 1 <= form.window <= MOST_WINDOW:
        raise InvalidArgumentError(f"window={form.window:,}: this page shows rows of 1 to {MOST_WINDOW:,} records")
    view = exhibit.kept(("view", form.kind, form.window), lambda: _view(exhibit, form))
    if document is not None:
        index = _row_of(exhibit, view, form, document, record)
    if index >= len(view):
        there = f"they are from 0 to {len(view) - 1:,}" if len(view) else "there are none"
        raise InvalidArgumentError(f"there is no row {index:,} of {form.window:,} records: {there}")
    options: dict[str, Any] = {"order": "sequential", "seed": form.seed, "framework": "numpy", "prefetch": 1}
    with Loader(view, 1, rank=0, world_size=1, threads=1, columns=_columns(exhibit, form), **options) as loader:
        loader.seek(index)
        batch = next(loader)
        field = exhibit.decoder.field
        assert field is not None
        ids = np.array(batch[field][0])
        labels = np.array(batch.labels[0])
        found = [_span(exhibit, each) for each in batch.spans.of_row(0)] if exhibit.dataset.layout else []
    spelling = exhibit.decoder.spelling
    places = np.full(len(labels), -1 if found else 0, np.int64)
    for number, each in enumerate(found):
        places[each["start"] : each["stop"]] = number
    if form.kind == "windows" and not found:
        places[:] = 0
    return {
        "index": index,
        "count": len(view),
        "ids": ids[: len(labels)].tolist(),
        **exhibit.tokens(ids[: len(labels)]),
        "labels": labels.tolist(),
        "label_pieces": None if spelling is None else [spelling.piece(max(each, 0)) for each in labels.tolist()],
        "documents": places.tolist(),
        "spans": found,
        "waste": float(view.waste) if form.kind == "packed" else None,
    }


def _view(exhibit: Exhibit, form: Form) -> Any:
    dataset = exhibit.dataset
    if exhibit.decoder.field is None or dataset.mode == "opaque":
        raise InvalidArgumentError("its records have no field of ids, so there is nothing to train on here")
    metadata: Any = "spans" if dataset.layout else False
    if form.kind == "windows":
        return dataset.windows(form.window, 1, metadata=metadata)
    if form.kind == "packed":
        return dataset.packed(form.window, metadata=metadata)
    if form.kind == "padded":
        return dataset.documents(metadata=metadata).padded(to=form.window)
    raise InvalidArgumentError(f"as={form.kind!r:.80}: must be one of {', '.join(KINDS)}")


def _columns(exhibit: Exhibit, form: Form) -> list[Any]:
    found: list[Any] = []
    if exhibit.facts["has_loss"]:
        found.append(LossMask(field="loss"))
    if form.kind == "windows" and not form.cross:
        found.append(Labels(cross_document=False))
    if form.middle is not None:
        found.append(FillInTheMiddle(*form.middle, rate=form.rate / 100))
    return found


def _row_of(exhibit: Exhibit, view: Any, form: Form, document: int, record: int) -> int:
    """The row that has a record of a document, its first one in padded rows; of packed rows the first one of all."""
    if form.kind == "padded":
        return document
    if form.kind == "windows":
        return min((exhibit.first_record(document) + record) // form.window, max(len(view) - 1, 0))
    return 0


def _span(exhibit: Exhibit, span: Any) -> dict[str, Any]:
    return {
        "start": span.start,
        "stop": span.stop,
        "begins": span.begins,
        "ends": span.ends,
        "offset": span.offset,
        "document": exhibit.document_of(*span.id),
    }
