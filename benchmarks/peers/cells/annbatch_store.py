"""Writes an .h5ad file as annbatch's shuffled store: python annbatch_store.py FILE OUT."""

import sys

import zarr
from annbatch import DatasetCollection

if __name__ == "__main__":
    zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
    DatasetCollection(sys.argv[2]).add_adatas(adata_paths=[sys.argv[1]], shuffle=True)
