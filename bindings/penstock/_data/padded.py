"""Padded documents: what `documents().padded(…)` asks for, checked once, and the arrays that its batches have."""

from __future__ import annotations

import cmath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock import _native
from penstock._base.arguments import index, one_of
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import quoted
from penstock._data.dtype import PADDED_NAMES

_LONG = ("truncate", "drop", "refuse")


@dataclass(frozen=True, eq=False)
class Padded:
    """The arguments of `View.padded`, checked; pickles.

    Attributes:
        to: records of each row; None: those of the longest one of the batch.
        multiple_of: what rows are rounded up to.
        side: "right" or "left", where padding is.
        values: what padding is, by field; 0 for others.
        long: what becomes of documents longer than `to`.
    """

    to: int | None
    multiple_of: int
    side: str
    values: tuple[tuple[str, Any], ...]
    long: str

    def __eq__(self, other: object) -> bool:
        """Whether the arguments are the same; a NaN is like another."""
        return isinstance(other, Padded) and repr(self) == repr(other)

    def __hash__(self) -> int:
        """As `==` has it."""
        return hash(repr(self))

    def types(self, types: Mapping[str, np.dtype[Any]], chosen: Mapping[str, Any]) -> dict[str, np.dtype[Any]]:
        """Of the arrays of fields: int64 of an integer field, not `chosen`, that cannot hold its padding."""
        found = dict(types)
        for name, value in self.values:
            dtype = found[name]
            if dtype.kind in "iu" and name not in chosen and _item(value, dtype) is None:
                found[name] = np.dtype(np.int64)
        return found

    def padding(self) -> _native.Padding:
        """Where padding is, and how much of it, as the native side takes it."""
        return _native.Padding(length=self.to or 0, multiple_of=self.multiple_of, left=self.side == "left")

    def maker(self, arrays: Iterable[tuple[str, np.dtype[Any]]]) -> _native.ColumnMaker:
        """What makes an array of each (field, type), then attention_mask and lengths.

        Raises:
            InvalidArgumentError: a type that cannot hold the padding.
        """
        values = dict(self.values)
        fields = []
        for name, dtype in arrays:
            value = values.get(name, 0)
            item = _item(value, dtype)
            if item is None:
                raise InvalidArgumentError(
                    f"value={value!r:.80}: the padding of field {name} must be a value of {dtype}"
                )
            fields.append(_native.PaddedField(field=name, type=dtype.str, padding=item))
        return _native.make_padded(padding=self.padding(), fields=fields)

    def words(self) -> str:
        """The arguments that are not the defaults."""
        said = [] if self.to is None else [f"{self.to}"]
        for name, default in (("multiple_of", 1), ("side", "right"), ("long", "truncate")):
            if getattr(self, name) != default:
                said.append(f"{name}={getattr(self, name)!r}")
        if self.values:
            said.append(f"value={dict(self.values)!r}")
        return ", ".join(said)


def resolve(
    to: Any, multiple_of: Any, side: str, value: Any, long: str, fields: list[str], token_field: str | None
) -> Padded:
    """The arguments of `View.padded`, checked for a view of these fields.

    Raises:
        InvalidArgumentError: one that cannot be; fields that are called like what a padded batch has.
    """
    one_of("side", side, ("right", "left"))
    if long == "split":
        raise InvalidArgumentError(
            'long="split": a padded row is one document; dataset.packed(window) splits longer ones'
        )
    one_of("long", long, _LONG)
    multiple = index("multiple_of", multiple_of, 1)
    if to == "longest":
        length = None
    elif isinstance(to, str):
        raise InvalidArgumentError(f'to={to!r}: must be "longest" or a number of records')
    else:
        length = index("to", to, 1, 1 << 31)
        if length % multiple:
            raise InvalidArgumentError(f"to={length}: must be a multiple of multiple_of={multiple}")
    for name in PADDED_NAMES:
        if name in fields:
            raise InvalidArgumentError(
                f"a field is called {name!r}, as an array that a padded batch has beside the fields: rename it"
            )
    return Padded(length, multiple, side, _values(value, fields, token_field), long)


def _values(value: Any, fields: list[str], token_field: str | None) -> tuple[tuple[str, Any], ...]:
    if isinstance(value, Mapping):
        for name in value:
            if name not in fields:
                raise InvalidArgumentError(f"value= names the field {name!r}; the fields are {quoted(fields)}")
        numbers = {name: _number(each) for name, each in value.items()}
        return tuple((name, each) for name, each in numbers.items() if each != 0)
    number = _number(value)
    if number == 0:
        return ()
    if token_field is None:
        raise InvalidArgumentError(
            f"value={value!r}: the padding of which field? Give a mapping from names; the fields are {quoted(fields)}"
        )
    return ((token_field, number),)


def _number(value: Any) -> Any:
    given = value.item() if isinstance(value, np.generic) else value
    if not isinstance(given, (bool, int, float, complex)):
        raise InvalidArgumentError(f"value={value!r:.80}: must be a number, or a mapping from fields to numbers")
    return given


def _item(value: Any, dtype: np.dtype[Any]) -> bytes | None:
    """A number as bytes of the type; None where that has none like it. Floats are rounded to the type."""
    made: Any = None
    if dtype.kind in "iu" and not isinstance(value, complex):
        limits = np.iinfo(dtype)
        if limits.min <= value <= limits.max and value == int(value):
            made = int(value)
    elif dtype.kind == "b" and value in (0, 1):
        made = bool(value)
    elif dtype.kind == "c" or (dtype.kind == "f" and not isinstance(value, complex)):
        try:
            with np.errstate(over="ignore"):
                rounded = np.array(complex(value) if dtype.kind == "c" else float(value)).astype(dtype)
        except OverflowError:
            return None
        made = rounded if bool(np.isfinite(rounded)) == cmath.isfinite(value) else None
    return None if made is None else np.array(made).astype(dtype).tobytes()
