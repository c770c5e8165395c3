"""suggest_parameters over `penstock.suggest`; estimates of sizes are scDataset's."""

from __future__ import annotations

from typing import Any

import penstock

import scdataset

__path__.append(str(scdataset.THEIRS / "experimental"))

from scdataset.experimental import auto_config  # noqa: E402
from scdataset.experimental.auto_config import estimate_sample_size  # noqa: E402


def suggest_parameters(collection: Any, batch_size: int, verbose: bool = True, **options: Any) -> dict[str, Any]:
    """What penstock measures, by the names of scDataset's estimate."""
    scdataset.count()
    hooks = {name: options[name] for name in ("fetch_callback", "fetch_transform") if name in options}
    found = penstock.suggest(collection, batch_size, seconds=0.2, **hooks)
    if verbose:
        print(found)
    return {
        "fetch_factor": found.fetch_factor,
        "block_size_conservative": max(1, found.block // 2),
        "block_size_balanced": found.block,
        "block_size_aggressive": found.block * 2,
        "num_workers": 1,
    }


auto_config.suggest_parameters = suggest_parameters
__all__ = ["auto_config", "estimate_sample_size", "suggest_parameters"]
