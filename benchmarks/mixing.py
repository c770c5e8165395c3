"""How well orders mix an atlas of cells: the entropy of the plates in a batch, by block and by fetch.

102,400 documents lie plate after plate, 14 plates of 0.7 to 1.3 times the mean size, H(p) = 3.78 bits as the plates of
scDataset's article. Batches of 64 in Blocks(b, 64 f): scDataset's words are block size b and fetch factor f. The mean
over all batches of an epoch is between the article's bounds for K labels and batches of m,
H(p) - (K - 1) b / (2 m ln 2) and H(p) - (K - 1) / (2 m ln 2), up to the next term of the same expansion.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import penstock
from results import Result
from workloads import Corpora

DOCUMENTS = 102_400
BATCH = 64
PLATES = 14
FACTORS = (1, 4, 16, 64, 256)
BLOCKS = (1, 4, 16, 64, 256)
# (b, f) -> mean entropy of scDataset 0.3.0 over whole epochs of these plates' shares, facts/cells.md.
SCDATASET = {(16, 1): 1.78, (16, 16): 3.46, (16, 256): 3.61, (64, 16): 3.00, (256, 64): 3.03}
NEAR = 0.05


def measure(corpora: Corpora) -> list[Result]:
    results = []
    labels = plates()
    for block, factor in cases():
        seeds = range(1 if corpora.quick else 3)
        values = tuple(mean_entropy(labels, block, factor, seed) for seed in seeds)
        low, high = bounds(labels, block)
        theirs = SCDATASET.get((block, factor))
        at = {"block": float(block), "factor": float(factor), "low": low, "high": high}
        at |= {"scDataset": theirs} if theirs is not None else {}
        what = f"entropy of a batch of {BATCH}: Blocks({block}, {BATCH} × {factor})"
        results.append(Result("mixing", what, "bits", values, "nothing is read", at=at))
    return results


def cases() -> list[tuple[int, int]]:
    """Blocks and factors whose fetch is whole blocks."""
    return [(block, factor) for block in BLOCKS for factor in FACTORS if BATCH * factor % block == 0]


def plates() -> np.ndarray[Any, Any]:
    """The plate of each document, int64 [DOCUMENTS]."""
    shares = np.linspace(0.7, 1.3, PLATES)
    ends = np.round(np.cumsum(shares) / shares.sum() * DOCUMENTS).astype(int)
    return np.searchsorted(ends, np.arange(DOCUMENTS), side="right")


def mean_entropy(labels: np.ndarray[Any, Any], block: int, factor: int, seed: int) -> float:
    """Of the labels in a batch, over all batches of an epoch."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokens.bin"
        np.zeros(len(labels), "u1").tofile(path)
        view = penstock.open(path, dtype="u1").windows(1)
        order = penstock.orders.Blocks(block, BATCH * factor)
        job = penstock.Job(view, global_batch_size=BATCH, seed=seed, order=order, epochs=1, per_epoch=True)
        drawn = labels[job.picks(0, len(labels))["index"]].reshape(-1, BATCH)
    counts = np.zeros((len(drawn), labels.max() + 1))
    np.add.at(counts, (np.arange(len(drawn))[:, None], drawn), 1)
    return float(np.mean([entropy(each) for each in counts]))


def entropy(counts: np.ndarray[Any, Any]) -> float:
    """In bits, of what was counted."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def bounds(labels: np.ndarray[Any, Any], block: int) -> tuple[float, float]:
    """Between which the mean entropy is, up to `slack`."""
    counts = np.bincount(labels)
    unit = (len(counts) - 1) / (2 * BATCH * math.log(2))
    return entropy(counts) - block * unit, entropy(counts) - unit


def slack(labels: np.ndarray[Any, Any], block: int) -> float:
    """What the expansion leaves out, in bits: its next term, for the m / b blocks of the lower bound."""
    shares = np.bincount(labels) / len(labels)
    return NEAR + float((1 / shares).sum() - 1) / (12 * (BATCH / block) ** 2 * math.log(2))
