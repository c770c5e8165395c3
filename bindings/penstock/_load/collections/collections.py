"""Collections: several of one length under names, indexed together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import quoted
from penstock._load.collections.reading import Parts, count_of, read, take
from penstock._load.collections.turns import Turns


class Collections(Parts):
    """Several collections of one length under names, indexed together: modalities of the same cells, say.

    A name gives a part, and an integer the part of that number; a slice or an array of integers, or of booleans, gives
    `Collections` of those observations of every part, in memory. Parts are whatever `CollectionLoader` takes.

    Examples:
        >>> import numpy as np, penstock
        >>> both = penstock.Collections(rna=np.arange(12).reshape(6, 2), label=list("abcdef"))
        >>> len(both), list(both), both["rna"].shape
        (6, ['rna', 'label'], (6, 2))
        >>> few = both[[4, 0]]
        >>> few["rna"].tolist(), few["label"]
        ([[8, 9], [0, 1]], ['e', 'a'])
    """

    def __init__(
        self, parts: Mapping[str, Any] | None = None, /, *, unstructured: Mapping[str, Any] | None = None, **named: Any
    ) -> None:
        """Puts them together; nothing is read.

        Args:
            parts: collections by their names, where names are no Python identifiers.
            unstructured: what is not indexed and goes along as it is: names of genes, say.
            **named: collections by their names.

        Raises:
            InvalidArgumentError: none, a part without a length, or parts of different lengths.
        """
        self._parts = {**(parts or {}), **named}
        self.unstructured = dict(unstructured or {})
        if not self._parts:
            raise InvalidArgumentError("Collections() of nothing: give collections by their names, rna=…, protein=…")
        counts = {name: count_of(part) for name, part in self._parts.items()}
        if None in counts.values() or len(set(counts.values())) > 1:
            said = ", ".join(f"{name}: {'none' if count is None else f'{count:,}'}" for name, count in counts.items())
            raise InvalidArgumentError(f"Collections of different lengths, or of none: {said}")
        self._count = next(iter(counts.values())) or 0

    def __getitem__(self, key: Any) -> Any:
        """A part by its name or number, or `Collections` of the observations of a slice or an array.

        Raises:
            KeyError: no part has this name.
            IndexError: no part has this number, or there is no such observation.
        """
        if isinstance(key, str):
            if key not in self._parts:
                raise KeyError(f"{key!r:.80}: the parts are {quoted(list(self._parts))}")
            return self._parts[key]
        if isinstance(key, int | np.integer) and not isinstance(key, bool):
            return list(self._parts.values())[key]
        wanted = self._numbers(key)
        # Stores want each once, ascending; what is in memory then takes any order.
        indices, places = np.unique(wanted, return_inverse=True)
        with Turns(self):
            found = read(self, indices)
        return found if np.array_equal(indices, wanted) else take(found, places.reshape(-1))

    def _numbers(self, key: Any) -> npt.NDArray[np.int64]:
        if isinstance(key, slice):
            return np.arange(self._count)[key]
        wanted = np.asarray(key)
        if wanted.dtype == bool and wanted.shape == (self._count,):
            return np.flatnonzero(wanted)
        if wanted.size == 0:
            return np.zeros(0, np.int64)
        if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
            raise IndexError(f"{key!r:.80}: a name, a number, a slice, or integers or booleans [n]")
        wanted = wanted.astype(np.int64)
        wanted = np.where(wanted < 0, wanted + self._count, wanted)
        if wanted.min() < 0 or wanted.max() >= self._count:
            raise IndexError(f"{key!r:.80}: there are {self._count:,} observations")
        return wanted

    def __len__(self) -> int:
        """Observations of each part."""
        return self._count

    def __iter__(self) -> Iterator[str]:
        """Names."""
        return iter(self._parts)

    def __contains__(self, name: object) -> bool:
        """True if a part has this name."""
        return name in self._parts

    def keys(self) -> Any:
        """Names."""
        return self._parts.keys()

    def values(self) -> Any:
        """Parts."""
        return self._parts.values()

    def items(self) -> Any:
        """(name, part) pairs."""
        return self._parts.items()

    def with_parts(self, parts: dict[str, Any]) -> Collections:
        """The same `unstructured` with other parts."""
        return Collections(parts, unstructured=self.unstructured)

    def __repr__(self) -> str:
        """Names, types and length."""
        parts = ", ".join(f"{name}: {type(part).__name__}" for name, part in self.items())
        return f"Collections({parts}; {self._count:,} observations)"
