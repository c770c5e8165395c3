"""Single-cell data: AnnData's .h5ad files and zarr stores in, and out again."""
