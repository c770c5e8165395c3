"""AnnData out: to_anndata and export."""

from __future__ import annotations

import os
import resource
import stat
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _anndata_files import CELLS, anndata, make, make_counts, same, sparse, write
from penstock._cli.main import main
from penstock._data.anndata import cell_reader
from penstock._data.anndata.limits import Limits
from penstock._from.cells import recipe
from penstock._from.cells.exporting import export_h5ad


@pytest.fixture
def dataset(tmp_path: Path) -> penstock.Dataset:
    penstock.import_anndata(write(make(), tmp_path / "a.h5ad"), tmp_path / "d")
    return penstock.open(tmp_path / "d")


def test_obsm_as_wide_as_the_genes_and_dense_layers_come_back_as_what_they_were(tmp_path: Path) -> None:
    made = make()
    made.obsm["wide"] = np.random.default_rng(0).random(made.shape).astype("f4")
    made.obsm["X"] = made.obsm["wide"] + 1
    made.layers["spliced"] = made.X * 2
    made.layers["scaled"] = made.X.toarray() + 1
    made.layers["more"] = made.layers["scaled"] * 2
    path = write(made, tmp_path / "a.h5ad")
    done = penstock.import_anndata(path, tmp_path / "d", layers=["spliced", "scaled"], obsm=["wide", "X", "X_pca"])
    assert list(done.fields) == ["gene", "count", "spliced"]
    assert done.columns[-4:] == ["wide", "X", "X_pca", "layers/scaled"]
    assert main(["export", str(tmp_path / "d"), "--to", "h5ad", "--out", str(tmp_path / "b.h5ad")]) == 0
    for back in (penstock.open(tmp_path / "d").to_anndata(), anndata.read_h5ad(tmp_path / "b.h5ad")):
        assert set(back.layers) == {"spliced", "scaled"}
        assert all(np.array_equal(back.obsm[name], made.obsm[name]) for name in ("wide", "X", "X_pca"))
        assert np.array_equal(back.layers["scaled"], made.layers["scaled"])
        assert same(back.X, made.X) and same(back.layers["spliced"], made.layers["spliced"])
    done = penstock.import_anndata(path, tmp_path / "e", x="layers/scaled", layers=["more"])
    assert done.columns[-2:] == ["X", "layers/more"]
    back = penstock.open(tmp_path / "e").to_anndata()
    assert np.array_equal(back.X, made.layers["scaled"])
    assert np.array_equal(back.layers["more"], made.layers["more"])


def test_what_anndata_has_no_place_for_is_refused(tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "tokens", {"token": "u2"}) as writer:
        writer.append(token=[1])
    with pytest.raises(penstock.InvalidArgumentError, match="no features"):
        penstock.open(tmp_path / "tokens").to_anndata()
    fields = {"gene": "u2", "count": "u1"}
    with penstock.Writer(tmp_path / "d", {**fields, "X": "u1"}, "boundaries", features=["a", "b"]) as writer:
        writer.append(gene=[0, 1], count=[1, 2], X=[3, 4])
    with pytest.raises(penstock.InvalidArgumentError, match="a field X beside count"):
        penstock.open(tmp_path / "d").to_anndata()
    with penstock.Writer(tmp_path / "e", fields, "boundaries", features=["a"], columns={"a/b": "f4"}) as writer:
        writer.append(gene=[0], count=[1], columns={"a/b": 1})
    assert penstock.open(tmp_path / "e").to_anndata().obs["a/b"].tolist() == [1]
    with pytest.raises(penstock.InvalidArgumentError, match="'a/b' is the name of no member"):
        export_h5ad(penstock.open(tmp_path / "e"), str(tmp_path / "a.h5ad"))
    assert list(tmp_path.glob("a.h5ad*")) == []


