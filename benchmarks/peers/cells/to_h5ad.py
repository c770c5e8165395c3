"""Writes penstock's cells as one .h5ad file, CSR of float32, not compressed: python to_h5ad.py DATASET FILE."""

import sys

import h5py
import numpy as np
import penstock

GENES = 62_710

if __name__ == "__main__":
    dataset = penstock.open(sys.argv[1])
    view = dataset.documents(metadata=False)
    cells = len(view)
    with h5py.File(sys.argv[2], "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        x = file.create_group("X")
        x.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [cells, GENES]})
        data = x.create_dataset("data", (dataset.records,), "f4", chunks=(7813,))
        indices = x.create_dataset("indices", (dataset.records,), "i4", chunks=(7813,))
        indptr = np.zeros(cells + 1, np.int64)
        at = 0
        for first in range(0, cells, 2_000):
            batch = view.read(np.arange(first, min(first + 2_000, cells)))
            count = len(batch["gene"])
            data[at : at + count] = batch["count"]
            indices[at : at + count] = batch["gene"]
            indptr[first + 1 : first + len(batch.offsets)] = at + batch.offsets[1:]
            at += count
        x.create_dataset("indptr", data=indptr)
        for name, length in (("obs", cells), ("var", GENES)):
            group = file.create_group(name)
            group.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"})
            group.attrs["column-order"] = np.array(["plate"] if name == "obs" else [], h5py.string_dtype())
            names = group.create_dataset("_index", data=np.array([f"{name}{i}" for i in range(length)], dtype=object))
            names.attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})
            if name == "obs":
                plate = group.create_dataset("plate", data=np.arange(length) * 14 // length)
                plate.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
