"""Says once where the token that is to end documents is in none of the first batches."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from penstock._data.arrays import BatchLayout
from penstock._data.column_kinds import FillInTheMiddle

_ENOUGH = 1 << 17  # tokens that are looked at


class UnseenEnd:
    """Looks for `FillInTheMiddle(end_of_document=…)` in the batches of a loader. One thread at a time."""

    def __init__(self, token: int, field: str) -> None:
        """For the token in this field."""
        self._token, self._field = token, field
        self._looked = 0

    def look(self, batch: Any) -> UnseenEnd | None:
        """Looks at a batch; None: nothing is left to be looked for."""
        tokens = batch[self._field]
        if bool((tokens == self._token).any()):
            return None
        self._looked += int(tokens.size if isinstance(tokens.size, int) else tokens.numel())
        if self._looked < _ENOUGH:
            return self
        self.say(2)
        return None

    def say(self, above: int = 1) -> None:
        """Warns the caller that many frames `above`, unless no token was looked at."""
        if not self._looked:
            return
        warnings.warn(
            f"FillInTheMiddle(end_of_document={self._token}): none of {self._looked:,} tokens is it. If another "
            "token ends documents, it is moved like others, and windows of a stream without spans are one piece each",
            RuntimeWarning,
            stacklevel=above + 2,
        )


def unseen_end(columns: Iterable[Any], layouts: Sequence[BatchLayout]) -> UnseenEnd | None:
    """What looks for the end that a loader's columns name; None: they name none."""
    for column in columns:
        if isinstance(column, FillInTheMiddle) and column.end_of_document is not None:
            for layout in layouts:
                if layout.computed.middle is not None:
                    return UnseenEnd(column.end_of_document, layout.computed.middle.field)
    return None
