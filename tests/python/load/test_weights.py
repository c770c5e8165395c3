"""Weights: decimals are exact, floats count as their repr, and what cannot be is refused in words."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import penstock
import pytest
from _mixtures import WINDOW, loader, write_sources
from penstock import Mixture, Stage
from penstock._load.weights import whole_weights


def test_decimals_are_integers_of_one_ratio():
    for given, wanted in (
        ({"a": 0.7, "b": 0.3}, {"a": 7, "b": 3}),
        ({"a": "0.123", "b": 1}, {"a": 123, "b": 1000}),
        ({"a": Decimal("1.50"), "b": "1e-1", "c": 0.0}, {"a": 15, "b": 1, "c": 0}),
        ({"a": np.float32(0.7), "b": np.float64(0.3)}, {"a": 7, "b": 3}),
        ({"a": np.int64(4), "b": 2}, {"a": 2, "b": 1}),
        ({"a": 0.1 + 0.2}, {"a": 1}),
        ({"a": 10**18, "b": 0.5}, {"a": 2 * 10**18, "b": 1}),
        ({"a": 1e300, "b": 3e300}, {"a": 1, "b": 3}),
        ({"a": 0, "b": 0.0}, {"a": 0, "b": 0}),
        ({"a": "0.123456789012345678", "b": "0.876543210987654322"},
         {"a": 61728394506172839, "b": 438271605493827161}),
    ):  # fmt: skip
        assert whole_weights("weights", given) == wanted
    tensor = pytest.importorskip("torch").tensor([0.25, 0.75])
    assert whole_weights("weights", {"a": tensor[0], "b": tensor[1]}) == {"a": 1, "b": 3}


def test_floats_that_do_not_fit_are_rounded_to_parts_of_their_sum():
    random = np.random.default_rng(0)
    for _ in range(200):
        logits = random.normal(0, 6, 7)
        parts = np.exp(logits) / np.exp(logits).sum()
        given = {str(number): float(part) for number, part in enumerate(parts)}
        whole = whole_weights("weights", given)
        assert 0 < sum(whole.values()) < 1 << 62
        exact = {name: Fraction(repr(each)) for name, each in given.items() if "e" not in repr(each)}
        for name, each in exact.items():
            off = Fraction(whole[name], sum(whole.values())) - each / sum(map(Fraction, map(repr, given.values())))
            assert abs(off) <= Fraction(8, 10**9)
    assert whole_weights("weights", {"a": 0.1, "b": 1e-30}) == {"a": 1, "b": 0}
    assert whole_weights("weights", {"a": 1 / 3, "b": 1e-8 / 3}) == {"a": 10**8 - 1, "b": 1}


def test_no_weights_are_refused():
    for given, words in (
        (-0.5, r"web'\]=-0.5: must be a finite number of at least 0"),
        (float("nan"), "=nan: must be a finite number"),
        ("inf", "='inf': must be a finite number"),
        ("a half", "='a half': must be a number, such as 0.25"),
        ("1e500", "must be from 1e-400 to 1e400"),
        ("0." + "1" * 5000, "5,000 digits: must have at most 1,000"),
        (Decimal("3." + "0" * 4999 + "1"), "5,001 digits"),
        (np.ma.masked, "must be a"),
        (np.ma.array(3, mask=True), "must be a"),
        (np.ma.array(0.5, mask=True), "must be a"),
        (True, "=True: must be an integer"),
        (np.True_, "must be a number"),
        (1j, "must be an integer"),
        ([1], "must be an integer"),
        (1 << 64, "must be from 0"),
    ):
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            whole_weights("weights", {"web": given, "code": 1})
    for exact in ({"a": "1e-30", "b": 1}, {"a": (1 << 62) - 1, "b": 2}):
        with pytest.raises(penstock.InvalidArgumentError, match=r"weights: the sum .* beyond 2\^62: divide"):
            whole_weights("weights", exact)


def test_a_stage_of_decimals_is_the_stage_of_their_integers(tmp_path):
    views = {name: each.windows(WINDOW) for name, each in write_sources(tmp_path).items()}
    decimals = Mixture(views, [Stage({"web": 0.7, "code": "0.2", "books": Decimal("0.1")})], end=300)
    whole = Mixture(views, [Stage({"web": 7, "code": 2, "books": 1})], end=300)
    assert decimals.stages == whole.stages and decimals.stages[0].weights == {"books": 1, "code": 2, "web": 7}
    assert loader(decimals).state_dict() == loader(whole).state_dict()
    with pytest.raises(penstock.InvalidArgumentError, match=r"stage 0: weights\['web'\]=nan"):
        Mixture(views, [Stage({"web": float("nan")})])
    with pytest.raises(penstock.InvalidArgumentError, match=r"stage 0: weights: the sum"):
        Mixture(views, [Stage({"web": "1e-40", "code": 1})])
