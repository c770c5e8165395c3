"""Records of an opened dataset that native code reads and appends: no array is made of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock._data.dataset import Dataset
from penstock._make.threads import check_stopped
from penstock._make.writer import Writer

_STEP = 64 << 20  # bytes of records of a call, during which no signal is handled


def can_append(writer: Writer, dataset: Dataset) -> bool:
    """True if these functions can: token files of this machine, a writer of one shard without metadata."""
    return writer._native.can_append(dataset._native)


def append_documents(writer: Writer, dataset: Dataset, first: int, lengths: npt.NDArray[np.uint64]) -> int:
    """Documents of these lengths, which follow one another from record `first` on; where they end.

    Raises:
        InvalidArgumentError: a value does not fit; as of the next errors, the writer can then only be aborted.
        penstock.Error: a file cannot be read, the shard not be written.
    """
    ends = first + np.cumsum(lengths, dtype=np.uint64)
    low, at = 0, first
    while low < len(lengths):
        high = max(int(np.searchsorted(ends, at + _step(dataset), "right")), low + 1)
        check_stopped()
        writer._native.append_stream(dataset._native, at, lengths[low:high])
        writer._appended(high - low)
        low, at = high, int(ends[high - 1])
    return at


def append_records(writer: Writer, dataset: Dataset, begin: int, end: int) -> None:
    """Records of a token stream, which keeps no documents. Raises as `append_documents`."""
    step = _step(dataset)
    for first in range(begin, end, step):
        check_stopped()
        writer._native.append_stream(dataset._native, first, np.array([min(step, end - first)], np.uint64))
        writer._appended(0)


def append_cut(writer: Writer, dataset: Dataset, begin: int, end: int, token: int, *, ends: bool) -> None:
    """Records that a token cuts into documents: it `ends` each, or begins it. Raises as `append_documents`."""
    step, is_open = _step(dataset), False
    for first in range(begin, end, step):
        stop = min(first + step, end)
        check_stopped()
        documents, is_open = writer._native.append_cut(dataset._native, first, stop, token, ends, is_open)
        writer._appended(documents)


def _step(dataset: Dataset) -> int:
    assert dataset.dtype is not None
    return max(1, _STEP // dataset.dtype.itemsize)
