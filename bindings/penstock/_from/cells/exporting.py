"""Cells of a dataset as an .h5ad file, which is written few cells at a time."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock._base.errors import Error, InvalidArgumentError, IoError
from penstock._data.anndata.cell_reader import CellReader, with_noted_types
from penstock._data.anndata.stores import needed
from penstock._from.cells.h5ad_file import FileWriter
from penstock._from.cells.output_file import OutputFile
from penstock._places.paths import is_there
from penstock._places.unfinished import naming_left, remove_dead, removed, removing, take_back


def export_h5ad(
    dataset: Any, out: str, progress: Callable[[int, int], None] | None = None, lost: list[str] | None = None
) -> int:
    """Writes all cells as an .h5ad file, whole or not at all, and returns how many there are.

    Memory is bounded whatever the dataset's size. What the file does not have of an imported AnnData, or has as another
    type, is added to `lost` in words.

    Raises:
        InvalidArgumentError: something is at `out`, or the dataset is not one of cells.
        IoError: it cannot be written; what of the dataset cannot be read has its own error.
    """
    h5py = needed("h5py", "export")
    if is_there(out):
        raise InvalidArgumentError(_THERE.format(out))
    remove_dead(out)
    output = OutputFile(out)

    def tell(done: int, total: int) -> None:
        output.check()
        if progress is not None:
            progress(done, total)

    def write(reader: CellReader) -> CellReader:
        output.truncate(0)  # of an attempt before
        with h5py.File(output, "w") as file:
            FileWriter(h5py, file, reader).write(tell)
        return reader

    with removing([output.path]):
        try:
            reader = with_noted_types(dataset, write)
            output.sync()
            _publish(output.path, out)
        except Error:  # of the dataset, some of which are errors of the system too
            raise
        except OSError as error:
            raise IoError(error.errno, f"{out}: cannot be written: {error.strerror or error}", out) from error
        finally:
            output.close()
    if lost is not None:
        lost += reader.lost
    return len(reader)


_THERE = "{} is there already: choose another --out"


def _publish(partial: str, out: str) -> None:
    """Gives a synced file its name, which must be free: not every file system has hard links."""
    try:
        os.close(os.open(out, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except FileExistsError:
        raise InvalidArgumentError(_THERE.format(out)) from None
    try:
        Path(partial).replace(out)
    except OSError as error:
        raise naming_left(error, [out]) from error
    except BaseException:
        removed(out)
        raise
    try:
        folder = os.open(Path(out).parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        take_back([out], error)
        raise
