"""How a metadata entry becomes bytes and an object again: `penstock.codecs`."""

from __future__ import annotations

import json as _json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data import dtype as _dtype

__all__ = ["Codec", "Numpy", "from_json", "get", "register"]


class Codec:
    """A named pair of an encoder and a decoder.

    Attributes:
        name: what the manifest says.
        encode: from an object to bytes; raises TypeError or ValueError for one that it cannot take.
        decode: from a memoryview of the entry's bytes to the object; the view's memory is the batch's.
    """

    def __init__(self, name: str, encode: Callable[[Any], bytes], decode: Callable[[memoryview], Any]) -> None:
        """Use `register`, which makes the codec known by its name."""
        self.name = name
        self.encode = encode
        self.decode = decode

    def to_json(self) -> str:
        """Its entry in the manifest."""
        return _json.dumps({"name": self.name})

    def __repr__(self) -> str:
        """Its name."""
        return f"<penstock codec {self.name}>"


class Numpy(Codec):
    """Entries are one-dimensional arrays of one dtype, of any length.

    Args:
        dtype: scalar or structured; made packed and little-endian. For a fixed shape, make it a field:
            `[("x", "f4", 3)]`.

    Raises:
        InvalidArgumentError: A dtype with objects or text, one without a size, or a bare sub-array.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        """A codec for arrays of `dtype`."""
        self.dtype = _dtype.packed(dtype, "metadata dtype")
        if self.dtype.subdtype is not None:
            raise InvalidArgumentError(f"metadata dtype {self.dtype}: make the sub-array a field of a structured dtype")
        if self.dtype.itemsize == 0:
            raise InvalidArgumentError(f"metadata dtype {self.dtype}: its items have no bytes")
        super().__init__("numpy", self._encode, self._decode)

    def _encode(self, value: Any) -> bytes:
        return _dtype.fit(np.atleast_1d(value), self.dtype, "metadata", "item").tobytes()

    def _decode(self, view: memoryview) -> npt.NDArray[Any]:
        return np.frombuffer(view, self.dtype) if len(view) else np.empty(0, self.dtype)

    def to_json(self) -> str:
        """Name and dtype."""
        text = self.dtype.str if self.dtype.names is None else _dtype.descr(self.dtype)
        return _json.dumps({"dtype": text, "name": "numpy"})


def _raw_encode(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"{type(value).__name__}, expected bytes")
    return bytes(value)


def _json_encode(value: Any) -> bytes:
    return _json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _json_decode(view: memoryview) -> Any:
    return _json.loads(bytes(view))


def _msgpack() -> Any:
    try:
        import msgpack  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise InvalidArgumentError('the codec "msgpack" needs a package: pip install msgpack') from None
    return msgpack


def _msgpack_encode(value: Any) -> bytes:
    packed = _msgpack().packb(value, use_bin_type=True)
    assert isinstance(packed, bytes)
    return packed


def _msgpack_decode(view: memoryview) -> Any:
    return _msgpack().unpackb(view, raw=False, strict_map_key=False)


def _boundaries_encode(value: Any) -> bytes:
    if value is not None:
        raise TypeError(
            'it keeps where documents begin and end alone: give the writer metadata="json", or documents none'
        )
    return b""


BOUNDARIES = Codec("boundaries", _boundaries_encode, lambda view: None)

_BUILT_IN = {
    codec.name: codec
    for codec in (
        Codec("raw", _raw_encode, bytes),
        Codec("json", _json_encode, _json_decode),
        Codec("msgpack", _msgpack_encode, _msgpack_decode),
        BOUNDARIES,
    )
}
_registered: dict[str, Codec] = {}


def register(name: str, encode: Callable[[Any], bytes], decode: Callable[[memoryview], Any]) -> Codec:
    """Makes a codec known to writers and readers of this process by its name; again: replaces it.

    Args:
        name: letters, digits, '.', '_', '-'; readers must register a decoder of the same name.
        encode: from an object to bytes.
        decode: from a memoryview of them to the object.

    Returns:
        The codec, which `Writer(metadata=…)` takes as well as its name.

    Raises:
        InvalidArgumentError: A name of penstock's own, or none.

    Examples:
        >>> from penstock import codecs
        >>> upper = codecs.register("upper", lambda text: text.upper().encode(), lambda view: bytes(view).decode())
        >>> upper.decode(memoryview(upper.encode("abc")))
        'ABC'
    """
    if name in _BUILT_IN or name == "numpy":
        raise InvalidArgumentError(f'"{name}" is a codec of penstock itself: choose another name')
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name):
        raise InvalidArgumentError(f"codec name {name!r}, expected 1 to 64 letters, digits, '.', '_' or '-'")
    _registered[name] = Codec(name, encode, decode)
    return _registered[name]


def get(metadata: str | Codec | npt.DTypeLike | None) -> Codec | None:
    """The codec that `Writer(metadata=…)` means: a name, a codec, or a NumPy dtype.

    Raises:
        InvalidArgumentError: No codec of this name.
    """
    if metadata is None or isinstance(metadata, Codec):
        return metadata
    if isinstance(metadata, str):
        if metadata == "numpy":
            raise InvalidArgumentError('the codec "numpy" needs a dtype: metadata=penstock.codecs.Numpy("f4")')
        found = _registered.get(metadata) or _BUILT_IN.get(metadata)
        if found is None:
            known = ", ".join([*_BUILT_IN, *_registered])
            raise InvalidArgumentError(
                f'no codec "{metadata}": there are {known}; add one with penstock.codecs.register'
            )
        return found
    return Numpy(metadata)


def from_json(text: str) -> Codec | None:
    """The codec that a manifest names; None for "null". One that is not registered gives an error when it is used.

    Raises:
        InvalidArgumentError: A dtype that cannot be read.
    """
    said = _json.loads(text)
    if said is None:
        return None
    name = said["name"]
    if name == "numpy":
        dtype = said.get("dtype")
        return Numpy(dtype if isinstance(dtype, str) else _dtype.from_descr(dtype))

    # Looked up when used: it may be registered after the dataset was opened.
    def find() -> Codec:
        found = _registered.get(name) or _BUILT_IN.get(name)
        if found is None:
            raise InvalidArgumentError(
                f'the metadata codec "{excerpt(name)}" is not known here: call penstock.codecs.register('
                f'"{excerpt(name)}", encode, decode) first; span.raw gives the bytes'
            )
        return found

    return Codec(name, lambda value: find().encode(value), lambda view: find().decode(view))
