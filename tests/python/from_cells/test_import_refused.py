"""What no import takes: one clear error, before or at the cell that has it."""

from __future__ import annotations

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

from _anndata_files import CELLS, GENES, broken, make, make_counts, put, write  # noqa: E402
from penstock._data.anndata.limits import Limits  # noqa: E402
from penstock._from.cells import recipe  # noqa: E402

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
    assert not list((tmp_path / "d").glob(".partial*"))


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


def delete(name: str) -> Any:
    def change(file: Any) -> None:
        del file[name]

    return change


def as_array(name: str) -> Any:
    def change(file: Any) -> None:
        del file[name]
        file[name] = np.arange(3)

    return change


def as_group(name: str) -> Any:
    def change(file: Any) -> None:
        del file[name]
        file.create_group(name)

    return change


def as_scalar(name: str) -> Any:
    def change(file: Any) -> None:
        attributes = dict(file[name].attrs)
        del file[name]
        file[name] = 3
        file[name].attrs.update(attributes)

    return change


def forget_shape(file: Any) -> None:
    del file["X"].attrs["shape"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (delete("X/data"), r"there is no X/data"),
        (delete("X/indices"), r"there is no X/indices"),
        (delete("X/indptr"), r"there is no X/indptr"),
        (as_group("X/data"), r"X/data is a group, an array is wanted"),
        (as_scalar("X/indptr"), r"X/indptr: \[\] of int64"),
        (forget_shape, r"X: \[\] of float32: numbers of two axes are wanted"),
        (delete("obs/_index"), r"obs has no index"),
        (as_scalar("obs/_index"), r"obs/_index: shape \[\], one axis is wanted"),
        (as_group("obs/_index"), r"obs/_index is a group"),
        (delete("obs/plate/categories"), r"there is no obs/plate/categories"),
        (delete("obs/plate/codes"), r"there is no obs/plate/codes"),
        (delete("obs/some/mask"), r"there is no obs/some/mask"),
        (delete("obs/some/values"), r"there is no obs/some/values"),
        (as_array("obs/some/mask"), r"obs/some/mask: shape \[3\], of the values \[400\]"),
        (as_scalar("obs/plate/codes"), r"obs/plate has -1 values for 400 rows"),
        (as_array("obsm"), r"obsm is an array, a group is wanted"),
        (as_array("layers"), r"layers is an array, a group is wanted"),
        (as_array("var"), r"var has the layout of an anndata before 0\.7"),
        (delete("var/kind/codes"), r"there is no var/kind/codes"),
    ],
)
def test_a_member_that_is_missing_or_of_another_kind_is_named(tmp_path: Path, change: Any, message: str) -> None:
    path = broken(tmp_path, change)
    with pytest.raises(penstock.InvalidArgumentError, match=rf"broken\.h5ad: {message}"):
        penstock.import_anndata(path, tmp_path / "d")
    assert not (tmp_path / "d").exists()


def spoil(path: Path, member: str) -> None:
    """Overwrites the first chunk of an array."""
    if path.suffix == ".zarr":
        chunk = min(each for each in (path / member).rglob("*") if each.is_file() and each.name[0] in "c0123456789")
        chunk.write_bytes(b"\xff" * chunk.stat().st_size)
        return
    with h5py.File(path, "r") as file:
        info = file[member].id.get_chunk_info(0)
    with path.open("r+b") as raw:
        raw.seek(info.byte_offset)
        raw.write(b"\xff" * info.size)


