"""The inputs of an import, opened as they are needed: few at a time, however many there are."""

from __future__ import annotations

from dataclasses import dataclass

from penstock._data.anndata.hdf5 import Helper, acquire, release
from penstock._data.anndata.limits import Limits
from penstock._data.anndata.matrices import Matrix
from penstock._data.anndata.stores import Frame, Store


@dataclass(frozen=True)
class Input:
    """A file or folder, and how it is read.

    Attributes:
        path: as messages call it.
        format: "h5ad" or "zarr".
        modality: of MuData, which of them.
        file: what is read in place of `path`, made of it.
        x: the member with its counts; None: the first of those of all inputs.
    """

    path: str
    format: str
    modality: str | None = None
    file: str | None = None
    x: str | None = None


class Opened:
    """Stores and matrices of inputs. One thread at a time.

    What it gives of one input is to be let go before many others are asked for: the one that was not asked for longest
    is closed.
    """

    def __init__(self, inputs: list[Input], names: list[str], limits: Limits) -> None:
        """Opens nothing yet; `names` of the matrices, the first that of the counts."""
        self._inputs = inputs
        self._names = names
        self._limits = limits
        self._stores: dict[int, Store] = {}  # the latest last
        self._matrices: dict[tuple[int, int], Matrix] = {}
        self._helper: Helper | None = None  # reads all of HDF5

    def __len__(self) -> int:
        """Inputs."""
        return len(self._inputs)

    def path(self, source: int) -> str:
        """The path of input `source`."""
        return self._inputs[source].path

    def names(self, source: int) -> list[str]:
        """Members of input `source` that the matrices are."""
        own = self._inputs[source].x
        return self._names if own is None else [own, *self._names[1:]]

    def store(self, source: int) -> Store:
        """Input `source`."""
        store = self._stores.pop(source, None)
        if store is None:
            while len(self._stores) >= self._limits.stores:
                self._close(next(iter(self._stores)))
            if self._helper is None and self._inputs[source].format == "h5ad":
                self._helper = acquire()
            given = self._inputs[source]
            store = Store(given.path, given.format, self._helper, given.modality, given.file)
        self._stores[source] = store
        return store

    def matrix(self, source: int, number: int) -> Matrix:
        """Matrix `number` of input `source`."""
        store = self.store(source)
        key = (source, number)
        if key not in self._matrices:
            self._matrices[key] = Matrix(store, self.names(source)[number], self._limits.values)
        return self._matrices[key]

    def var(self, source: int) -> Frame:
        """The genes of input `source`: those of raw where its counts are."""
        store = self.store(source)
        return Frame(store.path, store.root, "raw/var" if self.names(source)[0] == "raw/X" else "var")

    def close(self) -> None:
        """Closes all files."""
        for source in list(self._stores):
            self._close(source)
        if self._helper is not None:
            release(self._helper)
            self._helper = None

    def __del__(self) -> None:
        """Leaves no process behind."""
        if getattr(self, "_helper", None) is not None:
            self.close()

    def _close(self, source: int) -> None:
        self._stores.pop(source).close()
        for key in [key for key in self._matrices if key[0] == source]:
            del self._matrices[key]
