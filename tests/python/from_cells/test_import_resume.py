"""Imports that were stopped, killed or out of space: what they leave, and what goes on."""

from __future__ import annotations

import multiprocessing
import os
import resource
import threading
import time
from pathlib import Path
from typing import Any

import penstock
import pytest

anndata = pytest.importorskip("anndata")
h5py = pytest.importorskip("h5py")
pandas = pytest.importorskip("pandas")
sparse = pytest.importorskip("scipy.sparse")
zarr = pytest.importorskip("zarr")
pytest.importorskip("msgpack")

from _anndata_files import CELLS, as_kind, files_of, make, make_counts, write  # noqa: E402
from penstock._data.anndata.limits import Limits  # noqa: E402
from penstock._from.cells import recipe  # noqa: E402
from penstock._places.scratch import this_boot  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*zarr.*"),
    pytest.mark.filterwarnings("ignore:.*Consolidated metadata.*"),
    pytest.mark.filterwarnings("ignore:.*ImplicitModificationWarning.*"),
    pytest.mark.filterwarnings("ignore:.*names are not unique.*"),
]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    # So that every test has several tasks, and several reads in each, by worker processes too.
    monkeypatch.setattr(recipe, "LIMITS", Limits(values=500, cells=70, task_values=3_000, stores=1))


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    one, two = write(make(), tmp_path / "a.h5ad"), write(make(seed=1), tmp_path / "b.h5ad")

    def stop(done: int, total: int) -> None:
        if done > CELLS:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="4 finished shards are kept: go on with --resume"):
        penstock.import_anndata([one, two], tmp_path / "d", progress=stop)
    with pytest.raises(penstock.InvalidArgumentError, match="4 finished shards"):
        penstock.import_anndata([one, two], tmp_path / "d")
    with pytest.raises(penstock.InvalidArgumentError, match="4 finished shards of 2 inputs, 1 of them given now"):
        penstock.import_anndata(one, tmp_path / "d", resume=True)
    done = penstock.import_anndata([one, two], tmp_path / "d", resume=True)
    assert (done.shards, done.kept_shards, done.cells) == (6, 4, 2 * CELLS)
    penstock.import_anndata([one, two], tmp_path / "e")
    assert files_of(tmp_path / "d") == files_of(tmp_path / "e")


def stop(done: int, total: int) -> None:
    if done:
        raise KeyboardInterrupt


def test_shards_of_other_options_are_made_anew(tmp_path: Path) -> None:
    path = write(make(), tmp_path / "a.h5ad")
    with pytest.raises(KeyboardInterrupt):
        penstock.import_anndata(path, tmp_path / "d", progress=stop)
    done = penstock.import_anndata(path, tmp_path / "d", resume=True, obs=["plate"])
    assert done.kept_shards == 0
    penstock.import_anndata(path, tmp_path / "e", obs=["plate"])
    assert files_of(tmp_path / "d") == files_of(tmp_path / "e")


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
    options: dict[str, Any] = {"join": "outer", "obsm": ["X_pca"]}
    with pytest.raises(KeyboardInterrupt, match="kept"):
        penstock.import_anndata(paths, tmp_path / "d", progress=lambda done, _: stop(done > CELLS, 0), **options)
    change(paths[1])
    with pytest.raises(penstock.InvalidArgumentError, match=rf"{name}: is another than when \d finished shards? in"):
        penstock.import_anndata(paths, tmp_path / "d", resume=True, **options)
    assert penstock.import_anndata(paths, tmp_path / "d", overwrite=True, **options).kept_shards == 0
    penstock.import_anndata(paths, tmp_path / "e", **options)
    assert files_of(tmp_path / "d") == files_of(tmp_path / "e")


def test_an_input_that_changed_is_refused_in_a_bucket_too(place: Any, tmp_path: Path) -> None:
    path = write(make(), tmp_path / "a.h5ad")

    with pytest.raises(KeyboardInterrupt, match="1 finished shard is kept: go on with --resume"):
        penstock.import_anndata(path, place.url, storage=place.storage, progress=stop, scratch=tmp_path / "scratch")
    assert list((tmp_path / "scratch").iterdir()) == []
    os.utime(path)
    with pytest.raises(penstock.InvalidArgumentError, match="is another than when 1 finished shard in s3://"):
        penstock.import_anndata(path, place.url, storage=place.storage, resume=True)
    done = penstock.import_anndata(path, place.url, storage=place.storage, overwrite=True)
    assert done.kept_shards == 0
    assert penstock.verify(place.url, storage=place.storage)


