"""Arrays in memory as .npy files have them."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._errors import CorruptionError, InvalidArgumentError

from .reader import damaged

_MAGIC = b"\x93NUMPY"


def array_of(data: bytes, path: str) -> npt.NDArray[Any]:
    """The values of a .npy, as one axis.

    Raises:
        CorruptionError: it is none, or is cut off.
        InvalidArgumentError: it is pickled.
    """
    if not data.startswith(_MAGIC):
        raise CorruptionError(f"{path}: does not begin as a .npy does")
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, is_fortran, dtype = read(file)
    except Exception as error:  # of Python's parser, which NumPy reads the header with
        raise damaged(path, error) from error
    if dtype.hasobject:
        raise InvalidArgumentError(f"{path}: holds Python objects, and penstock unpickles nothing")
    count, room = math.prod(shape), len(data) - file.tell()
    if min(shape, default=0) < 0 or count * dtype.itemsize != room:
        raise CorruptionError(f"{path}: {room:,} bytes of values, its header says {count * dtype.itemsize:,}")
    values = np.frombuffer(data, dtype, count, file.tell()).astype(dtype.newbyteorder("<"), copy=False)
    return values.reshape(shape, order="F").ravel() if is_fortran and len(shape) > 1 else values