def test_reads_are_bounded_by_the_cells_that_they_are_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # 990 cells of one gene, then ten of 2,000: by their average a read had 500 of them.
    counts = sparse.vstack([sparse.csr_matrix(np.eye(990, 2_000)), sparse.csr_matrix(np.ones((10, 2_000)))]).tocsr()
    penstock.import_anndata(write(anndata.AnnData(counts.astype("f4")), tmp_path / "a.h5ad"), tmp_path / "d")
    monkeypatch.setattr(cell_reader, "LIMITS", Limits(values=10_000))
    reader = cell_reader.CellReader(penstock.open(tmp_path / "d"))
    sizes = [int(part.sparse["X"][0].sum()) for part in reader.parts(np.arange(1_000))]
    assert sum(sizes) == counts.nnz
    assert max(sizes) <= 10_000 and len(sizes) <= 5
    assert [len(part.names) for part in reader.parts(np.array([999, 1, 995, 998, 2, 997, 996]))] == [6, 1]


def test_reads_are_bounded_by_their_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock._data.anndata.categories.MOST_STRINGS", 10)
    monkeypatch.setattr(recipe, "LIMITS", Limits())
    made = make(make_counts(500))
    made.obs["long"] = [f"{i} " + "x" * 4_000 for i in range(500)]
    penstock.import_anndata(write(made, tmp_path / "a.h5ad"), tmp_path / "d", obs=["long"])
    monkeypatch.setattr(cell_reader, "LIMITS", Limits(values=100_000))
    dataset = penstock.open(tmp_path / "d")
    sizes = [len(part.names) for part in cell_reader.CellReader(dataset).parts(np.arange(500))]
    assert sum(sizes) == 500 and max(sizes[1:]) <= 100
    assert dataset.to_anndata().obs["long"].tolist() == made.obs["long"].tolist()


def test_a_dataset_that_cannot_be_read_is_told_as_that(dataset: penstock.Dataset, tmp_path: Path) -> None:
    stream = tmp_path / "d" / "00000" / "stream.bin"
    stream.write_bytes(stream.read_bytes()[:-1])
    with pytest.raises(penstock.CorruptionError, match=r"stream\.bin"):
        export_h5ad(penstock.open(tmp_path / "d"), str(tmp_path / "b.h5ad"))
    stream.unlink()
    with pytest.raises(penstock.Error, match=r"stream\.bin") as told:
        export_h5ad(penstock.open(tmp_path / "d"), str(tmp_path / "b.h5ad"))
    assert "cannot be written" not in str(told.value)
    assert list(tmp_path.glob("b.h5ad*")) == []


def test_a_file_that_cannot_be_written_is_told_as_that(
    dataset: penstock.Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(tmp_path / "d"), "--to", "h5ad", "--out", str(tmp_path / "a.h5ad")]) == 2
    assert "there already" in capsys.readouterr().err
    with pytest.raises(penstock.IoError, match=r"no/b\.h5ad: cannot be written"):
        export_h5ad(dataset, str(tmp_path / "no" / "b.h5ad"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(penstock.IoError, match=r"b\.h5ad: cannot be written"):
            export_h5ad(dataset, str(tmp_path / "b.h5ad"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.glob("b.h5ad*")) == []


def test_a_file_is_synced_before_it_has_its_name_and_needs_no_links(
    dataset: penstock.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "b.h5ad"
    synced: list[tuple[str, int]] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        synced.append((kind, out.stat().st_size if out.exists() else -1))
        fsync(descriptor)

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(os, "link", refuse)
    assert export_h5ad(dataset, str(out)) == CELLS
    assert synced == [("file", -1), ("folder", out.stat().st_size)]
    assert same(anndata.read_h5ad(out).X, make().X)


def test_a_file_that_comes_to_be_meanwhile_stays(dataset: penstock.Dataset, tmp_path: Path) -> None:
    out = tmp_path / "b.h5ad"
    with pytest.raises(penstock.InvalidArgumentError, match="is there already"):
        export_h5ad(dataset, str(out), lambda done, total: out.touch())
    assert out.stat().st_size == 0 and len(list(tmp_path.glob("b.h5ad*"))) == 1
