"""Blocks mix as the theory of scDataset's article says, and as well as scDataset itself."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest


@pytest.fixture
def mixing(monkeypatch):
    """benchmarks/mixing.py."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "benchmarks"))
    return importlib.import_module("mixing")


def test_plates_have_the_articles_entropy(mixing):
    assert mixing.bounds(mixing.plates(), 0)[0] == pytest.approx(3.78, abs=0.005)


def test_the_entropy_of_a_batch_is_between_the_bounds(mixing):
    labels = mixing.plates()
    for block, factor in mixing.cases():
        low, high = mixing.bounds(labels, block)
        found = mixing.mean_entropy(labels, block, factor, seed=1)
        assert low - mixing.slack(labels, block) <= found <= high + mixing.NEAR, (block, factor)


@pytest.mark.parametrize("case", [(16, 1), (16, 16), (16, 256), (64, 16), (256, 64)])
def test_it_is_that_of_scdataset(mixing, case):
    found = mixing.mean_entropy(mixing.plates(), *case, seed=1)
    assert found == pytest.approx(mixing.SCDATASET[case], abs=mixing.NEAR)
