"""Fields of a record: NumPy dtypes made packed and little-endian, their text form, and values that must fit them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt

DType = np.dtype[Any]

RESERVED_NAMES = frozenset(
    {
        "indices",
        "obs",
        "position",
        "epochs",
        "sources",
        "first_records",
        "positions",
        "valid",
        "global_rows",
        "loss_scale",
        "loss_scales",
        "spans",
        "inputs",
        "labels",
        "records",
        "offsets",
        "state_dict",
        "clone",
        "keys",
        "items",
        "values",
        "get",
        "columns",
        "csr",
        "to",
        "cu_seqlens",
        "max_seqlen",
        "position_ids",
        "document_ids",
        "loss_mask",
        "metadata",
        "metadata_id",
    }
)
"""What a field may not be called: a batch or the writer has something of this name."""

PADDED_NAMES = ("attention_mask", "lengths")
"""Attributes that a batch of padded documents alone has: older datasets may have fields of these names."""

# What NumPy raises for what is no type: SyntaxError for texts with commas, the last three for the too large or deep.
_NO_DTYPE = (TypeError, ValueError, SyntaxError, OverflowError, RecursionError, MemoryError)

_SIZES = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8), "c": (8, 16)}


def numpy_dtype(given: Any, where: str = "dtype") -> DType:
    """What `np.dtype` makes of it.

    Raises:
        InvalidArgumentError: NumPy does not understand it.
    """
    try:
        dtype: DType = np.dtype(given)
    except _NO_DTYPE as error:
        raise InvalidArgumentError(
            f"{excerpt(where)}: {excerpt(repr(given))} is no type that NumPy knows ({excerpt(error)}): "
            '"u2" and "f4" are, and lists of fields'
        ) from None
    return dtype


def numpy_type(given: Any) -> DType:
    """What `numpy_dtype` makes of it, of types of torch too.

    Raises:
        InvalidArgumentError: NumPy does not understand it.
    """
    text = str(given)
    return numpy_dtype(text.removeprefix("torch.") if text.startswith("torch.") else given)


def packed(dtype: npt.DTypeLike, where: str = "dtype") -> DType:
    """The dtype without padding and little-endian.

    Raises:
        InvalidArgumentError: An object, text, time or long double type, or one of no size.
    """
    dtype = numpy_dtype(dtype, where)
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return np.dtype((packed(base, where), shape))
    if dtype.names is not None:
        inner: Mapping[str, Any] = dtype.fields or {}
        return np.dtype([(name, packed(inner[name][0], f"{where}.{name}")) for name in dtype.names])
    if dtype.itemsize == 0:
        raise InvalidArgumentError(f"{excerpt(where)}: {dtype} has no size")
    if dtype.kind in "SV" or dtype.itemsize in _SIZES.get(dtype.kind, ()):
        return dtype.newbyteorder("<")
    hint = {"U": ": store bytes (S) instead", "M": ": store an integer instead", "m": ": store an integer instead"}
    raise InvalidArgumentError(f"{excerpt(where)}: {excerpt(dtype)} cannot be stored{hint.get(dtype.kind, '')}")


def record_dtype(fields: Mapping[str, npt.DTypeLike] | npt.DTypeLike) -> DType:
    """The packed dtype of one record.

    Raises:
        InvalidArgumentError: Fields without a name, of a reserved name, or of a type that cannot be stored.
    """
    dtype: DType
    if isinstance(fields, Mapping):
        if "" in fields:  # NumPy would call it f0
            raise InvalidArgumentError("a field without a name")
        dtype = np.dtype(
            [(str(name), packed(cast(npt.DTypeLike, each), f"field {name}")) for name, each in fields.items()]
        )
    else:
        dtype = numpy_dtype(fields, "fields")
        if dtype.names is None:
            raise InvalidArgumentError(f'fields {dtype} without names: pass a mapping such as {{"token": "u4"}}')
        dtype = packed(dtype, "fields")
    if not dtype.names:
        raise InvalidArgumentError("no fields: pass a mapping such as {'token': 'u4'}, or None for opaque documents")
    for name in dtype.names:
        if name in RESERVED_NAMES:
            raise InvalidArgumentError(f'a field cannot be called "{name}": a batch has an attribute of that name')
    return dtype


def descr(dtype: DType) -> list[Any]:
    """The text form of a packed structured dtype, as the manifest has it."""
    fields: Mapping[str, Any] = dtype.fields or {}
    out: list[Any] = []
    for name in dtype.names or ():
        field, shape = fields[name][0], ()
        if field.subdtype is not None:
            field, shape = field.subdtype
        entry = [name, field.str if field.names is None else descr(field)]
        out.append([*entry, list(shape)] if shape else entry)
    return out


def from_descr(fields: list[Any]) -> DType:
    """The packed dtype that `descr` gave.

    Raises:
        InvalidArgumentError: It is not what `descr` gives.
    """
    try:
        out = []
        for name, kind, *shape in fields:
            base = packed(kind) if isinstance(kind, str) else from_descr(kind)
            out.append((name, base, tuple(shape[0])) if shape else (name, base))
        return np.dtype(out)
    except _NO_DTYPE as error:
        raise InvalidArgumentError(f"fields {excerpt(repr(fields))} cannot be read: {excerpt(error)}") from None


def fit(values: Any, dtype: DType, name: str, unit: str = "record") -> npt.NDArray[Any]:
    """The values as an array of `dtype` whose first axis is the records; nothing is changed in silence.

    Args:
        values: array, list or scalar of the field; its trailing axes are those of a sub-array dtype.
        dtype: of the field, packed.
        name: of the field, for messages.
        unit: what the first axis counts, for messages.

    Returns:
        Array [n, …] of the dtype's base; [] or [dims…] if one value was given.

    Raises:
        InvalidArgumentError: A value does not fit; the message has it and its row.
    """
    shape: tuple[int, ...] = ()
    if dtype.subdtype is not None:
        dtype, shape = dtype.subdtype
    array = _as_array(values, dtype, name, unit)
    trailing = array.shape[max(array.ndim - len(shape), 0) :] if shape else ()
    if trailing != shape or array.ndim > len(shape) + 1:
        wanted = "one axis" if not shape else f"[n, {', '.join(map(str, shape))}]"
        raise InvalidArgumentError(f"field {name}: values of shape {list(array.shape)}, expected {wanted}")
    if dtype.names is not None:
        return _fit_structured(array, dtype, name, unit)
    return _fit_scalars(array, dtype, name, unit)


def _as_array(values: Any, dtype: DType, name: str, unit: str) -> npt.NDArray[Any]:
    try:
        array = np.asarray(values)
        if array.size == 0 and not isinstance(values, np.ndarray):
            return array.astype(dtype)  # an empty list says nothing of its type
        if dtype.names is not None and array.dtype.names is None:
            _refuse_rounded_leaves(values, dtype, name)
            array = np.asarray(values, dtype=dtype)  # tuples
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(f"field {name}: no array can be made of its values: {error}") from None
    if isinstance(values, np.ndarray):
        return array
    if dtype.kind in "fc" and array.dtype.kind in "fc":
        _refuse_rounded(values, array, dtype, name, unit)
    # NumPy makes floats or objects of integers that no 64-bit type holds all of.
    if dtype.kind in "iu" and array.dtype.kind in "Of":
        exact = np.asarray(values, dtype=object)
        if all(isinstance(value, int) for value in exact.flat):
            _refuse_beyond(exact, dtype, name, unit)
            return exact.astype(dtype)
    return array


def _refuse_beyond(integers: npt.NDArray[Any], dtype: DType, name: str, unit: str) -> None:
    """Integers beyond those of `dtype`, compared in Python's: NumPy compares int64 with uint64 as floats."""
    limits = np.iinfo(dtype)
    bad = np.array([not limits.min <= int(value) <= limits.max for value in integers.flat]).reshape(integers.shape)
    if bad.any():
        _refuse(integers, bad, dtype, name, unit)


