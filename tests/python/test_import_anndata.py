"""AnnData in and out: .h5ad and zarr, compressed rows, compressed columns and dense, by real anndata."""

from __future__ import annotations

import json
import multiprocessing
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest

anndata = pytest.importorskip("anndata")
h5py = pytest.importorskip("h5py")
pandas = pytest.importorskip("pandas")
sparse = pytest.importorskip("scipy.sparse")
zarr = pytest.importorskip("zarr")
pytest.importorskip("msgpack")

from penstock._anndata import importing, matrices, plan, work  # noqa: E402
from penstock._cli.main import main  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*zarr.*"),
    pytest.mark.filterwarnings("ignore:.*Consolidated metadata.*"),
    pytest.mark.filterwarnings("ignore:.*ImplicitModificationWarning.*"),
]
CELLS, GENES = 400, 60


def make_counts(cells: int = CELLS, genes: int = GENES, seed: int = 0, density: float = 0.2) -> Any:
    counts = sparse.random(cells, genes, density, format="csr", dtype="f4", random_state=seed)
    counts.data = np.ceil(counts.data * 9).astype("f4")
    return counts


def make(counts: Any = None, seed: int = 0, prefix: str = "g") -> Any:
    counts = make_counts(seed=seed) if counts is None else counts
    random = np.random.default_rng(seed)
    cells, genes = counts.shape
    obs = pandas.DataFrame(
        {
            "plate": pandas.Categorical(random.choice(["p7", "p2", None], cells), ["p2", "p9", "p7"]),
            "score": random.random(cells).astype("f4"),
            "flag": random.random(cells) < 0.5,
            "number": np.arange(cells),
            "line": random.choice(["A549", "MCF7"], cells),
            "some": pandas.array([1, None] * (cells // 2), dtype="Int64"),
        },
        index=[f"cell {seed}-{i}" for i in range(cells)],
    )
    var = pandas.DataFrame(
        {"length": np.arange(genes), "kind": pandas.Categorical(random.choice(["x", "y"], genes), ["y", "x"])},
        index=[f"{prefix}{i}" for i in range(genes)],
    )
    made = anndata.AnnData(counts, obs=obs, var=var)
    made.obsm["X_pca"] = random.random((cells, 7)).astype("f4")
    made.obsm["image"] = random.integers(0, 255, (cells, 2, 3, 4)).astype("u1")
    return made


def write(made: Any, path: Path, **options: Any) -> Path:
    if path.suffix == ".zarr":
        made.write_zarr(path)
    else:
        made.write_h5ad(path, **options)
    return path


def dense_of(dataset: penstock.Dataset, name: str = "count") -> Any:
    batch = dataset.documents().read(np.arange(dataset.spans))
    return sparse.csr_matrix(
        (batch[name], batch["gene"].astype("i4"), batch.offsets), (dataset.spans, len(dataset.features))
    ).toarray()


def same(a: Any, b: Any) -> bool:
    return bool((abs(sparse.csr_matrix(a) - sparse.csr_matrix(b)).max() if a.shape[0] else 0) == 0)


def files_of(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    # So that every test has several tasks, and several reads in each.
    for module in (importing, matrices, work):
        monkeypatch.setattr(module, "AT_ONCE", 500)
    monkeypatch.setattr(work, "_CELLS_AT_ONCE", 70)
    monkeypatch.setattr(plan, "TASK_VALUES", 3_000)


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
@pytest.mark.parametrize("store", ["plain.h5ad", "gzip.h5ad", "2.zarr", "3.zarr"])
def test_every_layout_gives_the_same_bytes(tmp_path: Path, kind: str, store: str) -> None:
    made = make()
    expected = penstock.import_anndata(write(made, tmp_path / "expected.h5ad"), tmp_path / "expected", obsm=["X_pca"])
    as_kind = made.copy()
    as_kind.X = {"csr": made.X, "csc": made.X.tocsc(), "dense": made.X.toarray()}[kind]
    if store.endswith("zarr"):
        anndata.settings.zarr_write_format = int(store[0])
    path = write(as_kind, tmp_path / store, **({"compression": "gzip"} if store.startswith("gzip") else {}))
    done = penstock.import_anndata(path, tmp_path / "d", obsm=["X_pca"])
    assert (done.cells, done.genes, done.records) == (CELLS, GENES, made.X.nnz)
    assert done.fields == {"gene": "<u2", "count": "<u1"}
    dataset = penstock.open(tmp_path / "d")
    assert dataset.fingerprint == penstock.open(tmp_path / "expected").fingerprint
    assert np.array_equal(dense_of(dataset), made.X.toarray())
    assert penstock.verify(tmp_path / "d")
    assert expected.shards == 4
    if kind == "csr":
        columns = files_of(tmp_path / "expected")
        found = files_of(tmp_path / "d")
        assert all(found[name] == columns[name] for name in columns if not name.endswith("shard.json"))


def test_obs_are_columns_and_entries_and_var_are_features(tmp_path: Path) -> None:
    made = make()
    done = penstock.import_anndata(write(made, tmp_path / "a.h5ad"), tmp_path / "d", obsm=["X_pca", "image"])
    dataset = penstock.open(tmp_path / "d")
    assert done.columns == ["plate", "score", "flag", "number", "line", "some", "X_pca", "image"]
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
    from penstock._anndata import columns

    monkeypatch.setattr(columns, "MOST_STRINGS", 10)
    made = make()
    made.obs["barcode"] = [f"b{i}" for i in range(CELLS)]
    done = penstock.import_anndata(write(made, tmp_path / "a.h5ad"), tmp_path / "d", obs=["barcode", "line"])
    dataset = penstock.open(tmp_path / "d")
    assert done.columns == ["line"]
    assert dataset.documents()[3].metadata == {"name": "cell 0-3", "barcode": "b3"}
    assert dataset.to_anndata().obs["barcode"].tolist() == made.obs["barcode"].tolist()
    assert "obs/score" in done.left_out


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_bytes_are_the_same_for_any_workers(tmp_path: Path, workers: int) -> None:
    one, two = write(make(), tmp_path / "a.h5ad"), write(make(seed=1), tmp_path / "b.h5ad")
    seen: list[tuple[int, int]] = []
    options: dict[str, Any] = {"progress": lambda *at: seen.append(at)}
    penstock.import_anndata([one, two], tmp_path / "d", workers=workers, **options)
    penstock.import_anndata([one, two], tmp_path / "e")
    assert files_of(tmp_path / "d") == files_of(tmp_path / "e")
    assert seen[-1] == (2 * CELLS, 2 * CELLS)
    assert len(penstock.open(tmp_path / "d").shards) == 6


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


def test_integers_that_no_float_holds_are_refused(tmp_path: Path) -> None:
    counts = sparse.csr_matrix((np.array([(1 << 53) + 1, -1]), [0, 1], [0, 2]), (1, 2))
    with pytest.raises(penstock.InvalidArgumentError, match="is exact in no float"):
        penstock.import_anndata(write(anndata.AnnData(counts), tmp_path / "a.h5ad"), tmp_path / "d")


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


def test_a_dense_matrix_of_few_zeros_is_a_column(tmp_path: Path) -> None:
    made = make()
    made.X = np.random.default_rng(0).normal(size=(CELLS, GENES)).astype("f4")
    done = penstock.import_anndata(write(made, tmp_path / "a.h5ad"), tmp_path / "d")
    dataset = penstock.open(tmp_path / "d")
    assert (done.fields, dataset.mode, done.columns[-1]) == ({}, "opaque", "X")
    assert np.array_equal(dataset.columns["X"][:], made.X)
    assert np.array_equal(dataset.to_anndata([3, 1]).X, made.X[[3, 1]])
    penstock.import_anndata(
        write(make(sparse.csr_matrix(np.eye(4, 2, dtype="f4"))), tmp_path / "b.h5ad"), tmp_path / "e"
    )


def test_a_matrix_of_exactly_half_zeros_is_records(tmp_path: Path) -> None:
    made = anndata.AnnData(np.array([[1, 0], [0, 2]], "f4"))
    done = penstock.import_anndata(write(made, tmp_path / "a.h5ad"), tmp_path / "d")
    assert (done.records, done.columns) == (2, [])


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
@pytest.mark.parametrize("join", ["inner", "outer"])
def test_joins_are_those_of_anndata(tmp_path: Path, join: str, kind: str) -> None:
    one, two = make(), make(seed=1)
    two = two[:, ::-1][:, : GENES - 7].copy()  # another order, some missing
    two.var_names = [name if i % 9 else f"other {i}" for i, name in enumerate(two.var_names)]
    for each in (one, two):
        each.X = {"csr": each.X.tocsr(), "csc": each.X.tocsc(), "dense": each.X.toarray()}[kind]
    paths = [write(one, tmp_path / "a.h5ad"), write(two, tmp_path / "b.h5ad")]
    penstock.import_anndata(paths, tmp_path / "d", join=join)
    found = penstock.open(tmp_path / "d").to_anndata()
    expected = anndata.concat([one, two], join=join, fill_value=0)[:, found.var_names]
    assert set(found.var_names) == set(expected.var_names)
    assert same(found.X, expected.X)
    assert found.obs_names.tolist() == expected.obs_names.tolist()
    with pytest.raises(penstock.InvalidArgumentError, match=r"b\.h5ad have other genes: gene 0 is g0 and other 0"):
        penstock.import_anndata(paths, tmp_path / "e")
    assert not (tmp_path / "e" / "dataset.json").exists()


def test_round_trip(tmp_path: Path) -> None:
    made = make()
    penstock.import_anndata(write(made, tmp_path / "a.h5ad"), tmp_path / "d", obsm=["X_pca", "image"])
    dataset = penstock.open(tmp_path / "d")
    assert main(["export", str(tmp_path / "d"), "--to", "h5ad", "--out", str(tmp_path / "back.h5ad")]) == 0
    made.obs["some"] = made.obs["some"].astype("f4")
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


def test_export_refuses_what_is_there_and_what_is_no_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    penstock.import_anndata(write(make(), tmp_path / "a.h5ad"), tmp_path / "d")
    assert main(["export", str(tmp_path / "d"), "--to", "h5ad", "--out", str(tmp_path / "a.h5ad")]) == 2
    assert "there already" in capsys.readouterr().err
    with penstock.Writer(tmp_path / "tokens", {"token": "u2"}) as writer:
        writer.append(token=[1])
    with pytest.raises(penstock.InvalidArgumentError, match="no features"):
        penstock.open(tmp_path / "tokens").to_anndata()


def test_pbmc68k_of_scanpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    scanpy = pytest.importorskip("scanpy")
    made = scanpy.datasets.pbmc68k_reduced()
    path = write(made, tmp_path / "pbmc.h5ad")
    assert not made.raw.X.has_sorted_indices
    scaled = penstock.import_anndata(path, tmp_path / "scaled", obsm=["X_pca", "X_umap"])
    assert scaled.columns[-1] == "X" and "raw" in scaled.left_out and "uns/neighbors" in scaled.left_out
    dataset = penstock.open(tmp_path / "scaled")
    assert np.array_equal(dataset.columns["X"][:], made.X)
    assert np.array_equal(dataset.columns["X_pca"][:], made.obsm["X_pca"])
    assert dataset.columns["louvain"].categories == made.obs["louvain"].cat.categories.tolist()
    raw = penstock.import_anndata(path, tmp_path / "raw", x="raw")
    assert raw.fields == {"gene": "<u2", "count": "<f4"}
    assert raw.records == made.raw.X.nnz
    assert same(penstock.open(tmp_path / "raw").to_anndata().X, made.raw.X)


def test_a_file_of_an_old_anndata_is_named_as_such(tmp_path: Path) -> None:
    scanpy = pytest.importorskip("scanpy")
    old = Path(scanpy.__file__).parent / "datasets" / "10x_pbmc68k_reduced.h5ad"
    with pytest.raises(penstock.InvalidArgumentError, match=r"before 0\.7: read it and write it once"):
        penstock.import_anndata(old, tmp_path / "d")


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    one, two = write(make(), tmp_path / "a.h5ad"), write(make(seed=1), tmp_path / "b.h5ad")

    def stop(done: int, total: int) -> None:
        if done > CELLS:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="4 finished shards are kept: go on with --resume"):
        penstock.import_anndata([one, two], tmp_path / "d", progress=stop)
    with pytest.raises(penstock.InvalidArgumentError, match="4 finished shards"):
        penstock.import_anndata([one, two], tmp_path / "d")
    done = penstock.import_anndata([one, two], tmp_path / "d", resume=True)
    assert (done.shards, done.kept_shards, done.cells) == (6, 4, 2 * CELLS)
    penstock.import_anndata([one, two], tmp_path / "e")
    assert files_of(tmp_path / "d") == files_of(tmp_path / "e")


@pytest.mark.parametrize("change", ["options", "counts", "names"])
def test_shards_of_other_input_or_options_are_made_anew(tmp_path: Path, change: str) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        penstock.import_anndata(write(make(), tmp_path / "a.h5ad"), tmp_path / "d", progress=stop)
    options: dict[str, Any] = {"obs": ["plate"]} if change == "options" else {}
    made = make()
    if change == "counts":
        made.X.data[0] += 1
    if change == "names":
        made.obs_names = [f"{name}'" for name in made.obs_names]
    path = write(made, tmp_path / "b.h5ad")
    done = penstock.import_anndata(path, tmp_path / "d", resume=True, **options)
    assert done.kept_shards == 0
    penstock.import_anndata(path, tmp_path / "e", **options)
    assert files_of(tmp_path / "d") == files_of(tmp_path / "e")


def test_resuming_what_is_complete_writes_nothing(tmp_path: Path) -> None:
    path, other = write(make(), tmp_path / "a.h5ad"), write(make(seed=1), tmp_path / "b.h5ad")
    whole = penstock.import_anndata(path, tmp_path / "d")
    before = files_of(tmp_path / "d")
    again = penstock.import_anndata(path, tmp_path / "d", resume=True)
    assert (again.kept_shards, again.records) == (whole.shards, whole.records)
    with pytest.raises(penstock.InvalidArgumentError, match="made of other input or options"):
        penstock.import_anndata(other, tmp_path / "d", resume=True)
    assert files_of(tmp_path / "d") == before


def test_a_killed_worker_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    paths = [write(make(seed=seed), tmp_path / f"{seed}.h5ad") for seed in range(3)]

    def kill(done: int, total: int) -> None:
        for child in multiprocessing.active_children():
            child.kill()

    with pytest.raises(RuntimeError, match=r"was killed by SIGKILL.*go on with --resume"):
        penstock.import_anndata(paths, tmp_path / "d", workers=2, progress=kill)
    # What one that was killed itself leaves: a lock's file, and files of compressed columns.
    left = tmp_path / "d" / f".partial-transposed@{importing._boot()}@run@17" / "0-0"
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


@pytest.mark.parametrize("join", ["inner", "outer"])
def test_dense_columns_are_joined_too(tmp_path: Path, join: str) -> None:
    random = np.random.default_rng(0)
    parts = []
    for at, genes in enumerate((["a", "b", "c", "d", "e"], ["d", "c", "b", "a"])):
        var = pandas.DataFrame({"n": [ord(name) for name in genes]}, index=genes)
        parts.append(anndata.AnnData(random.random((3, len(genes))).astype("f4") + 1, var=var))
        write(parts[-1], tmp_path / f"{at}.h5ad")
    penstock.import_anndata([tmp_path / "0.h5ad", tmp_path / "1.h5ad"], tmp_path / "d", join=join)
    found = penstock.open(tmp_path / "d").to_anndata()
    expected = anndata.concat(parts, join=join, fill_value=0)[:, found.var_names]
    assert np.array_equal(found.X, expected.X)
    assert found.var["n"].tolist() == [ord(name) for name in found.var_names]


def test_overwrite_replaces_a_dataset(tmp_path: Path) -> None:
    path = write(make(), tmp_path / "a.h5ad")
    penstock.import_anndata(path, tmp_path / "d")
    with pytest.raises(penstock.InvalidArgumentError, match="holds a dataset already"):
        penstock.import_anndata(path, tmp_path / "d")
    other = write(make(seed=3, prefix="h"), tmp_path / "b.h5ad")
    penstock.import_anndata(other, tmp_path / "d", overwrite=True, workers=2)
    dataset = penstock.open(tmp_path / "d")
    assert dataset.features is not None and dataset.features.names[0] == "h0"
    assert dataset.documents()[0].metadata == {"name": "cell 3-0"}


def test_what_is_left_out_is_named(tmp_path: Path) -> None:
    made = make()
    made.uns["pca"] = {"variance": np.arange(3.0)}
    made.obsp["distances"] = sparse.eye(CELLS, format="csr")
    made.varm["PCs"] = np.zeros((GENES, 2))
    made.varp["links"] = np.zeros((GENES, GENES))
    made.layers["other"] = made.X.copy()
    made.raw = made.copy()
    done = penstock.import_anndata(write(made, tmp_path / "a.h5ad"), tmp_path / "d", obs=["plate"], obsm=["X_pca"])
    for name in ("uns/pca", "obsp/distances", "varm/PCs", "varp/links", "layers/other", "raw", "obs/score"):
        assert name in done.left_out
    assert "obsm/image (name it with obsm)" in done.left_out


# --- what cannot be


def broken(tmp_path: Path, change: Any, made: Any = None) -> Path:
    path = write(make() if made is None else made, tmp_path / "broken.h5ad")
    with h5py.File(path, "r+") as file:
        change(file)
    return path


def put(name: str, at: int, value: Any) -> Any:
    def change(file: Any) -> None:
        file[name][at] = value

    return change


def repeat_gene(file: Any) -> None:
    file["X/indices"][1] = file["X/indices"][0]


def repeat_name(file: Any) -> None:
    file["var/_index"][4] = file["var/_index"][2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (repeat_gene, r"broken\.h5ad: X: cell 0 \(cell 0-0\) has the gene g\d+ twice"),
        (put("X/indptr", 3, 0), r"X/indptr falls at cell 2 \(cell 0-2\): from \d+ to 0"),
        (
            put("X/indptr", 5, 1 << 30),
            r"X/indptr passes the end before cell 5 \(cell 0-5\): 1073741824 of|1,073,741,824",
        ),
        (put("X/indptr", 0, 1), r"indptr begins with 1, expected 0"),
        (put("X/indices", 2, GENES), rf"X: cell 0 \(cell 0-0\) has gene {GENES} of {GENES}"),
        (put("X/indices", 2, -1), rf"has gene -1 of {GENES}"),
        (repeat_name, r"genes 2 and 4 are both named g2"),
        (put("obs/plate/codes", 0, 9), r"obs/plate: code 9 of 3 categories"),
        (lambda file: file.__delitem__("obs"), "there is no obs: this is no AnnData"),
        (lambda file: file["X"].attrs.__setitem__("shape", (3, 3)), "indptr has 401 values, expected 4"),
    ],
)
def test_a_broken_file_gets_one_clear_error(tmp_path: Path, change: Any, message: str) -> None:
    path = broken(tmp_path, change)
    for workers in (1, 2):
        with pytest.raises(penstock.InvalidArgumentError, match=message):
            penstock.import_anndata(path, tmp_path / "d", workers=workers)
    assert not (tmp_path / "d" / "dataset.json").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("X/indices", 2, CELLS), rf"X: gene 0 has cell {CELLS} of {CELLS}"),
        (put("X/indptr", 3, 0), r"X/indptr falls at gene 2"),
        (repeat_gene, r"has the gene g0 twice"),
    ],
)
def test_broken_columns_get_one_clear_error(tmp_path: Path, change: Any, message: str) -> None:
    made = make()
    made.X = made.X.tocsc()
    with pytest.raises(penstock.InvalidArgumentError, match=message):
        penstock.import_anndata(broken(tmp_path, change, made), tmp_path / "d")
    assert not list((tmp_path / "d").glob(".partial-transposed*"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"obs": ["plait"]}, "obs has no plait: there are plate, score"),
        ({"obs": ["plate", "plate"]}, "a name is there twice"),
        ({"obs": "plate"}, "a list of names is wanted"),
        ({"obsm": ["X_tsne"]}, "obsm has no X_tsne: there are X_pca, image"),
        ({"layers": ["no"]}, "layers/no: there is no such matrix"),
        ({"layers": ["gene"]}, "the name of another field"),
        ({"x": "Y"}, "must be 'X', 'raw' or 'layers/NAME'"),
        ({"x": "raw"}, "raw/X: there is no such matrix"),
        ({"join": "left"}, "join='left'"),
        ({"workers": 0}, "workers=0"),
        ({"format": "mds"}, "format='mds'"),
        ({"format": "zarr"}, "cannot be read as zarr"),
    ],
)
def test_options_that_cannot_be(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    path = write(make(), tmp_path / "a.h5ad")
    with pytest.raises(penstock.InvalidArgumentError, match=message.replace("X_pca, image", "X_pca")):
        penstock.import_anndata(path, tmp_path / "d", **options)


def test_files_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(penstock.NotFoundError, match="no such file"):
        penstock.import_anndata(tmp_path / "no.h5ad", tmp_path / "d")
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(penstock.InvalidArgumentError, match=r"neither \.h5ad nor \.zarr"):
        penstock.import_anndata(tmp_path / "a.txt", tmp_path / "d")
    (tmp_path / "a.h5ad").write_text("x")
    with pytest.raises(penstock.InvalidArgumentError, match="cannot be read as h5ad"):
        penstock.import_anndata(tmp_path / "a.h5ad", tmp_path / "d")
    made = make()
    made.obs["plate"] = np.arange(CELLS)
    paths = [write(make(), tmp_path / "b.h5ad"), write(made, tmp_path / "c.h5ad")]
    with pytest.raises(penstock.InvalidArgumentError, match="obs/plate is numbers in one input and strings in another"):
        penstock.import_anndata(paths, tmp_path / "d")


def test_integers_with_missing_ones_that_no_float_holds_are_refused(tmp_path: Path) -> None:
    made = make()
    made.obs["big"] = pandas.array([(1 << 53) + 1, None] * (CELLS // 2), dtype="Int64")
    made.obs["mid"] = pandas.array([(1 << 24) + 1, None] * (CELLS // 2), dtype="Int64")
    path = write(made, tmp_path / "a.h5ad")
    with pytest.raises(penstock.InvalidArgumentError, match=r"obs/big: values are missing, and 9,007,199,254,740,993"):
        penstock.import_anndata(path, tmp_path / "d")
    penstock.import_anndata(path, tmp_path / "e", obs=["mid"])
    assert penstock.open(tmp_path / "e").columns["mid"].dtype == np.float64


# --- the command


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
    assert json.loads(capsys.readouterr().out) == {"path": str(tmp_path / "b.h5ad"), "cells": CELLS, "genes": GENES}
    assert main(["import", str(tmp_path / "no.h5ad"), "--out", str(tmp_path / "e")]) == 2
    assert "no such file" in capsys.readouterr().err
    assert main([*arguments, "--workers", "1"]) == 2
    assert "holds a dataset already" in capsys.readouterr().err


_MEASURE = """
import resource, sys
import penstock
from penstock._anndata import importing, matrices, work
for module in (importing, matrices, work):
    module.AT_ONCE = 1 << 16
small, large, out = sys.argv[1:]
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
penstock.import_anndata(small, out + "-small")
before = peak()
penstock.import_anndata(large, out)
print(peak() - before)
"""


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
def test_memory_does_not_grow_with_the_input(tmp_path: Path, kind: str) -> None:
    def of(cells: int) -> Any:
        counts = make_counts(cells, 2_000, density=0.05)
        return anndata.AnnData({"csr": counts, "csc": counts.tocsc(), "dense": counts.toarray()}[kind])

    small, large = write(of(300), tmp_path / "small.h5ad"), write(of(30_000), tmp_path / "large.h5ad")
    size = large.stat().st_size / (1 << 20)  # 24 to 240 MiB
    command = [sys.executable, "-c", _MEASURE, str(small), str(large), str(tmp_path / "d")]
    grown = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert grown < size / 2, f"{grown:.0f} MiB for a file of {size:.0f} MiB"
    assert penstock.open(tmp_path / "d").spans == 30_000
