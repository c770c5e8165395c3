"""C functions that users give as an order: by ctypes, cffi or numba, where they are, and whether they are such."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from penstock._base.errors import InvalidArgumentError

SIGNATURE = "int32_t (*)(uint64_t epoch, uint64_t first, uint64_t count, uint64_t *indices)"

_POINTER = ctypes.CFUNCTYPE(None).__mro__[1]  # what ctypes' functions have in common


def address_of(given: Any, owner: str) -> int | None:
    """Where a C function lies; None: it is none of C.

    Args:
        given: what ctypes, cffi or numba.cfunc made, or anything else.
        owner: for messages.

    Raises:
        InvalidArgumentError: a null pointer, another signature, a function of Python's behind a pointer.
    """
    by_ctypes = given if isinstance(given, _POINTER) else _of_numba(given)
    if by_ctypes is not None:
        return _of_ctypes(by_ctypes, owner)
    cffi = sys.modules.get("_cffi_backend")
    if cffi is not None and isinstance(given, cffi._CDataBase):
        return _of_cffi(cffi, given, owner)
    return None


def _of_numba(given: Any) -> Any:
    """The pointer of a numba.cfunc."""
    if type(given).__module__.partition(".")[0] != "numba":
        return None
    pointer = getattr(given, "ctypes", None)
    return pointer if isinstance(pointer, _POINTER) else None


def _of_ctypes(given: Any, owner: str) -> int:
    address = ctypes.cast(given, ctypes.c_void_p).value
    if not address:
        raise InvalidArgumentError(f"{owner}: its function is a null pointer")
    if any(type(each).__name__ == "CThunkObject" for each in (given._objects or {}).values()):
        raise _behind_a_pointer(owner)
    types = given.argtypes  # of a library's function None, unless they were set
    if types is not None and not _fits(types, given.restype):
        names = ", ".join(getattr(each, "__name__", str(each)) for each in types)
        result = getattr(given.restype, "__name__", given.restype)
        raise _other_signature(owner, f"{result}({names})")
    return int(address)


def _fits(types: Any, result: Any) -> bool:
    if len(types) != 4 or result is None or not _is_integer(result, 4):
        return False
    is_pointer = types[3] is ctypes.c_void_p or (
        issubclass(types[3], ctypes._Pointer) and _is_integer(types[3]._type_, 8)
    )
    return is_pointer and all(_is_integer(each, 8) for each in types[:3])


def _is_integer(of: Any, size: int) -> bool:
    code = getattr(of, "_type_", None)
    return isinstance(code, str) and code in "iIlLqQ" and ctypes.sizeof(of) == size


def _of_cffi(cffi: Any, given: Any, owner: str) -> int:
    kind = cffi.typeof(given)
    if kind.kind != "function":
        raise _other_signature(owner, kind.cname)
    if not given:
        raise InvalidArgumentError(f"{owner}: its function is a null pointer")
    if " calling <" in repr(given):
        raise _behind_a_pointer(owner)
    sizes = [cffi.sizeof(each) for each in kind.args]
    kinds = [each.kind for each in kind.args]
    fits = sizes == [8, 8, 8, 8] and kinds == ["primitive", "primitive", "primitive", "pointer"]
    if not fits or kind.result.kind != "primitive" or cffi.sizeof(kind.result) != 4:
        raise _other_signature(owner, kind.cname)
    return int(cffi.cast(cffi.new_primitive_type("uintptr_t"), given))


def _behind_a_pointer(owner: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{owner}: a pointer behind which is a function of Python, which threads of C may not call: give the function"
    )


def _other_signature(owner: str, found: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{owner}: a C function of type {found}: {SIGNATURE} is wanted")