def _refuse_rounded(values: Any, array: npt.NDArray[Any], dtype: DType, name: str, unit: str) -> None:
    """Integers among floats of a list: NumPy has rounded them already."""
    if not np.any(np.abs(array) >= 1 << (np.finfo(dtype).nmant + 1)):
        return
    given = np.asarray(values, dtype=object)
    bad = np.array(
        [isinstance(value, int | np.integer) and not _is_exact(int(value), dtype) for value in given.flat]
    ).reshape(given.shape)
    if bad.any():
        _refuse(given, bad, dtype, name, unit)


def _refuse_rounded_leaves(values: Any, dtype: DType, name: str) -> None:
    """Integers in tuples, or in lists of them, that a float of the record would round."""
    if dtype.subdtype is not None:
        dtype = dtype.subdtype[0]
    if isinstance(values, list):
        for each in values:
            _refuse_rounded_leaves(each, dtype, name)
    elif dtype.names is not None and isinstance(values, tuple):
        fields: Mapping[str, Any] = dtype.fields or {}
        for part, each in zip(dtype.names, values, strict=False):
            _refuse_rounded_leaves(each, fields[part][0], f"{name}.{part}")
    elif dtype.kind in "fc" and isinstance(values, int | np.integer) and not _is_exact(int(values), dtype):
        raise InvalidArgumentError(f"{name} {int(values):,} does not fit {short(dtype)}")


