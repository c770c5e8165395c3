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
