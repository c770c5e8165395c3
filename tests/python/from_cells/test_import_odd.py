"""What an import of cells takes and tells of: odd counts, cells and files that come twice, types that are not kept."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _anndata_files import CELLS, anndata, make, make_counts, pandas, sparse, write
from penstock._cli.main import main
from penstock._data.anndata.limits import Limits
from penstock._from.cells import recipe
from penstock._from.cells.odd import Names, hash_names
from penstock._make.place import Place

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tasks, and several reads of each."""
    monkeypatch.setattr(recipe, "LIMITS", Limits(values=500, cells=64, task_values=900, stores=1))


def odd_counts(kind: str) -> Any:
    counts = make_counts()
    dense = counts.toarray()
    dense[70, 7], dense[390, 2] = np.nan, np.nan
    dense[3, 50] = -np.inf
    dense[5, 9], dense[5, 8], dense[6, 0] = -1, -2, -0.5
    return dense if kind == "dense" else sparse.csr_matrix(dense)


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
def test_odd_counts_are_told_with_the_first_of_each(tmp_path: Path, kind: str, small: None) -> None:
    made = make()
    made.X = odd_counts(kind) if kind != "csc" else odd_counts("csr").tocsc()
    path = write(made, tmp_path / "a.h5ad")
    done = penstock.import_anndata([write(make(seed=1), tmp_path / "fine.h5ad"), path], tmp_path / "out")
    assert done.shards > 2
    assert done.odd == {"NaN": 2, "infinite": 1, "negative": 4}
    first = f"{path}: cell {{}} (cell 0-{{}}), gene {{}}"
    assert done.notes == [
        f"X: 1 value is infinite, the first in {first.format(3, 3, 'g50')}",
        f"X: 4 values are negative, the first in {first.format(3, 3, 'g50')}",
        f"X: 2 values are NaN, the first in {first.format(70, 70, 'g7')}",
    ]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
def test_a_resumed_import_tells_of_values_in_finished_shards(
    tmp_path: Path, kind: str, workers: int, small: None
) -> None:
    made, fine = make(), write(make(seed=1), tmp_path / "fine.h5ad")
    made.X = odd_counts(kind) if kind != "csc" else odd_counts("csr").tocsc()
    paths = [fine, write(made, tmp_path / "a.h5ad")]
    whole = penstock.import_anndata(paths, tmp_path / "whole")

    def stop(done: int, total: int) -> None:
        if done > total - 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        penstock.import_anndata(paths, tmp_path / "out", progress=stop, workers=workers)
    done = penstock.import_anndata(paths, tmp_path / "out", resume=True, workers=workers)
    assert 0 < done.kept_shards <= done.shards  # of two workers the other one may have ended its own
    assert (done.odd, done.notes) == (whole.odd, whole.notes) and whole.odd["negative"] == 4
    again = penstock.import_anndata(paths, tmp_path / "out", resume=True)  # of what is published
    assert (again.kept_shards, again.odd, again.notes) == (done.shards, whole.odd, whole.notes)
    for each in (tmp_path / "whole").rglob("*.json"):
        assert each.read_bytes() == (tmp_path / "out" / each.relative_to(tmp_path / "whole")).read_bytes()


def test_a_shard_that_an_earlier_attempt_finished_tells_its_odd_values(tmp_path: Path, small: None) -> None:
    made = make()
    made.X = odd_counts("csr")
    path = write(made, tmp_path / "a.h5ad")
    whole = penstock.import_anndata(path, tmp_path / "whole")
    write_shard, calls = Place.write, []

    def twice(self: Place, *given: Any) -> Any:
        """The first attempt ends behind its shard, before it could say so."""
        calls.append(write_shard(self, *given))
        return write_shard(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Place, "write", twice)
        done = penstock.import_anndata(path, tmp_path / "out")
    assert len(calls) == done.shards > 2
    assert (done.odd, done.notes) == (whole.odd, whole.notes)


def test_odd_values_of_dense_columns_are_told(tmp_path: Path) -> None:
    dense = np.ones((9, 4), "f8")
    dense[8, 1], dense[4, 3] = np.nan, -3
    done = penstock.import_anndata(write(anndata.AnnData(dense), tmp_path / "a.h5ad"), tmp_path / "out")
    assert not done.fields  # X is a column
    assert done.odd == {"NaN": 1, "negative": 1}
    assert any("cell 4 (4), gene 3" in note for note in done.notes)


