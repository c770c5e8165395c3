"""A mixture of 20 datasets beside one: windows a second, what a position costs to look up, and what a resume does."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import penstock
from results import Result, alternate, ratios, warm
from throughput import windows_per_second
from workloads import TOKEN_BYTES, WINDOW, Corpora

SOURCES = 20
#: Weights as people give them, and as counts of tokens, whose sum no word holds.
WEIGHTS = {
    "small weights": [each % 7 + 1 for each in range(SOURCES)],
    "counts of tokens": [10**9 * (each % 7 + 1) + 7919 * each for each in range(SOURCES)],
}
AT_ONCE = 4096
MOST_AT_ONCE, MOST_ALONE = 40.0, 100.0  # ns for each source and one


def measure(corpora: Corpora) -> list[Result]:
    return [*throughput(corpora), *ramps(corpora), *look_ups(corpora), *resumes(corpora), *steering(corpora)]


def parts_of(corpora: Corpora) -> dict[str, penstock.View]:
    """Twenty files that together are as large as the one."""
    path = corpora.tokens()
    folder = corpora.folder / f"{path.stem}-in-{SOURCES}"
    folder.mkdir(exist_ok=True)
    tokens = np.memmap(path, np.uint32, "r")
    views = {}
    for number, part in enumerate(np.array_split(tokens, SOURCES)):
        file = folder / f"{number}.bin"
        if not file.exists():
            part.tofile(file)
        views[f"part {number}"] = penstock.open(file, dtype="u4").windows(WINDOW)
    return views


def throughput(corpora: Corpora) -> list[Result]:
    path = corpora.tokens()
    parts = parts_of(corpora)
    warm([path, *path.parent.glob(f"{path.stem}-in-{SOURCES}/*.bin")])
    results = []
    one = penstock.open(path, dtype="u4").windows(WINDOW)
    for framework in ("numpy", "torch"):
        for name, weights in WEIGHTS.items():
            mixture: Any = penstock.Mixture(parts, [penstock.Stage(dict(zip(parts, weights, strict=True)))])
            runs = [partial(windows_per_second, view, framework, 2, corpora.size.seconds) for view in (mixture, one)]
            found = alternate(corpora.size.repeats, runs)
            what = f"{SOURCES} datasets, {name}, {framework}, 2 threads"
            size = WINDOW * TOKEN_BYTES
            results += [
                Result("mixture", what, "windows/s", found[0], "warm", size),
                Result("mixture", f"{what} / one dataset", "ratio", ratios(*found), "warm", size, at_least=0.9),
            ]
    return results


def ramps(corpora: Corpora) -> list[Result]:
    """In a ramp, whose steps' tables are made as the run comes to them, beside the same sources without one."""
    parts = parts_of(corpora)
    first, last = (dict(zip(parts, some, strict=True)) for some in (WEIGHTS["small weights"], range(SOURCES, 0, -1)))
    plain: Any = penstock.Mixture(parts, [penstock.Stage(first)])
    stages = [penstock.Stage(first), penstock.Stage(last, at=1, ramp=penstock.Positions(1 << 22))]
    ramped: Any = penstock.Mixture(parts, stages)
    runs = [partial(windows_per_second, view, "numpy", 2, corpora.size.seconds) for view in (ramped, plain)]
    found = alternate(corpora.size.repeats, runs)
    what = f"{SOURCES} datasets in a ramp, numpy, 2 threads"
    size = WINDOW * TOKEN_BYTES
    return [
        Result("mixture", what, "windows/s", found[0], "warm", size),
        Result("mixture", f"{what} / without a ramp", "ratio", ratios(*found), "warm", size, at_least=0.95),
    ]


