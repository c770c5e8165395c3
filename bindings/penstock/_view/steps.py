"""The global batch of a step: which rows, on which rank, of which documents, as `Job.locate` tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock._base.errors import InvalidArgumentError
from penstock._data.reading import records
from penstock._load.job import Job
from penstock._view.exhibit import Exhibit
from penstock._view.rows import begun, lengths_of

MOST_BATCH = 1 << 16
"""Rows of a global batch that are looked up."""
_MOST_SHOWN = 64
_PREVIEW = 48  # records whose text stands in a row
_MOST_SPANS = 50  # of a row


@dataclass(frozen=True)
class Run:
    """What a loader was given.

    Attributes:
        kind: "windows", "documents" or "packed"; of a mixture its file says it.
        window: records of a row.
        batch: rows of a global batch.
        ranks: how many there are.
        seed: of the order.
        order: "uniform" or "sequential".
    """

    kind: str = "windows"
    window: int = 256
    batch: int = 8
    ranks: int = 1
    seed: int = 0
    order: str = "uniform"


def step(
    exhibits: Mapping[str | None, Exhibit], view: Any, run: Run, number: int, rank: int | None, first: int
) -> dict[str, Any]:
    """The rows of a step, of all ranks or of one, from `first` on.

    Args:
        exhibits: by the names of the mixture's sources; of no mixture, one of None.
        view: the mixture, or the view of its dataset.
        run: which batches.
        number: of the step, from 0.
        rank: whose rows; None: all.
        first: rows that are passed over.

    Raises:
        InvalidArgumentError: no such step, or a run that cannot be.
    """
    if not 1 <= run.batch <= MOST_BATCH:
        raise InvalidArgumentError(f"batch={run.batch:,}: this page looks up batches of 1 to {MOST_BATCH:,} rows")
    if run.order not in ("uniform", "sequential"):
        raise InvalidArgumentError(f'order={run.order!r:.80}: must be "uniform" or "sequential"')
    job = Job(view, global_batch_size=run.batch, seed=run.seed, order=run.order)
    rows = job.locate(number, world_size=run.ranks)
    mine = [each for each in rows if rank is None or each.rank == rank]
    if rank is not None and not mine:
        raise InvalidArgumentError(f"rank={rank:,}: ranks are from 0 to {run.ranks - 1:,}")
    names = list(exhibits)
    counts = np.bincount([each.source for each in rows], minlength=len(names)).tolist()
    return {
        "step": number,
        "position": str(rows[0].position) if rows else "0",
        "rows": [_row(exhibits[names[each.source]], names, each) for each in mine[first : first + _MOST_SHOWN]],
        "count": len(mine),
        "first": first,
        "sources": [{"name": name, "rows": count} for name, count in zip(names, counts, strict=True)],
    }


def view_of(exhibit: Exhibit, run: Run) -> Any:
    """The view of a run on one dataset; kept."""
    return exhibit.kept(("step", run.kind, run.window), lambda: _view(exhibit, run))


def _view(exhibit: Exhibit, run: Run) -> Any:
    dataset = exhibit.dataset
    metadata: Any = "spans" if dataset.layout else False
    if run.kind == "documents" or dataset.mode == "opaque":
        return dataset.documents()
    if run.kind == "windows":
        return dataset.windows(run.window, 1, metadata=metadata)
    if run.kind == "packed":
        return dataset.packed(run.window, metadata=metadata)
    raise InvalidArgumentError(f'as={run.kind!r:.80}: must be "windows", "documents" or "packed"')


def _row(exhibit: Exhibit, names: list[str | None], row: Any) -> dict[str, Any]:
    spans = [
        {"start": each.start, "stop": each.stop, "document": exhibit.document_of(*each.id), "offset": each.offset}
        for each in row.spans[:_MOST_SPANS]
    ]
    return {
        "position": str(row.position),
        "rank": row.rank,
        "row": row.row,
        "source": row.source,
        "name": names[row.source],
        "epoch": row.epoch,
        "index": row.index,
        "first_record": None if row.first_record < 0 else row.first_record,
        "spans": spans,
        "more": max(len(row.spans) - _MOST_SPANS, 0),
        "text": _beginning(exhibit, row, spans),
    }


def _beginning(exhibit: Exhibit, row: Any, spans: list[dict[str, Any]]) -> str:
    """Text of the row's first records, read where they lie."""
    dataset, field = exhibit.dataset, exhibit.decoder.field
    if field is None or dataset.mode == "opaque" or exhibit.facts["cells"]:
        return ""
    first, most = row.first_record, _PREVIEW
    if first < 0:
        if not spans or spans[0]["document"] is None:
            return ""
        first = exhibit.first_record(spans[0]["document"]) + (spans[0]["offset"] or 0)
        most = min(most, spans[0]["stop"] - spans[0]["start"])
    elif len(spans) == 1 and spans[0]["document"] is not None:
        rest = int(lengths_of(dataset, np.array([spans[0]["document"]]))[0]) - (spans[0]["offset"] or 0)
        most = min(most, rest)
    if most <= 0:
        return ""
    ids = records(dataset, field, first, min(first + most, dataset.records))
    spelling = exhibit.decoder.spelling
    text = " ".join(map(str, ids.tolist())) if spelling is None else exhibit.decoder.text({field: ids})
    total = row.spans[-1].stop if row.spans else _PREVIEW + 1  # a row without spans is a window
    return begun(text, len(ids) == total or first + len(ids) == dataset.records)