@pytest.mark.parametrize("workers", [1, 2])
def test_files_and_names_that_come_twice_are_told(tmp_path: Path, workers: int, small: None) -> None:
    first, other = write(make(), tmp_path / "a.h5ad"), write(make(seed=1), tmp_path / "b.h5ad")
    copy = tmp_path / "copy.h5ad"
    shutil.copyfile(first, copy)
    done = penstock.import_anndata([first, other, copy, first], tmp_path / "out", workers=workers)
    assert done.odd == {"repeated input": 2, "repeated name": 2 * CELLS}
    assert done.notes == [
        f"2 inputs have the same cells as one before: the first is {copy}, as {first}",
        f"{2 * CELLS:,} cells of {4 * CELLS:,} have the name of one before: the first is {copy}: cell 0 (cell 0-0), as "
        f"{first}: cell 0 (cell 0-0)",
    ]
    assert not penstock.import_anndata([first, other], tmp_path / "fine").notes


def test_a_resumed_import_knows_the_names_of_finished_shards(tmp_path: Path, small: None) -> None:
    first = write(make(), tmp_path / "a.h5ad")
    copy = Path(shutil.copyfile(first, tmp_path / "b.h5ad"))

    def stop(done: int, total: int) -> None:
        if done > CELLS:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        penstock.import_anndata([first, copy], tmp_path / "out", progress=stop)
    done = penstock.import_anndata([first, copy], tmp_path / "out", resume=True)
    assert 0 < done.kept_shards < done.shards
    assert done.odd == {"repeated input": 1, "repeated name": CELLS}


def test_the_first_name_that_comes_twice_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock._from.cells.odd._BLOCK", 7)
    random = np.random.default_rng(0)
    for trial in range(100):
        numbers = random.integers(0, random.integers(2, 3000), random.integers(1, 60)).tolist()
        names = Names(tmp_path, len(numbers))
        names.put(0, hash_names([str(each) for each in numbers]))
        again = [at for at, each in enumerate(numbers) if each in numbers[:at]]
        wanted = (len(again), again[0], numbers.index(numbers[again[0]])) if again else (0, 0, 0)
        assert names.twice(tmp_path) == wanted, trial


def test_types_that_an_export_does_not_give_back_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = make()
    made.X.data[5] = 70_000
    made.obs["stage"] = pandas.Categorical(["late", "early"] * (CELLS // 2), ["early", "late"], ordered=True)
    made.obs["day"] = pandas.Categorical([3, 1] * (CELLS // 2))
    made.var["known"] = pandas.array([True, None] * (made.n_vars // 2), dtype="boolean")
    made.uns["title"] = "cells"
    made.varm["loadings"] = np.ones((made.n_vars, 2))
    path = write(made, tmp_path / "a.h5ad")
    done = penstock.import_anndata(path, tmp_path / "out")
    assert done.left_out[-2:] == ["uns/title", "varm/loadings"]
    assert [each.partition(" (")[0] for each in done.altered] == ["obs/some, var/known", "obs/stage", "obs/day", "X"]
    assert "float32 comes back as float64, since a count of 65,536 or more makes it u4" in done.altered[-1]
    back = penstock.open(tmp_path / "out").to_anndata()  # as it is said
    assert back.X.dtype == "f8" and back.obs["some"].dtype == "f4" and back.var["known"].dtype.kind == "f"
    assert not back.obs["stage"].cat.ordered and list(back.obs["stage"].cat.categories) == ["early", "late"]
    assert sorted(back.obs["day"].cat.categories) == ["1", "3"]
    plain = ["plate", "score", "flag", "number", "line"]
    fine = penstock.import_anndata(write(make(), tmp_path / "b.h5ad"), tmp_path / "fine", obs=plain)
    assert fine.altered == []
    assert main(["import", str(path), str(path), "--out", str(tmp_path / "cli"), "--workers", "1"]) == 0
    *_, left_out, altered, repeated, names = capsys.readouterr().out.splitlines()
    assert left_out.startswith("left out: ") and altered.startswith("otherwise after an export: obs/some, var/known (")
    assert repeated.startswith("note: 1 input has the same cells") and names.startswith(f"note: {CELLS} cells of")
    assert main(["import", str(path), "--out", str(tmp_path / "json"), "--workers", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["altered"] == done.altered
