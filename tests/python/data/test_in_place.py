"""An .h5ad file opened where it lies, against what anndata reads of it."""

from __future__ import annotations

import json
import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _refused import refused

anndata = pytest.importorskip("anndata")
h5py = pytest.importorskip("h5py")
pandas = pytest.importorskip("pandas")
sparse = pytest.importorskip("scipy.sparse")
pytest.importorskip("torch")

from penstock._cli.main import main  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*ImplicitModificationWarning.*")
CELLS, GENES = 300, 80


def make(seed: int = 0, cells: int = CELLS, dtype: str = "f4", empty: bool = True) -> Any:
    random = np.random.default_rng(seed)
    x = sparse.random(cells, GENES, 0.2, format="csr", dtype="f4", random_state=seed)
    x.data = np.ceil(x.data * 9)
    if empty:
        x[3] = 0
        x.eliminate_zeros()
    x.data = x.data.astype(dtype)
    some = pandas.array(random.integers(0, 9, cells), dtype="Int32")
    some[1::3] = pandas.NA
    obs = pandas.DataFrame(
        {
            "plate": pandas.Categorical(random.choice(["p7", "p2", None], cells), ["p2", "p9", "p7"]),
            "score": random.random(cells).astype("f4"),
            "flag": random.random(cells) < 0.5,
            "number": np.arange(cells),
            "line": random.choice(["A549", "MCF7"], cells),
            "some": some,
            "all": pandas.array(np.arange(cells), dtype="UInt16"),
        },
        index=[f"cell {i}" for i in range(cells)],
    )
    var = pandas.DataFrame({"length": np.arange(GENES)}, index=[f"g{i}" for i in range(GENES)])
    return anndata.AnnData(x, obs=obs, var=var)


def write(made: Any, path: Path, layout: str = "chunked") -> Path:
    """As anndata writes it, or with arrays of X of another layout."""
    made.write_h5ad(path)
    if layout == "chunked":
        return path
    with h5py.File(path, "r+") as file:
        for name in ("data", "indices"):
            array = file["X"][name]
            values = array[:].astype({"wide": {"indices": "i8"}.get(name, array.dtype)}.get(layout, array.dtype))
            attributes = dict(array.attrs)
            del file["X"][name]
            chunks = None if layout == "contiguous" else (7,) if name == "data" else (11,)
            file["X"].create_dataset(name, data=values, chunks=chunks).attrs.update(attributes)
    return path


@pytest.fixture(scope="module")
def made() -> Any:
    return make()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, made: Any) -> Path:
    return write(made, tmp_path_factory.mktemp("in place") / "cells.h5ad")


def dense(view: penstock.View, indices: Any = None) -> Any:
    return np.asarray(view.read(range(len(view)) if indices is None else indices).csr.todense())


@pytest.mark.parametrize(
    ("layout", "dtype"),
    [
        *(("chunked", dtype) for dtype in ("f4", "f8", "f2", "u1", "i2", "u2", "i4", "i8", "u8", "b1")),
        *((layout, dtype) for layout in ("contiguous", "little chunks", "wide") for dtype in ("f4", "i8")),
    ],
)
def test_cells_are_the_matrix(tmp_path: Path, layout: str, dtype: str) -> None:
    made = make(dtype=dtype)
    dataset = penstock.open(write(made, tmp_path / "a.h5ad", layout))
    assert (dataset.kind, dataset.spans, dataset.records) == ("h5ad", CELLS, made.X.nnz)
    made.X.data = made.X.data.astype("f8")  # SciPy has no half floats
    expected = made.X.toarray()
    wanted = penstock.cells.Csr("float64")
    np.testing.assert_array_equal(dense(dataset.cells(wanted)), expected)
    chosen = np.random.default_rng(1).permutation(CELLS)[:50]
    np.testing.assert_array_equal(dense(dataset.cells(wanted, genes=["g7", "g2"]), chosen), expected[chosen][:, [7, 2]])
    batch = dataset.documents().read(chosen)
    assert batch["gene"].dtype == np.uint32
    assert batch["count"].dtype == {"b1": "u1", "i8": "f8", "u8": "f8"}.get(dtype, dtype)
    rows = sparse.csr_matrix((batch["count"].astype("f8"), batch["gene"].astype("i4"), batch.offsets), (50, GENES))
    np.testing.assert_array_equal(rows.toarray(), expected[chosen])
    refused("fields", getattr, batch, "records", error=penstock.Error)