def look_ups(corpora: Corpora) -> list[Result]:
    """Of the thread, by the size of the mixture, for each source and one; the sources' permutations are in it."""
    results = []
    for sources in (1, 2, 20, 200):
        views = looked_up(corpora.folder / "looked-up", sources)
        for name, some in WEIGHTS.items():
            weights = (some * (sources // SOURCES + 1))[:sources]
            mixture = penstock.Mixture(views, [penstock.Stage(dict(zip(views, weights, strict=True)))])
            for what, ranks, most in (("one rank", 1, MOST_AT_ONCE), ("of 1,024 ranks", 1024, MOST_AT_ONCE)):
                run = partial(batched_ns, mixture, ranks, sources)
                (values,) = alternate(corpora.size.repeats, [run])
                line = f"a look-up / (sources + 1), batched, {what}, {sources} sources, {name}"
                results.append(Result("mixture", line, "ns", values, "in memory", at_most=most))
            (values,) = alternate(corpora.size.repeats, [partial(single_ns, mixture, views, sources)])
            line = f"a look-up / (sources + 1), one at a time, {sources} sources, {name}"
            results.append(Result("mixture", line, "ns", values, "in memory", at_most=MOST_ALONE))
    return results


def looked_up(folder: Path, sources: int) -> dict[str, penstock.View]:
    """Views of about 10^7 windows each, of sparse files."""
    folder.mkdir(exist_ok=True)
    views = {}
    for number in range(sources):
        with (folder / f"{number}.bin").open("ab") as file:
            file.truncate(10**7 + number)
        views[f"part {number}"] = penstock.open(folder / f"{number}.bin", dtype="u1").windows(1)
    return views


def batched_ns(mixture: penstock.Mixture, ranks: int, sources: int) -> float:
    """Of a rank's batch of AT_ONCE rows; of one row, which is nearly all Python's part, none are counted."""
    few, many = (
        partial(penstock.Job(mixture, global_batch_size=ranks * rows).plan, rank=0, world_size=ranks)
        for rows in (1, AT_ONCE)
    )
    return (timed_ns(many, 8) - timed_ns(few, 8)) / (AT_ONCE - 1) / (sources + 1)


def single_ns(mixture: penstock.Mixture, views: dict[str, penstock.View], sources: int) -> float:
    """Of one position; what Python takes for one is told by a sequential view, whose look-up is next to nothing."""
    mixed = penstock.Job(mixture, global_batch_size=1)
    plain = penstock.Job(next(iter(views.values())), global_batch_size=1, order="sequential")
    one, none, one_plain, none_plain = (
        timed_ns(partial(job.picks, count=count), 2000) for job in (mixed, plain) for count in (1, 0)
    )
    return ((one - none) - (one_plain - none_plain)) / (sources + 1)


def timed_ns(call: Callable[[int], Any], calls: int) -> float:
    """Processor time of a call, at positions far apart."""
    call(12_345)
    begin = time.thread_time_ns()
    for number in range(calls):
        call(12_345 + 7919 * number)
    return (time.thread_time_ns() - begin) / calls


def resumes(corpora: Corpora) -> list[Result]:
    parts = parts_of(corpora)
    stages = [penstock.Stage(at=number * 1000) for number in range(20)]
    loaders = [
        penstock.Loader(penstock.Mixture(parts, stages[:count]), 8, seed=0, rank=0, world_size=1) for count in (20, 19)
    ]
    state = {**loaders[0].state_dict(), "position": 18_500}  # the last stage is to come: the jobs are compared

    def once() -> float:
        begin = time.perf_counter()
        loaders[1].load_state_dict(state)
        return (time.perf_counter() - begin) * 1e3

    (values,) = alternate(max(corpora.size.repeats, 20), [once])
    what = f"a state of {SOURCES} sources in 20 stages, in a job of 19"
    return [Result("mixture", what, "ms", values, "in memory", at_most=1.0)]


def steering(corpora: Corpora) -> list[Result]:
    """Weights by a softmax that are set again and again, and a state with all of them in a fresh loader."""
    count = 2_000 if corpora.quick else 100_000
    views = dict(list(parts_of(corpora).items())[:4])
    mixture = penstock.Mixture(views, [penstock.Stage()], steered=True)
    parts = np.random.default_rng(0).dirichlet(np.full(len(views), 4.0), count).tolist()
    steered = penstock.Loader(mixture, 8, seed=0, rank=0, world_size=1)
    begin = time.thread_time_ns()
    for number, some in enumerate(parts):
        steered.set_weights(dict(zip(views, some, strict=True)), at=8 * number)
    each = (time.thread_time_ns() - begin) / count
    state = {**steered.state_dict(), "position": 8 * count}

    def load() -> float:
        fresh = penstock.Loader(mixture, 8, seed=0, rank=0, world_size=1)
        begin = time.thread_time_ns()
        fresh.load_state_dict(state)
        return (time.thread_time_ns() - begin) / 1e6

    (values,) = alternate(corpora.size.repeats, [load])
    what = f"{count:,} weights of {len(views)} sources"
    return [
        Result("mixture", f"{what}, each set", "us", [each / 1e3], "in memory", at_most=100.0),
        Result("mixture", f"{what}, a state, in bytes of each", "B", [len(state["job"]) / count], "in memory"),
        Result("mixture", f"{what}, a state loaded", "ms", values, "in memory"),
    ]
