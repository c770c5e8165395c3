"""Padded documents: what `documents().padded(…)` asks for, checked once, and the arrays that its batches have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock import _native
from penstock._arguments import index, one_of
from penstock._dtype import PADDED_NAMES
from penstock._errors import InvalidArgumentError
from penstock._words import quoted

_IGNORED_LABEL = -100
_LONG = ("truncate", "drop", "refuse")


@dataclass(frozen=True)
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
    values: tuple[tuple[str, int | float | bool], ...]
    long: str

    def maker(
        self, types: Mapping[str, np.dtype[Any]], label_field: str | None, label_type: np.dtype[Any]
    ) -> _native.ColumnMaker:
        """What makes the arrays of fields of these types: each, inputs and labels if any, attention_mask, lengths."""
        values = dict(self.values)
        fields = [(name, dtype.str, _item(name, values.get(name, 0), dtype)) for name, dtype in types.items()]
        labels = None
        if label_field is not None:
            fields.append((label_field, label_type.str, _item(label_field, values.get(label_field, 0), label_type)))
            labels = (label_field, label_type.str, np.array(_IGNORED_LABEL, label_type).tobytes())
        return _native.make_padded(
            length=self.to or 0,
            multiple_of=self.multiple_of,
            left=self.side == "left",
            fields=fields,
            labels=labels,
        )

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
        return tuple((name, each) for name, each in value.items() if each != 0)
    if value == 0:
        return ()
    if token_field is None:
        raise InvalidArgumentError(
            f"value={value!r}: the padding of which field? Give a mapping from names; the fields are {quoted(fields)}"
        )
    return ((token_field, value),)


def _item(name: str, value: Any, dtype: np.dtype[Any]) -> bytes:
    """A value of the padding, as bytes of the type."""
    try:
        made = np.array(value).astype(dtype)
        fits = bool(made == value)
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise InvalidArgumentError(f"value={value!r}: the padding of field {name} must be a value of {dtype}")
    return made.tobytes()
