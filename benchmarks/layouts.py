"""What the compact layout gives against ids: the same documents and entries, windows of 4,096 tokens."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import coldness
import penstock
from results import Result, alternate, ratios, warm
from throughput import windows_per_second as warm_windows_per_second
from windows import windows_per_second
from workloads import WINDOW, Corpora

THREADS = 2


def measure(corpora: Corpora) -> list[Result]:
    paths = {"compact": corpora.documents(), "ids": corpora.documents_with_ids()}
    return [*read_bytes(paths), *warm_reads(corpora, paths), *cold_reads(corpora, paths)]


def read_bytes(paths: dict[str, Path]) -> list[Result]:
    """Bytes that a window takes from its files in an epoch, by the system's count: every window is read once."""
    results = []
    for layout, path in paths.items():
        view = penstock.open(str(path)).windows(WINDOW)
        before = bytes_read()
        for index in range(len(view)):
            view.read([index])
        values = ((bytes_read() - before) / len(view),)
        results.append(Result("layouts", f"{layout}: bytes read for a window, an epoch's mean", "B", values, "any"))
    return results


def bytes_read() -> int:
    """What this process has read from files so far; reading it adds a hundred bytes."""
    line = Path("/proc/self/io").read_text(encoding="ascii").splitlines()[0]
    return int(line.removeprefix("rchar:"))


def warm_reads(corpora: Corpora, paths: dict[str, Path]) -> list[Result]:
    for path in paths.values():
        warm(files_of(path))
    views = [penstock.open(str(path)).windows(WINDOW) for path in paths.values()]
    runs = [partial(warm_windows_per_second, view, "numpy", THREADS, corpora.size.seconds) for view in views]
    return lines(list(paths), alternate(corpora.size.repeats, runs), "warm")


def cold_reads(corpora: Corpora, paths: dict[str, Path]) -> list[Result]:
    seconds = corpora.size.cold_seconds
    files = [file for path in paths.values() for file in files_of(path)]

    def cold(path: Path, group: Path | None) -> float:
        coldness.drop(files)
        return windows_per_second([path], None, 0, {}, seconds, group)

    with coldness.read_ahead(files[0]) as ahead, coldness.memory_bound(corpora.size.cold_bound) as (group, bound):
        runs = [partial(cold, path, group) for path in paths.values()]
        found = alternate(min(5, corpora.size.repeats), runs)
    return lines(list(paths), found, f"cold: dropped, no window twice, {ahead}, {bound}")


def files_of(path: Path) -> list[Path]:
    return [file for file in sorted(path.rglob("*")) if file.is_file()]


def lines(layouts: list[str], found: list[tuple[float, ...]], cache: str) -> list[Result]:
    how = cache.partition(":")[0]
    results = [
        Result("layouts", f"{layout}: {how}", "windows/s", values, cache, WINDOW * 4)
        for layout, values in zip(layouts, found, strict=True)
    ]
    return [*results, Result("layouts", f"compact / ids: {how}", "ratio", ratios(*found), cache, WINDOW * 4)]
