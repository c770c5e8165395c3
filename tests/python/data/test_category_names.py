"""Strings of categories in batches: `penstock.columns.Names`."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import penstock
import pytest
import torch
from penstock.columns import Names

DRUGS = ["A", "B", None, "C", "A", None, "B"]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> penstock.Dataset:
    path: Path = tmp_path_factory.mktemp("named") / "d"
    with penstock.Writer(path, {"token": "u2"}, columns={"drug": "category", "score": "f4"}) as writer:
        for number, drug in enumerate(DRUGS):
            writer.append(token=range(number % 3 + 1), columns={"drug": drug, "score": number})
    return penstock.open(path)


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("rows", ["documents", "windows"])
def test_batches_have_the_strings_of_codes(dataset: penstock.Dataset, framework: Any, rows: str) -> None:
    given: dict[str, Any] = {"columns": ["score", "drug"]}
    view = dataset.documents(**given) if rows == "documents" else dataset.windows(4, **given)
    beside, instead = Names("drug", "drug_name"), Names("drug")
    options = {"epochs": 1, "framework": framework, "order": "sequential"}
    with (
        penstock.Loader(view, 4, columns=[beside, "position_ids"], **options) as one,
        penstock.Loader(view, 4, columns=[instead], **options) as other,
    ):
        for batch, replaced in zip(one, other, strict=True):
            codes, names = batch.columns["drug"], batch.columns["drug_name"]
            expected = [None if code < 0 else ("A", "B", "C")[code] for code in codes.tolist()]
            assert names.tolist() == replaced.columns["drug"].tolist() == expected and names.dtype == object
            assert list(replaced.columns) == ["score", "drug"]
            assert isinstance(codes, torch.Tensor) == (framework == "torch")
            copy = pickle.loads(pickle.dumps(batch.clone()))
            assert copy.columns["drug_name"].tolist() == expected
    assert view.read([0]).columns["drug"][0] == 0  # a view has codes


def test_names_of_no_category_of_the_view_are_refused(dataset: penstock.Dataset) -> None:
    view = dataset.documents(columns=["drug", "score"])
    for loaded, wanted, words in (
        (dataset.documents(), [Names("drug")], "no column of the view: this view has none"),
        (view, [Names("plate")], "no column of the view"),
        (view, [Names("score")], "no category"),
        (view, [Names("drug", "token")], "already"),
        (view, [Names("drug", "score")], "already"),
        (view, [Names("drug", "")], "must be a name"),
        (view, [Names("drug", "x"), Names("drug", "x")], "twice"),
    ):
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            penstock.Loader(loaded, 2, columns=wanted)
