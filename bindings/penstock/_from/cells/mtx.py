"""Folders of Matrix Market files as cellranger writes them: matrix.mtx, barcodes.tsv and features.tsv, gzip or not.

Text is read once, into an .h5ad file that the import then reads by ranges.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import CorruptionError, InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data.anndata.stores import needed
from penstock._from.cells.h5ad_columns import Grows, says

_MATRIX = ("matrix.mtx.gz", "matrix.mtx")
_BARCODES = ("barcodes.tsv.gz", "barcodes.tsv")
_FEATURES = ("features.tsv.gz", "features.tsv", "genes.tsv.gz", "genes.tsv")
_LINES = 1 << 21  # that are read at once
_COLUMNS = ("gene_symbols", "feature_types")


def is_mtx(path: str) -> bool:
    """True for a folder with a matrix.mtx, gzip or not."""
    return any((Path(path) / name).is_file() for name in _MATRIX)


def folder_of_mtx(path: str) -> str:
    """The folder of a matrix.mtx; any other path as it is.

    Raises:
        InvalidArgumentError: a Matrix Market file of another name.
    """
    name = Path(path).name
    if name in _MATRIX:
        return str(Path(path).parent)
    if name.lower().endswith((".mtx", ".mtx.gz")):
        raise InvalidArgumentError(
            f"{path}: a folder with matrix.mtx, barcodes.tsv and features.tsv, gzip or not, is wanted: give the three "
            "files of a sample these names in a folder of its own, by links say"
        )
    return path


def write_as_h5ad(path: str, out: Path) -> None:
    """Writes the cells of a folder as an .h5ad file: genes are named by their ids, symbols are a column of var.

    Raises:
        InvalidArgumentError: a file is missing, or is no matrix of this format.
        CorruptionError: a line that cannot be read, another number of values than the file says.
    """
    cells = [line[0] for line in _table(_file(path, _BARCODES))]
    genes = _table(_file(path, _FEATURES))
    matrix = _file(path, _MATRIX)
    h5py = needed("h5py", path)
    text = h5py.string_dtype()
    with h5py.File(out, "w") as file, _opened(matrix) as lines:
        kind, rows, columns, count = _header(matrix, lines)
        if (rows, columns) != (len(genes), len(cells)):
            raise InvalidArgumentError(
                f"{matrix}: {rows:,} × {columns:,}; there are {len(genes):,} genes and {len(cells):,} cells"
            )
        says(file, "anndata", "0.1.0")
        x = says(file.create_group("X"), "csr_matrix", "0.1.0", shape=np.array([columns, rows], np.int64))
        data, indices = Grows(x, "data", "<f4" if kind == "real" else "<i4"), Grows(x, "indices", "<i4")
        starts = _copy(matrix, _entries(matrix, lines, kind), (rows, columns, count), data, indices)
        x.create_dataset("indptr", data=starts)
        _frame(file, text, "obs", cells, {})
        _frame(file, text, "var", [line[0] for line in genes], {
            name: [line[at] for line in genes]
            for at, name in enumerate(_COLUMNS, 1)
            if all(len(line) > at for line in genes)
        })  # fmt: skip


def _file(path: str, names: tuple[str, ...]) -> Path:
    for name in names:
        if (Path(path) / name).is_file():
            return Path(path) / name
    raise InvalidArgumentError(f"{path}: there is no {names[0]} beside the matrix")


def _opened(path: Path) -> IO[str]:
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def _table(path: Path) -> list[list[str]]:
    try:
        with _opened(path) as lines:
            return [line.rstrip("\r\n").split("\t") for line in lines if line.strip()]
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise CorruptionError(f"{path} cannot be read: {error}") from error


def _header(path: Path, lines: IO[str]) -> tuple[str, int, int, int]:
    """(real, integer or pattern; genes, cells, values)."""
    try:
        words = lines.readline().lower().split()
        line = lines.readline()
        while line.startswith("%") or (line and not line.strip()):
            line = lines.readline()
        sizes = [int(each) for each in line.split()]
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise CorruptionError(f"{path} cannot be read: {error}") from error
    wanted = words[:3] == ["%%matrixmarket", "matrix", "coordinate"] and words[4:] == ["general"]
    if not wanted or words[3] not in ("real", "integer", "pattern") or len(sizes) != 3:
        raise InvalidArgumentError(
            f"{path}: begins with {excerpt(' '.join(words))!r}: a Matrix Market file of general coordinates is wanted"
        )
    return words[3], sizes[0], sizes[1], sizes[2]


def _entries(path: Path, lines: IO[str], kind: str) -> Iterator[tuple[Any, Any, Any]]:
    """(genes, cells, values), few at a time; numbers from 1 on."""
    pandas = needed("pandas", str(path))
    types = {0: np.int64, 1: np.int64, **({} if kind == "pattern" else {2: np.float64})}
    try:
        for part in pandas.read_csv(lines, sep=r"\s+", header=None, dtype=types, chunksize=_LINES):
            ones = np.ones(len(part))
            yield part[0].to_numpy(), part[1].to_numpy(), part[2].to_numpy() if 2 in part else ones
    except pandas.errors.EmptyDataError:
        return
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise CorruptionError(f"{path} cannot be read: {error}") from error


def _copy(
    path: Path, entries: Iterator[tuple[Any, Any, Any]], sizes: tuple[int, int, int], data: Grows, indices: Grows
) -> npt.NDArray[np.int64]:
    """Writes values by cell and returns where each cell begins; all are kept in memory only if they are not by cell."""
    genes, cells, count = sizes
    counts, seen, last = np.zeros(cells, np.int64), 0, 0
    kept: list[tuple[Any, Any, Any]] = []
    is_ordered = True
    for part in entries:
        gene, cell, value = part
        if min(gene.min(), cell.min()) < 1 or gene.max() > genes or cell.max() > cells:
            raise CorruptionError(f"{path}: a value lies outside of {genes:,} × {cells:,}")
        if not np.isfinite(value).all() or (data.node.dtype.kind == "i" and np.abs(value).max() >= 1 << 31):
            raise CorruptionError(f"{path}: a value is no finite number of at most 31 bits")
        if data.node.dtype.kind == "i" and (value != np.floor(value)).any():
            raise CorruptionError(f"{path}: its header says integer, and a value has a fraction")
        if data.node.dtype.kind == "f" and np.abs(value).max() > np.finfo(data.node.dtype).max:
            raise CorruptionError(f"{path}: a value is too large for {data.node.dtype}")
        if is_ordered and (cell[0] < last or (cell[1:] < cell[:-1]).any()):
            is_ordered = False
            kept = [(indices.node[:] + 1, np.repeat(np.arange(cells), counts) + 1, data.node[:])]
            for each in (data, indices):
                each.node.resize(0, 0)
        counts += np.bincount(cell - 1, minlength=cells)
        seen, last = seen + len(cell), int(cell[-1])
        if is_ordered:
            data.append(value.astype(data.node.dtype))
            indices.append((gene - 1).astype(np.int32))
        else:
            kept.append(part)
    if seen != count:
        raise CorruptionError(f"{path}: {seen:,} values, its header says {count:,}")
    if kept:
        gene, cell, value = (np.concatenate([each[at] for each in kept]) for at in range(3))
        order = np.argsort(cell, kind="stable")
        data.append(value[order].astype(data.node.dtype))
        indices.append((gene[order] - 1).astype(np.int32))
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def _frame(file: Any, text: Any, name: str, index: list[str], columns: dict[str, list[str]]) -> None:
    group = says(file.create_group(name), "dataframe", "0.2.0", _index="_index")
    for column, values in {"_index": index, **columns}.items():
        says(group.create_dataset(column, data=values, dtype=text), "string-array", "0.2.0")
    group.attrs.create("column-order", np.array(list(columns), dtype=object), dtype=text)