def test_obs_are_columns(path: Path, made: Any) -> None:
    dataset = penstock.open(path)
    columns = dataset.columns
    assert list(columns) == ["plate", "score", "flag", "number", "line", "some", "all"]
    assert columns["plate"].categories == ["p2", "p9", "p7"]
    assert columns["plate"][:].tolist() == made.obs["plate"].cat.codes.tolist()
    for name in ("score", "flag", "number", "all"):
        assert columns[name][:].tolist() == made.obs[name].tolist()
    lines = columns["line"].categories
    assert lines is not None
    assert [lines[code] for code in columns["line"][:]] == made.obs["line"].tolist()
    np.testing.assert_array_equal(columns["some"][:], made.obs["some"].to_numpy("f4", na_value=np.nan))
    assert columns["number"][[7, 5, 7]].tolist() == [7, 5, 7]
    names = ["score", "plate", "some"]
    loader = penstock.Loader(dataset.cells(columns=names), batch_size=32, epochs=1, framework="numpy")
    for batch in loader:
        valid = batch.valid
        for name in names:
            np.testing.assert_array_equal(batch.columns[name][valid], columns[name][batch.indices[valid]])
    assert dataset.columns.to_arrow()["number"].to_pylist() == list(range(CELLS))
    labels = columns["plate"]
    balanced = penstock.Loader(dataset.cells(), 32, order=penstock.orders.Balanced(labels, size=96), framework="numpy")
    assert np.bincount(np.concatenate([labels[next(balanced).indices] for _ in range(3)]), minlength=3)[1] == 0


def test_features_are_var(path: Path, made: Any) -> None:
    dataset = penstock.open(path)
    features = dataset.features
    assert features is not None and len(features) == GENES and "80 features" in repr(features)
    assert features.names == list(made.var_names)
    assert features.columns["length"][:].tolist() == list(range(GENES))
    features.names.reverse()
    found = dataset.cells("dense", genes=["g7"]).read(range(9))["x"]
    np.testing.assert_array_equal(found, made.X[:9, [7]].toarray())


@pytest.mark.parametrize("order", ["uniform", penstock.orders.Blocks(4, 32, 2)])
def test_all_ranks_and_restores_give_the_matrix(path: Path, made: Any, order: Any) -> None:
    view = penstock.open(path).cells(columns=["number"])
    expected = made.X.toarray()
    options = {"global_batch_size": 60, "epochs": 1, "order": order, "seed": 3, "framework": "numpy"}

    def rows_of(batch: penstock.Batch) -> list[int]:
        np.testing.assert_array_equal(np.asarray(batch.csr.todense()), expected[batch.indices])
        return batch.indices.tolist()

    loaders = [penstock.Loader(view, rank=rank, world_size=3, **options) for rank in range(3)]
    states, seen = [], []
    for parts in zip(*loaders, strict=True):
        seen.append(sorted(index for part in parts for index in rows_of(part)))
        states.append(loaders[0].state_dict())
    assert sorted(index for batch in seen for index in batch) == list(range(CELLS))
    for step, state in enumerate(states[:-1]):
        with penstock.Loader(view, rank=0, world_size=1, **options) as other:
            other.load_state_dict(state)
            assert [sorted(rows_of(batch)) for batch in other] == seen[step + 1 :]


