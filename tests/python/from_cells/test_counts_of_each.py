"""x= for each input: counts that are X of one file, a layer of another, raw of a third; imported and in place."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _anndata_files import CELLS, anndata, make, make_counts, same, sparse, write
from penstock._cli.main import main

PLACES = ["X", "layers/counts", "raw"]


@pytest.fixture
def files(tmp_path: Path) -> tuple[list[str], Any]:
    """Three files, and the counts of all cells."""
    paths, counts = [], []
    for seed, place in enumerate(PLACES):
        made = make(seed=seed)
        counts.append(make_counts(seed=seed))
        assert same(made.X, counts[-1])
        if place != "X":
            made.layers["counts"] = made.X.copy()
            made.raw = made.copy()
            made.X = made.X.log1p()
        paths.append(str(write(made, tmp_path / f"{place.rpartition('/')[2]}.h5ad")))
    return paths, sparse.vstack(counts)


def test_an_import_takes_the_counts_of_each_file(files: Any, tmp_path: Path) -> None:
    paths, counts = files
    made = []
    for number, x in enumerate((PLACES, tuple(PLACES), dict(zip(paths[1:], PLACES[1:], strict=True)))):
        out = tmp_path / str(number)
        done = penstock.import_anndata(paths, out, x, workers=1 + number)
        assert same(penstock.open(out).to_anndata().X, counts) and done.fields["count"][1:] == "u1"
        assert not [each for each in done.notes if "fractions" in each]
        assert {"layers/counts", "X"} <= set(done.left_out)
        made.append(penstock.open(out).fingerprint)
    assert len(set(made)) == 1
    again = penstock.import_anndata(paths, tmp_path / "0", PLACES, resume=True)
    assert again.kept_shards == again.shards
    with pytest.raises(penstock.InvalidArgumentError, match="made of other input or options"):
        penstock.import_anndata(paths, tmp_path / "0", "X", resume=True)


def test_a_glob_has_one_place(files: Any, tmp_path: Path) -> None:
    paths, counts = files
    glob = f"{tmp_path}/[lcr]*.h5ad"  # counts.h5ad and raw.h5ad
    penstock.import_anndata([paths[0], glob], tmp_path / "d", {glob: "layers/counts"})
    assert same(penstock.open(tmp_path / "d").to_anndata().X, counts)


def test_the_command_takes_the_counts_of_each_file(
    files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths, counts = files
    _, layer, raw = paths
    out = str(tmp_path / "d")
    for options in (
        ["--x", f"{layer}=layers/counts", "--x", f"{raw}=raw"],
        ["--x", "layers/counts", "--x", f"{paths[0]}=X"],
    ):
        assert main(["import", *paths, *options, "--out", out, "--overwrite", "--workers", "1"]) == 0
        assert same(penstock.open(out).to_anndata().X, counts)
    capsys.readouterr()
    for options, said in (
        (["--x", "X", "--x", "raw"], "--x X --x raw: one place for all inputs"),
        (["--x", "none.h5ad=raw"], "--x none.h5ad=raw: no input is named so"),
        (["--x", f"{raw}=Y"], f"--x {raw}=Y: X, raw or layers/NAME is wanted"),
    ):
        assert main(["import", *paths, *options, "--out", str(tmp_path / "e")]) == 2
        assert said in capsys.readouterr().err


def test_a_collection_reads_the_counts_of_each_store(files: Any, tmp_path: Path) -> None:
    paths, counts = files
    for x in (PLACES, dict(zip(paths, PLACES, strict=True))):
        cells = penstock.Collection.from_anndatas(paths, x=x)
        wanted = np.random.default_rng(0).permutation(3 * CELLS)[:200]
        assert same(cells[wanted].X, counts[wanted])
        assert same(pickle.loads(pickle.dumps(cells))[wanted].X, counts[wanted])
    memory = penstock.Collection.from_anndatas([anndata.read_h5ad(paths[2]), paths[0]], x=["raw", "X"])
    assert same(memory[:].X, sparse.vstack([counts[2 * CELLS :], counts[:CELLS]]))


def test_places_that_cannot_be_are_refused(files: Any, tmp_path: Path) -> None:
    paths, _ = files
    open_all: Any = penstock.Collection.from_anndatas

    def imported(given: Any, **options: Any) -> Any:
        return penstock.import_anndata(given, tmp_path / "d", **options)

    for make_of in (imported, open_all):
        for x, words in (
            (["X", "raw"], "x= has 2 places for 3 inputs: give one for each in their order"),
            (["X", "raw", "Y"], "x='Y': must be 'X', 'raw' or 'layers/NAME'"),
            ("layers/", "x='layers/': must be"),
            (3, "x=3: must be"),
            ({"other.h5ad": "raw"}, "x= has a place for 'other.h5ad', which is no input: there are"),
        ):
            with pytest.raises(penstock.InvalidArgumentError, match=words):
                make_of(paths, x=x)
        with pytest.raises(penstock.InvalidArgumentError, match="layers go with X, whose genes are not those of raw"):
            make_of(paths, x=PLACES, layers=["counts"])
    with pytest.raises(penstock.InvalidArgumentError, match="raw is what is imported"):
        imported(paths, x=PLACES, raw=True)
    with pytest.raises(penstock.InvalidArgumentError, match=r"counts\.h5ad: layers/no: there is no such matrix"):
        imported(paths, x=["X", "layers/no", "X"])
    for x in ("Y", "layers/", ["X"]):
        with pytest.raises(penstock.InvalidArgumentError, match="must be 'X', 'raw' or 'layers/NAME'"):
            penstock.open(paths[0], x=x)  # type: ignore[arg-type]
