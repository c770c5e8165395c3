"""Cells of other formats than AnnData's: MuData's modalities, 10x's .h5 and matrix.mtx, beside scanpy's readers."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _anndata_files import anndata, h5py, make_counts, same, sparse
from penstock._cli.main import main

CELLS, GENES = 50, 30
KINDS = ["Gene Expression"] * (GENES - 2) + ["Antibody Capture"] * 2


def counts() -> Any:
    return make_counts(CELLS, GENES)


def write_10x(path: Path, version: int = 3) -> Path:
    """As cellranger writes it."""
    columns = counts().astype("i4")
    ids, symbols = [f"ENSG{i:05}".encode() for i in range(GENES)], [f"S{i // 2}".encode() for i in range(GENES)]
    with h5py.File(path, "w") as file:
        group = file.create_group("matrix" if version == 3 else "GRCh38")
        group["barcodes"] = np.array([f"AC{i:04}-1".encode() for i in range(CELLS)])
        group["data"], group["indices"] = columns.data, columns.indices.astype("i8")
        group["indptr"], group["shape"] = columns.indptr.astype("i8"), np.array([GENES, CELLS], "i4")
        if version == 3:
            features = group.create_group("features")
            features["id"], features["name"] = np.array(ids), np.array(symbols)
            features["feature_type"] = np.array([each.encode() for each in KINDS])
            features["genome"] = np.array([b"GRCh38"] * GENES)
            features["_all_tag_keys"] = np.array([b"genome"])
        else:
            group["genes"], group["gene_names"] = np.array(ids), np.array(symbols)
    return path


def write_mtx(
    folder: Path, zipped: bool = True, old: bool = False, field: str = "integer", shuffled: bool = False
) -> Path:
    folder.mkdir()
    entries = counts().tocoo()
    order = np.random.default_rng(0).permutation(entries.nnz) if shuffled else np.arange(entries.nnz)
    lines = [f"{entries.col[i] + 1} {entries.row[i] + 1} {entries.data[i]:g}" for i in order]
    head = [f"%%MatrixMarket matrix coordinate {field} general", '%metadata_json: {"software_version": "x"}']
    matrix = "\n".join([*head, f"{GENES} {CELLS} {entries.nnz}", *lines]) + "\n"
    kinds = [] if old else KINDS
    features = "".join("\t".join([f"ENSG{i:05}", f"S{i // 2}", *kinds[i : i + 1]]) + "\n" for i in range(GENES))
    barcodes = "".join(f"AC{i:04}-1\n" for i in range(CELLS))
    names = {"matrix.mtx": matrix, "barcodes.tsv": barcodes, "genes.tsv" if old else "features.tsv": features}
    for name, text in names.items():
        if zipped:
            (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / name).write_text(text)
    return folder


def check(dataset: penstock.Dataset, expected: Any) -> None:
    """The cells and genes that scanpy reads."""
    back = dataset.to_anndata()
    assert same(back.X, expected.X) and back.obs_names.tolist() == expected.obs_names.tolist()
    assert back.var_names.tolist() == expected.var_names.tolist()
    for name in ("gene_symbols", "feature_types"):
        if name in expected.var:
            assert back.var[name].astype(str).tolist() == expected.var[name].astype(str).tolist()


@pytest.mark.parametrize("version", [2, 3])
def test_the_h5_file_of_cellranger(tmp_path: Path, version: int) -> None:
    scanpy = pytest.importorskip("scanpy")
    path = write_10x(tmp_path / "filtered_feature_bc_matrix.h5", version)
    expected = scanpy.read_10x_h5(path, gex_only=False)
    expected.var["gene_symbols"] = expected.var_names
    expected.var_names = expected.var["gene_ids"]
    assert main(["import", str(path), "--out", str(tmp_path / "d"), "--workers", "2"]) == 0
    dataset = penstock.open(tmp_path / "d")
    check(dataset, expected)
    assert dataset.dtype == np.dtype([("gene", "<u2"), ("count", "u1")])


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("old", [True, False])
def test_the_folder_of_cellranger(tmp_path: Path, zipped: bool, old: bool) -> None:
    scanpy = pytest.importorskip("scanpy")
    if zipped and old:
        pytest.skip("no cellranger wrote it, and scanpy does not read it")
    path = write_mtx(tmp_path / "filtered_feature_bc_matrix", zipped, old)
    readable = path if old or zipped else write_mtx(tmp_path / "zipped")  # scanpy reads no other
    expected = scanpy.read_10x_mtx(readable, var_names="gene_ids", gex_only=False)
    done = penstock.import_anndata(path, tmp_path / "d", workers=2)
    assert done.fields["count"] == "|u1" or done.fields["count"] == "<u1"
    check(penstock.open(tmp_path / "d"), expected)


@pytest.mark.parametrize("field", ["real", "integer"])
def test_entries_in_any_order(tmp_path: Path, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock._from.cells.mtx._LINES", 7)
    for name, shuffled in (("a", False), ("b", True)):
        penstock.import_anndata(write_mtx(tmp_path / name, field=field, shuffled=shuffled), tmp_path / f"{name}-d")
        assert same(penstock.open(tmp_path / f"{name}-d").to_anndata().X, counts())


def test_any_blanks_are_between_the_numbers_of_an_entry(tmp_path: Path) -> None:
    folder = write_mtx(tmp_path / "a", zipped=False)
    text = (folder / "matrix.mtx").read_text().splitlines()
    blanks = ("\t", "  ", " \t ")
    spread = [blanks[at % 3].join(line.split()) + ("  " if at % 2 else "") for at, line in enumerate(text[2:])]
    (folder / "matrix.mtx").write_text("\n".join([*text[:2], "  ", *spread, "", ""]))
    for name in ("barcodes.tsv", "features.tsv"):
        (folder / name).write_text((folder / name).read_text() + "\n")
    penstock.import_anndata(folder, tmp_path / "d")
    assert same(penstock.open(tmp_path / "d").to_anndata().X, counts())


def test_folders_and_files_are_imported_together_and_resumed(tmp_path: Path) -> None:
    folder = write_mtx(tmp_path / "a")
    penstock.import_anndata([folder, folder], tmp_path / "d")
    assert penstock.open(tmp_path / "d").spans == 2 * CELLS
    again = penstock.import_anndata([folder, folder], tmp_path / "d", resume=True)
    assert again.kept_shards == again.shards


def test_what_is_wrong_with_a_folder_is_said(tmp_path: Path) -> None:
    def broken(name: str, change: Any) -> Path:
        folder = write_mtx(tmp_path / name, zipped=False)
        change(folder)
        return folder

    def edit(name: str, old: str, new: str) -> Any:
        def change(folder: Path) -> None:
            text = (folder / name).read_text()
            assert old in text
            (folder / name).write_text(text.replace(old, new, 1))

        return change

    for number, (match, error, change) in enumerate((
        ("no barcodes.tsv.gz beside", penstock.InvalidArgumentError, lambda folder: (folder / "barcodes.tsv").unlink()),
        ("a Matrix Market file of general", penstock.InvalidArgumentError, edit("matrix.mtx", "coordinate", "array")),
        ("30 × 51; there are 30 genes and 50", penstock.InvalidArgumentError, edit("matrix.mtx", "30 50", "30 51")),
        ("values, its header says", penstock.CorruptionError, edit("matrix.mtx", "30 50 3", "30 50 4")),
        ("a value lies outside of 30 × 50", penstock.CorruptionError, edit("matrix.mtx", "\n1 ", "\n99 ")),
        ("matrix.mtx cannot be read", penstock.CorruptionError, edit("matrix.mtx", "\n1 ", "\nx ")),
    )):  # fmt: skip
        with pytest.raises(error, match=match):
            penstock.import_anndata(broken(str(number), change), tmp_path / "out")
    with pytest.raises(penstock.InvalidArgumentError, match="no folder with a matrix"):
        penstock.import_anndata(tmp_path, tmp_path / "out", format="mtx")


@pytest.fixture
def mudata_file(tmp_path: Path) -> tuple[Path, Any]:
    """A .h5mu file that MuData itself wrote."""
    mudata = pytest.importorskip("mudata")
    rna, protein = anndata.AnnData(counts()), anndata.AnnData(make_counts(CELLS, 7, seed=1))
    rna.layers["counts"] = rna.X * 2
    rna.obs["plate"] = [f"p{i % 3}" for i in range(CELLS)]
    rna.raw = rna.copy()
    protein.var_names = [f"CD{i}" for i in range(7)]
    made = mudata.MuData({"rna": rna, "protein": protein})
    made.write(tmp_path / "a.h5mu")
    made.write_zarr(tmp_path / "a.zarr")
    return tmp_path, made


@pytest.mark.parametrize("name", ["a.h5mu", "a.zarr"])
def test_a_modality_is_chosen(mudata_file: tuple[Path, Any], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder, made = mudata_file
    path = folder / name
    for modality in ("rna", "protein"):
        out = str(folder / modality)
        assert main(["import", str(path), "--modality", modality, "--out", out, "--workers", "1"]) == 0
        assert same(penstock.open(out).to_anndata().X, made.mod[modality].X)
        cells = penstock.Collection.from_anndatas(path, modality=modality)
        assert same(cells[:].X, made.mod[modality].X)
    capsys.readouterr()
    for extra, said in (([], "say which modality is wanted"), (["--modality", "atac"], "no modality atac")):
        assert main(["import", str(path), *extra, "--out", str(folder / "e")]) == 2
        assert f"{said} (modality): there are protein, rna" in capsys.readouterr().err
    with pytest.raises(penstock.InvalidArgumentError, match="which modality is wanted"):
        penstock.Collection.from_anndatas(path)


def test_a_modality_is_opened_in_place(mudata_file: tuple[Path, Any]) -> None:
    folder, made = mudata_file
    dataset = penstock.open(folder / "a.h5mu", modality="rna")
    assert dataset.kind == "h5ad" and list(dataset.columns) == ["plate"]
    assert dataset.features is not None and len(dataset.features.columns) == 0
    assert same(dataset.cells(penstock.cells.Csr()).read(range(CELLS)).csr, made.mod["rna"].X)
    for x, factor in (("layers/counts", 2), ("raw", 1)):
        other = penstock.open(folder / "a.h5mu", modality="rna", x=x)
        assert same(other.cells().read(range(CELLS)).csr, made.mod["rna"].X * factor)
    with pytest.raises(penstock.InvalidArgumentError, match="there are protein, rna"):
        penstock.open(folder / "a.h5mu")


def test_one_anndata_has_no_modality(tmp_path: Path) -> None:
    anndata.AnnData(counts()).write_h5ad(tmp_path / "a.h5ad")
    with pytest.raises(penstock.InvalidArgumentError, match="it is one AnnData, without modalities"):
        penstock.import_anndata(tmp_path / "a.h5ad", tmp_path / "d", modality="rna")
    assert sparse.issparse(anndata.read_h5ad(tmp_path / "a.h5ad").X)


def test_a_file_of_a_folder_of_cellranger_is_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_mtx(tmp_path / "sample")
    assert main(["import", str(folder / "matrix.mtx.gz"), "--out", str(tmp_path / "d")]) == 0
    assert len(penstock.open(tmp_path / "d").cells()) == CELLS
    (folder / "matrix.mtx.gz").rename(folder / "GSM1_matrix.mtx.gz")
    assert main(["import", str(folder / "GSM1_matrix.mtx.gz"), "--out", str(tmp_path / "e")]) != 0
    assert "a folder with matrix.mtx, barcodes.tsv and features.tsv" in capsys.readouterr().err


def test_genes_in_another_order_name_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = anndata.AnnData(sparse.eye(4, format="csr", dtype="f4"))
    made.write_h5ad(tmp_path / "a.h5ad")
    made[:, ::-1].copy().write_h5ad(tmp_path / "b.h5ad")
    assert main(["import", str(tmp_path / "a.h5ad"), str(tmp_path / "b.h5ad"), "--out", str(tmp_path / "d")]) != 0
    assert "choose --join inner or outer" in capsys.readouterr().err