@pytest.mark.parametrize("member", ["X/data", "X/indices", "X/indptr", "obs/score", "obs/plate/codes", "obsm/X_pca"])
@pytest.mark.parametrize("store", ["a.h5ad", "2.zarr", "3.zarr"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_chunk_that_cannot_be_read_is_named(tmp_path: Path, member: str, store: str, workers: int) -> None:
    if workers == 2 and member not in ("X/data", "X/indices"):
        return  # read by this process alone
    if store.endswith("zarr"):
        anndata.settings.zarr_write_format = int(store[0])
    path = write(make(), tmp_path / store, **({} if store.endswith("zarr") else {"compression": "gzip"}))
    spoil(path, member)
    message = rf"{store}: {member} \[[\d,]+, [\d,]+\) cannot be read"
    with pytest.raises(penstock.CorruptionError, match=message):
        penstock.import_anndata(path, tmp_path / "d", obsm=["X_pca"], workers=workers)
    assert not (tmp_path / "d" / "dataset.json").exists()


def test_a_layer_that_would_come_back_as_the_counts_is_refused(tmp_path: Path) -> None:
    made = make()
    made.layers["X"] = made.X * 2
    path = write(made, tmp_path / "a.h5ad")
    with pytest.raises(penstock.InvalidArgumentError, match="the layer X: rename it, or take it as x="):
        penstock.import_anndata(path, tmp_path / "d", layers=["X"])
    penstock.import_anndata(path, tmp_path / "d", x="layers/X")
    assert (penstock.open(tmp_path / "d").to_anndata().X != made.X * 2).nnz == 0
    for name in ("count", "a/b", ""):
        with pytest.raises(penstock.InvalidArgumentError, match="layers="):
            penstock.import_anndata(path, tmp_path / "e", layers=[name])


def rename(group: str, old: str, new: str) -> Any:
    def change(file: Any) -> None:
        file.move(f"{group}/{old}", f"{group}/{new}")
        order = [new if name == old else name for name in file[group].attrs["column-order"]]
        file[group].attrs["column-order"] = order

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (rename("var", "length", "n" * 300), "names have 1 to 255 bytes"),
        (rename("obs", "score", "n" * 300), "names have 1 to 255 bytes"),
        (put("var/_index", 3, ""), "feature 3 has no name"),
    ],
)
def test_what_no_writer_takes_is_refused_before_counts_are_looked_at(tmp_path: Path, change: Any, message: str) -> None:
    seen: list[str] = []
    with pytest.raises(penstock.InvalidArgumentError, match=message):
        penstock.import_anndata(
            broken(tmp_path, change), tmp_path / "d", preparing=lambda what, done, total: seen.append(what)
        )
    assert seen == []
    assert not (tmp_path / "d").exists()


def test_values_too_wide_for_a_column_are_refused_before_counts_are_looked_at(tmp_path: Path) -> None:
    made = make(make_counts(4))
    made.obsm["wide"] = np.zeros((4, 1 << 18, 2), "f4")
    seen: list[str] = []
    with pytest.raises(penstock.InvalidArgumentError, match="column wide"):
        penstock.import_anndata(
            write(made, tmp_path / "a.h5ad"),
            tmp_path / "d",
            obsm=["wide"],
            preparing=lambda what, done, total: seen.append(what),
        )
    assert seen == []


BIG = (1 << 53) + 1


@pytest.mark.parametrize(
    ("one", "other", "dtype"),
    [
        (np.array([BIG, 2, 3]), np.array([0.5, 2, 3]), None),
        (np.array([BIG, 2, 3]), np.array([1, 2, 3], "u8"), None),
        (np.array([1 << 60, 2, 3]), np.array([0.5, 2, 3]), "f8"),
        (np.array([BIG, 2, 3]), np.array([1, 2, 3], "i2"), "i8"),
        (np.array([1, 2, 3], "u8"), np.array([-1, 2, 3]), "f8"),
        (pandas.array([BIG, 2, 3], dtype="Int64"), np.array([0.5, 2, 3]), None),
        (np.array([True, False, True]), np.array([3, 2, 3], "i2"), "i2"),
        (np.array([1, 2, 3], "i2"), np.array([0.5, 2, 3], "f4"), "f4"),
        (np.array([1, 2, 3], "i4"), np.array([0.5, 2, 3], "f4"), "f8"),
    ],
)
def test_integers_beside_floats_are_exact_or_refused(tmp_path: Path, one: Any, other: Any, dtype: Any) -> None:
    counts = sparse.csr_matrix(np.eye(3, dtype="f4"))
    for order in (1, -1):
        paths = []
        for at, values in enumerate((one, other)[::order]):
            made = anndata.AnnData(counts, obs=pandas.DataFrame({"n": values}, index=list("abc")))
            paths.append(write(made, tmp_path / f"{at}.h5ad"))
        if dtype is None:
            with pytest.raises(penstock.InvalidArgumentError, match="obs/n: 9,007,199,254,740,993 is exact in no"):
                penstock.import_anndata(paths, tmp_path / "no")
            continue
        penstock.import_anndata(paths, tmp_path / f"d{order}")
        column = penstock.open(tmp_path / f"d{order}").columns["n"]
        assert column.dtype == np.dtype(dtype)
        assert column[:].astype(object).tolist() == [*(one, other)[::order][0], *(one, other)[::order][1]]


