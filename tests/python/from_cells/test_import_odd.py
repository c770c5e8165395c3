"""What an import of cells takes and tells of: odd counts, cells and files that come twice, types that are not kept."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _anndata_files import CELLS, anndata, as_kind, make, make_counts, pandas, sparse, stop_after, write
from penstock._cli.main import main
from penstock._from.cells.odd import Names, hash_names
from penstock._make.place import Place


def make_odd() -> Any:
    dense = make_counts().toarray()
    dense[270, 7], dense[390, 2] = np.nan, np.nan
    dense[3, 50] = -np.inf
    dense[5, 9], dense[5, 8], dense[6, 0] = -1, -2, -0.5
    return make(sparse.csr_matrix(dense))


ODD = {"NaN": 2, "infinite": 1, "negative": 4}


@pytest.mark.parametrize(("kind", "workers"), [("csr", 1), ("csc", 2), ("dense", 1)])
def test_odd_counts_are_told_with_the_first_of_each_by_a_resumed_import_too(
    tmp_path: Path, kind: str, workers: int
) -> None:
    path = write(as_kind(make_odd(), kind), tmp_path / "a.h5ad")
    paths = [write(make(seed=1), tmp_path / "fine.h5ad"), path]
    whole = penstock.import_anndata(paths, tmp_path / "whole")
    first = f"{path}: cell {{}} (cell 0-{{}}), gene {{}}"
    assert whole.odd == ODD and whole.notes == [
        f"X: 1 value is infinite, the first in {first.format(3, 3, 'g50')}",
        f"X: 4 values are negative, the first in {first.format(3, 3, 'g50')}",
        f"X: 2 values are NaN, the first in {first.format(270, 270, 'g7')}",
    ]
    with pytest.raises(KeyboardInterrupt):
        penstock.import_anndata(paths, tmp_path / "out", progress=stop_after(2 * CELLS - 100), workers=workers)
    done = penstock.import_anndata(paths, tmp_path / "out", resume=True, workers=workers)
    assert 0 < done.kept_shards <= done.shards  # of two workers the other one may have ended its own
    assert (done.odd, done.notes) == (whole.odd, whole.notes)
    again = penstock.import_anndata(paths, tmp_path / "out", resume=True)  # of what is published
    assert (again.kept_shards, again.odd, again.notes) == (done.shards, whole.odd, whole.notes)
    for each in (tmp_path / "whole").rglob("*.json"):
        assert each.read_bytes() == (tmp_path / "out" / each.relative_to(tmp_path / "whole")).read_bytes()


def test_a_shard_that_an_earlier_attempt_finished_tells_its_odd_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shard, calls = Place.write, []

    def twice(self: Place, *given: Any) -> Any:
        """The first attempt ends behind its shard, before it could say so."""
        calls.append(write_shard(self, *given))
        return write_shard(self, *given)

    monkeypatch.setattr(Place, "write", twice)
    done = penstock.import_anndata(write(make_odd(), tmp_path / "a.h5ad"), tmp_path / "out")
    assert len(calls) == done.shards > 2
    assert done.odd == ODD and len(done.notes) == 3


def test_odd_values_of_dense_columns_are_told(tmp_path: Path) -> None:
    dense = np.ones((9, 4), "f8")
    dense[8, 1], dense[4, 3] = np.nan, -3
    done = penstock.import_anndata(write(anndata.AnnData(dense), tmp_path / "a.h5ad"), tmp_path / "out")
    assert not done.fields  # X is a column
    assert done.odd == {"NaN": 1, "negative": 1}
    assert any("cell 4 (4), gene 3" in note for note in done.notes)


@pytest.mark.parametrize("workers", [1, 2])
def test_files_and_names_that_come_twice_are_told_by_a_resumed_import_too(tmp_path: Path, workers: int) -> None:
    first, other = write(make(), tmp_path / "a.h5ad"), write(make(seed=1), tmp_path / "b.h5ad")
    copy = tmp_path / "copy.h5ad"
    shutil.copyfile(first, copy)
    paths = [first, other, copy, first]
    with pytest.raises(KeyboardInterrupt):
        penstock.import_anndata(paths, tmp_path / "out", workers=workers, progress=stop_after(CELLS))
    done = penstock.import_anndata(paths, tmp_path / "out", workers=workers, resume=True)
    assert 0 < done.kept_shards < done.shards
    assert done.odd == {"repeated input": 2, "repeated name": 2 * CELLS}
    assert done.notes == [
        f"2 inputs have the same cells as one before: the first is {copy}, as {first}",
        f"{2 * CELLS:,} cells of {4 * CELLS:,} have the name of one before: the first is {copy}: cell 0 (cell 0-0), as "
        f"{first}: cell 0 (cell 0-0)",
    ]
    assert not penstock.import_anndata([first, other], tmp_path / "fine").notes


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
    paths = []
    for seed, order in enumerate((["early", "late"], ["late", "early"])):
        made = make(seed=seed)
        made.obs["stage"] = pandas.Categorical(["late", "early"] * (CELLS // 2), order, ordered=True)
        made.obs["day"] = (
            pandas.Categorical([3.5, 1] * (CELLS // 2)) if seed else pandas.Categorical([3, 1] * (CELLS // 2))
        )
        made.obs["gone"] = pandas.Categorical([None] * CELLS)  # no category is a number
        made.obs["some"] = made.obs["some"] if seed else made.obs["score"]
        made.obsp["links"] = sparse.eye(CELLS, format="csr")
        paths.append(write(made, tmp_path / f"{seed}.h5ad"))
    done = penstock.import_anndata(paths, tmp_path / "out")
    assert done.left_out[-1] == "obsp/links"
    assert [each.partition(" (")[0] for each in done.altered] == ["obs/some", "obs/stage", "obs/day"]
    back = penstock.open(tmp_path / "out").to_anndata()  # as it is said
    assert back.obs["some"].dtype == "f4"
    assert not back.obs["stage"].cat.ordered and list(back.obs["stage"].cat.categories) == ["early", "late"]
    assert sorted(back.obs["day"].cat.categories) == ["1", "1.0", "3", "3.5"]
    arguments = ["import", *map(str, paths), "--workers", "1"]
    assert main([*arguments, "--out", str(tmp_path / "cli")]) == 0
    *_, left_out, altered = capsys.readouterr().out.splitlines()
    assert left_out.startswith("left out: ") and altered.startswith("otherwise after an export: obs/some (")
    assert main([*arguments, "--out", str(tmp_path / "json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["altered"] == done.altered
    half = make()
    half.X.data = half.X.data.astype("f2")
    done = penstock.import_anndata(write(half, tmp_path / "half.h5ad"), tmp_path / "half")
    assert done.altered == ["X (float16 comes back as float32)"]


def test_fractions_where_counts_are_wanted_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = make()
    made.layers["counts"] = made.X.copy()
    made.X.data = np.log1p(made.X.data)
    made.raw = made.copy()
    path = write(made, tmp_path / "a.h5ad")
    (note,) = penstock.import_anndata(path, tmp_path / "d").notes
    assert note == (
        f"{path}: X has fractions, as of normalised or logarithmised values: where counts are wanted, choose another x "
        "(there are: layers/counts, raw)"
    )
    assert main(["import", str(path), "--out", str(tmp_path / "cli")]) == 0
    assert f"note: {note}" in capsys.readouterr().out
    assert penstock.import_anndata(path, tmp_path / "e", x="layers/counts").notes == []
    made.X.data = made.X.data - 1  # scaled: negative values are told of as that
    (note,) = penstock.import_anndata(write(made, tmp_path / "b.h5ad"), tmp_path / "f").notes
    assert "values are negative" in note
