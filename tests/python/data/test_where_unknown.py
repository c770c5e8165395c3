"""Conditions on a category that no document has: they choose nothing, and say so."""

from __future__ import annotations

import warnings
from pathlib import Path

import penstock
import pytest


@pytest.fixture
def dataset(tmp_path: Path) -> penstock.Dataset:
    columns = {"plate": ["p1", "p2", "never"], "drug": "category", "score": "f4"}
    with penstock.Writer(tmp_path / "d", {"token": "u2"}, "boundaries", columns=columns) as writer:
        for at in range(100):
            drug = ("DMSO", "Bortezomib")[at % 2] if at % 10 else None
            writer.append(token=[at], columns={"plate": f"p{at % 2 + 1}", "drug": drug, "score": at})
    return penstock.open(tmp_path / "d")


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        (
            "drug = 'bortezomib'",
            "no document has drug = 'bortezomib': is 'Bortezomib' meant? there are \"Bortezomib\", ",
        ),
        ("drug in ('DMSO', 'x')", "no document has drug = 'x': there are "),
        ("drug <> 'y' and score > 3", "no document has drug = 'y': there are"),
        ("not (drug = 'z' or plate = 'p1')", "no document has drug = 'z'"),
        ("plate = 'never'", 'no document has plate = \'never\': there are "p1", "p2"'),
        ("plate = 'never' and score > 1", "no document has plate = 'never'"),
    ],
)
def test_a_text_that_no_document_has_is_warned_of(dataset: penstock.Dataset, condition: str, said: str) -> None:
    for view in (dataset, dataset.documents()):
        with pytest.warns(UserWarning) as told:
            view.where(condition)
        (warning,) = told
        assert said in str(warning.message) and warning.filename == __file__


@pytest.mark.parametrize(
    "condition",
    ["drug = 'DMSO'", "plate in ('p1', 'never')", "drug is null", "drug < 'x'", "score > 1000", "drug <> plate"],
)
def test_other_conditions_say_nothing(dataset: penstock.Dataset, condition: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset.where(condition)


@pytest.mark.parametrize("is_in_place", [False, True])
@pytest.mark.parametrize(
    ("condition", "said"),
    [
        (
            "stage > 'late'",
            "stage > 'late' compares texts by their bytes, not in the order of the categories, which is "
            '"early", "late", "it\'s adult": in that order that is stage in (\'it\'\'s adult\')',
        ),
        ("plate = 'a < ''b''' or 'it''s adult' > stage", "in that order that is stage in ('early', 'late')"),
        ("not (\"the stage\" < 'early') or stage = 'late'", None),
        ("\"the stage\" > 'it''s adult'", "in that order there is none"),
        ("stage > 'no stage' and plate > 'a < ''b''' or apart > 'late'", None),
    ],
)
def test_the_order_of_categories_is_told_where_it_is_not_that_of_bytes(
    tmp_path: Path, condition: str, said: str | None, is_in_place: bool
) -> None:
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    sparse = pytest.importorskip("scipy.sparse")
    made = anndata.AnnData(sparse.eye(12, format="csr", dtype="f4"))
    stages, names = ["early", "late", "it's adult"], ["late", "early"]
    for name in ("stage", "the stage"):
        made.obs[name] = pandas.Categorical(stages * 4, categories=stages, ordered=True)
    made.obs["plate"] = pandas.Categorical(["a < 'b'", "c"] * 6)
    made.obs["apart"] = pandas.Categorical(names * 6, categories=names)  # in an order, and not ordered
    made.write_h5ad(tmp_path / "a.h5ad")
    if not is_in_place:
        penstock.import_anndata(tmp_path / "a.h5ad", tmp_path / "d")
    dataset = penstock.open(tmp_path / ("a.h5ad" if is_in_place else "d"))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        dataset.where(condition)
    assert len(told) == (said is not None)
    assert said is None or (said in str(told[0].message) and told[0].filename == __file__)
