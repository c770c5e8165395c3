"""Blocks mix as the theory of scDataset's article says, and as well as scDataset itself."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest


def test_the_entropy_of_a_batch_is_between_the_bounds_and_that_of_scdataset(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "benchmarks"))
    mixing = importlib.import_module("mixing")
    labels = mixing.plates()
    assert mixing.bounds(labels, 0)[0] == pytest.approx(3.78, abs=0.005)
    cases = {*mixing.SCDATASET, (1, 1), (1, 64), (4, 4), (256, 256)}
    assert cases <= {*mixing.cases()}
    for block, factor in sorted(cases):
        low, high = mixing.bounds(labels, block)
        found = mixing.mean_entropy(labels, block, factor, seed=1)
        assert low - mixing.slack(labels, block) <= found <= high + mixing.NEAR, (block, factor)
        theirs = mixing.SCDATASET.get((block, factor), found)
        assert found == pytest.approx(theirs, abs=mixing.NEAR), (block, factor)
