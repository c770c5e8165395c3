"""Words for a state whose dataset has more shards now."""

from __future__ import annotations

import json
from typing import Any

from penstock._mixture import Mixture


def growth(view: Any, job: str) -> str:
    """What to add to the refusal of a state: its dataset is the first shards of the view's.

    Args:
        view: of the loader that refuses it.
        job: the state's.

    Returns:
        A sentence, or "" if the dataset has not grown.
    """
    if isinstance(view, Mixture):
        return ""
    try:
        (source,) = json.loads(job)["sources"]
        fingerprint, count = source["dataset"]["fingerprint"], int(source["dataset"]["shards"])
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return ""
    shards = len(view.dataset.shards)
    if not 0 < count < shards or view.dataset.select(range(count)).fingerprint != fingerprint:
        return ""
    return (
        f". It is the same dataset and more: the first {count:,} of these {shards:,} shards are the state's, and a "
        f"view of dataset.select(range({count})) goes on exactly"
    )