@pytest.mark.parametrize("reader", ["pread", "uring", "direct", "mmap"])
def test_every_reader(path: Path, made: Any, reader: str) -> None:
    try:
        loader = penstock.Loader(penstock.open(path).cells(), 50, epochs=1, reader=reader, framework="numpy")
        batches = list(loader)
    except (penstock.Error, OSError) as error:
        if not any(words in str(error) for words in ("io_uring", "does not read past the page cache")):
            raise
        pytest.skip(str(error))
    for batch in batches:
        np.testing.assert_array_equal(np.asarray(batch.csr.todense()), made.X.toarray()[batch.indices])


def test_forms_are_those_of_imported_cells(tmp_path: Path, path: Path) -> None:
    penstock.import_anndata(path, tmp_path / "d")
    for form in ("dense", "ranked", "binned"):
        ours, imported = (penstock.open(each).cells(form).read(range(50)) for each in (path, tmp_path / "d"))
        for name in imported:
            np.testing.assert_array_equal(ours[name], imported[name])


def test_several_files_are_one(tmp_path: Path) -> None:
    parts = [make(seed=1), make(seed=2, cells=70)]
    paths = [write(part, tmp_path / f"{i}.h5ad") for i, part in enumerate(parts)]
    dataset = penstock.open(tmp_path / "*.h5ad")
    assert dataset.columns["number"][CELLS + 3] == 3 and dataset.features is not None
    together = penstock.concatenate([penstock.open(each) for each in paths])
    for each in (dataset, penstock.open(*paths), together, pickle.loads(pickle.dumps(dataset))):
        assert each.spans == CELLS + 70
        np.testing.assert_array_equal(dense(each.cells()), np.concatenate([part.X.toarray() for part in parts]))
    assert pickle.loads(pickle.dumps(dataset)).fingerprint == dataset.fingerprint == penstock.open(*paths).fingerprint
    other = make(seed=3)
    other.var_names = [f"h{i}" for i in range(GENES)]
    refused(
        "features differ: other genes, or the same ones in another order.*--join inner",
        penstock.open,
        paths[0],
        write(other, tmp_path / "other.h5ad.h5ad"),
    )


def test_columns_of_var_are_those_that_all_files_agree_on_as_of_an_import(tmp_path: Path) -> None:
    paths = []
    for number in range(3):
        made = make(seed=number, cells=20)
        made.var["hv"] = np.arange(GENES) % (2 if number < 2 else 3) == 0
        made.var["symbol"] = pandas.Categorical([f"s{i}" for i in range(GENES)])
        made.var["length"] = made.var["length"].astype("i4" if number else "i8")
        made.var["mean"] = np.where(np.arange(GENES) == 5, np.nan, 1.5)
        made.var["kind"] = "gene" if number else np.arange(GENES)
        if number != 1:
            made.var["some"] = 1
        paths.append(write(made, tmp_path / f"{number}.h5ad"))
    parts = [penstock.open(each) for each in paths]
    penstock.import_anndata(paths, tmp_path / "imported", obs=["number"])
    imported = penstock.open(tmp_path / "imported").features
    assert imported is not None
    expected = set(imported.columns)
    assert expected == {"length", "symbol", "mean"}
    dataset = penstock.open(*paths)
    for each in (dataset, penstock.concatenate(parts), penstock.concatenate([parts[0], penstock.open(*paths[1:])])):
        assert each.features is not None and set(each.features.columns) == expected
        assert each.features.columns["length"][:].tolist() == list(range(GENES))
        assert set(each.to_anndata([0, 45]).var.columns) == expected
    for some in (dataset.select([0, 1]), penstock.open(*paths[:2])):
        assert some.features is not None and "some" not in some.features.columns
    assert "hv" in penstock.open(*paths[:2]).features.columns  # type: ignore[union-attr]
    alone = parts[2].features
    assert alone is not None and set(alone.columns) == {*expected, "hv", "kind", "some"}


