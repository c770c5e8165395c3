"""Where the rows of a global batch lie: told by the job and the datasets' indices, without reading records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.arguments import index
from penstock._base.errors import InvalidArgumentError
from penstock._base.resources import memory_bytes
from penstock._data.loadable import Loadable
from penstock._data.spans import SPANS, SpanId

_ROWS_AT_ONCE = 1024  # between two looks at Ctrl-C


class LocatedSpan(NamedTuple):
    """A document in a row, as `penstock.Span` tells it.

    Attributes:
        id: the entry: (shard, entry).
        start: first record of the row that it covers.
        stop: one past the last one; clipped to the row.
        offset: of the record at `start` within its document; None in the ids layout.
        begins: whether the document begins in this row.
        ends: whether the document ends in this row.
    """

    id: SpanId
    start: int
    stop: int
    offset: int | None
    begins: bool
    ends: bool


@dataclass(frozen=True)
class LocatedRow:
    """A row of a global batch.

    Attributes:
        position: of the job.
        rank: that gets the row.
        row: of that rank's batch.
        source: number of the source, as in `batch.sources`; 0 where there is one.
        epoch: of that source.
        index: the observation, as in `batch.indices`.
        first_record: where the row begins in its dataset's stream; -1: nowhere, as packed rows.
        spans: the documents in it, in order of start; none where the dataset has no spans.
    """

    position: int
    rank: int
    row: int
    source: int
    epoch: int
    index: int
    first_record: int
    spans: list[LocatedSpan]


class Sources:
    """The views of a job by the numbers of its picks, as the native side reads them."""

    def __init__(self, view: Loadable) -> None:
        """Of a view or a mixture; nothing is opened."""
        views = list(view._views().values())
        self.names = len(views)  # a mixture's sources have a native number for each window
        self._datasets = [each.dataset for each in views]
        self.native = view._native_sources()
        # Packed rows have no first record, and entries without records neither: nothing is to be read for it.
        self._is_read = bool(views[0]._has_first_records)

    def read(self, picks: npt.NDArray[Any], parts: int) -> Iterator[_native.Batch]:
        """`parts` of the picks' rows, some rows at a time; records are not read. Rows must be of one shape."""
        for dataset in self._datasets:
            dataset.check_in_place()
        for first in range(0, len(picks), _ROWS_AT_ONCE):
            some = picks[first : first + _ROWS_AT_ONCE]
            numbers, indices, epochs = (np.ascontiguousarray(some[name]) for name in ("source", "index", "epoch"))
            yield _native.locate_rows(self.native, numbers, indices, epochs, parts, memory_bytes())

    def picks(self, job: _native.Job, first: int, count: int) -> npt.NDArray[Any]:
        """What stands at the positions [first, first + count), with first records; see `Job.picks`."""
        found = job.picks(first, count, self.native)
        if self._is_read and count > 0:
            found["first_record"] = np.concatenate([batch.first_records() for batch in self.read(found, 0)])
        self.number(found["source"])
        return found

    def number(self, sources: npt.NDArray[Any]) -> None:
        """Numbers of a mixture's sources instead of native ones, in place."""
        np.remainder(sources, self.names, out=sources, where=sources >= 0)


def batch_position(job: _native.Job, step: Any, position: Any) -> int:
    """Where the batch begins that `locate(step)` or `locate(position=)` asks for.

    Raises:
        InvalidArgumentError: both or neither is given; no such step.
    """
    if (step is None) == (position is None):
        raise InvalidArgumentError("locate: give exactly one of step and position=")
    return index("position", position) if step is None else job.begin_of_step(index("step", step))


def planned(job: _native.Job, position: int) -> tuple[list[int], npt.NDArray[Any]]:
    """Positions and picks of all ranks' batch that begins at `position`.

    Raises:
        InvalidArgumentError: the run is over there.
    """
    found = job.batch_at(position)
    if found is None:
        raise InvalidArgumentError(f"position {position:,}: there is no batch: {job.describe(position)}")
    _, _, positions, picks = found
    return positions.tolist(), picks


def locate(job: _native.Job, sources: Sources, position: int, places: list[tuple[int, int]]) -> list[LocatedRow]:
    """The rows of all ranks' batch that begins at `position`, in the order of their positions; no padding.

    Args:
        job: whose batches they are.
        sources: of the job.
        position: where the batch begins.
        places: (rank, row) of each.

    Raises:
        InvalidArgumentError: the run is over there.
        CorruptionError, IoError: an index that cannot be read.
    """
    positions, picks = planned(job, position)
    first_records: list[int] = []
    spans: list[list[LocatedSpan]] = []
    for batch in sources.read(picks, SPANS):
        first_records += batch.first_records().tolist()
        spans += _spans(batch)
    sources.number(picks["source"])
    return located(positions, picks, first_records, spans, places)


def located(
    positions: list[int],
    picks: npt.NDArray[Any],
    first_records: list[int],
    spans: list[list[LocatedSpan]],
    places: list[tuple[int, int]],
) -> list[LocatedRow]:
    """The rows of a global batch; `places` are (rank, row) of each."""
    columns = (picks[name].tolist() for name in ("source", "epoch", "index"))
    rows = zip(positions, places, *columns, first_records, spans, strict=True)
    return [LocatedRow(at, *place, *rest) for at, place, *rest in rows]


def _spans(batch: _native.Batch) -> list[list[LocatedSpan]]:
    """The spans of each row."""
    rows, starts, stops, begins, ends, offsets, ids, _ = (each.tolist() for each in batch.spans().arrays())
    found: list[list[LocatedSpan]] = [[] for _ in range(batch.rows)]
    for row, start, stop, first, last, offset, (shard, entry) in zip(
        rows, starts, stops, begins, ends, offsets, ids, strict=True
    ):
        known = None if offset < 0 else offset
        found[row].append(LocatedSpan(SpanId(shard, entry), start, stop, known, first, last))
    return found
