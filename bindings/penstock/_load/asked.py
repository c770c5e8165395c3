"""The thread of Python that asks a user's function for the indices of blocks of positions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import one_line


def start_asking(function: Callable[[int, npt.NDArray[np.int64]], Any], blocks: _native.OrderBlocks) -> None:
    """Starts the thread that asks `function` for `blocks`; it ends when their order is let go of."""
    threading.Thread(target=_serve, args=(function, blocks), name="penstock-order", daemon=True).start()


def _serve(function: Callable[..., Any], blocks: _native.OrderBlocks) -> None:
    while (call := blocks.take()) is not None:
        _answer(function, call)
        del call


def _answer(function: Callable[..., Any], call: _native.OrderCall) -> None:
    try:
        call.give(_indices(function, call))
    except InvalidArgumentError as error:
        call.fail(str(error), error.__cause__)
    except BaseException as error:  # whatever it is, this thread goes on
        call.fail("its function failed", error)


def _indices(function: Callable[..., Any], call: _native.OrderCall) -> npt.NDArray[np.uint64]:
    """The function's answer to the call, checked.

    Raises:
        InvalidArgumentError: it raises, or gives no integers [count] from 0 on.
    """
    positions = np.arange(call.first, call.first + call.count, dtype=np.int64)
    try:
        given = np.asarray(function(call.epoch, positions))
    except BaseException as error:  # the thread that needs the block raises it
        raise InvalidArgumentError(f"its function raised {_named(error)}") from error
    if given.shape != (call.count,) or given.dtype.kind not in "iu":
        raise InvalidArgumentError(
            f"its function returned an array of shape {list(given.shape)} and type {given.dtype}: integers "
            f"[{call.count}] wanted"
        )
    if given.dtype.kind == "i" and int(given.min()) < 0:
        at = int(np.argmax(given < 0))
        raise InvalidArgumentError(
            f"its function returned {given[at]:,} at position {call.first + at:,}: observations are numbered from 0"
        )
    return np.ascontiguousarray(given, np.uint64)


def _named(error: BaseException) -> str:
    """An exception as its traceback ends."""
    try:
        words = one_line(error)
    except Exception:  # of the error itself, asked for its words
        words = ""
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
