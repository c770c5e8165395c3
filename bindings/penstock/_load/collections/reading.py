"""How a collection is indexed by an array of numbers, and how many observations a thing holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import counted

Indices = npt.NDArray[np.int64]

# Libraries whose objects take a slice wherever they take an array, and read it faster.
_TAKE_SLICES = ("anndata", "datasets", "h5py", "zarr")


class CountError(InvalidArgumentError):
    """A collection gave another number of observations than was asked for."""


class Parts:
    """Marks a collection whose parts, by their names, are indexed together."""

    def items(self) -> Any:
        """(name, part) pairs."""
        raise NotImplementedError

    def with_parts(self, parts: dict[str, Any]) -> Any:
        """The same names around other parts."""
        raise NotImplementedError


def library_of(thing: Any) -> str:
    """The package that its type is of."""
    return type(thing).__module__.partition(".")[0]


def read(collection: Any, indices: Indices) -> Any:
    """The observations `indices` of a collection, in memory.

    Args:
        collection: anything that integers index; of a mapping, a tuple or `penstock.Collections` each part is read.
        indices: int64 [n], ascending, each once.

    Raises:
        CountError: it, or a part of it, gave another number of them.
    """
    if (parts := _mapped(collection, lambda part: read(part, indices))) is not None:
        return parts
    if isinstance(collection, list):
        return [collection[index] for index in indices.tolist()]
    found = _indexed(collection, indices)
    check_count(f"indexing the {type(collection).__name__}", found, len(indices))
    return found


def _indexed(collection: Any, indices: Indices) -> Any:
    if hasattr(collection, "iloc"):
        return collection.iloc[indices]
    if library_of(collection) == "pyarrow":
        return collection.take(indices)
    found = collection[_key(collection, indices)]
    # A backed AnnData gives a view that has read nothing: reading it belongs here, not to the consumer.
    to_memory = getattr(found, "to_memory", None)
    return to_memory() if callable(to_memory) else found


def check_count(what: str, found: Any, wanted: int) -> None:
    """Refuses what holds another number of observations than `wanted`.

    Raises:
        CountError: it does, or does not say how many it holds; the message begins with `what`.
    """
    count = count_of(found)
    if count == wanted:
        return
    name = type(found).__name__
    if count is None:
        raise CountError(
            f"{what} gave a {name} without a length (its parts must agree): give batch_callback(fetched, places)"
        )
    raise CountError(f"{what} gave a {name} of {counted(count, 'observation')}, {wanted:,} were asked for")


def take(fetched: Any, places: Indices) -> Any:
    """The rows `places` of what was fetched: of a mapping, a tuple or `penstock.Collections` those of each part.

    Args:
        fetched: arrays, tensors, sparse matrices, lists, AnnData, data frames or Arrow tables, or parts of those.
        places: int64 [n], in any order, also repeated.
    """
    if (parts := _mapped(fetched, lambda part: take(part, places))) is not None:
        return parts
    if isinstance(fetched, list):
        return [fetched[place] for place in places.tolist()]
    if hasattr(fetched, "iloc"):
        return fetched.iloc[places]
    if library_of(fetched) == "pyarrow":
        return fetched.take(places)
    return fetched[places]


def padded(batch: Any, given: int, rows: int) -> Any:
    """A batch of `given` rows with its last one repeated up to `rows`, part by part.

    A part that holds another number of rows, or none to be taken, stays as it is.
    """
    if given == rows:
        return batch
    with suppress(Exception):  # an object of a hook, which is not made or indexed as others of its kind
        if isinstance(batch, Parts | Mapping | tuple):
            before = [part for _, part in items_of(batch)]
            after = [padded(part, given, rows) for part in before]
            is_same, found = all(new is old for new, old in zip(after, before, strict=True)), iter(after)
            return batch if is_same else _mapped(batch, lambda _: next(found))
        if count_of(batch) == given:
            return take(batch, np.minimum(np.arange(rows), given - 1))
    return batch


def detached(batch: Any) -> Any:
    """A batch that pickles by itself, or with parts that do; itself where it does already.

    Views of AnnData, and of its X and obs, bring all that they are views of, which may hold the file.
    """
    if isinstance(batch, Parts | Mapping | tuple):
        before = [part for _, part in items_of(batch)]
        after = [detached(part) for part in before]
        if all(new is old for new, old in zip(after, before, strict=True)):
            return batch
        return _mapped(batch, detached)
    if library_of(batch) != "anndata":
        return batch
    is_view = getattr(batch, "is_view", None)  # of AnnData itself; its arrays' views are types of their own
    return batch.copy() if is_view or is_view is None else batch


def count_of(thing: Any) -> int | None:
    """How many observations it holds: its shape[0], or its len(); of parts, which must agree, that of each.

    Returns:
        None where it does not say, or its parts hold different numbers.
    """
    if isinstance(thing, Parts | Mapping | tuple):
        counts = {count_of(part) for _, part in items_of(thing)}
        return counts.pop() if len(counts) == 1 else None
    shape = getattr(thing, "shape", None)
    if isinstance(shape, Sequence):  # a sparse matrix has no len(), a data frame's is of its rows too
        return int(shape[0]) if len(shape) > 0 else None
    if isinstance(thing, str | bytes):
        return None
    try:
        return len(thing)
    except TypeError:
        return None


def items_of(parts: Any) -> list[tuple[str, Any]]:
    """(name, part) pairs of a mapping, a tuple or `penstock.Collections`."""
    if isinstance(parts, tuple):
        return [(str(number), part) for number, part in enumerate(parts)]
    return list(parts.items())


def bytes_of(thing: Any) -> int:
    """Roughly the bytes that it takes in memory."""
    if isinstance(thing, Parts | Mapping | tuple):
        return sum(bytes_of(part) for _, part in items_of(thing))
    if isinstance(thing, list):
        few = thing[:: max(1, len(thing) // 64)]
        return len(thing) * sum(map(bytes_of, few)) // max(1, len(few))
    if library_of(thing) == "scipy":
        arrays = (getattr(thing, name, None) for name in ("data", "indices", "indptr", "row", "col", "offsets"))
        return sum(int(each.nbytes) for each in arrays if each is not None)
    try:
        return int(thing.nbytes)
    except (AttributeError, RuntimeError, TypeError):  # none, or a sparse tensor
        return int(thing.__sizeof__())


def _mapped(thing: Any, function: Any) -> Any:
    """The same parts after `function`; None: it has no parts."""
    if isinstance(thing, Parts):
        return thing.with_parts({name: function(part) for name, part in thing.items()})
    if isinstance(thing, Mapping):
        return {name: function(part) for name, part in thing.items()}
    if isinstance(thing, tuple):
        parts = [function(part) for part in thing]
        return type(thing)(*parts) if hasattr(thing, "_fields") else tuple(parts)
    return None


def _key(collection: Any, indices: Indices) -> Indices | slice:
    begin, count = int(indices[0]) if len(indices) > 0 else 0, len(indices)
    is_run = count == 0 or int(indices[-1]) - begin == count - 1
    return slice(begin, begin + count) if is_run and library_of(collection) in _TAKE_SLICES else indices
