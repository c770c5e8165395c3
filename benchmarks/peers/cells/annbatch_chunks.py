"""annbatch over its own store, written by annbatch_store.py; the setting is "chunk,preloaded chunks[,dense]"."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import zarr
from annbatch import DatasetCollection, Loader
from clock import epochs, run


def make(path: str, rows: int, setting: str) -> Iterator[Any]:
    chunk, preload = map(int, (setting or "512,32").split(",")[:2])
    loader = Loader(batch_size=rows, chunk_size=chunk, preload_nchunks=preload, preload_to_gpu=False)
    loader.use_collection(DatasetCollection(path, mode="r"))
    return epochs(lambda: loader)


if __name__ == "__main__":
    zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
    is_dense = sys.argv[-1].endswith(",dense")
    run(make, lambda batch: (batch["X"].toarray() if is_dense else batch["X"]).shape[0])