def test_what_is_not_read_in_place_says_how_to_go_on(tmp_path: Path, made: Any) -> None:
    other, path = made.copy(), tmp_path / "a.h5ad"
    for x, compression in ((made.X, "gzip"), (made.X.tocsc(), None), (made.X.toarray(), None)):
        other.X = x
        other.write_h5ad(path, compression=compression)
        refused(r"a\.h5ad: X.*penstock import.*CollectionLoader", penstock.open, path)
    for change, words in (
        ({"dtype": ">f4"}, "stored as no array of NumPy's"),
        ({"fletcher32": True, "chunks": (64,)}, "filtered"),
        ({"shuffle": True, "chunks": (64,)}, "filtered"),
    ):
        with h5py.File(write(made, path), "r+") as file:
            values = file["X/data"][:]
            del file["X/data"]
            file["X"].create_dataset("data", data=values.astype(change.pop("dtype", "f4")), **change)
        refused(f"X/data .*{words}.*penstock import", penstock.open, path)


def test_windows_and_others_are_refused(path: Path, made: Any, tmp_path: Path) -> None:
    dataset = penstock.open(path)
    refused(r"documents\(\) or cells\(\)", dataset.windows, 8)
    refused("no column", dataset.cells, columns=["none"])
    (tmp_path / "no.h5ad").write_text("this is text")
    refused("cannot be read as h5ad", penstock.open, tmp_path / "no.h5ad")
    with pytest.raises(penstock.NotFoundError):
        penstock.open(tmp_path / "gone.h5ad", format="h5ad")
    other = made.copy()
    other.var_names = ["g"] * GENES
    refused("genes 0 and 1 are both named g", penstock.open, write(other, tmp_path / "a.h5ad"))


def test_types_of_several_files_are_joined_or_columns_left_out(tmp_path: Path) -> None:
    parts = [make(seed=1, dtype="u2"), make(seed=2, dtype="f4"), make(seed=3)]
    parts[0].obs["some"] = parts[0].obs["some"].fillna(7)
    del parts[1].obs["flag"]
    for part, dtype in zip(parts, ("i8", "u8", "f8"), strict=True):
        part.obs["small"] = np.arange(CELLS).astype(dtype)
        part.obs["wide"] = (np.arange(CELLS) + 2**60).astype(dtype)
    dataset = penstock.open(*(write(part, tmp_path / f"{i}.h5ad") for i, part in enumerate(parts)))
    assert dataset.dtype is not None
    assert dataset.dtype["count"] == "f4"
    np.testing.assert_array_equal(dense(dataset.cells()), np.concatenate([part.X.toarray() for part in parts]))
    assert list(dataset.columns) == ["plate", "score", "number", "line", "some", "all", "small"]
    assert dataset.columns["small"][:].tolist() == 3 * list(range(CELLS))
    some = np.concatenate([part.obs["some"].to_numpy("f8", na_value=np.nan) for part in parts])
    np.testing.assert_array_equal(dataset.columns["some"][:], some)
    assert dataset.cells(columns=["some"]).read([3, CELLS + 1]).columns["some"].dtype == dataset.columns["some"].dtype


def test_obs_of_every_storage(tmp_path: Path) -> None:
    path = write(make(), tmp_path / "a.h5ad")
    expected = {name: column[:] for name, column in penstock.open(path).columns.items()}
    with h5py.File(path, "r+") as file:
        obs = file["obs"]

        def store(name: str, values: Any, **options: Any) -> None:
            attributes = dict(obs[name].attrs)
            del obs[name]
            obs.create_dataset(name, data=values, **options).attrs.update(attributes)

        store("score", obs["score"][:].astype(">f4"))
        store("number", obs["number"][:], chunks=(7,), compression="gzip")
        store("plate/codes", obs["plate/codes"][:].astype("i8"))
        wide = h5py.h5t.enum_create(h5py.h5t.STD_I32LE)
        wide.enum_insert(b"FALSE", 0)
        wide.enum_insert(b"TRUE", 1)
        flags = obs["flag"][:]
        del obs["flag"]
        space = h5py.h5s.create_simple((CELLS,))
        stored = h5py.h5d.create(obs.id, b"flag", wide, space)
        stored.write(h5py.h5s.ALL, h5py.h5s.ALL, flags.astype("i4"), mtype=wide)
        obs["flag"].attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
    dataset = penstock.open(path)
    for name, values in expected.items():
        np.testing.assert_array_equal(dataset.columns[name][:], values, err_msg=name)
    batch = dataset.cells(columns=list(expected)).read([5, 200])
    for name, values in expected.items():
        np.testing.assert_array_equal(batch.columns[name], values[[5, 200]], err_msg=name)
    with h5py.File(path, "r+") as file:
        file["obs/plate/codes"][3] = 2**32
    refused(r"a\.h5ad: obs/plate: code 4294967296 of 3 categories", penstock.open, path, error=penstock.Error)


