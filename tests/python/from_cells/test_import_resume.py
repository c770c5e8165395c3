"""Imports of cells that go on: their inputs must be those of before. tests/python/make/test_verbs.py has the rest."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import h5py
import penstock
import pytest
import zarr
from _anndata_files import CELLS, anndata, as_kind, files_of, make, stop_after, write
from penstock._places.scratch import this_boot


def test_a_run_that_was_stopped_goes_on_with_all_inputs_or_with_other_options_anew(tmp_path: Path) -> None:
    paths = [write(make(seed=seed), tmp_path / f"{seed}.h5ad") for seed in range(2)]
    with pytest.raises(KeyboardInterrupt, match="4 finished shards are kept: go on with --resume"):
        penstock.import_anndata(paths, tmp_path / "d", progress=stop_after(CELLS))
    with pytest.raises(penstock.InvalidArgumentError, match="4 finished shards of 2 inputs, 1 of them given now"):
        penstock.import_anndata(paths[0], tmp_path / "d", resume=True)
    # What one that was killed leaves: a lock's file, and files of compressed columns.
    left = tmp_path / "d" / f".partial-import@{this_boot()}@run@17" / "0-0"
    left.mkdir(parents=True)
    (left / "t-0").write_bytes(b"x")
    done = penstock.import_anndata(paths, tmp_path / "d", resume=True)
    assert (done.shards, done.kept_shards, done.cells) == (6, 4, 2 * CELLS)
    with pytest.raises(KeyboardInterrupt):
        penstock.import_anndata(paths, tmp_path / "o", progress=stop_after(0))
    assert penstock.import_anndata(paths, tmp_path / "o", resume=True, obs=["plate"]).kept_shards == 0
    for made, options in (("d", {}), ("o", {"obs": ["plate"]})):
        penstock.import_anndata(paths, tmp_path / f"{made}-whole", **options)
        assert files_of(tmp_path / made) == files_of(tmp_path / f"{made}-whole")


def edit(name: str, at: Any) -> Any:
    def change(path: Path) -> None:
        if path.suffix == ".zarr":
            array = zarr.open_group(path, mode="r+")[name]
            array[at] = array[at] + 1
            return
        with h5py.File(path, "r+") as file:
            file[name][at] = file[name][at] + 1

    return change


def swap_names_of_genes(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        names = file["var/_index"]
        names[3], names[5] = names[5], names[3]


def permute_genes(path: Path) -> None:
    made = anndata.read_h5ad(path)
    write(made[:, ::-1].copy(), path)


CHANGES = {
    "counts of rows": ("csr", "a.h5ad", edit("X/data", 700)),
    "places of rows": ("csr", "a.h5ad", edit("X/indptr", 30)),
    "counts of columns": ("csc", "a.h5ad", edit("X/data", 2_431)),
    "counts of a dense matrix": ("dense", "a.h5ad", edit("X", (13, 30))),
    "counts of a zarr store": ("csr", "a.zarr", edit("X/data", 700)),
    "obs": ("csr", "a.h5ad", edit("obs/score", 30)),
    "obsm": ("csr", "a.h5ad", edit("obsm/X_pca", (30, 3))),
    "genes, joined": ("csr", "a.h5ad", permute_genes),
    "names of genes": ("csr", "a.h5ad", swap_names_of_genes),
}


@pytest.mark.parametrize("what", list(CHANGES))
def test_an_input_that_changed_is_refused_by_name(tmp_path: Path, what: str) -> None:
    kind, name, change = CHANGES[what]
    paths = [write(make(seed=1), tmp_path / "first.h5ad"), write(as_kind(make(), kind), tmp_path / name)]
    options: dict[str, Any] = {"join": "inner", "obsm": ["X_pca"]}
    with pytest.raises(KeyboardInterrupt, match="kept"):
        penstock.import_anndata(paths, tmp_path / "d", progress=stop_after(2 * CELLS - 200), **options)
    penstock.import_anndata(paths, tmp_path / "whole", **options)
    before = paths[1].stat()
    change(paths[1])
    with pytest.raises(penstock.InvalidArgumentError, match=rf"{name}: is another than when \d finished shards? in"):
        penstock.import_anndata(paths, tmp_path / "d", resume=True, **options)
    samples = rf"{name}: shard \d of .* was made of other input or options"
    with pytest.raises(penstock.InvalidArgumentError, match=samples):
        penstock.import_anndata(paths, tmp_path / "whole", resume=True, **options)
    if paths[1].is_file() and paths[1].stat().st_size == before.st_size:  # samples tell it of the same times too
        os.utime(paths[1], ns=(before.st_atime_ns, before.st_mtime_ns))
        with pytest.raises(penstock.InvalidArgumentError, match=samples):
            penstock.import_anndata(paths, tmp_path / "d", resume=True, **options)


def test_an_input_that_changed_is_refused_in_a_bucket_too(place: Any, tmp_path: Path) -> None:
    path = write(make(), tmp_path / "a.h5ad")
    with pytest.raises(KeyboardInterrupt, match="1 finished shard is kept: go on with --resume"):
        penstock.import_anndata(path, place.url, storage=place.storage, progress=stop_after(0))
    os.utime(path)
    with pytest.raises(penstock.InvalidArgumentError, match="is another than when 1 finished shard in s3://"):
        penstock.import_anndata(path, place.url, storage=place.storage, resume=True)
    assert penstock.import_anndata(path, place.url, storage=place.storage, overwrite=True).kept_shards == 0


def test_an_input_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = write(make(), tmp_path / "a.h5ad")
    with pytest.raises(penstock.InvalidArgumentError, match=r"a\.h5ad: changed while it was imported"):
        penstock.import_anndata(path, tmp_path / "d", progress=lambda done, total: os.utime(path))
    assert not (tmp_path / "d" / "dataset.json").exists()
    with pytest.raises(penstock.InvalidArgumentError, match="is another than when 3 finished shards"):
        penstock.import_anndata(path, tmp_path / "d", resume=True)


def test_of_a_complete_dataset_other_inputs_are_refused_or_replace_it(tmp_path: Path) -> None:
    path, other = write(make(), tmp_path / "a.h5ad"), write(make(seed=1, prefix="h"), tmp_path / "b.h5ad")
    whole = penstock.import_anndata(path, tmp_path / "d")
    before = files_of(tmp_path / "d")
    again = penstock.import_anndata(path, tmp_path / "d", resume=True)
    assert (again.kept_shards, again.records) == (whole.shards, whole.records)
    with pytest.raises(penstock.InvalidArgumentError, match="made of other input or options"):
        penstock.import_anndata(other, tmp_path / "d", resume=True)
    assert files_of(tmp_path / "d") == before
    penstock.import_anndata(other, tmp_path / "d", overwrite=True, workers=2)
    dataset = penstock.open(tmp_path / "d")
    assert dataset.features is not None and dataset.features.names[0] == "h0"
    assert dataset.documents()[0].metadata == {"name": "cell 1-0"}
