"""Functions of metadata: called by `next` for the entries of a batch; native code then fills the arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data.dtype import fit

if TYPE_CHECKING:
    from penstock._data.batch import Batch
    from penstock._data.spans import Span

Function = Callable[[Any], Any]


class ValueFunction(NamedTuple):
    """What a `PerSpan` asks for."""

    name: str
    function: Function
    dtype: np.dtype[Any]


class SpanFunctions(NamedTuple):
    """What is computed of the metadata of each batch."""

    paths: tuple[str, ...]  # of the datasets, by source, for messages
    masks: tuple[Function, ...]
    values: tuple[ValueFunction, ...]

    def fill(self, batch: Batch) -> None:
        """Calls the functions, each once for each entry of the batch, and fills its arrays.

        Raises:
            InvalidArgumentError: a function raised, or gave what it must not; it names the document.
            CorruptionError: the codec cannot decode an entry.
        """
        layout, native = batch._layout, batch._native
        entries = native.number_entries()
        spans = [batch.spans[int(at)] for at in entries.first_spans()]
        for mask in self.masks:
            what = "LossMask(spans=…)"
            given = self._called(batch, spans, what, mask)
            ranges = _all_ranges(given)
            if ranges is None:
                given = self._each(batch, spans, what, given, _ranges)
                ranges = np.concatenate([_NO_RANGES, *given])
            firsts = np.cumsum([0, *map(len, given)], dtype=np.uint64)
            native.keep_targets(layout.column_of["loss_mask"].number, entries, firsts, ranges)
        for value in self.values:
            what = f"PerSpan({excerpt(value.name)!r})"
            given = self._called(batch, spans, what, value.function)
            array = _all_values(given, value.dtype)
            if array is None:
                array = np.array(
                    self._each(batch, spans, what, given, partial(one_value, dtype=value.dtype)), value.dtype
                )
            native.spread_values(layout.per_span_of[value.name].number, entries, array.view(np.uint8))

    def _called(self, batch: Batch, spans: list[Span], what: str, function: Function) -> list[Any]:
        given = []
        for span in spans:
            metadata = span.metadata  # decoded anew: what one function does with it is not seen by the next
            try:
                given.append(function(metadata))
            except Exception as error:
                why = f"{type(error).__name__}: {excerpt(error)}"
                raise InvalidArgumentError(f"{what}: {self._place(span)}: {why}") from error
        return given

    def _each(
        self, batch: Batch, spans: list[Span], what: str, given: list[Any], checked: Callable[[Any], Any]
    ) -> list[Any]:
        found = []
        for span, each in zip(spans, given, strict=True):
            try:
                found.append(checked(each))
            except ValueError as error:
                raise InvalidArgumentError(f"{what}: {self._place(span)}: {error}") from None
        return found

    def _place(self, span: Span) -> str:
        return f"document {span.id.entry:,} of shard {span.id.shard:,} of {self.paths[span.source]}"


_NO_RANGES = np.zeros((0, 2), np.uint64)


def _all_values(given: list[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any] | None:
    """The values of all entries at once; None where one of them is none, or has to be looked at alone."""
    try:
        array = fit(given, dtype, "value")
    except (InvalidArgumentError, ValueError):
        return None
    return array if array.shape == (len(given),) else None


def _all_ranges(given: list[Any]) -> npt.NDArray[np.uint64] | None:
    """The ranges of all entries at once; None where one of them is none, or has to be looked at alone."""
    if not all(isinstance(each, (list, tuple)) for each in given):
        return None
    pairs = [pair for each in given for pair in each]
    if not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in pairs):
        return None
    flat = [bound for pair in pairs for bound in pair]
    if not all(type(bound) is int for bound in flat) or not _are_ordered(pairs, flat):
        return None
    return np.array(flat, np.uint64).reshape(-1, 2)


def _are_ordered(pairs: list[Any], flat: list[int]) -> bool:
    return all(0 <= begin <= end for begin, end in pairs) and max(flat, default=0) < 1 << 63


def one_value(given: Any, dtype: np.dtype[Any]) -> Any:
    """One value of `dtype`, which nothing was lost of.

    Raises:
        ValueError: it is none.
    """
    try:
        array = fit(given, dtype, "value")
    except InvalidArgumentError:
        array = np.zeros(1)
    if array.ndim > 0:
        raise ValueError(f"it gave {given!r:.80}: one value of {dtype} wanted")
    return array[()]


def _ranges(given: Any) -> npt.NDArray[np.uint64]:
    """What the function of a mask gave, as uint64 [n, 2].

    Raises:
        ValueError: it is no list of ranges.
    """
    wanted = "[[begin, end), …] of offsets in the document wanted"
    if given is None or isinstance(given, (str, bytes)):
        raise ValueError(f"it gave {given!r:.80}: {wanted}")
    try:
        array = np.asarray(given)
    except (TypeError, ValueError):
        raise ValueError(f"it gave {given!r:.80}: {wanted}") from None
    if array.size == 0 and array.ndim >= 1:
        return _NO_RANGES
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError(f"it gave {given!r:.80}: {wanted}")
    wrong = (array < 0).any(axis=1) | (array[:, 1] < array[:, 0])
    if wrong.any():
        begin, end = array[int(wrong.argmax())].tolist()
        raise ValueError(f"it gave the range [{begin}, {end}): 0 <= begin <= end wanted")
    return array.astype(np.uint64)