def test_few_cells_none_and_values_beyond_doubles(tmp_path: Path) -> None:
    nothing = make(cells=4)
    nothing.X = sparse.csr_matrix((4, GENES), dtype="f4")
    view = penstock.open(write(nothing, tmp_path / "0.h5ad")).cells()
    assert view.read([0, 3]).csr.nnz == 0
    none = make(cells=4)[:0].copy()
    refused("it has no documents", penstock.open, write(none, tmp_path / "none.h5ad"))
    large = make(dtype="i8", empty=False)
    large.X.data[0] = 2**53 + 1
    view = penstock.open(write(large, tmp_path / "large.h5ad")).cells()
    refused(r"cell 0 .*beyond 2\^53", view.read, [0])
    assert len(view.read([1]).indices) == 1


def replace(group: Any, name: str, change: Any) -> None:
    """A member by what `change` makes of its values; None: by nothing."""
    values = group[name][:]
    del group[name]
    if change is not None:
        group[name] = change(values)


def put(group: Any, name: str, at: int, value: int) -> None:
    group[name][at] = value


# What is done to X of a file, and what reading its cells says; None: opening it is refused.
HARMS: dict[str, tuple[Any, str | None]] = {
    "no starts": (lambda x: replace(x, "indptr", None), None),
    "no values": (lambda x: replace(x, "data", None), None),
    "no genes": (lambda x: replace(x, "indices", None), None),
    "no shape": (lambda x: x.attrs.pop("shape"), None),
    "float starts": (lambda x: replace(x, "indptr", lambda values: values.astype("f8")), None),
    "flat": (lambda x: replace(x, "indices", lambda values: 7), None),
    "falls": (lambda x: put(x, "indptr", 7, 0), None),
    "passes": (lambda x: put(x, "indptr", -1, 1 << 20), None),
    "short": (lambda x: replace(x, "data", lambda values: values[:-3]), None),
    "gene": (lambda x: put(x, "indices", x["indptr"][10] - 1, GENES + 2), "cell 9 .*gene 82: there are 80 genes"),
    "twice": (lambda x: put(x, "indices", 1, x["indices"][0]), "cell 0 .*twice"),
    "wide": (lambda x: put(x, "indices", 1, -7), "cell 0 .*none of a gene"),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_file_that_cannot_be(tmp_path: Path, harm: str) -> None:
    path = write(make(empty=False), tmp_path / "a.h5ad", "wide" if harm == "wide" else "contiguous")
    change, words = HARMS[harm]
    with h5py.File(path, "r+") as file:
        change(file["X"])
    if words is None:
        refused(r"a\.h5ad", penstock.open, path, error=penstock.CorruptionError)
    else:
        refused(words, penstock.open(path).cells().read, range(20))


def test_a_file_that_changed_is_refused(tmp_path: Path, made: Any) -> None:
    path = write(made, tmp_path / "a.h5ad")
    dataset = penstock.open(path)
    view = dataset.cells()
    assert len(view.read([1]).indices) == 1
    held = penstock.open(path).cells()
    running = penstock.Loader(penstock.open(path).cells(), 8)
    os.utime(path, ns=(1, 1))
    for use in (
        dataset.cells,
        lambda: held.read([0]),
        lambda: view[3],
        lambda: view[:3],
        lambda: penstock.Loader(view, 8),
        lambda: dataset.features.columns,
        lambda: next(running),  # its descriptor is opened now
    ):
        refused(r"a\.h5ad: changed since it was opened", use, error=penstock.CorruptionError)
    again = penstock.open(path)
    again.cells().read([0])
    path.unlink()
    refused(r"a\.h5ad: no such file", again.cells, error=penstock.NotFoundError)


def test_another_folder_is_no_change(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(path.parent)
    dataset = penstock.open(path.name)
    monkeypatch.chdir(tmp_path)
    dataset.check_in_place()
    assert len(dataset.cells("csr").read([0, 1]).indices) == 2


def test_files_are_told_apart_by_their_ends(tmp_path: Path) -> None:
    made = make(cells=2_000)
    first = penstock.open(write(made, tmp_path / "a.h5ad", "contiguous")).fingerprint
    made.X.data[-1] += 1
    assert penstock.open(write(made, tmp_path / "b.h5ad", "contiguous")).fingerprint != first


def test_only_what_is_used_is_read(tmp_path: Path) -> None:
    path = write(make(cells=20_000), tmp_path / "a.h5ad")

    def read_bytes() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    view = penstock.open(path).cells(columns=["number"])
    view.read([0])
    before = read_bytes()
    view.read([5, 10_000, 17_000])
    # Three cells of about 16 values of 8 bytes, three numbers, and what looking at /proc reads.
    assert read_bytes() - before < 3 * 40 * 8 + 3 * 4096 + 2_000 < path.stat().st_size / 100


def test_cells_come_out_as_anndata_and_the_command_line_shows_them(
    path: Path, made: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    again = penstock.open(path).to_anndata([4, 2, 9])
    np.testing.assert_array_equal(again.X.toarray(), made.X.toarray()[[4, 2, 9]])
    assert list(again.var_names) == list(made.var_names)
    assert again.obs["number"].tolist() == [4, 2, 9]
    assert main(["info", str(path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["kind"], said["spans"], said["size_bytes"]) == ("h5ad", CELLS, path.stat().st_size)
    assert main(["show", str(path), "7"]) == 0
    shown = capsys.readouterr().out
    assert "document 7" in shown and f"gene: g{np.sort(made.X[7].indices)[0]} " in shown
    out = path.parent / "again.h5ad"
    assert main(["export", str(path), "--to", "h5ad", "--out", str(out)]) == 0
    assert "note: of .h5ad files in place only X, obs and var are read" in capsys.readouterr().out
    assert list(anndata.read_h5ad(out).obs_names[:2]) == ["0", "1"]  # as it is said
    assert repr(penstock.open(path)).startswith(f"Dataset('{path}', h5ad, stream, {CELLS} cells of {GENES} genes, ")
    assert main(["query", str(path), "select count(*) as n from documents where number < 5"]) == 0
    assert "5" in capsys.readouterr().out


@pytest.mark.parametrize("x", ["layers/counts", "raw"])
def test_another_matrix_is_chosen(tmp_path: Path, x: str) -> None:
    made = make(empty=False)
    counts = made.X.copy()
    made.layers["counts"] = counts
    made.raw = made.copy()
    made = made[:, ::-1].copy()
    made.X = made.X.tocsc()
    path = write(made, tmp_path / "a.h5ad")
    dataset = penstock.open(path, x=x)
    assert dataset.features is not None
    assert dataset.features.names == list(made.raw.var_names if x == "raw" else made.var_names)
    expected = made.raw.X if x == "raw" else made.layers["counts"]
    np.testing.assert_array_equal(dense(dataset.cells()), expected.toarray())
    again = pickle.loads(pickle.dumps(dataset))
    np.testing.assert_array_equal(dense(again.cells()), expected.toarray())
    assert dataset.features.columns["length"].shape == (GENES,)
    with pytest.raises(penstock.InvalidArgumentError, match="X is compressed columns; only"):
        penstock.open(path)
    with pytest.raises(penstock.InvalidArgumentError, match=r"layers/no is not there \(there are layers counts\)"):
        penstock.open(path, x="layers/no")
    with pytest.raises(penstock.InvalidArgumentError, match="x='counts': must be 'X', 'raw' or 'layers/NAME'"):
        penstock.open(path, x="counts")
    np.zeros(20, "u2").tofile(tmp_path / "a.bin")
    with pytest.raises(penstock.InvalidArgumentError, match=r"is of \.h5ad and \.h5mu files, this is raw"):
        penstock.open(tmp_path / "a.bin", dtype="u2", x=x)


def test_fractions_where_counts_are_wanted_are_warned_of(tmp_path: Path) -> None:
    made = make(empty=False)
    made.layers["counts"] = made.X.copy()
    made.X = made.X.log1p()
    path = write(made, tmp_path / "a.h5ad")
    dataset = penstock.open(path)
    for form, options in (("csr", {"normalize": 1e4}), ("csr", {"log1p": True}), ("ranked", {}), ("binned", {})):
        with pytest.warns(UserWarning, match=r'have fractions.*open the file with x="layers/NAME"') as told:
            dataset.cells(form, **options)
        assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset.cells("csr")
        penstock.open(path, x="layers/counts").cells("ranked")


def test_counts_beside_normalised_values_are_warned_of(tmp_path: Path) -> None:
    made = make(empty=False)
    made.layers["counts"] = made.X.copy()
    counts = write(made, tmp_path / "a.h5ad")
    made.X = made.X.log1p()
    normalised, too = write(made, tmp_path / "b.h5ad"), write(made, tmp_path / "c.h5ad")
    words = r"b\.h5ad and 1 more: X has fractions.*in .*a\.h5ad it has none.*\(there are: layers/counts\)"
    with pytest.warns(UserWarning, match=words) as told:
        penstock.open(counts, normalised, too)
    assert len(told) == 1 and told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        penstock.open(normalised, too)
        penstock.open(counts, normalised, x="layers/counts")


@pytest.mark.parametrize("block", [512, 1 << 16])
@pytest.mark.parametrize("ones", [False, True])
def test_values_behind_a_user_block_are_found_by_a_few_of_them(tmp_path: Path, block: int, ones: bool) -> None:
    made = make(cells=6_000)  # 96,000 values
    if ones:
        made.X.data[:] = 1
    with h5py.File(tmp_path / "a.h5ad", "w", userblock_size=block) as file:
        anndata.io.write_elem(file, "/", made)
    dataset = penstock.open(tmp_path / "a.h5ad")
    assert (dataset.cells().read(range(6_000)).csr != made.X).nnz == 0
    assert dataset.columns["number"][:].tolist() == made.obs["number"].tolist()


def test_a_user_block_is_no_reason_to_read_an_array_whole(tmp_path: Path) -> None:
    from penstock._data.anndata.hdf5_child import Child

    reads: list[int] = []

    class Noted:
        """An array that notes how much of it is read."""

        def __init__(self, array: Any) -> None:
            self._array = array

        def __getattr__(self, name: str) -> Any:
            return getattr(self._array, name)

        def __getitem__(self, key: slice) -> Any:
            found = self._array[key]
            reads.append(len(found))
            return found

    with h5py.File(tmp_path / "a.h5", "w", userblock_size=512) as file:
        file["values"] = np.arange(1 << 20)
        offset = file["values"].id.get_offset()
    with h5py.File(tmp_path / "a.h5", "r") as file:
        shift = Child(h5py, np)._shift(Noted(file["values"]), np.array([offset]), 1 << 20)
        raw = (tmp_path / "a.h5").read_bytes()
        at = offset + shift
        assert np.frombuffer(raw[at : at + 80], "<i8").tolist() == list(range(10))
    assert sum(reads) <= 1 << 13
