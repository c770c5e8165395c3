"""How the files of a loader's datasets are read, and how far ahead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock import _native
from penstock._base.arguments import index
from penstock._base.errors import InvalidArgumentError
from penstock._base.resources import default_max_bytes, default_threads, usable_cores
from penstock._data.dataset import Dataset
from penstock._data.loadable import Loadable
from penstock._places.stores import far_reader

_MOST_THREADS = 1 << 14  # what no machine has cores for, and no system threads
_DEFAULT_PREFETCH = 4
_MOST_PREFETCH = 1 << 20


def native_reading(
    view: Loadable,
    share: tuple[int, int],
    sizes: Sequence[tuple[int, int]],
    *,
    reader: str,
    threads: int | None,
    prefetch: int | None,
    max_bytes: int | None,
) -> tuple[dict[str, Any], str | None]:
    """The arguments of a native loader that say how it reads.

    Args:
        view: what is loaded.
        share: rank and world size.
        sizes: [(position, global batch size), …].
        reader: as of `Loader`; so are those that follow.
        threads: None: this process's share of the cores.
        prefetch: None: as many batches as keep the stores' requests under way.
        max_bytes: None: a quarter of this process's memory.

    Returns:
        The arguments, and the reader's name where no file is on this machine, else None.

    Raises:
        InvalidArgumentError: a number that cannot be; a way to read files of this machine, where there are none.
    """
    datasets = [each.dataset for each in view._views().values()]
    remote = _remote_reader(datasets, reader)
    rank, ranks = share
    return {
        "rank": rank,
        "world_size": ranks,
        "reader": reader if remote is None else "auto",
        "threads": default_threads() if threads is None else index("threads", threads, 1, _MOST_THREADS),
        "cores": usable_cores(),
        "prefetch": _batches_ahead(prefetch, datasets, sizes, ranks),
        "max_bytes": default_max_bytes() if max_bytes is None else index("max_bytes", max_bytes),
        "far_reader": _python_reader(datasets, reader),
    }, remote


def _remote_reader(datasets: Sequence[Dataset], reader: str) -> str | None:
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


def _python_reader(datasets: Sequence[Dataset], reader: str) -> _native.Store | None:
    """The store of Python's that reads all files; None: each is read through the store that it was opened with."""
    names = {name for each in datasets for name, _ in each._native.stores}
    return far_reader(datasets) if reader == "python" and names != {"python"} else None


def _batches_ahead(given: int | None, datasets: Sequence[Dataset], sizes: Sequence[tuple[int, int]], ranks: int) -> int:
    """Batches that are read ahead, where `given` does not say: as many as keep the stores' requests under way.

    Raises:
        InvalidArgumentError: `given` cannot be.
    """
    if given is not None:
        return index("prefetch", given, 1, _MOST_PREFETCH)
    in_flight = max((wanted for each in datasets for _, wanted in each._native.stores), default=0)
    rows = max(-(-sizes[0][1] // ranks), 1) if sizes else 1  # the job refuses a schedule of nothing
    return min(max(_DEFAULT_PREFETCH, -(-in_flight // rows)), _MOST_PREFETCH)
