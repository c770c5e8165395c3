"""Which files are read, in which order, and as what."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import UsageError

FORMATS = ("jsonl", "text", "parquet")
_FORMAT_OF_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
_COMPRESSION_OF_SUFFIX = {".gz": "gz", ".zst": "zst", ".zstd": "zst"}
_UNKNOWN_COMPRESSION = {".xz", ".bz2", ".lz4", ".zip", ".7z", ".tar", ".tgz"}


@dataclass(frozen=True)
class Input:
    """One input. `path` is None for standard input; `published_name` is what metadata may hold: never absolute."""

    name: str
    path: Path | None
    format: str
    compression: str
    size_bytes: int
    published_name: str

    @property
    def rereadable(self) -> bool:
        """Whether a second reading gives the same bytes."""
        return self.path is not None and self.path.is_file()

    @property
    def kind(self) -> str:
        """The suffix before that of the compression, without its dot: `py`, `txt`; empty where there is none."""
        suffixes = Path(self.published_name).suffixes
        if suffixes and suffixes[-1].lower() in _COMPRESSION_OF_SUFFIX:
            suffixes.pop()
        return suffixes[-1][1:] if suffixes else ""


def expand_inputs(patterns: Sequence[str], format: str | None = None) -> list[Input]:
    """The inputs that files, globs (sorted by name) and `-` stand for, in the order given.

    Args:
        patterns: As typed.
        format: One of FORMATS for all of them; None looks at each suffix.

    Raises:
        UsageError: No such file, a folder, a file given twice, a compression that is not known, `-` without format.
    """
    names: list[str] = []
    for pattern in patterns:
        names.extend(_expand(pattern))
    seen: set[str] = set()
    for name in names:
        real = name if name == "-" else os.path.realpath(name)
        if real in seen:
            raise UsageError(f"{name} is given twice: name each input once")
        seen.add(real)
    published = _published_names(names)
    return [_describe(name, published[name], format) for name in names]


def _expand(pattern: str) -> list[str]:
    pattern = os.path.expanduser(pattern)  # noqa: PTH111 - a Path would change how the name is written
    if pattern == "-" or os.path.lexists(pattern):
        return [pattern]
    if not glob.has_magic(pattern):
        raise UsageError(f"{pattern}: no such file")
    # Path.glob would lose how the name was typed.
    matches = glob.glob(pattern, recursive=True)  # noqa: PTH207
    found = sorted(name for name in matches if not Path(name).is_dir())
    if not found:
        raise UsageError(f"{pattern}: no file matches")
    return found


def _published_names(names: list[str]) -> dict[str, str]:
    # A published file holds no absolute path: these lose the folder that all of them share.
    outside = [name for name in names if name != "-" and (Path(name).is_absolute() or name.startswith(".."))]
    absolute = {name: os.path.abspath(name) for name in outside}  # noqa: PTH100 (links stay as they are)
    shared = os.path.commonpath([str(Path(path).parent) for path in absolute.values()]) if absolute else ""
    published = {name: Path(name).as_posix() for name in names}
    published.update({name: Path(path).relative_to(shared).as_posix() for name, path in absolute.items()})
    return published


def _describe(name: str, published_name: str, format: str | None) -> Input:
    if name == "-":
        if format is None:
            raise UsageError("standard input has no suffix: say --format jsonl or --format text")
        if format == "parquet":
            raise UsageError("Parquet needs a file that can be sought in: save standard input to a file first")
        return Input("standard input", None, format, "", 0, "-")
    path = Path(name)
    if path.is_dir():
        raise UsageError(f"{name} is a folder: give a glob such as '{path / '**' / '*.jsonl'}'")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = _COMPRESSION_OF_SUFFIX.get(suffixes[-1], "") if suffixes else ""
    if suffixes and suffixes[-1] in _UNKNOWN_COMPRESSION:
        raise UsageError(f"{name}: {suffixes[-1]} is not read; .gz and .zst are: unpack it first")
    if compression:
        suffixes.pop()
    found = format or _FORMAT_OF_SUFFIX.get(suffixes[-1] if suffixes else "", "text")
    if found == "parquet" and compression:
        raise UsageError(f"{name}: Parquet compresses inside: unpack the file first")
    size_bytes = path.stat().st_size if path.is_file() else 0
    return Input(name, path, found, compression, size_bytes, published_name)
