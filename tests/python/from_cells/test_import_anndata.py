"""AnnData in: .h5ad and zarr, compressed rows, compressed columns and dense, by real anndata."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _anndata_files import (
    CELLS,
    GENES,
    anndata,
    as_kind,
    dense_of,
    files_of,
    make,
    make_counts,
    pandas,
    same,
    sparse,
    write,
)
from _terminal import on_a_terminal
from penstock._cli.main import main
from penstock._data.anndata import categories
from penstock._data.anndata.limits import Limits
from penstock._from.cells import recipe


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset of make(), of plain rows."""
    folder = tmp_path_factory.mktemp("expected")
    done = penstock.import_anndata(write(make(), folder / "a.h5ad"), folder / "d", obsm=["X_pca", "image"])
    assert done.columns == ["plate", "score", "flag", "number", "line", "some", "X_pca", "image"]
    assert (done.cells, done.genes, done.fields) == (CELLS, GENES, {"gene": "<u2", "count": "<u1"})
    assert done.shards > 2 and penstock.verify(folder / "d")
    return folder / "d"


@pytest.mark.parametrize(
    ("kind", "store"),
    [
        *(("csr", each) for each in ("gzip.h5ad", "2.zarr", "3.zarr")),
        *(("csc", each) for each in ("plain.h5ad", "3.zarr")),
        *(("dense", each) for each in ("plain.h5ad", "2.zarr")),
    ],
)
def test_every_layout_gives_the_same_bytes(expected: Path, tmp_path: Path, kind: str, store: str) -> None:
    if store.endswith("zarr"):
        anndata.settings.zarr_write_format = int(store[0])
    options = {"compression": "gzip"} if store.startswith("gzip") else {}
    path = write(as_kind(make(), kind), tmp_path / store, **options)
    done = penstock.import_anndata(path, tmp_path / "d", obsm=["X_pca", "image"])
    dataset = penstock.open(tmp_path / "d")
    assert dataset.fingerprint == penstock.open(expected).fingerprint
    assert np.array_equal(dense_of(dataset), make().X.toarray()) and done.records == make().X.nnz
    if kind == "csr":
        found = files_of(tmp_path / "d")
        assert all(found[name] == each for name, each in files_of(expected).items() if not name.endswith("shard.json"))


def test_obs_are_columns_and_entries_and_var_are_features(expected: Path) -> None:
    made, dataset = make(), penstock.open(expected)
    plate = dataset.columns["plate"]
    assert plate.categories == ["p2", "p9", "p7"]
    assert np.array_equal(plate[:], made.obs["plate"].cat.codes)
    assert np.array_equal(dataset.columns["score"][:], made.obs["score"])
    assert dataset.columns["flag"].dtype == bool
    assert dataset.columns["number"].dtype == np.int64
    line = dataset.columns["line"]
    assert [line.categories[code] for code in line[:]] == made.obs["line"].tolist()
    some = dataset.columns["some"]
    assert (some.dtype, some[0], bool(np.isnan(some[1]))) == (np.float32, 1, True)
    assert np.array_equal(dataset.columns["X_pca"][:], made.obsm["X_pca"])
    assert np.array_equal(dataset.columns["image"][:], made.obsm["image"])
    assert dataset.documents()[17].metadata == {"name": "cell 0-17"}
    assert dataset.features is not None
    assert dataset.features.names == made.var_names.tolist()
    assert dataset.features.columns["kind"].categories == ["y", "x"]
    assert dataset.features.columns["length"][:].tolist() == list(range(GENES))


def test_strings_of_many_values_go_to_the_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(categories, "MOST_STRINGS", 10)
    made = make()
    made.obs["barcode"] = [f"b{i}" for i in range(CELLS)]
    done = penstock.import_anndata(write(made, tmp_path / "a.h5ad"), tmp_path / "d", obs=["barcode", "line"])
    dataset = penstock.open(tmp_path / "d")
    assert done.columns == ["line"]
    assert dataset.documents()[3].metadata == {"name": "cell 0-3", "barcode": "b3"}
    assert dataset.to_anndata().obs["barcode"].tolist() == made.obs["barcode"].tolist()
    assert "obs/score" in done.left_out


