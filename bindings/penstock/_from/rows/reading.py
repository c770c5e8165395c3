"""A dataset as a Ray Dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock._data.open import open as open_dataset
from penstock._from.rows.missing import needed

if TYPE_CHECKING:
    from penstock._data.batch import Batch
    from penstock._data.view import View
    from penstock._places.paths import PathLike
    from penstock._places.storage import Storage

_BATCH_RECORDS = 1 << 20  # that are read at once, about
_MOST_ROWS = 1 << 16


def read(path: PathLike, window: int | None = None, *, storage: Storage | None = None) -> Any:
    """A Ray Dataset whose rows are a dataset's documents, or its windows.

    A document's row has a list for each field and the keys of its metadata; metadata that is no object is the column
    `metadata`. A window's row has the fields alone, as arrays of one shape. Rows are in the dataset's order with
    `DataContext.execution_options.preserve_order`.

    Args:
        path: of the dataset, at the same place on all nodes, or its address: of anything that `penstock.open` opens.
        window: records of a window; None: documents.
        storage: how an address is reached.

    Returns:
        ray.data.Dataset: lazy; its tasks read what they give out.

    Raises:
        ModuleNotFoundError: Ray is not installed.
        InvalidArgumentError: It has no documents; a metadata key is called like a field.
        NotFoundError: There is no dataset.
    """
    ray = needed()
    dataset = open_dataset(path, storage=storage)
    view = dataset.documents() if window is None else dataset.windows(window, metadata=False)
    each = window or max(1, dataset.records // max(1, len(view)))
    rows = max(1, min(_MOST_ROWS, _BATCH_RECORDS // each))
    return ray.data.range(len(view)).map_batches(_Rows(view), batch_size=rows, batch_format="numpy")


class _Rows:
    """Reads the rows of a batch of their numbers. Pickled with the view, which each worker opens for itself."""

    def __init__(self, view: View) -> None:
        self._view = view

    def __call__(self, batch: dict[str, Any]) -> Any:
        found = self._view.read(batch["id"])
        if self._view.kind != "documents":
            return {name: found[name] for name in self._names()}
        return self._documents(found)

    def _names(self) -> tuple[str, ...]:
        dtype = self._view.dtype
        return dtype.names or () if dtype is not None else ()

    def _documents(self, found: Batch) -> Any:
        import pyarrow

        table = {name: _lists(found[name], found.offsets) for name in self._names()}
        entries = [span.metadata for span in found.spans]
        for name, values in _columns(entries).items():
            if name in table:
                _refuse_field(name)
            table[name] = pyarrow.array(values)
        return pyarrow.table(table)


def _lists(values: Any, offsets: Any) -> Any:
    """An Arrow array of lists, of a field's values end to end."""
    import pyarrow

    flat = pyarrow.array(values.reshape(-1))
    for size in reversed(values.shape[1:]):
        flat = pyarrow.FixedSizeListArray.from_arrays(flat, size)
    return pyarrow.LargeListArray.from_arrays(pyarrow.array(offsets), flat)


def _columns(entries: list[Any]) -> dict[str, list[Any]]:
    """The entries by their keys, None where one lacks a key."""
    if all(entry is None for entry in entries):
        return {}
    if not all(isinstance(entry, dict) for entry in entries):
        return {"metadata": [bytes(each) if isinstance(each, memoryview) else each for each in entries]}
    names = dict.fromkeys(name for entry in entries for name in entry)
    return {str(name): [entry.get(name) for entry in entries] for name in names}


def _refuse_field(name: str) -> None:
    from penstock._base.errors import InvalidArgumentError

    raise InvalidArgumentError(f'metadata has a key "{name}", as a field is called: a row can have one column of it')
