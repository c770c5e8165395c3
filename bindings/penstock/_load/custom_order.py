"""An order of one's own: indices in an array or a file, or a function of positions."""

from __future__ import annotations

import numbers
import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._load.asked import start_asking
from penstock._load.c_functions import address_of
from penstock._load.index_arrays import IndexArray, IndexFile
from penstock._load.order_checks import at_least_one
from penstock._places.paths import PathLike

_MOST_NAME = 200  # characters of a name or a version, which every state holds


class Custom:
    """An order of your own: the indices of an epoch, or a function that gives them.

    Indices may come more than once or never, and an epoch is as long as there are indices, whatever the view has. The
    loader's seed does not matter.

    An *array* is the same in each epoch. It is not copied, unless its type or layout makes it necessary: do not change
    it. A .npy is mapped; writing to it ends the loaders that use it by an error. Part of the job is a digest of the
    indices, made here once by all cores: 10^9 of them take a second on two.

    A *function* `f(epoch, positions)` gives the index at each position of an epoch: int64 [n], at most 65,536 that
    follow one another, from 0 to `length` - 1. It must be pure: what it gives for an epoch and a position never
    changes, since it is asked again after a resume, and by each rank. Nobody can check that, so `name` and `version`
    stand for it in the job: raise the version whenever it gives other indices. A thread of its own calls it, a block
    ahead of the engine's threads, at an epoch's end for the next epoch's first. What it raises is raised by `next`, as
    the cause of an InvalidArgumentError; the loader can then be asked again.

    A *C function* `int32_t f(uint64_t epoch, uint64_t first, uint64_t count, uint64_t *indices)`, from ctypes, cffi or
    `numba.cfunc`, fills in the indices at `count` positions from `first` on and returns 0. The engine's threads call
    it, several at once, without Python.

    Args:
        indices: integers [n] (of uint32 and uint64, signed too, nothing is copied), the path of a .npy of them, or a
            function.
        name: of a function.
        version: of a function: an integer or a text.
        length: of a function: positions of an epoch; None: as many as the view has observations.
        fetch: positions of a lane that are read together, ahead: for indices that lie near one another in the dataset.
            None: each row is read by itself. No part of the job, nor is `lanes`.
        lanes: see `Blocks`.

    Raises:
        InvalidArgumentError: no indices, no function, or numbers that cannot be. An index that the view does not have
            is an error when a loader is made; of a function, when its block is asked for.
        NotFoundError, IoError: a file that is not there, or cannot be read.
        CorruptionError: a file that is cut short.

    Examples:
        >>> import numpy as np, penstock.orders
        >>> scores = np.array([0.3, 0.1, 0.2])
        >>> easy_first = penstock.orders.resolve(penstock.orders.Custom(np.argsort(scores)), n=3, seed=0)
        >>> easy_first.pick(0, 1, 5)[0].tolist()
        [1, 2, 0, 1, 2]
        >>> def turned(epoch, positions):
        ...     return (positions + epoch) % 3
        >>> order = penstock.orders.Custom(turned, name="turned", version=1)
        >>> penstock.orders.resolve(order, n=3, seed=0).pick(0, 1, 6)[0].tolist()
        [0, 1, 2, 1, 2, 0]
    """

    def __init__(
        self,
        indices: npt.ArrayLike | PathLike | Callable[[int, npt.NDArray[Any]], npt.ArrayLike],
        *,
        name: str | None = None,
        version: int | str | None = None,
        length: int | None = None,
        fetch: int | None = None,
        lanes: int = 1,
    ) -> None:
        """Checks what can be checked without the view; of an array all but its largest index."""
        self.fetch = None if fetch is None else at_least_one("Custom", "fetch", fetch)
        self.lanes = at_least_one("Custom", "lanes", lanes)
        self._function: Any = None
        self._address: int | None = None
        self._indices: IndexArray | None = None
        is_path = isinstance(indices, (str, os.PathLike))
        address = None if is_path else address_of(indices, "orders.Custom")
        if address is None and (is_path or not callable(indices)):
            if any(each is not None for each in (name, version, length)):
                raise InvalidArgumentError(
                    "orders.Custom: name=, version= and length= are of functions: indices are known by their digest, "
                    "and an epoch is all of them"
                )
            self._indices = IndexFile(indices) if is_path else IndexArray(indices)  # type: ignore[arg-type]
            return
        self._function, self._address = indices, address
        self.name = _text("name", name)
        self.version = _text("version", version)
        self.length = None if length is None else at_least_one("Custom", "length", length)

    def _native(self, n: int, seed: int) -> _native.Order:
        fetch = 1 if self.fetch is None else self.fetch
        if self._indices is not None:
            return self._indices.order(n, fetch, self.lanes)
        length, words = (
            n if self.length is None else self.length,
            f"orders.Custom {self.name!r}, version {self.version}",
        )
        if self._address is not None:
            blocks = _native.OrderBlocks.of_c(words, length, n, self._address, self._function)
        else:
            blocks = _native.OrderBlocks(words, length, n)
        waits = self._address is None
        order = _native.AskedOrder(blocks, self.name, self.version, length, fetch, self.lanes, waits)
        if waits:
            start_asking(self._function, blocks)
        return order

    @property
    def digest(self) -> str | None:
        """Digest of the indices; None of a function."""
        return None if self._indices is None else self._indices.summary.digest

    def __getstate__(self) -> dict[str, Any]:
        """The state by which another process makes it again.

        Raises:
            InvalidArgumentError: its function does not pickle.
        """
        if self._address is not None:
            raise InvalidArgumentError(
                f"orders.Custom {self.name!r} does not pickle: its C function lies elsewhere in another process: make "
                "it there"
            )
        if self._function is not None:
            _check_pickles(self.name, self._function)
        return self.__dict__

    def __repr__(self) -> str:
        """Its function's name and version, or how many indices it has."""
        fetch = "" if self.fetch is None else f", fetch={self.fetch}, lanes={self.lanes}"
        if self._indices is None:
            length = "" if self.length is None else f", length={self.length:,}"
            return f"Custom(<function>, name={self.name!r}, version={self.version!r}{length}{fetch})"
        where = f" of {self._indices.path!r}" if isinstance(self._indices, IndexFile) else ""
        return f"Custom(<{len(self._indices):,} indices{where}>{fetch})"