def _is_exact(value: int, dtype: DType) -> bool:
    with np.errstate(over="ignore"):
        made = np.asarray(float(value) if abs(value) < 1 << 1023 else np.inf).astype(dtype).real
    return bool(np.isfinite(made)) and int(made) == value


def _fit_structured(array: npt.NDArray[Any], dtype: DType, name: str, unit: str) -> npt.NDArray[Any]:
    if array.dtype.names != dtype.names:
        raise InvalidArgumentError(f"field {name}: values with fields {array.dtype.names}, expected {dtype.names}")
    out = np.empty(array.shape, dtype)
    fields: Mapping[str, Any] = dtype.fields or {}
    for part in dtype.names or ():
        base = fields[part][0]
        inner = base.shape
        flat = array[part].reshape((array.size, *inner))
        out[part] = fit(flat, base, f"{name}.{part}", unit).reshape(out[part].shape)
    return out


def _fit_scalars(array: npt.NDArray[Any], dtype: DType, name: str, unit: str) -> npt.NDArray[Any]:
    source = array.dtype
    if _is_safe(source, dtype):
        return array.astype(dtype, copy=False)
    if dtype.kind in "iu" and source.kind in "iu":
        limits = np.iinfo(dtype)
        if array.size and (int(array.min()) < limits.min or int(array.max()) > limits.max):
            _refuse_beyond(array, dtype, name, unit)
        return array.astype(dtype)
    if dtype.kind in "fc" and source.kind in "iufc" and not (dtype.kind == "f" and source.kind == "c"):
        return _fit_floats(array, dtype, name, unit)
    if dtype.kind in "SV":
        return _fit_bytes(array, dtype, name, unit)
    raise InvalidArgumentError(f"field {name}: values of type {source}, expected {short(dtype)}")


def _is_safe(source: DType, dtype: DType) -> bool:
    """True if nothing of numbers is lost. NumPy calls it safe to round 64-bit integers to doubles, and to cut texts."""
    rounds = source.kind in "iu" and source.itemsize == 8 and dtype.kind in "fc"
    return np.can_cast(source, dtype, "safe") and source.kind not in "SUV" and not rounds


def _fit_floats(array: npt.NDArray[Any], dtype: DType, name: str, unit: str) -> npt.NDArray[Any]:
    with np.errstate(over="ignore"):
        out = array.astype(dtype)
    bad = _rounded(array, out) if array.dtype.kind in "iu" else np.isfinite(array) & ~np.isfinite(out)
    if np.any(bad):
        _refuse(array, np.asarray(bad), dtype, name, unit)
    return out


def _rounded(integers: npt.NDArray[Any], floats: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Where a float is not the integer that it was made of."""
    exact = 1 << (np.finfo(floats.dtype).nmant + 1)
    bad = np.asarray((integers > exact) | (integers < -exact))
    for at in zip(*np.nonzero(bad), strict=True) if bad.shape else [()] * bool(bad):
        bad[at] = not _is_exact(int(integers[at]), floats.dtype)
    return bad


def _fit_bytes(array: npt.NDArray[Any], dtype: DType, name: str, unit: str) -> npt.NDArray[Any]:
    if dtype.kind == "V":
        if array.dtype != dtype:
            raise InvalidArgumentError(f"field {name}: values of type {array.dtype}, expected {short(dtype)}")
        return array
    if array.dtype.kind not in "SU":
        raise InvalidArgumentError(f"field {name}: values of type {array.dtype}, expected bytes of {short(dtype)}")
    if array.dtype.kind == "U":
        try:
            array = np.char.encode(array, "ascii") if array.size else array.astype(dtype)
        except UnicodeEncodeError as error:
            raise InvalidArgumentError(f"field {name}: {error}; encode the text yourself") from None
    bad = np.char.str_len(array) > dtype.itemsize
    if np.any(bad):
        _refuse(array, np.asarray(bad), dtype, name, unit)
    return array.astype(dtype)


def _refuse(array: npt.NDArray[Any], bad: npt.NDArray[np.bool_], dtype: DType, name: str, unit: str) -> None:
    at = np.unravel_index(int(np.argmax(bad)), bad.shape) if bad.shape else ()
    value = array[at]
    place = f" at {unit} {int(at[0]):,} of this append" if at else ""
    limit = ""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        limit = f" (max {limits.max:,})" if int(value) > limits.max else f" (min {limits.min:,})"
    shown = f"{int(value):,}" if isinstance(value, int | np.integer) else f"{value!s:.80}"
    raise InvalidArgumentError(f"{name} {shown}{place} does not fit {short(dtype)}{limit}")


def short(dtype: DType) -> str:
    """The short name of a scalar type: "u2", "f4", "S16"."""
    return dtype.str.lstrip("<|")


def as_bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """The array's bytes as a flat array, without a copy where it is contiguous."""
    if array.size == 0:
        return np.empty(0, np.uint8)
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
