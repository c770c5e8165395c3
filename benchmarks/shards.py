"""What shards cost: 10^13 tokens of u32 in 40,000 sparse files of 1 GB, beside 100 of them.

`python benchmarks/run.py --only shards` repeats it. How many files stay open is bounded by RLIMIT_NOFILE, so the lines
say what it was, and a third number of shards is as many as fit into it.
"""

from __future__ import annotations

import resource
from statistics import median

from opening import first_batch
from results import Result
from sizes import SMALL_WINDOW, window_ns
from workloads import BATCH, TOKEN_BYTES, WINDOW, Corpora

BYTES = BATCH * (WINDOW + 1) * TOKEN_BYTES


def measure(corpora: Corpora) -> list[Result]:
    size = corpora.size
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    kept = min(65536, hard // 4)  # what a store keeps open, core/io/local/descriptor_limit.h
    counts = sorted({size.few_shards, min(kept, size.many_shards), size.many_shards})
    cache = f"sparse files, manifest read before, {kept:,} files stay open (hard limit {hard:,})"
    paths = {count: corpora.sparse_of(count, size.many_shard_tokens) for count in counts}
    runs: dict[int, list[dict[str, float]]] = {count: [] for count in counts}
    windows: dict[int, list[float]] = {count: [] for count in counts}
    for path in paths.values():
        first_batch(str(path), None)
    for _ in range(size.processes):
        for count, path in paths.items():
            runs[count].append(first_batch(str(path), None))
    for _ in range(size.repeats):
        for count, path in paths.items():
            windows[count].append(median(window_ns(path, 3)))
    mapped = {count: [median(window_ns(path, 3, "mmap")) for _ in range(size.repeats)] for count, path in paths.items()}
    results = []
    for count in counts:
        what = f"{count:,} shards of {size.many_shard_tokens:,} tokens"
        manifest = (paths[count] / "dataset.json").stat().st_size
        found = tuple(run["all_ms"] for run in runs[count])
        text = f"{what}: open to first batch, manifest of {manifest / 1e6:.2g} MB"
        results.append(Result("shards", text, "ms", found, cache, BYTES, at_most=50))
        most = tuple(run["most_resident_mib"] for run in runs[count])
        results.append(Result("shards", f"{what}: resident memory, at most", "MiB", most, cache, BYTES, at_most=100))
        text = f"{what}: a window of {SMALL_WINDOW} records planned and read"
        results.append(Result("shards", text, "ns", tuple(windows[count]), cache, SMALL_WINDOW * TOKEN_BYTES))
        text += ", reader=mmap"
        results.append(Result("shards", text, "ns", tuple(mapped[count]), cache, SMALL_WINDOW * TOKEN_BYTES))
    few = windows[counts[0]]
    for count in counts[1:]:
        ratio = tuple(many / one for many, one in zip(windows[count], few, strict=True))
        text = f"a window of {count:,} shards / one of {counts[0]:,}"
        results.append(Result("shards", text, "ratio", ratio, cache, SMALL_WINDOW * TOKEN_BYTES, at_most=2))
        ratio = tuple(many / one for many, one in zip(mapped[count], few, strict=True))
        text = f"a window of {count:,} shards, reader=mmap / one of {counts[0]:,} as the loader chooses"
        results.append(Result("shards", text, "ratio", ratio, cache, SMALL_WINDOW * TOKEN_BYTES, at_most=2))
    return results