def _text(what: str, given: Any) -> str:
    """A name or a version."""
    if given is None:
        raise InvalidArgumentError(
            f"orders.Custom: a function without {what}=: name= and version= stand for it in states, which nothing else "
            "can tell"
        )
    is_number = isinstance(given, numbers.Integral) and not isinstance(given, bool) and what == "version"
    text = str(int(given)) if is_number else given
    if not isinstance(text, str) or not 0 < len(text) <= _MOST_NAME or not text.isprintable():
        kind = "a text" if what == "name" else "an integer or a text"
        raise InvalidArgumentError(
            f"orders.Custom: {what}={given!r:.80}: {kind} of 1 to {_MOST_NAME} printable characters is wanted"
        )
    return text


def _check_pickles(name: str, function: Any) -> None:
    """Refuses a function that pickle does not find again by its name; cloudpickle and dill take any."""
    frame = sys._getframe(1)
    while (above := frame.f_back) is not None:
        frame = above
        if {"cloudpickle", "dill"} & set(str(frame.f_globals.get("__name__")).split(".")):
            return
    try:
        pickle.dumps(function)
    except Exception as error:  # PicklingError, AttributeError, TypeError, by its kind
        called = getattr(function, "__qualname__", type(function).__name__)
        raise InvalidArgumentError(
            f"orders.Custom {name!r} does not pickle, since its function, {called}, does not: define it at the top of "
            "a module, which processes import"
        ) from error
