"""From a fresh process to the first batch out of 1.1 T tokens, at the beginning and after a resume anywhere."""

from __future__ import annotations

from importing import fresh
from results import Result
from workloads import BATCH, TOKEN_BYTES, WINDOW, Corpora

CACHE = "manifest read before, sparse files"
BYTES = BATCH * (WINDOW + 1) * TOKEN_BYTES


def measure(corpora: Corpora) -> list[Result]:
    path = str(corpora.sparse())
    size = int(first_batch(path, None)["observations"])  # also brings what is common into the page cache
    places: dict[str, int | None] = {
        "position 0": None,
        "resumed in the middle": size // 2 + 12_345,
        "resumed at the end of epoch 1": 2 * size - 3 * BATCH,
    }
    found: dict[str, list[dict[str, float]]] = {place: [] for place in places}
    for _ in range(corpora.size.processes):
        for place, position in places.items():
            found[place].append(first_batch(path, position))
    tokens = corpora.size.sparse_shards * corpora.size.sparse_shard_tokens
    scale = f"{tokens / 1e12:.3g} T tokens in {corpora.size.sparse_shards:,} shards"
    results = []
    for place, runs in found.items():
        what = f"{scale}: open to first batch, {place}"
        results.append(line("opening", what, "ms", "all_ms", runs, at_most=50))
        if places[place] is not None:
            results.append(line("resuming", f"load_state_dict to batch, {place}", "ms", "resume_ms", runs))
    first = found["position 0"]
    results.append(line("opening", "of this: opening", "ms", "open_ms", first))
    results.append(line("opening", "of this: making the loader", "ms", "make_ms", first))
    results.append(line("opening", "resident memory, at most", "MiB", "most_resident_mib", first, at_most=100))
    return results


def first_batch(path: str, position: int | None) -> dict[str, float]:
    return fresh(path, str(WINDOW), str(BATCH), "-" if position is None else str(position))


def line(
    name: str, what: str, unit: str, key: str, runs: list[dict[str, float]], at_most: float | None = None
) -> Result:
    return Result(name, what, unit, tuple(run[key] for run in runs), CACHE, BYTES, at_most=at_most)
