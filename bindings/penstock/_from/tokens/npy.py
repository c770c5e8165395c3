"""Arrays in memory as .npy files have them."""

from __future__ import annotations

import functools
import io
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import CorruptionError, InvalidArgumentError
from penstock._from.tokens.reader import damaged

_LONGEST_HEADER = 1 << 14  # NumPy reads no longer ones
_MAGIC = b"\x93NUMPY"


def array_of(data: bytes, path: str) -> npt.NDArray[Any]:
    """The values of a .npy, as one axis.

    Raises:
        CorruptionError: it is none, or is cut off.
        InvalidArgumentError: it is pickled.
    """
    if not data.startswith(_MAGIC):
        raise CorruptionError(f"{path}: does not begin as a .npy does")
    begin = _values_begin(data)
    if begin > min(len(data), _LONGEST_HEADER):
        raise CorruptionError(f"{path}: its header has {begin:,} bytes")
    try:
        shape, is_fortran, dtype = _read_header(data[:begin])
    except Exception as error:  # of Python's parser, which NumPy reads the header with
        raise damaged(path, error) from error
    if dtype.hasobject:
        raise InvalidArgumentError(f"{path}: holds Python objects, and penstock unpickles nothing")
    count, room = math.prod(shape), len(data) - begin
    if min(shape, default=0) < 0 or count * dtype.itemsize != room:
        raise CorruptionError(f"{path}: {room:,} bytes of values, its header says {count * dtype.itemsize:,}")
    values = np.frombuffer(data, dtype, count, begin).astype(dtype.newbyteorder("<"), copy=False)
    return values.reshape(shape, order="F").ravel() if is_fortran and len(shape) > 1 else values


def _values_begin(data: bytes) -> int:
    """Behind the header, whose length is in two bytes in version 1 and in four in others."""
    if data[6:7] == b"\1":
        return 10 + int.from_bytes(data[8:10], "little")
    return 12 + int.from_bytes(data[8:12], "little")


@functools.lru_cache(maxsize=1 << 12)  # arrays of one length have one header, and NumPy takes long to read it
def _read_header(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    file = io.BytesIO(header)
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(file)
