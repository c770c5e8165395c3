"""Fields of records: scalar leaves of their dtype, which of them holds tokens, and the types that users choose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import quoted
from penstock._data.dtype import numpy_type

DtypeChoice = Mapping[str, Any] | str | np.dtype[Any] | type | None


class Leaf(NamedTuple):
    """One scalar field, as core/batch/schema.h flattens records: its dotted name, scalar type and trailing axes."""

    name: str
    base: np.dtype[Any]
    dims: tuple[int, ...]


def leaves(dtype: np.dtype[Any], prefix: str = "", dims: tuple[int, ...] = ()) -> Iterator[Leaf]:
    """The scalar fields of a structured dtype, depth first.

    >>> [leaf.name for leaf in leaves(np.dtype([("a", "<u2"), ("b", [("x", "<f4"), ("y", "u1", 3)])]))]
    ['a', 'b.x', 'b.y']
    """
    base, shape = dtype.subdtype if dtype.subdtype is not None else (dtype, ())
    dims = dims + shape
    if base.names is None:
        yield Leaf(prefix, base, dims)
        return
    for name in base.names:
        yield from leaves(base[name], f"{prefix}.{name}" if prefix else name, dims)


def stored_dtype(dtype: np.dtype[Any], stored_record_bytes: int) -> np.dtype[Any]:
    """`dtype` with records `stored_record_bytes` apart: what follows the visible fields (an id) is hidden."""
    if dtype.itemsize == stored_record_bytes:
        return dtype
    names = list(dtype.names or ())
    fields: Mapping[str, Any] = dtype.fields or {}
    return np.dtype(
        {
            "names": names,
            "formats": [fields[name][0] for name in names],
            "offsets": [fields[name][1] for name in names],
            "itemsize": stored_record_bytes,
        }
    )


def token_leaf(dtype: np.dtype[Any]) -> tuple[str | None, str]:
    """The field that holds the tokens: `token`, else the only integer field; or None, and why."""
    return token_field(tuple(leaves(dtype)))


def token_field(found: tuple[Leaf, ...]) -> tuple[str | None, str]:
    """As `token_leaf`, of leaves."""
    integers = [leaf.name for leaf in found if leaf.base.kind in "iu"]
    if "token" in integers:
        return "token", ""
    if len(integers) == 1:
        return integers[0], ""
    return None, f"the records have {len(integers)} integer fields and none is called token"


def row_field(found: tuple[Leaf, ...]) -> tuple[str | None, str]:
    """The field whose values are inputs and labels of rows of documents; or None, and why."""
    name, why = token_field(found)
    dims = next((leaf.dims for leaf in found if leaf.name == name), ())
    return (None, f"the field {name} has values of shape {list(dims)}") if dims else (name, why)


def default_type(leaf: Leaf, torch: Any) -> np.dtype[Any]:
    """The type that an array of the field has where none was chosen."""
    return np.dtype(np.int64) if torch is not None and leaf.base.kind in "iu" else leaf.base


def chosen_types(found: tuple[Leaf, ...], dtype: DtypeChoice) -> dict[str, np.dtype[Any]]:
    """The types that `dtype` chooses, by field.

    Raises:
        InvalidArgumentError: it names a field that is not there.
    """
    if dtype is None:
        return {}
    if not isinstance(dtype, Mapping):
        return {leaf.name: numpy_type(dtype) for leaf in found if leaf.base.kind in "iu"}
    names = [leaf.name for leaf in found]
    unknown = [name for name in dtype if name not in names]
    if unknown:
        raise InvalidArgumentError(f"dtype names the field {unknown[0]!r}; the fields are {quoted(names)}")
    return {name: numpy_type(value) for name, value in dtype.items()}
