"""Batch sizes as users give them: observations or tokens, of a rank or of all, or a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock._base.arguments import MOST, index
from penstock._base.errors import InvalidArgumentError
from penstock._load.mixture_stages import Tokens


def given_size(batch_size: Any, global_batch_size: Any, ranks: int) -> tuple[Any, int]:
    """The size that a user gave, and what one of it is of a global batch.

    Raises:
        InvalidArgumentError: neither or both are given.
    """
    if (batch_size is None) == (global_batch_size is None):
        raise InvalidArgumentError("give exactly one of batch_size (per rank) and global_batch_size")
    return (batch_size, ranks) if global_batch_size is None else (global_batch_size, 1)


def batch_sizes(
    size: Any, unit: int, windows: Sequence[tuple[int, int]] = (), ranks: int = 1, micro_batches: int = 1
) -> list[tuple[int, int]]:
    """A batch size, or a schedule of them, as [(position, global batch size), …].

    Args:
        size: an integer, `Tokens` or [(position, size), …].
        unit: what one of `size` is of a global batch: the number of ranks for a size of one rank.
        windows: [(position, window), …] of the view, by which tokens become observations.
        ranks: their number, for tokens that must be whole windows of each; 1 where windows are dealt unevenly.
        micro_batches: parts of a rank's rows, which the size that is advised has alike; 1 where rows are padded.

    Raises:
        InvalidArgumentError: neither an integer nor a schedule.
    """
    pairs = _schedule(size)
    found: list[tuple[int, int]] = []
    for number, (begin, each) in enumerate(pairs):
        if not isinstance(each, Tokens):
            found.append((begin, global_size(each, unit)))
            continue
        end = pairs[number + 1][0] if number + 1 < len(pairs) else MOST
        for at, window in _windows_in(windows, begin, end):
            found.append((at, _rows_of(each, window, unit, ranks, micro_batches)))
    return found


def _schedule(size: Any) -> list[tuple[int, Any]]:
    """(position, size) of each."""
    if not isinstance(size, Sequence) or isinstance(size, str):
        return [(0, size)]
    try:
        pairs = [(at, n) for at, n in size]
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"batch size {size!r:.80}: must be an integer, or a schedule [(position, size), …]"
        ) from None
    return [(index("position", at), n) for at, n in pairs]


def _windows_in(windows: Sequence[tuple[int, int]], begin: int, end: int) -> list[tuple[int, int]]:
    """(position, window) at `begin` and at each change before `end`; 0 where no window is known."""
    changes = [(at, window) for at, window in windows if at < end]
    before = [window for at, window in changes if at <= begin]
    return [(begin, before[-1] if before else 0), *(each for each in changes if each[0] > begin)]


def _rows_of(tokens: Tokens, window: int, unit: int, ranks: int, micro_batches: int) -> int:
    """Observations of a global batch of so many tokens."""
    if window == 0:
        raise InvalidArgumentError(f"batch size {tokens}: documents have no window, so tokens are no number of them")
    each = window * (ranks if unit == 1 else 1)
    if tokens.count == 0 or tokens.count % each:
        whole = "whole windows" if each == window else f"whole windows on each of {ranks} ranks"
        step = each * micro_batches
        near = max(1, round(tokens.count / step)) * step
        raise InvalidArgumentError(
            f"batch size {tokens}: these are no {whole} of {window:,}: the nearest is Tokens({near})"
            + ("" if each == window else ', and uneven="pad" takes any whole windows')
        )
    return global_size(tokens.count // window, unit)


def global_size(size: Any, unit: int) -> int:
    """The global batch size that `size` is, in units of `unit`.

    Raises:
        InvalidArgumentError: no integer from 1 on, or too large.
    """
    return index("batch size", size, 1, MOST // unit) * unit
