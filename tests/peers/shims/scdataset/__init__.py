"""scDataset's names over penstock, for scDataset's own tests: `python tests/peers/run.py`.

What the tests import from here is a few lines over public names of penstock. The rest is scDataset's own: its checks of
arguments, its estimates of sizes, its transforms.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

THEIRS = Path(os.environ["PENSTOCK_PEER"]) / "scdataset"
__path__.append(str(THEIRS))  # behind this folder: their modules that have no shim here

used = 0  # how often penstock was asked for something


def count() -> None:
    """Notes that a test came to penstock."""
    global used
    used += 1


def theirs(name: str) -> Any:
    """Their module that has a shim here."""
    spec = importlib.util.spec_from_file_location(f"scdataset._their_{name}", THEIRS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


from scdataset.multiindexable import MultiIndexable  # noqa: E402
from scdataset.scdataset import scDataset  # noqa: E402
from scdataset.strategy import (  # noqa: E402
    BlockShuffling,
    BlockWeightedSampling,
    ClassBalancedSampling,
    SamplingStrategy,
    Streaming,
)

__all__ = [
    "BlockShuffling",
    "BlockWeightedSampling",
    "ClassBalancedSampling",
    "MultiIndexable",
    "SamplingStrategy",
    "Streaming",
    "scDataset",
]