def test_strings_that_no_column_has_room_for_go_to_the_entries_those_of_var_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipe, "LIMITS", Limits())
    made = make(make_counts(40))
    longest = ["a" * 65_535, "b"] * 20
    too_long = ["ä" * 32_768, None] * 20  # 65,536 bytes
    many = [f"{i:04}" + "x" * 60_000 for i in range(40)]  # 2.4 MB
    quoted = [f"{i:04}" + '"' * 60_000 for i in range(40)]  # 4.8 MB of JSON
    control = [f"{i:04}" + "\x01" * 60_000 for i in range(40)]  # 14.4 MB of JSON
    texts = {"longest": longest, "too_long": too_long, "many": many, "quoted": quoted, "control": control}
    for name, values in texts.items():
        made.obs[name] = pandas.Categorical(values) if name in ("quoted", "too_long") else values
    made.obs["again"] = [text + "y" for text in quoted]  # and no third one of this size
    made.obs["third"] = [text + "z" for text in quoted]
    made.obs["line"] = ["A549", "MCF7"] * 20
    made.var["long"] = ["a" * 65_536] * GENES
    made.var["large"] = [f"{i}" + "\x01" * 60_000 for i in range(GENES)]
    path = write(made, tmp_path / "a.h5ad")
    names = [*texts, "again", "third", "line"]
    done = penstock.import_anndata(path, tmp_path / "d", obs=names)
    assert done.columns == ["longest", "many", "quoted", "again", "line"]
    no_room = [f"var/{name} (its strings have no room in a column)" for name in ("long", "large")]
    assert [each for each in done.left_out if each.startswith("var/")] == no_room
    dataset = penstock.open(tmp_path / "d")
    assert list(dataset.documents()[1].metadata) == ["name", "too_long", "control", "third"]
    main(["export", str(tmp_path / "d"), "--to", "h5ad", "--out", str(tmp_path / "b.h5ad")])
    for back in (dataset.to_anndata(), anndata.read_h5ad(tmp_path / "b.h5ad")):
        for name in names:
            found = [None if pandas.isna(each) else each for each in back.obs[name]]
            assert found == [None if pandas.isna(each) else each for each in made.obs[name]]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 255], "<u1"),
        ([1, 256], "<u2"),
        ([0, 65_536], "<u4"),
        ([1, 1 << 32], "<f4"),
        ([-1, 3], "<f4"),
        ([0.5, 3], "<f4"),
        ([float("nan"), 3], "<f4"),
        ([0.1, 3], "<f8"),
        ([1, (1 << 32) + 1], "<f8"),
    ],
)
def test_counts_have_the_smallest_type_of_all_inputs(tmp_path: Path, values: list[float], dtype: str) -> None:
    paths = []
    for at, value in enumerate(values):
        counts = sparse.csr_matrix(([value], [1], [0, 1, 1]), (2, 3), dtype="f8")
        paths.append(write(anndata.AnnData(counts), tmp_path / f"{at}.h5ad"))
    done = penstock.import_anndata(paths, tmp_path / "d")
    assert done.fields["count"] == dtype
    found = penstock.open(tmp_path / "d").documents().read([0, 1, 2, 3])
    assert np.array_equal(found["count"].astype("f8"), np.array(values, "f8"), equal_nan=True)
    assert found.offsets.tolist() == [0, 1, 1, 2, 2]


def test_genes_are_sorted_and_explicit_zeros_stay(tmp_path: Path) -> None:
    counts = sparse.csr_matrix((np.array([3, 0, 2], "f4"), [2, 0, 1], [0, 2, 3]), (2, 3))
    penstock.import_anndata(write(anndata.AnnData(counts), tmp_path / "a.h5ad"), tmp_path / "d")
    batch = penstock.open(tmp_path / "d").documents().read([0, 1])
    assert batch["gene"].tolist() == [0, 2, 1]
    assert batch["count"].tolist() == [0, 3, 2]


def test_layers_are_fields_of_the_union_of_positions(tmp_path: Path) -> None:
    made = make()
    made.layers["spliced"] = make_counts(seed=5, density=0.3).tocsc()
    made.layers["same"] = made.X.copy()
    done = penstock.import_anndata(write(made, tmp_path / "a.h5ad"), tmp_path / "d", layers=["spliced", "same"])
    assert list(done.fields) == ["gene", "count", "spliced", "same"]
    dataset = penstock.open(tmp_path / "d")
    assert done.records == ((made.X != 0) + (made.layers["spliced"].tocsr() != 0)).nnz
    assert np.array_equal(dense_of(dataset), made.X.toarray())
    assert np.array_equal(dense_of(dataset, "spliced"), made.layers["spliced"].toarray())
    back = dataset.to_anndata()
    assert same(back.layers["spliced"], made.layers["spliced"])
    assert back.X.nnz == made.X.nnz
    only = penstock.import_anndata(tmp_path / "a.h5ad", tmp_path / "e", x="layers/spliced", layers=["same"])
    assert list(only.fields) == ["gene", "count", "same"]
    assert np.array_equal(dense_of(penstock.open(tmp_path / "e")), made.layers["spliced"].toarray())


