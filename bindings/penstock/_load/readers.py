"""How the files of a loader's datasets are read, and how far ahead."""

from __future__ import annotations

from collections.abc import Sequence

from penstock import _native
from penstock._base.arguments import index
from penstock._base.errors import InvalidArgumentError
from penstock._data.dataset import Dataset
from penstock._places.stores import far_reader

_DEFAULT_PREFETCH = 4
_MOST_PREFETCH = 1 << 20


def remote_reader(datasets: Sequence[Dataset], reader: str) -> str | None:
    """How datasets are read of which no file is on this machine; None: some are.

    Raises:
        InvalidArgumentError: a way to read local files was asked for.
    """
    if not all(each._native.is_remote for each in datasets):
        if reader in ("http", "python"):
            raise InvalidArgumentError(f"reader={reader!r}: these files are on this machine, or some of them")
        return None
    if reader == "python":
        return reader
    names = {name for each in datasets for name, _ in each._native.stores}
    if reader == "http" and reader not in names:
        raise InvalidArgumentError(f"reader='http': {datasets[0].path} is read through Python")
    if reader != "auto" and reader not in names:
        raise InvalidArgumentError(
            f"reader={reader!r}: it reads files of this machine, and {datasets[0].path} is elsewhere"
        )
    return names.pop() if len(names) == 1 else ", ".join(sorted(names))


def python_reader(datasets: Sequence[Dataset], reader: str) -> _native.Store | None:
    """The store of Python's that reads all files; None: each is read through the store that it was opened with."""
    names = {name for each in datasets for name, _ in each._native.stores}
    return far_reader(datasets) if reader == "python" and names != {"python"} else None


def batches_ahead(given: int | None, datasets: Sequence[Dataset], sizes: Sequence[tuple[int, int]], ranks: int) -> int:
    """Batches that are read ahead, where `given` does not say: as many as keep the stores' requests under way.

    Raises:
        InvalidArgumentError: `given` cannot be.
    """
    if given is not None:
        return index("prefetch", given, 1, _MOST_PREFETCH)
    in_flight = max((wanted for each in datasets for _, wanted in each._native.stores), default=0)
    rows = max(sizes[0][1] // ranks, 1)
    return min(max(_DEFAULT_PREFETCH, -(-in_flight // rows)), _MOST_PREFETCH)