@pytest.mark.parametrize(
    "what",
    ["obs", "obsm", "names of genes", "genes, joined", "indptr", "counts of columns", "counts of a dense matrix"],
)
@pytest.mark.parametrize("publish", [False, True])
def test_samples_tell_another_input_though_its_times_are_the_same(
    tmp_path: Path, what: str, publish: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def move_a_value(path: Path) -> None:
        with h5py.File(path, "r+") as file:
            file["X/indptr"][30] += 1

    kind, name, change = CHANGES.get(what, ("csr", "a.h5ad", move_a_value))
    paths = [write(make(seed=1), tmp_path / "first.h5ad"), write(as_kind(make(), kind), tmp_path / name)]
    options: dict[str, Any] = {"join": "outer", "obsm": ["X_pca"]}

    def almost(done: int, total: int) -> None:
        stop(not publish and done > 2 * CELLS - 200, total)

    if publish:
        penstock.import_anndata(paths, tmp_path / "d", progress=almost, **options)
    else:
        with pytest.raises(KeyboardInterrupt):
            penstock.import_anndata(paths, tmp_path / "d", progress=almost, **options)
        monkeypatch.setattr("penstock._make.stamps._stamp", lambda path: [0, ""])
        (tmp_path / "d" / ".import-inputs").write_text('[[0, ""], [0, ""]]')
    change(paths[1])
    with pytest.raises(
        penstock.InvalidArgumentError, match=rf"{name}: shard \d of .* was made of other input or options"
    ):
        penstock.import_anndata(paths, tmp_path / "d", resume=True, **options)


def test_an_input_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = write(make(), tmp_path / "a.h5ad")
    with pytest.raises(penstock.InvalidArgumentError, match=r"a\.h5ad: changed while it was imported"):
        penstock.import_anndata(path, tmp_path / "d", progress=lambda done, total: os.utime(path))
    assert not (tmp_path / "d" / "dataset.json").exists()
    with pytest.raises(penstock.InvalidArgumentError, match="is another than when 3 finished shards"):
        penstock.import_anndata(path, tmp_path / "d", resume=True)


def test_resuming_what_is_complete_writes_nothing(tmp_path: Path) -> None:
    path, other = write(make(), tmp_path / "a.h5ad"), write(make(seed=1), tmp_path / "b.h5ad")
    whole = penstock.import_anndata(path, tmp_path / "d")
    before = files_of(tmp_path / "d")
    again = penstock.import_anndata(path, tmp_path / "d", resume=True)
    assert (again.kept_shards, again.records) == (whole.shards, whole.records)
    with pytest.raises(penstock.InvalidArgumentError, match="made of other input or options"):
        penstock.import_anndata(other, tmp_path / "d", resume=True)
    assert files_of(tmp_path / "d") == before


def test_a_worker_killed_in_its_shard_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # One shard an input, of many small appends: the kill comes while it is written.
    monkeypatch.setattr(recipe, "LIMITS", Limits(values=200, cells=10, task_values=1 << 24))
    paths = [write(make(make_counts(4_000)), tmp_path / f"{seed}.h5ad") for seed in range(2)]
    out = tmp_path / "d"
    killed = []

    def kill() -> None:
        while not killed:
            if list(out.glob(".partial-0000*/stream.bin")):
                for child in multiprocessing.active_children():
                    child.kill()
                    killed.append(child.pid)
            time.sleep(0.001)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.raises(RuntimeError, match=r"was killed by SIGKILL.*no shard was finished: start again"):
            penstock.import_anndata(paths, out, workers=2)
    finally:
        killed.append(0)
        killer.join()
    assert not out.exists()


def test_a_killed_worker_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    paths = [write(make(seed=seed), tmp_path / f"{seed}.h5ad") for seed in range(3)]

    def kill(done: int, total: int) -> None:
        for child in multiprocessing.active_children():
            child.kill()

    with pytest.raises(RuntimeError, match=r"was killed by SIGKILL.*go on with --resume"):
        penstock.import_anndata(paths, tmp_path / "d", workers=2, progress=kill)
    # What one that was killed itself leaves: a lock's file, and files of compressed columns.
    left = tmp_path / "d" / f".partial-import@{this_boot()}@run@17" / "0-0"
    left.mkdir(parents=True)
    (left / "t-0").write_bytes(b"x")
    done = penstock.import_anndata(paths, tmp_path / "d", workers=2, resume=True)
    assert done.kept_shards > 0
    penstock.import_anndata(paths, tmp_path / "e")
    assert files_of(tmp_path / "d") == files_of(tmp_path / "e")


def test_a_disk_that_takes_no_more_is_told(tmp_path: Path) -> None:
    path = write(make(), tmp_path / "a.h5ad")
    penstock.import_anndata(path, tmp_path / "whole")
    least = min((tmp_path / "whole" / name / "stream.bin").stat().st_size for name in ("00000", "00001", "00002"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (least - 1, limits[1]))
    try:
        with pytest.raises(penstock.IoError, match="no shard was finished: start again"):
            penstock.import_anndata(path, tmp_path / "d")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert penstock.import_anndata(path, tmp_path / "d", resume=True).kept_shards == 0
