"""Collection.from_anndatas: stores of AnnData side by side, against anndata.concat of the same."""

from __future__ import annotations

import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock._load.collections import cell_stores

anndata = pytest.importorskip("anndata")
pandas = pytest.importorskip("pandas")
sparse = pytest.importorskip("scipy.sparse")
zarr = pytest.importorskip("zarr")
numcodecs = pytest.importorskip("numcodecs")
h5py = pytest.importorskip("h5py")

CELLS, GENES = 60, 40


def make(seed: int, names: Any = None, dense: bool = False) -> Any:
    random = np.random.default_rng(seed)
    x = sparse.random(CELLS, GENES, 0.2, format="csr", dtype="f4", random_state=seed)
    x.data = np.ceil(x.data * 9)
    obs = pandas.DataFrame(
        {
            "plate": pandas.Categorical([f"p{seed}"] * CELLS),
            "score": random.random(CELLS),
            "some": pandas.array([1, None] * (CELLS // 2), dtype="Int64"),
        },
        index=[f"{seed}-{i}" for i in range(CELLS)],
    )
    made = anndata.AnnData(x.toarray() if dense else x, obs=obs)
    made.var_names = names or [f"g{i}" for i in range(GENES)]
    made.layers["twice"] = x * 2
    made.obsm["X_pca"] = random.random((CELLS, 3)).astype("f4")
    made.raw = made.copy()
    return made


def write(made: Any, path: Path, kind: str) -> Path:
    """As a store of this kind, by anndata and zarr themselves."""
    if kind.startswith("h5ad"):
        made.write_h5ad(path, compression="gzip" if kind == "h5ad gzip" else None)
        return path
    version, *how = kind.split()[1:]
    anndata.settings.zarr_write_format = int(version)
    group = zarr.open_group(path, mode="w", zarr_format=int(version))
    options: dict[str, Any] = {}
    if how == ["sharded"]:
        options = {"shards": (64,), "chunks": (16,)}
    elif how == ["plain"]:
        options = {"compressors": None} if version == "3" else {"compressor": None}
    elif how == ["lz4"]:
        options = {"compressor": numcodecs.LZ4()}
    elif how == ["blosc"]:
        options = {"compressors": zarr.codecs.BloscCodec(cname="zstd")}

    def each(write: Any, store: Any, key: str, element: Any, dataset_kwargs: Any, iospec: Any) -> None:
        is_x = key.endswith("/X") or key == "X"
        write(store, key, element, dataset_kwargs=options if is_x and sparse.issparse(element) else {})

    anndata.experimental.write_dispatched(group, "/", made, callback=each)
    zarr.consolidate_metadata(group.store)
    return path


KINDS = [
    "h5ad",
    "h5ad gzip",
    "zarr 2",
    "zarr 2 lz4",
    "zarr 2 plain",
    "zarr 3",
    "zarr 3 sharded",
    "zarr 3 plain",
    "zarr 3 blosc",
]


def same(batch: Any, expected: Any) -> None:
    x = batch.X.toarray() if sparse.issparse(batch.X) else batch.X
    wanted = expected.X.toarray() if sparse.issparse(expected.X) else np.asarray(expected.X)
    np.testing.assert_array_equal(x, wanted)
    pandas.testing.assert_frame_equal(batch.obs, expected.obs)


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_gives_its_cells(tmp_path: Path, kind: str) -> None:
    made = make(0)
    path = write(made, tmp_path / ("a.h5ad" if kind.startswith("h5ad") else "a.zarr"), kind)
    cells = penstock.Collection.from_anndatas(path, layers=["twice"], obsm=["X_pca"])
    assert cells.shape == made.shape and len(cells) == CELLS
    random = np.random.default_rng(0)
    for wanted in (np.arange(CELLS), random.permutation(CELLS)[:17], [5], [3, 3, 1], slice(4, 50, 3), np.zeros(0, int)):
        batch, expected = cells[wanted], made[wanted]
        np.testing.assert_array_equal(batch.X.toarray(), expected.X.toarray())
        np.testing.assert_array_equal(batch.layers["twice"].toarray(), expected.layers["twice"].toarray())
        np.testing.assert_array_equal(batch.obsm["X_pca"], expected.obsm["X_pca"])
        assert batch.obs_names.tolist() == expected.obs_names.tolist()
    assert batch.X.dtype == np.float32
    raw = penstock.Collection.from_anndatas(path, x="raw")
    np.testing.assert_array_equal(raw[[7, 2]].X.toarray(), made.X[[7, 2]].toarray())
    layer = penstock.Collection.from_anndatas(path, x="layers/twice")
    np.testing.assert_array_equal(layer[[7, 2]].X.toarray(), 2 * made.X[[7, 2]].toarray())


@pytest.mark.parametrize("join", ["exact", "inner", "outer"])
@pytest.mark.parametrize("dense", [False, True, "one"])
def test_several_are_what_anndata_concatenates(tmp_path: Path, join: str, dense: Any) -> None:
    names = None if join == "exact" else [f"g{i}" for i in range(GENES + 4, 4, -1)]
    made = [make(0, dense=dense is True), make(1, names, dense=bool(dense)), make(2, dense=dense is True)]
    stores = [write(made[0], tmp_path / "a.h5ad", "h5ad"), write(made[1], tmp_path / "b.zarr", "zarr 3"), made[2]]
    cells = penstock.Collection.from_anndatas(stores, join=join)
    expected = anndata.concat(made, join="inner" if join == "exact" else join)
    assert cells.var_names.tolist() == expected.var_names.tolist()
    same(cells[:], expected)
    wanted = np.random.default_rng(0).permutation(len(cells))[:50]
    batch = cells[wanted]
    same(batch, _rows(expected, wanted))
    assert batch.codes["plate"].tolist() == expected.obs["plate"].cat.codes.to_numpy()[wanted].tolist()
    assert batch.to_anndata(cells.var).shape == (50, cells.shape[1])


def _rows(expected: Any, wanted: Any) -> Any:
    """Without anndata's subset, which leaves out categories that do not occur."""

    class Rows:
        X = expected.X[wanted]
        obs = expected.obs.iloc[wanted]

    return Rows


def open_two(folder: str) -> penstock.Collection:
    return penstock.Collection.from_anndatas([f"{folder}/a.h5ad", f"{folder}/b.zarr"])


@pytest.mark.parametrize("processes", [0, 2])
def test_a_loader_gives_all_cells_and_goes_on_from_a_state(tmp_path: Path, processes: int) -> None:
    made = [make(0), make(1)]
    write(made[0], tmp_path / "a.h5ad", "h5ad"), write(made[1], tmp_path / "b.zarr", "zarr 2")
    expected = anndata.concat(made)
    cells = open_two(str(tmp_path))
    options: dict[str, Any] = {"batch_size": 16, "seed": 3, "epochs": 1, "order": penstock.orders.Blocks(4, 32)}
    found, last = np.zeros((2 * CELLS, GENES), "f4"), np.zeros(0)
    with penstock.CollectionLoader(cells, processes=processes, **options) as loader:
        state = loader.state_dict()
        for number, batch in enumerate(loader):
            indices = loader.info.indices
            found[indices] = batch.X.toarray()
            assert batch.obs.index.tolist() == expected.obs_names[indices].tolist()
            assert batch.codes["plate"].tolist() == (indices >= CELLS).astype(int).tolist()
            assert batch.obs["plate"].cat.categories.tolist() == ["p0", "p1"]
            state = loader.state_dict() if number == 2 else state
            last = indices if number == 3 else last
    np.testing.assert_array_equal(found, expected.X.toarray())
    with penstock.CollectionLoader(open_two(str(tmp_path)), **options) as again:
        again.load_state_dict(state)
        next(again)
        assert again.info.indices.tolist() == last.tolist()
    copy = pickle.loads(pickle.dumps(cells))
    np.testing.assert_array_equal(copy[[100, 3]].X.toarray(), cells[[100, 3]].X.toarray())


def test_what_cannot_be_is_refused_in_words(tmp_path: Path) -> None:
    open_all = penstock.Collection.from_anndatas
    one = write(make(0), tmp_path / "a.h5ad", "h5ad")
    other = write(make(1, [f"h{i}" for i in range(GENES)]), tmp_path / "b.h5ad", "h5ad")
    columns = make(2)
    columns.X = columns.X.tocsc()
    csc = write(columns, tmp_path / "c.h5ad", "h5ad")
    for match, arguments, options in (
        ("give at least one", ([],), {}),
        ("have other genes", ([one, other],), {}),
        ("no gene is in all of", ([one, other],), {"join": "inner"}),
        ("compressed columns", (csc,), {}),
        (r"no layers/no: there are \"twice\"", (one,), {"x": "layers/no"}),
        (r"obs has no \"no\": there are \"plate\"", (one,), {"obs": ["no"]}),
        ("it has no modalities", (one,), {"modality": "rna"}),
        ("join", (one,), {"join": "left"}),
        ("a list of names", (one,), {"layers": "twice"}),
        ("a path or an AnnData", ([3],), {}),
        ("NoneType: a path or an AnnData", ([None],), {}),
        ("bytes: a path or an AnnData", ([b"a.h5ad"],), {}),
        ("AnnData in memory: modality='rna': it has no modalities", (make(0),), {"modality": "rna"}),
        ("x='Y'", (one,), {"x": "Y"}),
    ):
        with pytest.raises(penstock.InvalidArgumentError, match=match):
            open_all(*arguments, **options)
    with pytest.raises(penstock.NotFoundError, match="no such file"):
        open_all(tmp_path / "none.h5ad")
    with pytest.raises(IndexError, match="60 cells"):
        open_all(one)[[60]]


def damaged(path: Path, change: Any) -> Path:
    """A copy of an .h5ad file, changed."""
    one = write(make(0), path, "h5ad")
    with h5py.File(one, "a") as file:
        change(file)
    return one


def test_what_is_no_anndata_is_said_of_its_file(tmp_path: Path) -> None:
    open_all = penstock.Collection.from_anndatas
    invalid, corrupt = penstock.InvalidArgumentError, penstock.CorruptionError
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.h5ad").write_text("no HDF5 at all")
    (tmp_path / "table.csv").write_text("a,b")
    zarr.open_array(tmp_path / "array.zarr", mode="w", shape=(3,), dtype="i4")
    whole = write(make(0), tmp_path / "whole.h5ad", "h5ad").read_bytes()
    (tmp_path / "cut.h5ad").write_bytes(whole[: len(whole) // 3])
    with h5py.File(tmp_path / "tenx.h5", "w") as file:
        file.create_group("matrix")

    def old(file: Any) -> None:
        del file["obs"]
        file["obs"] = np.zeros(CELLS, [("index", "S4"), ("score", "f4")])

    def layers(file: Any) -> None:
        del file["layers"]
        file["layers"] = np.arange(3)

    def part(file: Any) -> None:
        del file["X/data"]

    def plain(file: Any) -> None:
        for name in list(file["var"].attrs):
            del file["var"].attrs[name]

    files = (
        ("folder", invalid, "no zarr store: an .h5ad or .h5mu file, or a zarr store of AnnData, is wanted"),
        ("text.h5ad", invalid, "it has no signature of HDF5"),
        ("table.csv", invalid, "cannot be told by its name: an .h5ad"),
        ("array.zarr", invalid, "cannot be read as a zarr store: .*: an .h5ad"),
        ("cut.h5ad", corrupt, "cut.h5ad cannot be read: .*truncated"),
        ("tenx.h5", invalid, "there is no obs: this is no AnnData .10x's .h5 files"),
        (damaged(tmp_path / "old.h5ad", old), invalid, "obs has the layout of an anndata before 0.7"),
        (damaged(tmp_path / "layers.h5ad", layers), invalid, "layers is an array, a group is wanted"),
        (damaged(tmp_path / "part.h5ad", part), corrupt, "X cannot be read: .*data"),
        (damaged(tmp_path / "plain.h5ad", plain), invalid, "var is no data frame of AnnData, but dict"),
    )
    for name, error, words in files:
        options = {"layers": ["twice"]} if "layers" in str(name) else {}
        with pytest.raises(error, match=words) as told:
            open_all([tmp_path / "whole.h5ad", tmp_path / name], **options)
        assert str(tmp_path / name) in str(told.value)
    without = make(0)
    without.raw = None
    with pytest.raises(invalid, match="AnnData in memory: there is no raw"):
        open_all(without, x="raw")
    with pytest.raises(invalid, match="AnnData in memory: there is no X"):
        open_all(anndata.AnnData(obs=without.obs, var=without.var))
    if os.geteuid():
        (tmp_path / "whole.h5ad").chmod(0)
        with pytest.raises(penstock.IoError, match=r"whole\.h5ad"):
            open_all(tmp_path / "whole.h5ad")


def test_what_is_damaged_behind_the_header_is_said_when_it_is_read(tmp_path: Path) -> None:
    path = write(make(0), tmp_path / "a.h5ad", "h5ad gzip")
    cells = penstock.Collection.from_anndatas(path)
    with h5py.File(path, "r") as file:
        at = file["X/data"].id.get_chunk_info(0).byte_offset
    with path.open("r+b") as raw:
        raw.seek(at)
        raw.write(b"\xff" * 16)
    with pytest.raises(penstock.CorruptionError, match=r"a\.h5ad: X cannot be read"):
        penstock.Collection.from_anndatas(path)[[0, 5]]
    assert len(cells) == CELLS


@pytest.mark.parametrize("chunk", [1, 7, 64, 1_000])
def test_reads_are_bounded_and_no_chunk_is_decoded_twice(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(cell_stores, "_AT_ONCE", 100)
    values = np.arange(5_000)

    class Node:
        shape, dtype, chunks = values.shape, values.dtype, (chunk,)

        def __init__(self) -> None:
            self.read: list[tuple[int, int]] = []

        def __getitem__(self, key: slice) -> Any:
            self.read.append((key.start, key.stop))
            return values[key]

    random = np.random.default_rng(chunk)
    for count in (0, 1, 3, 40, 400):
        places = np.sort(random.choice(5_001, 2 * count, replace=False)) if count else np.zeros(0, np.int64)
        begins, ends = places[::2], places[1::2]
        node = Node()
        found = cell_stores._gathered(node, begins, ends, max(10, chunk))
        expected = [values[begin:end] for begin, end in zip(begins, ends, strict=True)]
        assert found.tolist() == np.concatenate([np.zeros(0, int), *expected]).tolist()
        assert all(end - begin <= max(100, chunk) for begin, end in node.read)
        decoded = [number for begin, end in node.read for number in range(begin // chunk, (end - 1) // chunk + 1)]
        assert len(decoded) == len(set(decoded))


class InMemory:
    """MuData as far as a collection asks."""

    def __init__(self, mod: dict[str, Any]) -> None:
        self.mod = mod
        self.obs, self.var_names = mod["rna"].obs, mod["rna"].var_names


def write_mudata(folder: Path, name: str) -> tuple[Any, InMemory]:
    """The modalities rna and protein of the same cells, as MuData writes them, each an AnnData below mod."""
    protein = make(1)[:, :7].copy()
    protein.var_names, protein.obs_names = [f"CD{i}" for i in range(7)], make(0).obs_names
    made = InMemory({"rna": make(0), "protein": protein})
    if name == "memory":
        return made, made
    path = folder / name
    if name.endswith("zarr"):
        root = zarr.open_group(path, mode="w", zarr_format=2)
        for modality, each in made.mod.items():
            anndata.io.write_elem(root, f"mod/{modality}", each)
    else:
        with h5py.File(path, "w", userblock_size=512) as file:
            for modality, each in made.mod.items():
                anndata.io.write_elem(file, f"mod/{modality}", each)
    return path, made


@pytest.mark.parametrize("name", ["a.h5mu", "a.zarr", "memory"])
def test_a_modality_is_one_of_the_stores(tmp_path: Path, name: str) -> None:
    given, made = write_mudata(tmp_path, name)
    for modality in ("rna", "protein"):
        cells = penstock.Collection.from_anndatas([given], modality=modality, layers=["twice"])
        expected = made.mod[modality]
        assert cells.var_names.tolist() == expected.var_names.tolist()
        same(cells[:], expected)
        twice = expected.layers["twice"][[5, 3]].toarray()
        np.testing.assert_array_equal(cells[[5, 3]].layers["twice"].toarray(), twice)
    both = penstock.Collection.from_anndatas([given, given], modality="rna", x=["raw", "X"])
    assert len(both) == 2 * CELLS and (both[:CELLS].X != both[CELLS:].X).nnz == 0
    for wanted, words in ((None, "which modality is wanted"), ("atac", "no modality 'atac'")):
        with pytest.raises(penstock.InvalidArgumentError, match=f"{words}: modality= is one of .*protein"):
            penstock.Collection.from_anndatas([given], modality=wanted)


def test_globs_are_the_stores_that_they_match(tmp_path: Path) -> None:
    for number in (1, 0):
        write(make(number), tmp_path / f"s{number}.zarr", "zarr 3")
    both = penstock.Collection.from_anndatas(tmp_path / "s?.zarr")
    assert both.obs_names.tolist() == [f"{number}-{i}" for number in (0, 1) for i in range(CELLS)]
    assert len(penstock.Collection.from_anndatas([f"{tmp_path}/s*.zarr", make(2)])) == 3 * CELLS
    with pytest.raises(penstock.NotFoundError, match=r"t\?\.zarr: no file matches"):
        penstock.Collection.from_anndatas(f"{tmp_path}/t?.zarr")


@pytest.mark.parametrize("dense", [False, True])
def test_counts_beside_normalised_values_are_warned_of(tmp_path: Path, dense: bool) -> None:
    counts, normalised = make(0, dense=dense), make(1, dense=dense)
    normalised.X = np.log1p(normalised.X)
    paths = [write(counts, tmp_path / "a.h5ad", "h5ad"), write(normalised, tmp_path / "b.zarr", "zarr 3")]
    with pytest.warns(UserWarning, match=r"b\.zarr: X has fractions.*in .*a\.h5ad it has none.*\"twice\"") as told:
        penstock.Collection.from_anndatas(paths)
    assert len(told) == 1 and told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        penstock.Collection.from_anndatas(paths, x="layers/twice")
        penstock.Collection.from_anndatas([paths[1], normalised])
        penstock.Collection.from_anndatas([paths[0], counts])


def test_numbers_of_genes_in_narrow_types_do_not_narrow_where_rows_begin(tmp_path: Path) -> None:
    path = write(make(0), tmp_path / "a.h5ad", "h5ad")
    random = np.random.default_rng(0)
    cells, genes = 2_000, 40
    x = sparse.csr_matrix(random.integers(1, 9, (cells, genes)).astype("f4"))  # 80,000 values: more than a u2 holds
    with h5py.File(path, "w") as file:
        anndata.io.write_elem(file, "/", anndata.AnnData(x))
        del file["X/indices"]
        file["X/indices"] = x.indices.astype("u2")
    read = penstock.Collection.from_anndatas([path])[np.arange(cells)].X
    assert read.nnz == x.nnz and (read != x).nnz == 0
    with h5py.File(path, "a") as file:
        file["X/indices"][7] = genes
    with pytest.raises(penstock.CorruptionError, match="a value of gene 40 of 40"):
        penstock.Collection.from_anndatas([path])[np.arange(8)]