@pytest.mark.parametrize(("big", "dtype"), [(BIG, None), (1 << 60, "f8")])
def test_integers_of_obsm_beside_floats_are_exact_or_refused(tmp_path: Path, big: int, dtype: Any) -> None:
    paths = []
    for at, values in enumerate((np.full((400, 2), big), np.ones((400, 2), "f4"))):
        made = make()
        made.obsm["n"] = values
        paths.append(write(made, tmp_path / f"{at}.h5ad"))
    if dtype is None:
        with pytest.raises(penstock.InvalidArgumentError, match=r"obsm/n: 9,007,199,254,740,993 is exact in no float"):
            penstock.import_anndata(paths, tmp_path / "d", obsm=["n"])
    else:
        penstock.import_anndata(paths, tmp_path / "d", obsm=["n"])
        assert int(penstock.open(tmp_path / "d").columns["n"][0][0]) == big


def test_a_count_that_no_float_holds_is_seen_behind_negative_ones(tmp_path: Path) -> None:
    values = np.full(3_000, -(1 << 30) - 1)
    values[-1] = BIG
    counts = sparse.csr_matrix((values, np.arange(3_000) % 10, np.arange(0, 3_001, 10)), (300, 10))
    path = write(anndata.AnnData(counts), tmp_path / "a.h5ad")
    with pytest.raises(penstock.InvalidArgumentError, match=r"X: the count 9,007,199,254,740,993 is exact in no float"):
        penstock.import_anndata(path, tmp_path / "d")


@pytest.mark.parametrize(
    ("parts", "dtype"),
    [
        ([np.array([1, 2, 3], "i2"), np.array([1, 2, 3], "i2")], "i2"),
        ([np.array([1, 2, 3], "i2"), np.array([1, 2, 3], "i4")], "i4"),
        ([np.array([1, 2, 3], "i2"), np.array([1, 2, 3], "u2"), np.array([1, 2, 3], "f4")], "f4"),
        ([np.array([1, 0, 1], bool), np.array([1, 0, 1], bool)], "?"),
        ([np.array([1, 0, 1], bool), np.array([1, 0, 1], "u1")], "u1"),
        ([np.array([1, 2, 3], "f4"), np.array([1, 2, 3], "f4")], "f4"),
        ([np.array([1, 2, 3], "i8"), np.array([1, 2, 3], "f4")], "f8"),
        ([np.array([BIG, 2, 3], "i8"), np.array([BIG - 1, 2, 3], "f8")], None),
        ([np.array([BIG, 2, 3], "i8"), np.array([BIG, 2, 3], "u8")], None),
    ],
)
def test_var_of_several_inputs_has_their_common_type(tmp_path: Path, parts: list[Any], dtype: Any) -> None:
    for order in (1, -1):
        paths = []
        for at, values in enumerate(parts[::order]):
            var = pandas.DataFrame({"n": values}, index=list("abc"))
            made = anndata.AnnData(sparse.csr_matrix(np.eye(2, 3, dtype="f4")), var=var)
            paths.append(write(made[:, ::-1].copy() if at else made, tmp_path / f"{at}.h5ad"))
        done = penstock.import_anndata(paths, tmp_path / "d", join="outer", overwrite=True)
        features = penstock.open(tmp_path / "d").features
        assert features is not None
        if dtype is None:
            assert "var/n (inputs differ)" in done.left_out and "n" not in features.columns
            continue
        assert features.columns["n"].dtype == np.dtype(dtype)
        assert features.columns["n"][:].tolist() == parts[0].tolist()
