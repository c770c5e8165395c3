"""What no import takes: one clear error, before or at the cell that has it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import penstock
import pytest
from _anndata_files import CELLS, GENES, anndata, as_kind, make, make_counts, pandas, put, sparse, write

BIG = (1 << 53) + 1
EXACT = "9,007,199,254,740,993 is exact in no float"


def repeat_gene(file: Any) -> None:
    file["X/indices"][1] = file["X/indices"][0]


def repeat_name(file: Any) -> None:
    file["var/_index"][4] = file["var/_index"][2]


def turned(name: str, into: str = "nothing") -> Any:
    """A change of a file by which a member goes, or is of another kind."""

    def change(file: Any) -> None:
        attributes = dict(file[name].attrs)
        del file[name]
        if into == "a group":
            file.create_group(name)
        elif into == "an array":
            file[name] = np.arange(3)
        elif into == "a scalar":
            file[name] = 3
            file[name].attrs.update(attributes)

    return change


def rename(group: str, old: str, new: str) -> Any:
    def change(file: Any) -> None:
        file.move(f"{group}/{old}", f"{group}/{new}")
        order = [new if name == old else name for name in file[group].attrs["column-order"]]
        file[group].attrs["column-order"] = order

    return change


BROKEN = [
    (repeat_gene, r"X: cell 0 \(cell 0-0\) has the gene g\d+ twice"),
    (put("X/indptr", 3, 0), r"X/indptr falls at cell 2 \(cell 0-2\): from \d+ to 0"),
    (put("X/indptr", 5, 1 << 30), r"X/indptr passes the end before cell 5 \(cell 0-5\): (1073741824 of|1,073,741,824)"),
    (put("X/indptr", 0, 1), r"indptr begins with 1, expected 0"),
    (put("X/indices", 2, GENES), rf"X: cell 0 \(cell 0-0\) has gene {GENES} of {GENES}"),
    (put("X/indices", 2, -1), rf"has gene -1 of {GENES}"),
    (repeat_name, r"genes 2 and 4 are both named g2"),
    (put("obs/plate/codes", 0, 9), r"obs/plate: code 9 of 3 categories"),
]
OF_COLUMNS = [
    (put("X/indices", 2, CELLS), rf"X: gene 0 has cell {CELLS} of {CELLS}"),
    (put("X/indptr", 3, 0), r"X/indptr falls at gene 2"),
    (repeat_gene, r"has the gene g0 twice"),
]
MISSING = [
    (turned("X/data"), r"there is no X/data"),
    (turned("X/indices"), r"there is no X/indices"),
    (turned("X/indptr"), r"there is no X/indptr"),
    (turned("X/data", "a group"), r"X/data is a group, an array is wanted"),
    (turned("X/indptr", "a scalar"), r"X/indptr: \[\] of int64"),
    (lambda file: file["X"].attrs.__delitem__("shape"), r"X: \[\] of float32: numbers of two axes are wanted"),
    (turned("obs/_index"), r"obs has no index"),
    (turned("obs/_index", "a scalar"), r"obs/_index: shape \[\], one axis is wanted"),
    (turned("obs/_index", "a group"), r"obs/_index is a group"),
    (turned("obs/plate/categories"), r"there is no obs/plate/categories"),
    (turned("obs/plate/codes"), r"there is no obs/plate/codes"),
    (turned("obs/some/mask"), r"there is no obs/some/mask"),
    (turned("obs/some/values"), r"there is no obs/some/values"),
    (turned("obs/some/mask", "an array"), r"obs/some/mask: shape \[3\], of the values \[400\]"),
    (turned("obs/plate/codes", "a scalar"), r"obs/plate has -1 values for 400 rows"),
    (turned("obsm", "an array"), r"obsm is an array, a group is wanted"),
    (turned("layers", "an array"), r"layers is an array, a group is wanted"),
    (turned("var", "an array"), r"var has the layout of an anndata before 0\.7"),
    (turned("var/kind/codes"), r"there is no var/kind/codes"),
    (turned("obs"), "there is no obs: this is no AnnData"),
    (lambda file: file["X"].attrs.__setitem__("shape", (3, 3)), "X/indptr has 401 values, expected 4"),
]
NO_WRITER = [
    (rename("var", "length", "n" * 300), "names have 1 to 255 bytes"),
    (rename("obs", "score", "n" * 300), "names have 1 to 255 bytes"),
    (put("var/_index", 3, ""), "feature 3 has no name"),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("whole")
    return {kind: write(as_kind(make(), kind), folder / f"{kind}.h5ad") for kind in ("csr", "csc")}


def check_refused(tmp_path: Path, path: Path, change: Any, message: str, **options: Any) -> None:
    shutil.copy(path, broken := tmp_path / "broken.h5ad")
    with h5py.File(broken, "r+") as file:
        change(file)
    with pytest.raises(penstock.InvalidArgumentError, match=message):
        penstock.import_anndata(broken, tmp_path / "d", **options)
    assert not list(tmp_path.glob("d/dataset.json")) and not list(tmp_path.glob("d/.partial*"))


@pytest.mark.parametrize(
    ("kind", "change", "message"), [("csr", *each) for each in BROKEN] + [("csc", *each) for each in OF_COLUMNS]
)
def test_a_broken_file_gets_one_clear_error(
    tmp_path: Path, whole: dict[str, Path], kind: str, change: Any, message: str
) -> None:
    check_refused(tmp_path, whole[kind], change, message)
    if change is repeat_gene:
        check_refused(tmp_path, whole[kind], change, message, workers=2)


@pytest.mark.parametrize(("change", "message"), MISSING)
def test_a_member_that_is_missing_or_of_another_kind_is_named(
    tmp_path: Path, whole: dict[str, Path], change: Any, message: str
) -> None:
    check_refused(tmp_path, whole["csr"], change, rf"broken\.h5ad: {message}")
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(("change", "message"), NO_WRITER)
def test_what_no_writer_takes_is_refused_before_counts_are_looked_at(
    tmp_path: Path, whole: dict[str, Path], change: Any, message: str
) -> None:
    seen: list[Any] = []
    check_refused(tmp_path, whole["csr"], change, message, preparing=lambda *each: seen.append(each))
    assert seen == [] and not (tmp_path / "d").exists()


def test_values_too_wide_for_a_column_are_refused_before_counts_are_looked_at(tmp_path: Path) -> None:
    made = make(make_counts(4))
    made.obsm["wide"] = np.zeros((4, 1 << 18, 2), "f4")
    path, seen = write(made, tmp_path / "a.h5ad"), []
    with pytest.raises(penstock.InvalidArgumentError, match="column wide"):
        penstock.import_anndata(path, tmp_path / "d", obsm=["wide"], preparing=lambda *each: seen.append(each))
    assert seen == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"obs": ["plait"]}, "obs has no plait: there are plate, score"),
        ({"obs": ["plate", "plate"]}, "a name is there twice"),
        ({"obs": "plate"}, "a list of names is wanted"),
        ({"obsm": ["X_tsne"]}, "obsm has no X_tsne: there are X_pca"),
        ({"layers": ["no"]}, "layers/no: there is no such matrix"),
        ({"layers": ["gene"]}, "the name of another field"),
        ({"x": "Y"}, "must be 'X', 'raw' or 'layers/NAME'"),
        ({"x": "raw"}, "raw/X: there is no such matrix"),
        ({"x": "more.h5ad"}, r"'more\.h5ad'\): the third argument is x=: X.*several inputs are a list"),
        ({"join": "left"}, "join='left'"),
        ({"workers": 0}, "workers=0"),
        ({"format": "mds"}, "format='mds'"),
        ({"format": "zarr"}, "cannot be read as zarr"),
    ],
)
def test_options_that_cannot_be(tmp_path: Path, whole: dict[str, Path], options: dict[str, Any], message: str) -> None:
    with pytest.raises(penstock.InvalidArgumentError, match=message):
        penstock.import_anndata(whole["csr"], tmp_path / "d", **options)


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("no.h5ad", None, penstock.NotFoundError, "no such file"),
        ("q*.h5ad", None, penstock.NotFoundError, "no file matches"),
        ("a.txt", "x", penstock.InvalidArgumentError, r"neither \.h5ad nor \.zarr"),
        ("a.h5ad", "x", penstock.InvalidArgumentError, "cannot be read as h5ad"),
    ],
)
def test_files_that_cannot_be(tmp_path: Path, name: str, content: str | None, error: Any, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(error, match=message):
        penstock.import_anndata(tmp_path / name, tmp_path / "d")


def test_obs_that_is_numbers_in_one_input_and_strings_in_another_is_refused(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("store", "member", "workers"),
    [
        *(("a.h5ad", each, 1) for each in ("X/indices", "X/indptr", "obs/score", "obs/plate/codes", "obsm/X_pca")),
        *(("2.zarr", each, 1) for each in ("X/data", "obs/plate/codes")),
        *(("3.zarr", each, 1) for each in ("X/indices", "obsm/X_pca")),
        ("a.h5ad", "X/data", 2),
        ("3.zarr", "X/data", 2),
    ],
)
def test_a_chunk_that_cannot_be_read_is_named(tmp_path: Path, store: str, member: str, workers: int) -> None:
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


def test_integers_of_obsm_beside_floats_are_exact_or_refused(tmp_path: Path) -> None:
    paths = []
    for at, values in enumerate((np.full((CELLS, 2), 1 << 60), np.ones((CELLS, 2), "f4"), np.full((CELLS, 2), BIG))):
        made = make()
        made.obsm["n"] = values
        paths.append(write(made, tmp_path / f"{at}.h5ad"))
    penstock.import_anndata(paths[:2], tmp_path / "d", obsm=["n"])
    assert int(penstock.open(tmp_path / "d").columns["n"][0][0]) == 1 << 60
    with pytest.raises(penstock.InvalidArgumentError, match=f"obsm/n: {EXACT}"):
        penstock.import_anndata(paths[1:], tmp_path / "e", obsm=["n"])


@pytest.mark.parametrize("others", [[], [-(1 << 30) - 1] * 2_999])
def test_a_count_that_no_float_holds_is_seen_before_and_behind_negative_ones(tmp_path: Path, others: list[int]) -> None:
    values = np.array([*others, BIG, -1])
    counts = sparse.csr_matrix((values, np.arange(len(values)) % 10, [0, *range(1, len(values), 10), len(values)]))
    path = write(anndata.AnnData(counts), tmp_path / "a.h5ad")
    with pytest.raises(penstock.InvalidArgumentError, match=f"X: the count {EXACT}"):
        penstock.import_anndata(path, tmp_path / "d")


@pytest.mark.parametrize(
    ("parts", "dtype"),
    [
        ([np.array([BIG, 2, 3]), np.array([0.5, 2, 3])], None),
        ([np.array([BIG, 2, 3]), np.array([1, 2, 3], "u8")], None),
        ([np.array([1 << 60, 2, 3]), np.array([0.5, 2, 3])], "f8"),
        ([np.array([BIG, 2, 3]), np.array([1, 2, 3], "i2")], "i8"),
        ([np.array([1, 2, 3], "u8"), np.array([-1, 2, 3])], "f8"),
        ([pandas.array([BIG, 2, 3], dtype="Int64"), np.array([0.5, 2, 3])], None),
        ([np.array([True, False, True]), np.array([3, 2, 3], "i2")], "i2"),
        ([np.array([1, 2, 3], "i2"), np.array([0.5, 2, 3], "f4")], "f4"),
        ([np.array([1, 2, 3], "i4"), np.array([0.5, 2, 3], "f4")], "f8"),
        ([np.array([1, 2, 3], "i2"), np.array([1, 2, 3], "i2")], "i2"),
        ([np.array([1, 2, 3], "i2"), np.array([1, 2, 3], "i4")], "i4"),
        ([np.array([1, 2, 3], "i2"), np.array([1, 2, 3], "u2"), np.array([1, 2, 3], "f4")], "f4"),
        ([np.array([True, False, True]), np.array([True, False, True])], "?"),
        ([np.array([True, False, True]), np.array([1, 0, 1], "u1")], "u1"),
        ([np.array([1, 2, 3], "f4"), np.array([1, 2, 3], "f4")], "f4"),
        ([np.array([1, 2, 3], "i8"), np.array([1, 2, 3], "f4")], "f8"),
        ([np.array([BIG, 2, 3]), np.array([BIG - 1, 2, 3], "f8")], None),
        ([np.array([BIG, 2, 3]), np.array([BIG, 2, 3], "u8")], None),
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_obs_and_var_of_several_inputs_have_their_common_type_or_are_refused(
    tmp_path: Path, parts: list[Any], dtype: Any, order: int
) -> None:
    paths, parts = [], parts[::order]
    for at, values in enumerate(parts):
        obs, var = (
            pandas.DataFrame({"n": values}, index=list("xyz")),
            pandas.DataFrame({"n": values}, index=list("abc")),
        )
        made = anndata.AnnData(sparse.csr_matrix(np.eye(3, dtype="f4")), obs=obs, var=var)
        paths.append(write(made[:, ::-1].copy() if at else made, tmp_path / f"{at}.h5ad"))
    options: dict[str, Any] = {"join": "outer"}
    if dtype is None:
        with pytest.raises(penstock.InvalidArgumentError, match="obs/n: 9,007,199,254,740,993 is exact in no"):
            penstock.import_anndata(paths, tmp_path / "no", **options)
        options["obs"] = []
    done = penstock.import_anndata(paths, tmp_path / "d", **options)
    dataset = penstock.open(tmp_path / "d")
    if dtype is not None:
        column = dataset.columns["n"]
        assert column.dtype == np.dtype(dtype)
        assert column[:].astype(object).tolist() == [each for values in parts for each in values]
    assert dataset.features is not None
    if dtype is None or any((parts[0] != values).any() for values in parts):
        assert "var/n (inputs differ)" in done.left_out and "n" not in dataset.features.columns
    else:
        assert dataset.features.columns["n"].dtype == np.dtype(dtype)
        assert dataset.features.columns["n"][:].tolist() == parts[0].tolist()
