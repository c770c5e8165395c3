"""Labels of observations as users have them: the classes that they name, and those that are missing."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError

Missing = Literal["drop", "own class"]


def classes_of(labels: npt.ArrayLike, missing: Missing | None) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    """Names of the classes, and the class of each observation; -1: none.

    Args:
        labels: integers or strings [n], some of them perhaps missing.
        missing: as `orders.Balanced` has it.

    Raises:
        InvalidArgumentError: no labels, or missing ones where `missing` does not say what becomes of them.
    """
    if missing is not None and missing not in get_args(Missing):
        raise InvalidArgumentError(f"orders.Balanced: missing={missing!r:.80}: wanted 'drop' or 'own class'")
    array = np.asanyarray(labels)
    absent = _absent(array)
    if absent is not None:
        if missing is None and absent.any():
            at = int(absent.argmax())
            raise InvalidArgumentError(
                f"orders.Balanced: label {array[at]!r} of observation {at:,} is missing: give missing='drop', which "
                "never draws such observations, or missing='own class', which makes them a class"
            )
        array = _present(array, absent)
    if array.ndim == 0 and array.dtype.kind in "US":
        raise InvalidArgumentError(
            f"orders.Balanced({str(array)!r:.80}): labels are wanted, not their name: give "
            f"dataset.columns[{str(array)!r:.80}], or an array [n]"
        )
    if array.ndim != 1 or array.dtype.kind not in "iubUS":
        raise InvalidArgumentError(
            f"orders.Balanced: labels of shape {list(array.shape)} and type {array.dtype}: integers or strings wanted"
        )
    names, codes = _of_integers(array) if array.dtype.kind in "iub" else _of_strings(array, absent)
    if absent is not None and absent.any():
        codes = np.where(absent, np.int32(-1), codes)
    if missing != "own class" or not (codes < 0).any():
        return names, codes
    return np.append(names.astype(object), [None]), np.where(codes < 0, np.int32(len(names)), codes)


def _absent(array: npt.NDArray[Any]) -> npt.NDArray[np.bool_] | None:
    """True where a label is missing; None for a type of which none can be."""
    if array.ndim != 1:
        return None
    found = None
    if array.dtype.kind == "O":
        found = np.fromiter((_is_missing(each) for each in np.asarray(array)), bool, len(array))
    elif array.dtype.kind == "f":
        found = np.asarray(np.isnan(array))
    if isinstance(array, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(array)
        found = masked if found is None else found | masked
    return found


def _is_missing(label: Any) -> bool:
    if label is None or label is np.ma.masked or type(label).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(label, float) and label != label


def _present(array: npt.NDArray[Any], absent: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """The same labels as an array of integers or strings; any of these where they are missing."""
    values = np.asarray(array)
    here = values[~absent]
    kind: str = values.dtype.kind
    if kind == "O":
        kind = _kind_of_objects(values, ~absent)
    if kind == "f":  # as pandas has integers of which some are or were missing
        wrong = np.flatnonzero((here != np.floor(here)) | ~(np.abs(here) < 2.0**63))
        if wrong.size:
            raise InvalidArgumentError(f"orders.Balanced: label {here[wrong[0]]}: integers or strings wanted")
        kind = "i"
    if kind in "US":
        filled = values.copy()
        filled[absent] = ""
        return filled.astype(str) if kind == "U" else filled
    if kind in "iub":
        filled = np.full(len(values), -1, np.int64)
        filled[~absent] = here.astype(np.int64)
        return filled
    return values


def _kind_of_objects(values: npt.NDArray[Any], present: npt.NDArray[np.bool_]) -> str:
    """ "U" where all of those that are there are strings, "i" where all are integers or whole floats."""
    kind = ""
    for at in np.flatnonzero(present):
        each = values[at]
        own = "U" if isinstance(each, str) else "i" if _is_whole(each) else ""
        if not own or own != (kind or own):
            raise InvalidArgumentError(
                f"orders.Balanced: label {each!r} of observation {at:,}: strings wanted, or integers alone"
            )
        kind = own
    return kind or "U"


def _is_whole(label: Any) -> bool:
    if isinstance(label, float | np.floating):
        return float(label).is_integer() and abs(float(label)) < 2.0**63
    return isinstance(label, int | np.integer | np.bool_)


def _of_integers(array: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    top = int(array.max(initial=0))
    if top >= 1 << 31:
        raise InvalidArgumentError(f"orders.Balanced: label {top:,}: integers are below 2^31; give strings")
    codes = np.maximum(array, -1) if array.dtype.kind == "i" else array
    if top > 4 * len(array) + 1024:  # most numbers are no label: memory goes by the labels that there are
        used = np.unique(codes[codes >= 0])
        return used, np.where(codes < 0, -1, np.searchsorted(used, codes)).astype(np.int32)
    return np.arange(top + 1), np.ascontiguousarray(codes, dtype=np.int32)


def _of_strings(
    array: npt.NDArray[Any], absent: npt.NDArray[np.bool_] | None
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    present = np.ones(len(array), bool) if absent is None else ~absent
    names, found = np.unique(array[present], return_inverse=True)
    codes = np.full(len(array), -1, np.int32)
    codes[present] = found.reshape(-1)
    return names, codes
