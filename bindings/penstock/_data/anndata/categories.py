"""Strings that are categories of a column: how many and how long they may be, and codes of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_STRINGS = 65_535
"""Distinct strings up to which they are categories."""
MOST_BYTES = 65_535
"""Bytes of one name: as many as layout/values/column_types.cpp takes."""
ROOM = 12 << 20
"""Bytes of all names, as a manifest has them: kMaxCategoriesBytes of layout/dataset/format.h."""

_CONTROL = re.compile(rb"[\x00-\x1f]")


def json_bytes(name: str) -> int:
    """Bytes of a name in a manifest, with its quotes and a comma: at least as many as DatasetWriter counts."""
    text = name.encode("utf-8", "surrogatepass")
    return 3 + len(text) + text.count(b'"') + text.count(b"\\") + 5 * len(_CONTROL.findall(text))


class CategoryRoom:
    """The room that a dataset's manifest has for the names of all categories: first come, first served."""

    def __init__(self) -> None:
        """The room of a dataset without categories yet."""
        self._left = ROOM

    def take(self, column: str, names: Iterable[str]) -> bool:
        """True if there was room for those of a column; else none is taken."""
        needed = json_bytes(column) + len(":[],")
        for name in names:
            needed += json_bytes(name)
            if len(name.encode("utf-8", "surrogatepass")) > MOST_BYTES or needed > self._left:
                return False
        self._left -= needed
        return True


class Coded:
    """Codes and the names that occur: what a writer takes for a category, as it does pandas' Categorical."""

    def __init__(self, codes: npt.NDArray[Any], names: Sequence[str]) -> None:
        """`codes` of `names`, negative where one is missing; only the names that occur are kept."""
        used, places = np.unique(codes, return_inverse=True)
        missing = int(np.searchsorted(used, 0))  # codes below 0
        self.categories = [names[code] for code in used[missing:].tolist()]
        self.codes = np.maximum(places.astype(np.int64) - missing, -1)

    def __len__(self) -> int:
        """How many values."""
        return len(self.codes)
