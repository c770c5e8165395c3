"""Missing labels of Balanced as pandas, NumPy and datasets have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import penstock
import pytest
from penstock.orders import Balanced, resolve

STRINGS = ["T", None, "B", "T", None, "NK", "T", "B"]
NUMBERS = [2, None, 0, 2, None, 5, 2, 0]
MISSING = [1, 4]
LABELS = {
    "objects": np.array(STRINGS, object),
    "a list": STRINGS,
    "NaN among strings": np.array([np.nan if each is None else each for each in STRINGS], object),
    "categorical": pd.Categorical(STRINGS),
    "a column of categories": pd.Series(STRINGS, dtype="category"),
    "pandas' strings": pd.Series(STRINGS, dtype="string"),
    "nullable integers": pd.Series(NUMBERS, dtype="Int64"),
    "floats": pd.Series(NUMBERS, dtype="f8"),
    "float32": np.array(NUMBERS, "f4"),
    "masked integers": np.ma.masked_array(
        [0 if each is None else each for each in NUMBERS], np.isin(range(8), MISSING)
    ),
    "masked strings": np.ma.masked_array([each or "T" for each in STRINGS], np.isin(range(8), MISSING)),
    "codes": np.array([-1 if each is None else each for each in NUMBERS]),
}


def turns(order: Balanced, classes: int) -> list[list[str]]:
    """Classes of each round, by their strings; "" is a missing label."""
    drawn = resolve(order, 8, 0).pick(0, 1, 4 * classes)[0].reshape(4, classes)
    return [sorted(STRINGS[each] or "" for each in turn) for turn in drawn.tolist()]


@pytest.mark.parametrize("kind", LABELS)
def test_missing_labels_are_never_drawn_or_are_a_class(kind: str) -> None:
    assert turns(Balanced(LABELS[kind], missing="drop"), 3) == [["B", "NK", "T"]] * 4
    own = Balanced(LABELS[kind], missing="own class")
    assert turns(own, 4) == [["", "B", "NK", "T"]] * 4 and own.names[-1] is None
    names = {"T": 2, "B": 0, "NK": 5} if own.names[0] == 0 else {"T": "T", "B": "B", "NK": "NK"}
    shares = {names["T"]: 0, names["B"]: 0, names["NK"]: 1, None: 3}
    drawn = resolve(Balanced(LABELS[kind], missing="own class", weights=shares, size=400), 8, 0).pick(0, 1, 400)[0]
    assert np.bincount(drawn, minlength=8).tolist() == [0, 150, 0, 0, 150, 100, 0, 0]


@pytest.mark.parametrize("kind", LABELS)
def test_missing_labels_are_refused_with_both_ways_out(kind: str) -> None:
    if kind == "codes":  # a code of -1 has always been one that is never drawn
        assert turns(Balanced(LABELS[kind]), 3) == turns(Balanced(LABELS[kind], missing="drop"), 3)
        return
    with pytest.raises(penstock.InvalidArgumentError, match="observation 1 is missing") as refused:
        Balanced(LABELS[kind])
    assert "missing='drop'" in str(refused.value) and "missing='own class'" in str(refused.value)


def test_labels_without_a_missing_one_are_the_same_order_whatever_missing_says() -> None:
    labels = np.array(["b", "a", "a"])
    orders = [resolve(Balanced(labels, missing=each), 3, 0) for each in (None, "drop", "own class")]
    assert len({order.identity(9) for order in orders}) == 1
    dropped, own = (resolve(Balanced(STRINGS, missing=each), 8, 0).identity(9) for each in ("drop", "own class"))
    assert dropped != own


@pytest.mark.parametrize("missing", [None, "drop", "own class"])
def test_whole_floats_are_integers_whether_one_is_missing_or_not(missing: Any) -> None:
    numbers = [2, 0, 0, 2, 5]
    expected = resolve(Balanced(np.array(numbers)), 5, 0)
    for labels in (np.array(numbers, "f8"), np.array(numbers, "f4"), np.array([*map(float, numbers)], object)):
        assert resolve(Balanced(labels, missing=missing), 5, 0).identity(9) == expected.identity(9)
    objects = Balanced(np.array([2.0, None, 0.0, np.float32(2), np.nan, 5, 2, 0], object), missing="drop")
    assert objects.labels.tolist() == [2, -1, 0, 2, -1, 5, 2, 0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Balanced(STRINGS, missing="keep"), "missing='keep': wanted 'drop' or 'own class'"),
        (lambda: Balanced(np.array([1.5, np.nan]), missing="drop"), "label 1.5"),
        (lambda: Balanced(np.array([1.0, 2.5])), "label 2.5: integers or strings wanted"),
        (lambda: Balanced(np.array([1.0, np.inf])), "label inf: integers or strings wanted"),
        (lambda: Balanced(np.array([1.0, 2.5], object)), "label 2.5 of observation 1"),
        (lambda: Balanced(np.array(["a", 3], object)), "label 3 of observation 1: strings wanted"),
        (lambda: Balanced(np.array([("a",), None], object), missing="drop"), "of observation 0: strings wanted"),
        (lambda: Balanced(STRINGS, missing="own class", weights={"T": 1, "B": 1, "NK": 1}), "no weight for None"),
        (lambda: resolve(Balanced([None, None], missing="drop"), 2, 0), "all are negative"),
    ],
)
def test_what_is_no_label_is_refused(make: Any, words: str) -> None:
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        make()


DRUGS = ["A", "B", None, "C", "A", None, "B"]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> penstock.Dataset:
    path: Path = tmp_path_factory.mktemp("named") / "d"
    with penstock.Writer(path, {"token": "u2"}, columns={"drug": "category", "score": "f4"}) as writer:
        for number, drug in enumerate(DRUGS):
            writer.append(token=range(number % 3 + 1), columns={"drug": drug, "score": number})
    return penstock.open(path)


def test_documents_of_a_column_without_a_category_are_a_class(dataset: penstock.Dataset) -> None:
    column = dataset.columns["drug"]
    for view in (dataset.documents(), dataset.documents()[1:], dataset.where("score < 6").documents()):
        order = Balanced(column, missing="own class", weights={"A": 0, "B": 0, "C": 0, None: 1}, size=20)
        picks = penstock.Job(view, global_batch_size=4, order=order).picks(0, 20)["index"]
        assert [DRUGS[each] for each in view.base_indices(picks)] == [None] * 20