def test_a_dense_matrix_of_few_zeros_is_a_column_and_raw_is_taken_by_name(tmp_path: Path) -> None:
    made, counts = make(), make_counts(genes=GENES + 9, seed=2)
    made.X = np.random.default_rng(0).normal(size=(CELLS, GENES)).astype("f4")
    ends = np.cumsum(np.diff(counts.indptr)[::-1])
    backwards = sparse.csr_matrix((counts.data[::-1], counts.indices[::-1], [0, *ends]), counts.shape)
    assert not backwards.has_sorted_indices
    made.raw = anndata.AnnData(backwards, obs=made.obs)
    done = penstock.import_anndata(write(made, tmp_path / "a.h5ad"), tmp_path / "d")
    dataset = penstock.open(tmp_path / "d")
    assert (done.fields, dataset.mode, done.columns[-1]) == ({}, "opaque", "X") and "raw" in done.left_out
    assert np.array_equal(dataset.columns["X"][:], made.X)
    assert np.array_equal(dataset.to_anndata([3, 1]).X, made.X[[3, 1]])
    raw = penstock.import_anndata(tmp_path / "a.h5ad", tmp_path / "raw", x="raw")
    assert (raw.fields, raw.records) == ({"gene": "<u2", "count": "<u1"}, counts.nnz)
    assert same(penstock.open(tmp_path / "raw").to_anndata().X, backwards)
    half = anndata.AnnData(np.array([[1, 0], [0, 2]], "f4"))  # exactly half of it
    done = penstock.import_anndata(write(half, tmp_path / "b.h5ad"), tmp_path / "e")
    assert (done.records, done.columns) == (2, [])


@pytest.mark.parametrize("kind", ["csr", "csc", "dense", "dense without zeros"])
@pytest.mark.parametrize("join", ["inner", "outer"])
def test_joins_are_those_of_anndata(tmp_path: Path, join: str, kind: str) -> None:
    one, two = make(), make(seed=1)
    two = two[:, ::-1][:, : GENES - 7].copy()  # another order, some missing
    two.var_names = [name if i % 9 else f"other {i}" for i, name in enumerate(two.var_names)]
    for each in (one, two):
        as_kind(each, kind.split()[0])
        each.X = each.X + 1 if kind == "dense without zeros" else each.X  # a column
        each.var["size"] = [len(name) for name in each.var_names]
    paths = [write(one, tmp_path / "a.h5ad"), write(two, tmp_path / "b.h5ad")]
    done = penstock.import_anndata(paths, tmp_path / "d", join=join)
    assert ("X" in done.columns) == (kind == "dense without zeros")
    found = penstock.open(tmp_path / "d").to_anndata()
    expected = anndata.concat([one, two], join=join, fill_value=0)
    assert found.var_names.tolist() == expected.var_names.tolist()
    assert same(found.X, expected.X)
    assert found.obs_names.tolist() == expected.obs_names.tolist()
    assert found.var["size"].tolist() == [len(name) for name in found.var_names]
    with pytest.raises(penstock.InvalidArgumentError, match=r"b\.h5ad have other genes: gene 0 is g0 and other 0"):
        penstock.import_anndata(paths, tmp_path / "e")
    assert not (tmp_path / "e" / "dataset.json").exists()


def test_a_glob_is_its_files_in_order(tmp_path: Path) -> None:
    for number in (2, 1):
        write(make(seed=number), tmp_path / f"p{number}.h5ad")
    done = penstock.import_anndata(tmp_path / "p[12].h5ad", tmp_path / "d")
    assert done.cells == 2 * CELLS
    assert penstock.open(tmp_path / "d").documents()[0].metadata == {"name": "cell 1-0"}


def test_round_trip(expected: Path, tmp_path: Path) -> None:
    made, dataset = make(), penstock.open(expected)
    assert main(["export", str(expected), "--to", "h5ad", "--out", str(tmp_path / "back.h5ad")]) == 0
    made.obs["line"] = made.obs["line"].astype("category")
    for back in (anndata.read_h5ad(tmp_path / "back.h5ad"), dataset.to_anndata()):
        assert (back.X.format, back.X.dtype) == ("csr", np.float32)
        assert (back.X != made.X).nnz == 0 and back.X.nnz == made.X.nnz
        back.obs["line"] = back.obs["line"].cat.reorder_categories(made.obs["line"].cat.categories)
        pandas.testing.assert_frame_equal(back.obs, made.obs, check_names=False)
        pandas.testing.assert_frame_equal(back.var, made.var, check_names=False)
        assert all(np.array_equal(back.obsm[name], made.obsm[name]) for name in ("X_pca", "image"))
    some = dataset.to_anndata([5, 2, 5])
    assert some.obs_names.tolist() == ["cell 0-5", "cell 0-2", "cell 0-5"]
    assert same(some.X, made.X[[5, 2, 5]])
    assert dataset.to_anndata(np.arange(CELLS) < 3).n_obs == 3
    assert dataset.to_anndata([]).shape == (0, GENES)
    again = penstock.import_anndata(tmp_path / "back.h5ad", tmp_path / "again", obsm=["X_pca", "image"])
    assert again.left_out == []
    assert penstock.open(tmp_path / "again").fingerprint == dataset.fingerprint


