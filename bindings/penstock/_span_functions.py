"""Functions of metadata: called by `next` for the entries of a batch; native code then fills the arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock._dtype import fit
from penstock._errors import InvalidArgumentError
from penstock._words import excerpt

if TYPE_CHECKING:
    from penstock._batch import Batch
    from penstock._spans import Span

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
            found = [self._called(batch, span, "LossMask(spans=…)", mask, _ranges) for span in spans]
            firsts = np.cumsum([0, *map(len, found)], dtype=np.uint64)
            ranges = np.concatenate(found) if found else _NO_RANGES
            native.keep_targets(layout.column_of["loss_mask"].number, entries, firsts, ranges)
        for value in self.values:
            what = f"PerSpan({excerpt(value.name)!r})"
            checked = partial(one_value, dtype=value.dtype)
            given = [self._called(batch, span, what, value.function, checked) for span in spans]
            array = np.array(given, value.dtype)
            native.spread_values(layout.per_span_of[value.name].number, entries, array.view(np.uint8))

    def _called(self, batch: Batch, span: Span, what: str, function: Function, checked: Callable[[Any], Any]) -> Any:
        metadata = span.metadata  # decoded anew: what one function does with it is not seen by the next
        try:
            given = function(metadata)
        except Exception as error:
            why = f"{type(error).__name__}: {excerpt(error)}"
            raise InvalidArgumentError(f"{what}: {self._place(batch, span)}: {why}") from error
        try:
            return checked(given)
        except ValueError as error:
            raise InvalidArgumentError(f"{what}: {self._place(batch, span)}: {error}") from None

    def _place(self, batch: Batch, span: Span) -> str:
        source = 0 if len(self.paths) == 1 else int(batch.spans.source[span._at])
        return f"document {span.id.entry:,} of shard {span.id.shard:,} of {self.paths[source]}"


_NO_RANGES = np.zeros((0, 2), np.uint64)


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
