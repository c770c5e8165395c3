"""Orders that draw, and Sequential with a fetch: labels and weights as users have them, and what is refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import raw_tokens
from penstock.orders import Balanced, Sequential, Weighted

N = 61
LABELS = np.array([0] * 40 + [1] * 15 + [-1] * 2 + [2] * 4)
WEIGHTS = np.random.default_rng(0).gamma(0.5, size=N)


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    return raw_tokens(tmp_path_factory.mktemp("draws") / "tokens.bin", N * 4)[0].windows(4)


def loader_of(view: penstock.View, order: Any, **options: Any) -> penstock.Loader:
    given = {"global_batch_size": 60, "seed": 4, "epochs": 3, "framework": "numpy", "threads": 2, **options}
    return penstock.Loader(view, order=order, **given)


def drawn(view: penstock.View, order: Any, **options: Any) -> np.ndarray:
    with loader_of(view, order, **options) as loader:
        return np.concatenate([batch.indices[batch.valid] for batch in loader])


def test_classes_come_in_turn_or_by_their_shares(view):
    for order in (Balanced(LABELS), Balanced(LABELS, fetch=12)):
        labels = LABELS[drawn(view, order, tail="drop")]
        assert (np.sort(labels.reshape(-1, 3), axis=1) == [0, 1, 2]).all()
    names = np.array(["T", "B", "none", "NK"])[np.where(LABELS < 0, 2, np.where(LABELS == 2, 3, LABELS))]
    order = Balanced(names, weights={"T": 1, "B": 1, "NK": 8, "none": 0})
    shares = Counter(names[drawn(view, order, per_epoch=True)].tolist())
    assert set(shares) == {"T", "B", "NK"}
    assert abs(shares["NK"] - 0.8 * N) < len(names) * 0.1 and abs(shares["T"] - 0.1 * N) < 2
    # A class smaller than its share repeats its members evenly.
    repeated = Counter(drawn(view, Balanced(LABELS, weights=[0, 0, 1], size=41), per_epoch=True).tolist())
    assert set(repeated) == {57, 58, 59, 60} and set(repeated.values()) == {10, 11}


def test_labels_may_be_any_numbers(view):
    far = np.where(LABELS == 2, 2_000_000_011, np.where(LABELS == 1, 2**31 - 1, LABELS))
    same = np.select([LABELS == 1], [3], LABELS)
    assert drawn(view, Balanced(far)).tolist() == drawn(view, Balanced(same)).tolist()
    with pytest.raises(penstock.InvalidArgumentError, match="below 2\\^31"):
        Balanced(np.where(LABELS == 2, 2**31, LABELS))
    shares = Balanced(far, weights={0: 1, 2**31 - 1: 0, 2_000_000_011: 0})
    assert set(drawn(view, shares).tolist()) == set(range(40))


def test_a_memory_map_of_weights_and_its_array_are_one_order(tmp_path, view):
    np.save(tmp_path / "weights.npy", WEIGHTS)
    with (
        loader_of(view, Weighted(np.load(tmp_path / "weights.npy", mmap_mode="r"))) as mapped,
        loader_of(view, Weighted(WEIGHTS.tolist())) as plain,
        loader_of(view, Weighted(WEIGHTS[::-1])) as other,
    ):
        assert mapped.state_dict() == plain.state_dict()
        with pytest.raises(penstock.StateMismatchError, match="table"):
            other.load_state_dict(plain.state_dict())


def loaders_of(view: penstock.View, order: Any) -> list[Any]:
    """Each that takes an order: of a view, of a mixture, of a collection."""
    mixture = penstock.Mixture({"a": view, "b": view[:30]}, [penstock.Stage()], end=200)
    return [
        loader_of(view, order, global_batch_size=10),
        penstock.Loader(mixture, 10, order={"a": order}, framework="numpy"),
        penstock.CollectionLoader(np.arange(N), 10, order=order, epochs=3),
    ]


@pytest.mark.parametrize("make", [Weighted, lambda _, **how: Balanced(LABELS, weights=[1, 2, 3], **how)])
def test_a_run_that_began_with_systematic_draws_ends_with_them(view, make):
    old = make(WEIGHTS, draws="systematic")
    for began, new, same in zip(*(loaders_of(view, order) for order in (old, make(WEIGHTS), old)), strict=True):
        next(began), next(new)
        state = began.state_dict()
        assert '{"algorithm":1,"draws":' in state["job"] and '{"algorithm":2,"draws":' in new.state_dict()["job"]
        with pytest.raises(penstock.StateMismatchError, match=r'saved 1, now 2: .* give draws="systematic" to'):
            new.load_state_dict(state)
        with pytest.raises(penstock.StateMismatchError, match=r"saved 2, now 1: .* leave draws= of the order out"):
            same.load_state_dict(new.state_dict())
        same.load_state_dict(state)
        ends = [getattr(batch, "indices", batch).tolist() for batch in (next(began), next(same))]
        assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Weighted([1, 2, 3]), "3 weights for a view of 61 observations"),
        (lambda: Balanced([0, 1]), "2 labels for a view of 61"),
        (lambda: Weighted(np.where(np.arange(N) == 7, -1.0, 1.0)), "weight -1 of observation 7"),
        (lambda: Weighted(np.where(np.arange(N) == 8, np.nan, 1.0)), "of observation 8"),
        (lambda: Weighted(np.where(np.arange(N) == 9, np.inf, 1.0)), "weight inf of observation 9"),
        (lambda: Weighted(np.zeros(N)), "all 61 weights are 0"),
        (lambda: Weighted(np.arange(N), replace=False), "too heavy for replace=False"),
        (lambda: Weighted(np.ones((N, 1))), r"weights of shape \[61, 1\]"),
        (lambda: Weighted(["a"] * N), "numbers"),
        (lambda: Weighted(np.ones(N), block=4), "block=4 needs fetch="),
        (lambda: Weighted(np.ones(N), block=4, fetch=6), "a fetch of 6: wanted a multiple of the block, 4"),
        (lambda: Weighted(np.ones(N), size=0), "size 0"),
        (lambda: Weighted(np.ones(N), draws="old"), "draws='old': wanted 'rounded', 'independent', or 'systematic'"),
        (lambda: Sequential(fetch=0), "fetch 0"),
        (lambda: Balanced(np.full(N, -1)), "all are negative"),
        (lambda: Balanced(np.full(N, 0.5)), "integers or strings"),
        (
            lambda: Balanced("drug"),
            r"Balanced\('drug'\): labels are wanted, not their name: give dataset.columns\['drug'\]",
        ),
        (lambda: Balanced(["a", None] * 30 + ["a"]), "label None of observation 1"),
        (lambda: Balanced(LABELS, weights={0: 1, 1: 1}), "no weight for 2"),
        (lambda: Balanced(LABELS, weights={0: 1, 1: 1, 2: 1, 5: 1}), "a weight for 5, which no label is"),
        (lambda: Balanced(LABELS, weights=[1, 2]), "2 weights for 3 classes"),
        (lambda: Balanced(LABELS, weights=[1, -2, 0]), "weight -2"),
        (lambda: Balanced(LABELS, weights=[0, 0, 0]), "are 0"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_words(view, make, words):
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        loader_of(view, make())


def test_weights_may_be_by_the_categories_of_a_column(tmp_path: Path) -> None:
    drugs = np.random.default_rng(0).permutation(["A", "B", None, "A"] * 500).tolist()
    with penstock.Writer(tmp_path / "d", {"token": "u2"}, columns={"drug": "category"}) as writer:
        writer.append_batch(np.ones(len(drugs), "u8"), columns={"drug": drugs}, token=np.ones(len(drugs), "u2"))
    dataset = penstock.open(tmp_path / "d")
    column = dataset.columns["drug"]
    picks = []
    for shares in ({"A": 0.7, "B": 0.3}, {0: 0.7, 1: 0.3}):  # by name or by code
        order = Balanced(column, weights=shares, size=1000)
        picks.append(penstock.Job(dataset.documents(), global_batch_size=100, order=order).picks(0, 1000)["index"])
    missing, a, b = np.bincount(column[:][picks[0]] + 1, minlength=3)
    assert missing == 0 and a + b == 1000 and abs(b - 300) < 40
    assert (picks[0] == picks[1]).all()
    with pytest.raises(penstock.InvalidArgumentError, match="a weight for 'C', which no label is"):
        Balanced(column, weights={"A": 1, "B": 1, "C": 1})
    with pytest.raises(penstock.InvalidArgumentError, match="no weight for 'B'; 0 leaves a class out"):
        penstock.Loader(dataset.documents(), 8, order=Balanced(column, weights={"A": 1}))


def test_labels_by_a_column_are_those_of_the_views_documents(tmp_path: Path) -> None:
    drugs = np.random.default_rng(0).permutation(["A", "B", None, "C"] * 100).tolist()
    with penstock.Writer(tmp_path / "d", {"token": "u2"}, columns={"drug": "category"}) as writer:
        writer.append_batch(np.ones(len(drugs), "u8"), columns={"drug": drugs}, token=np.ones(len(drugs), "u2"))
    dataset = penstock.open(tmp_path / "d")
    column, documents = dataset.columns["drug"], dataset.documents()
    names = column.categories
    assert names is not None
    rare = dataset.where("drug <> 'C'").documents()
    train, held_out = rare.split(10)
    mirrored = documents.select(np.arange(400)[::-1])  # as many observations, elsewhere
    for view in (
        train,
        held_out,
        documents[50:90],
        mirrored,
        penstock.Mixture({"d": train}, [penstock.Stage({"d": 1})]),
    ):
        part = view.sources["d"] if isinstance(view, penstock.Mixture) else view
        labels = column[part.base_indices(range(len(part)))]
        some = {names[code] for code in labels if code >= 0}
        for shares in (None, {"A": 3, "B": 1, "C": 1}):
            drawn = [
                penstock.Job(view, global_batch_size=30, order=Balanced(each, weights=by)).picks(0, 60)["index"]
                for each, by in (
                    (column, shares),
                    (labels, shares and {names.index(each): shares[each] for each in some}),
                )
            ]
            assert (drawn[0] == drawn[1]).all() and (labels[drawn[0]] >= 0).all()
    order = Balanced(column, weights={"A": 1, "B": 2})  # no cell of the view has the third
    assert len(penstock.Job(train, global_batch_size=30, order=order).picks(0, 9)["index"]) == 9
    for order, words in ((Balanced(column[:]), "labels"), (Weighted(np.ones(400)), "weights")):
        with pytest.raises(penstock.InvalidArgumentError, match=rf"400 {words} for .* give {words}\[view.base_ind"):
            penstock.Loader(train, 8, order=order)
