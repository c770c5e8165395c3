"""AnnData in and out again: what came in comes back as it went, or is named by import and export."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _anndata_files import CELLS, GENES, anndata, make, make_counts, pandas, same, sparse, write
from penstock._cli.main import main

HALF = CELLS // 2


def rich() -> Any:
    """All that is to come back."""
    made = make()
    made.X.data[5] = 70_000
    random = np.random.default_rng(1)
    made.obs["stage"] = pandas.Categorical(["late", "early"] * HALF, ["early", "late", "never"], ordered=True)
    made.obs["day"] = pandas.Categorical([3, 1] * HALF, [3, 1], ordered=True)
    made.obs["share"] = pandas.Categorical([0.1, None] * HALF)
    made.obs["old"] = pandas.Categorical([True, False] * HALF)
    made.obs["sure"] = pandas.array([True, None] * HALF, dtype="boolean")
    made.obs["small"] = pandas.array([1, 200] * HALF, dtype="UInt8")
    made.obs["barcode"] = [f"AC{i:05}" for i in range(CELLS)]
    made.var["known"] = pandas.array([True, None] * (GENES // 2), dtype="boolean")
    made.var["rank"] = pandas.Categorical(["low", "high"] * (GENES // 2), ["low", "high"], ordered=True)
    made.var["symbol"] = [f"S{i}" for i in range(GENES)]
    made.varm["PCs"] = random.random((GENES, 5))
    made.varm["tensor"] = random.integers(0, 9, (GENES, 2, 3))
    names = np.array([("a", "bc"), ("d", "é")], dtype=[("p", "O"), ("q", "O")])
    made.uns = {
        "title": "cells",
        "number": 3,
        "yes": True,
        "colors": np.array(["#fff", "#000"], dtype=object),
        "pca": {"variance": np.array([0.5, 0.25], "f4"), "params": {"zero_center": True, "n": np.int64(4)}},
        "graph": sparse.random(9, 9, 0.3, format="csr", random_state=0),
        "frame": pandas.DataFrame({"a": pandas.Categorical(["x", "y"]), "b": [1.5, 2.5]}, index=["r", "s"]),
        "ranked": np.array([(1.0, 2.0), (3.0, 4.0)], dtype=[("p", "f4"), ("q", "f8")]),
        "named": names,
        "empty": {},
        "codes": np.arange(24).reshape(2, 3, 4).astype("u2"),
    }
    return made


def both(folder: Path, tmp_path: Path) -> list[Any]:
    """The dataset as AnnData, and exported and read."""
    out = tmp_path / "back.h5ad"
    out.unlink(missing_ok=True)
    assert main(["export", str(folder), "--to", "h5ad", "--out", str(out)]) == 0
    return [penstock.open(folder).to_anndata(), anndata.read_h5ad(out)]


def equal_uns(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return isinstance(b, dict) and sorted(a) == sorted(b) and all(equal_uns(a[k], b[k]) for k in a)
    if sparse.issparse(a):
        return bool((a != b).nnz == 0 and a.dtype == b.dtype)
    if isinstance(a, pandas.DataFrame):
        pandas.testing.assert_frame_equal(a, b)
        return True
    if getattr(a, "dtype", None) is not None and a.dtype.names:
        return a.dtype.names == b.dtype.names and all((a[name] == b[name]).all() for name in a.dtype.names)
    kinds = ["text" if np.asarray(each).dtype.kind in "OUT" else np.asarray(each).dtype.kind for each in (a, b)]
    return bool(np.array_equal(a, b)) and kinds[0] == kinds[1]


@pytest.mark.parametrize("store", ["a.h5ad", "2.zarr", "3.zarr"])
def test_what_came_in_comes_back_as_it_went(tmp_path: Path, store: str) -> None:
    if store.endswith("zarr"):
        anndata.settings.zarr_write_format = int(store[0])
    made = rich()
    path = write(made, tmp_path / store)
    expected = anndata.read_h5ad(path) if store == "a.h5ad" else anndata.read_zarr(path)
    done = penstock.import_anndata(path, tmp_path / "d", obsm=["X_pca", "image"])
    assert (done.left_out, done.altered) == ([], [])
    for back in both(tmp_path / "d", tmp_path):
        pandas.testing.assert_frame_equal(back.obs, expected.obs, check_names=False)
        pandas.testing.assert_frame_equal(back.var, expected.var, check_names=False)
        assert back.X.dtype == np.float32 and same(back.X, expected.X)
        assert all(np.array_equal(back.varm[name], expected.varm[name]) for name in ("PCs", "tensor"))
        assert all(back.varm[name].dtype == expected.varm[name].dtype for name in ("PCs", "tensor"))
        assert equal_uns(dict(expected.uns), dict(back.uns))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u2", "i4", "bool"])
@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_the_type_of_counts_comes_back(tmp_path: Path, dtype: str, kind: str) -> None:
    counts = make_counts(40)
    values = (counts > 4 if dtype == "bool" else counts).astype(dtype)
    made = anndata.AnnData(values if kind == "sparse" else values.toarray())
    made.layers["other"] = make_counts(40).astype("i2")
    done = penstock.import_anndata(write(made, tmp_path / "a.h5ad"), tmp_path / "d", layers=["other"])
    assert done.altered == []
    for back in both(tmp_path / "d", tmp_path):
        assert back.X.dtype == np.dtype(dtype) and back.layers["other"].dtype == np.int16
        assert same(back.X.astype("f8"), made.X.astype("f8"))


def test_it_comes_back_from_copies_of_the_dataset_too(tmp_path: Path) -> None:
    path = write(rich(), tmp_path / "a.h5ad")
    penstock.import_anndata(path, tmp_path / "d")
    penstock.shuffle(tmp_path / "d", tmp_path / "shuffled", seed=1, documents=True)
    penstock.combine([tmp_path / "d", tmp_path / "d"], tmp_path / "twice")
    penstock.annotate(tmp_path / "d", {"new": np.arange(CELLS)})
    for folder in ("d", "shuffled", "twice"):
        back = penstock.open(tmp_path / folder).to_anndata()
        assert back.uns["title"] == "cells" and back.varm["PCs"].shape == (GENES, 5)
        assert back.obs["stage"].cat.ordered and str(back.obs["some"].dtype) == "Int64"
        assert back.X.dtype == np.float32


def test_what_was_changed_since_is_not_forced_into_the_noted_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = make(make_counts().astype("f4"))
    made.obs["stage"] = pandas.Categorical(["late", "early"] * HALF, ["early", "late"], ordered=True)
    penstock.import_anndata(write(made, tmp_path / "a.h5ad"), tmp_path / "d")
    penstock.annotate(tmp_path / "d", {"stage": ["b", "a"] * HALF})
    for each in both(tmp_path / "d", tmp_path):
        assert not each.obs["stage"].cat.ordered and str(each.obs["some"].dtype) == "Int64"
    assert "obs/stage (changed since the import: category then)" in capsys.readouterr().out
    penstock.annotate(tmp_path / "d", {"some": np.linspace(0, 1, CELLS)})
    for each in both(tmp_path / "d", tmp_path):
        assert each.obs["some"].dtype == np.float64
    assert "types of the imported AnnData (values were added or changed" in capsys.readouterr().out


def test_inputs_that_differ_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for seed in (0, 1):
        made = make(seed=seed)
        order = ["early", "late"] if seed else ["late", "early"]
        made.obs["stage"] = pandas.Categorical(["late", "early"] * HALF, order, ordered=True)
        made.obs["some"] = made.obs["some"] if seed else made.obs["score"]
        made.uns = {"title": "cells", "seed": seed, "alone" if seed else "first": 1}
        made.varm["same"] = np.ones((GENES, 2))
        made.varm["other"] = np.full((GENES, 2), seed)
        paths.append(write(made, tmp_path / f"{seed}.h5ad"))
    done = penstock.import_anndata(paths, tmp_path / "d")
    assert [each for each in done.left_out if not each.startswith("obsm")] == [
        "var/kind (inputs differ)",
        "varm/other (inputs differ)",
        "uns/alone (not in all inputs)",
        "uns/seed (inputs differ)",
        "uns/first (not in all inputs)",
    ]
    assert [each.partition(" (")[0] for each in done.altered] == ["obs/some", "obs/stage"]
    capsys.readouterr()
    back, read = both(tmp_path / "d", tmp_path)
    note = capsys.readouterr().out
    assert "uns/seed (inputs differ)" in note and "obs/stage (ordered categories, not the same" in note
    assert dict(back.uns) == dict(read.uns) == {"title": "cells"} and list(back.varm) == ["same"]


def test_uns_beyond_its_room_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock._data.anndata.trees.ROOM", 6_000)
    monkeypatch.setattr("penstock._data.anndata.trees.MOST_BYTES", 1 << 20)
    made = make()
    random = np.random.default_rng(0)
    made.uns = {"small": 1, "large": random.random(4_000), "larger": np.zeros(1 << 18)}
    done = penstock.import_anndata(write(made, tmp_path / "a.h5ad"), tmp_path / "d")
    assert [each for each in done.left_out if each.startswith("uns")] == [
        "uns/larger (has more than 1 MiB)",
        "uns/large (no room: all of uns has 4 MiB, packed)",
    ]
    assert dict(penstock.open(tmp_path / "d").to_anndata().uns) == {"small": 1}


def test_the_outer_join_has_the_order_of_anndata(tmp_path: Path) -> None:
    made = []
    for seed, names in enumerate((["g3", "g1", "gz"], ["g2", "g1", "a"], ["gz", "b", "g1"])):
        each = anndata.AnnData(make_counts(20, 3, seed))
        each.var_names, each.obs_names = names, [f"{seed}-{i}" for i in range(20)]
        made.append(each)
    for some in (made, made[:2], [made[0], made[0].copy()], made[::-1]):
        paths = [write(each, tmp_path / f"{at}.h5ad") for at, each in enumerate(some)]
        for join in ("inner", "outer"):
            penstock.import_anndata(paths, tmp_path / "d", join=join, overwrite=True)
            expected = anndata.concat(some, join=join)
            back = penstock.open(tmp_path / "d").to_anndata()
            assert list(back.var_names) == list(expected.var_names)
            assert np.array_equal(back.X.toarray(), expected.X.toarray())


def test_a_dataset_of_features_without_a_note_comes_back_as_before(tmp_path: Path) -> None:
    fields = {"gene": "u2", "count": "u1"}
    with penstock.Writer(
        tmp_path / "d", fields, "boundaries", features=["a", "b"], columns={"x": "category"}
    ) as writer:
        writer.append(gene=[0], count=[1], columns={"x": "y"})
    back = penstock.open(tmp_path / "d").to_anndata()
    assert back.X.dtype == np.float32 and dict(back.uns) == {} and back.obs["x"].tolist() == ["y"]
    (shard,) = (tmp_path / "d" / "features").glob("0*")
    assert json.loads((shard / "shard.json").read_text())["task"] is None


@pytest.mark.parametrize("kind", ["csr", "dense"])
def test_raw_comes_back_where_it_is_kept(tmp_path: Path, kind: str) -> None:
    paths = []
    for seed in (0, 1):
        made, counts = make(seed=seed), make_counts(genes=GENES + 9, seed=seed + 5)
        whole = anndata.AnnData(counts if kind == "csr" else counts.toarray(), obs=made.obs)
        whole.var["known"] = pandas.array([True, None, False] * 23, dtype="boolean")
        whole.var_names = [f"r{i}" for i in range(GENES + 9)]
        made.raw = whole
        paths.append(write(made, tmp_path / f"{seed}.h5ad"))
    expected = [anndata.read_h5ad(path).raw for path in paths]
    done = penstock.import_anndata(paths, tmp_path / "d", raw=True, workers=2)
    assert "raw" not in done.left_out
    penstock.shuffle(tmp_path / "d", tmp_path / "shuffled", seed=1, documents=True)
    for back in both(tmp_path / "d", tmp_path):
        assert same(back.raw.X, sparse.vstack([sparse.csr_matrix(each.X) for each in expected]))
        assert back.raw.X.dtype == np.float32
        pandas.testing.assert_frame_equal(back.raw.var, expected[0].var)
    names = penstock.open(tmp_path / "shuffled").to_anndata([3, 700])
    order = names.obs_names.tolist()
    rows = {name: row for each in expected for name, row in zip(each.obs_names, each.X, strict=True)}
    for at, name in enumerate(order):
        assert same(names.raw.X[at], sparse.csr_matrix(rows[name]))
    again = penstock.import_anndata(paths, tmp_path / "d", raw=True, resume=True)
    assert again.kept_shards == again.shards
    cells = penstock.open(tmp_path / "d").cells("csr").read([0, 5])
    assert cells.csr.shape == (2, GENES)
    other = make(seed=2)
    with pytest.raises(penstock.InvalidArgumentError, match="there is no raw to keep"):
        penstock.import_anndata(write(other, tmp_path / "c.h5ad"), tmp_path / "e", raw=True)
    other.raw = make(seed=3, prefix="h")
    with pytest.raises(penstock.InvalidArgumentError, match=r"raw/var is another than that of"):
        penstock.import_anndata([paths[0], write(other, tmp_path / "c.h5ad")], tmp_path / "e", raw=True)


def test_raw_of_two_imports_is_not_read_by_the_note_of_one(tmp_path: Path) -> None:
    for name, dtype in (("a", "f4"), ("b", "i4"), ("none", None)):
        made = make(seed=1)
        if dtype:
            made.raw = anndata.AnnData(made.X.astype(dtype), obs=made.obs, var=made.var[[]])
        penstock.import_anndata(write(made, tmp_path / f"{name}.h5ad"), tmp_path / name, raw=bool(dtype))
    one = tmp_path / "a"
    for other in ("b", "none"):
        for pair in ((one, tmp_path / other), (tmp_path / other, one)):
            with pytest.raises(penstock.InvalidArgumentError, match=r"cannot combine .* their raw has other types"):
                penstock.combine(pair, tmp_path / "both")
            with pytest.raises(penstock.InvalidArgumentError, match=r"cannot append .* their raw has other types"):
                penstock.append(*pair)
    assert penstock.open(one, tmp_path / "b").to_anndata().raw is None
    penstock.combine([one, one], tmp_path / "twice")
    back = penstock.open(tmp_path / "twice").to_anndata()
    assert same(back.raw.X[CELLS:], penstock.open(one).to_anndata().raw.X)


def test_notes_of_two_imports_that_differ_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = []
    for seed in (0, 1):
        made = make(seed=seed)
        order = ["early", "late"] if seed else ["late", "early"]
        made.obs["stage"] = pandas.Categorical(["late", "early"] * HALF, order, ordered=True)
        made.uns = {"title": "cells", "seed": seed, **({"alone": 1} if seed else {})}
        folders.append(tmp_path / f"{seed}")
        penstock.import_anndata(write(made, tmp_path / f"{seed}.h5ad"), folders[-1])
    one, other = folders
    said = rf"uns/seed, uns/alone, obs/stage of {other} and {one} differ: .* give the latter's for all cells"
    with pytest.warns(UserWarning, match=f"^combine: {said}") as told:
        penstock.combine(folders, tmp_path / "both")
    assert len(told) == 1 and told[0].filename == __file__
    assert dict(penstock.open(tmp_path / "both").to_anndata().uns) == {"title": "cells", "seed": 0}
    assert main(["combine", *map(str, folders), "--out", str(tmp_path / "again")]) == 0
    assert "note: combine: uns/seed" in capsys.readouterr().err
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        penstock.combine([one, one], tmp_path / "twice")
    assert dict(penstock.open(one, other).to_anndata().uns) == {}
    assert dict(penstock.concatenate([penstock.open(one), penstock.open(other)]).to_anndata().uns) == {}
    assert main(["export", str(one), str(other), "--to", "h5ad", "--out", str(tmp_path / "b.h5ad")]) == 0
    assert "uns (of datasets that are opened as one: combine them)" in capsys.readouterr().out
    with pytest.warns(UserWarning, match=f"^append: {said}"):
        penstock.append(one, other)
    assert penstock.open(one).to_anndata().uns["seed"] == 0


def test_orders_of_categories_outlive_a_condition_that_drops_one(tmp_path: Path) -> None:
    made = rich()
    penstock.import_anndata(write(made, tmp_path / "a.h5ad"), tmp_path / "d")
    penstock.convert(tmp_path / "d", tmp_path / "late", where="stage = 'late'")
    for back in both(tmp_path / "late", tmp_path):
        assert back.n_obs == HALF and set(back.obs["stage"]) == {"late"}
        for name in ("stage", "day", "share", "old"):
            kept = back.obs[name].cat
            assert kept.categories.tolist() == made.obs[name].cat.categories.tolist(), name
            assert kept.ordered == made.obs[name].cat.ordered
        assert back.obs["plate"].cat.categories.tolist() != made.obs["plate"].cat.categories.tolist()
    plate = penstock.open(tmp_path / "late").columns["plate"]
    assert plate.categories is not None and set(plate.categories) == {"p2", "p7"}  # without an order only those used


def test_what_uns_has_of_encodings_that_are_not_known_is_left_out(tmp_path: Path) -> None:
    path = write(make(), tmp_path / "a.h5ad")
    with pytest.importorskip("h5py").File(path, "a") as file:
        group = file["uns"].create_group("ragged")
        group.attrs.update({"encoding-type": "awkward-array", "encoding-version": "0.1.0", "form": "{}", "length": 2})
        group["node0"] = np.arange(3)
        file["uns"]["gone"] = pytest.importorskip("h5py").SoftLink("/nowhere")
    done = penstock.import_anndata(path, tmp_path / "d")
    assert {"uns/ragged", "uns/gone"} <= {each.partition(" ")[0] for each in done.left_out}
    assert main(["export", f"{tmp_path}/d", "--to", "h5ad", "--out", f"{tmp_path}/back.h5ad"]) == 0
    assert "ragged" not in anndata.read_h5ad(tmp_path / "back.h5ad").uns