def test_a_file_of_an_old_anndata_is_named_as_such(tmp_path: Path) -> None:
    scanpy = find_spec("scanpy") or pytest.skip("scanpy, which has such a file, is not there")
    old = Path(str(scanpy.origin)).parent / "datasets" / "10x_pbmc68k_reduced.h5ad"
    with pytest.raises(penstock.InvalidArgumentError, match=r"before 0\.7: read it and write it once"):
        penstock.import_anndata(old, tmp_path / "d")


def test_what_is_left_out_is_named(tmp_path: Path) -> None:
    made = make()
    made.uns["pca"] = {"variance": np.arange(3.0)}
    made.obsp["distances"] = sparse.eye(CELLS, format="csr")
    made.varm["PCs"] = np.zeros((GENES, 2))
    made.varp["links"] = np.zeros((GENES, GENES))
    made.layers["other"] = made.X.copy()
    made.raw = made.copy()
    done = penstock.import_anndata(write(made, tmp_path / "a.h5ad"), tmp_path / "d", obs=["plate"], obsm=["X_pca"])
    for name in ("obsp/distances", "varp/links", "layers/other", "raw", "obs/score"):
        assert name in done.left_out
    assert not {"uns/pca", "varm/PCs"} & set(done.left_out)
    assert "obsm/image (name it with obsm)" in done.left_out


def test_the_command_imports_and_says_what_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = make()
    made.layers["spliced"] = made.X.copy()
    path = write(made, tmp_path / "a.h5ad")
    out = str(tmp_path / "d")
    arguments = ["import", str(path), "--out", out, "--obs", "plate,score", "--obsm", "X_pca", "--layers", "spliced"]
    assert main([*arguments, "--workers", "2"]) == 0
    text = capsys.readouterr().out
    assert "400" in text and "gene u2, count u1, spliced u1" in text and "left out: obs/flag" in text
    assert main([*arguments, "--overwrite", "--json", "--workers", "1"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["cells"], told["columns"]) == (CELLS, ["plate", "score", "X_pca"])
    assert main(["export", out, "--to", "h5ad", "--out", str(tmp_path / "b.h5ad"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (note,) = told.pop("notes")
    assert told == {"path": str(tmp_path / "b.h5ad"), "cells": CELLS, "genes": GENES}
    assert note.startswith("the file lacks these of the imported AnnData, or has them otherwise: obs/flag, obs/number")
    assert main(["import", str(tmp_path / "no.h5ad"), "--out", str(tmp_path / "e")]) == 2
    assert "no such file" in capsys.readouterr().err
    assert main([*arguments, "--workers", "1"]) == 2
    assert "holds a dataset already" in capsys.readouterr().err


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_is_told_before_cells_are_written(
    tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock._from.cells.told._SECONDS", 0)
    made = make()
    made.X = made.X.tocsc()
    paths = [write(made, tmp_path / "a.h5ad"), write(make(seed=1), tmp_path / "b.h5ad")]
    told: list[tuple[str, int, int]] = []
    seen: list[tuple[int, int]] = []
    options: dict[str, Any] = {
        "preparing": lambda *each: told.append(each),
        "progress": lambda *each: seen.append(each),
        "workers": workers,
    }
    penstock.import_anndata(paths, tmp_path / "d", **options)
    stretches = list(dict.fromkeys(what for what, _, _ in told))
    assert stretches == ["looking at counts", "transposing"]
    for what in stretches:
        shares = [done for each, done, total in told if each == what and total == 2 * CELLS]
        assert len(shares) > 2 and shares == sorted(shares) and shares[-1] == 2 * CELLS
    assert seen.count((0, 2 * CELLS)) > 5  # it is alive, and may be stopped
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    penstock.import_anndata(paths, tmp_path / "d", resume=True, **options)
    assert told[-1] == ("comparing with finished shards", 2 * CELLS, 2 * CELLS)


def test_the_command_shows_what_it_does(tmp_path: Path) -> None:
    path = write(as_kind(make(), "csc"), tmp_path / "a.h5ad")
    shown, _ = on_a_terminal([str(path), "--out", str(tmp_path / "d"), "--workers", "1"], "import")
    assert re.search("transposing|looking at counts", shown) and "writing" in shown
