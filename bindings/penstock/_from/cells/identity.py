"""What tells an input from another: files' sizes and times while a run is unfinished, samples of content for ever.

docs/decisions.md, "Times tell a changed input, samples tell what a shard was made of".
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError, IoError, NotFoundError
from penstock._base.words import counted
from penstock._data.anndata.columns import Planned, read_values
from penstock._data.anndata.matrices import Matrix
from penstock._data.anndata.opened import Input, Opened
from penstock._from.cells.plan import Plan, Task
from penstock._make.folder import Folder

_FILE = ".import-inputs"
_BLOCKS = 16  # that are sampled of a task's values: the first, the last, and between them
_VALUES = 1 << 12  # of such a block
_ROW_BYTES = 1 << 12  # of a column's value up to which all are digested


class Stamps:
    """Size and time of every file of the inputs, kept beside the dataset's shards until it is published."""

    def __init__(self, inputs: list[Input]) -> None:
        """Looks at the inputs."""
        self._inputs = inputs
        self._now = [_stamp(each.path) for each in inputs]

    def check(self, folder: Folder, shards: int) -> bool:
        """Whether the inputs are those of the `shards` finished shards that are in it; False where nothing tells.

        Raises:
            InvalidArgumentError: one of them is another; the message names it.
        """
        try:
            then = json.loads(folder.read_note(_FILE) or b"null")
        except (OSError, ValueError):
            return False
        if then is None:
            return False
        for number, each in enumerate(self._inputs):
            if not isinstance(then, list) or number >= len(then) or then[number] != self._now[number]:
                raise InvalidArgumentError(
                    f"{each.path}: is another than when {counted(shards, 'finished shard')} in {folder.path} "
                    f"{'was' if shards == 1 else 'were'} made, or has changed since: go on with that input, or start "
                    "anew with --overwrite and without --resume"
                )
        if len(then) > len(self._inputs):
            raise InvalidArgumentError(
                f"{folder.path}: {counted(shards, 'finished shard')} of {counted(len(then), 'input')}, "
                f"{len(self._inputs):,} of them given now: give all, or start anew with --overwrite and without "
                "--resume"
            )
        return True

    def write(self, folder: Folder) -> None:
        """Notes them, before a first shard is made."""
        folder.write_note(_FILE, json.dumps(self._now).encode())

    def remove(self, folder: Folder) -> None:
        """Of a dataset that is published, or of which nothing is finished."""
        folder.remove_notes([_FILE])

    def check_unchanged(self) -> None:
        """Refuses inputs that changed since this was made.

        Raises:
            InvalidArgumentError: one did.
        """
        for each, then in zip(self._inputs, self._now, strict=True):
            if _stamp(each.path) != then:
                raise InvalidArgumentError(f"{each.path}: changed while it was imported: start anew with --overwrite")


def _stamp(path: str) -> list[Any]:
    """Bytes, and a digest of the size and time of each file."""
    found, size = hashlib.sha256(), 0
    try:
        for name, each in sorted(_files(path)):
            size += each.st_size
            found.update(f"{name}\0{each.st_size}\0{each.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(errno.ENOENT, f"{path}: no such file or folder", path) from None
    except OSError as error:
        raise IoError(error.errno, f"{path}: {error.strerror or error}", path) from error
    return [size, found.hexdigest()]


def _files(path: str) -> Iterator[tuple[str, os.stat_result]]:
    root = Path(path)
    if not root.is_dir():
        yield "", root.stat()
        return
    waiting = [root]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    waiting.append(Path(entry.path))
                else:
                    yield os.path.relpath(entry.path, root), entry.stat()


def digest(plan: Plan, opened: Opened, task: Task) -> str:
    """SHA-256 of what a task is made of: numbers of genes, names of cells, where each begins, obs and obsm, and of the
    matrices (and of values of obsm that are large) samples."""
    found = hashlib.sha256()
    numbers = plan.genes.numbers(opened.var(task.source))
    found.update(b"same" if numbers is None else _bytes(numbers))
    store = opened.store(task.source)
    for begin, end in _ranges(task.begin, task.end, 1 << 16):
        _add_texts(found, store.obs.names(begin, end))
    for column in plan.columns:
        found.update(f"{column.where}/{column.name}\n".encode())
        for begin, end in _column_ranges(column, task):
            _add_values(found, read_values(store, column, begin, end))
    for number in range(len(plan.matrices)):
        _add_matrix(found, opened.matrix(task.source, number), task)
    return found.hexdigest()


def _column_ranges(column: Planned, task: Task) -> list[tuple[int, int]]:
    each = column.bytes()
    if each > _ROW_BYTES and column.kind == "numbers":
        return _spread(task.begin, task.end, 1)
    return _ranges(task.begin, task.end, max(1, min(1 << 16, (1 << 23) // each)))


def _add_values(found: Any, values: Any) -> None:
    if hasattr(values, "categories"):
        _add_texts(found, values.categories)
        found.update(_bytes(values.codes))
    elif isinstance(values, list):
        _add_texts(found, values)
    else:
        found.update(_bytes(values))


def _add_texts(found: Any, texts: list[Any]) -> None:
    lengths = [-1 if each is None else len(each) for each in texts]
    found.update(_bytes(np.array(lengths, np.int64)))
    found.update("".join(each or "" for each in texts).encode())


def _add_matrix(found: Any, matrix: Matrix, task: Task) -> None:
    found.update(f"{matrix.name} {matrix.kind} {matrix.shape} {matrix.dtype.str} {matrix.stored}\n".encode())
    if matrix.kind == "dense":
        blocks = _spread(task.begin, task.end, 1)
    else:
        low, high = 0, matrix.stored
        # Of compressed columns, where genes begin: all of a task's cells are in each.
        lines = (task.begin, task.end) if matrix.kind == "csr" else (0, matrix.shape[1])
        for begin, end in _ranges(*lines, 1 << 16):
            starts = matrix.starts(begin, end)
            if matrix.kind == "csr":
                low, high = (int(starts[0]) if begin == lines[0] else low), int(starts[-1])
                starts = starts - low
            found.update(_bytes(starts))
        blocks = _spread(low, high, _VALUES)
    for begin, end in blocks:
        found.update(_bytes(matrix.values(begin, end)))
        if matrix.kind != "dense":
            found.update(_bytes(matrix.indices(begin, end).astype(np.int64)))


def _ranges(begin: int, end: int, step: int) -> list[tuple[int, int]]:
    return [(at, min(at + step, end)) for at in range(begin, end, step)]


def _spread(begin: int, end: int, size: int) -> list[tuple[int, int]]:
    """At most _BLOCKS ranges of `size` of [begin, end), the first and the last among them."""
    if end - begin <= _BLOCKS * size:
        return _ranges(begin, end, size)
    last = end - size
    return [(at, at + size) for at in (begin + (last - begin) * i // (_BLOCKS - 1) for i in range(_BLOCKS))]


def _bytes(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
