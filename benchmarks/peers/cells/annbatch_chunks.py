"""annbatch over its own store, written by annbatch_store.py; the setting is "chunk,preloaded chunks"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import zarr
from annbatch import DatasetCollection, Loader
from clock import epochs, run


def make(path: str, rows: int, setting: str) -> Iterator[Any]:
    chunk, preload = map(int, (setting or "512,32").split(","))
    loader = Loader(batch_size=rows, chunk_size=chunk, preload_nchunks=preload, preload_to_gpu=False)
    loader.use_collection(DatasetCollection(path, mode="r"))
    return epochs(lambda: loader)


if __name__ == "__main__":
    zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
    run(make, lambda batch: batch["X"].shape[0])
