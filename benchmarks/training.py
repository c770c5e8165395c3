"""What loading costs a training step: fed by penstock against fed from memory, in alternating blocks.

The step is torch on one thread: the tokens are looked up in a table, then matrices are multiplied until about 3 or 100
ms are over, both calibrated here. It is fed from memory in two ways: with one and the same batch, which stays in the
core's cache as do the rows that it looks up, and with others in turn, more than the caches hold. New tokens cost a step
what the two differ by, wherever they come from.

A block ends when the engine has read ahead what it may and sleeps, so each block pays for its own batches and for no
other's. A turn of blocks gives quotients, by the clock of trimmed means, by processor time of all steps; a repeat is
the median of several turns, each in the other order than the one before.
"""

from __future__ import annotations

import importlib.util
import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import penstock
from results import Result, SkippedError, warm
from workloads import BATCH, WINDOW, Corpora

PAUSE_SECONDS = 0.02  # the threads fill what is read ahead in far less
BLOCK_SECONDS = 0.4  # short: what else the machine does meets both of a pair
TRIM = 0.1  # of the steps at each end: what the scheduler or an interrupt did
STEPS = {3: 3.0, 100: 1.0}  # ms: the greatest slowdown in % that may be
VOCABULARY, WIDTH = 1 << 17, 64
LOOKED_UP = 64  # tokens of each window
OTHERS = 128  # batches in memory, half a MiB each
SIDE = 256  # of the matrices: one product is a tenth of the short step


@dataclass(frozen=True)
class Block:
    """Seconds of a step: by the clock (trimmed mean), by the process' and by the main thread's processor time."""

    wall: float
    process: float
    main: float


def measure(corpora: Corpora) -> list[Result]:
    if importlib.util.find_spec("torch") is None:
        raise SkippedError("torch is not installed")
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            kinds = [(reader, ms) for reader in ("auto", "mmap") for ms in STEPS]
            return [line for reader, ms in kinds for line in slowdown(corpora, reader, ms)]
    finally:
        torch.set_num_threads(threads)


def slowdown(corpora: Corpora, reader: str, target_ms: int) -> list[Result]:
    """Slowdown in % of a step of about `target_ms`, by the clock and by processor time, each repeat a value."""
    path = corpora.tokens()
    warm([path])
    view = penstock.open(str(path), dtype="u4").windows(WINDOW, lookahead=1)
    with penstock.Loader(view, batch_size=BATCH, rank=0, world_size=1, framework="torch", reader=reader) as loader:
        held = next(loader)
        others = itertools.cycle([copied(next(loader)) for _ in range(OTHERS)])
        step = make_step(held, target_ms / 1e3)
        steps = 3 if corpora.quick else max(4, round(BLOCK_SECONDS / target_ms * 1e3))
        feeds: list[Callable[[], Any]] = [lambda: held, lambda: next(others), lambda: next(loader)]
        rounds = [turns(feeds, step, steps, corpora.size.pairs) for _ in range(corpora.size.repeats)]
    what = f"a step of about {target_ms} ms, torch on 1 thread{'' if reader == 'auto' else f', reader={reader}'}"
    how = f"warm; {steps} steps a block, {corpora.size.pairs} turns of blocks a repeat"
    bytes_each = BATCH * (WINDOW + 1) * 4
    results = []
    for feed, against in enumerate(("one batch", "other batches")):
        for said, key, target in (
            ("by the clock", "wall", STEPS[target_ms]),
            ("CPU time of the process", "process", STEPS[target_ms]),
            ("CPU time of its main thread", "main", None),
        ):
            found = tuple(statistics.median(percent(turn[-1], turn[feed], key) for turn in one) for one in rounds)
            said = f"{what}: slowdown against {against} in memory, {said}"
            results.append(Result("training", said, "%", found, how, bytes_each, at_most=target))
    for feed, fed in enumerate(("one batch in memory", "other batches in memory", "penstock")):
        found = tuple(turn[feed].wall * 1e3 for one in rounds for turn in one)
        results.append(Result("training", f"{what}: fed by {fed}", "ms", found, "warm"))
    return results


def copied(batch: Any) -> Any:
    """What a step reads of a batch, in memory of its own."""
    return SimpleNamespace(inputs=batch.inputs.clone(), labels=batch.labels.clone())


def percent(fed: Block, memory: Block, key: str) -> float:
    """By how much the fed step is longer."""
    return float(100 * (getattr(fed, key) / getattr(memory, key) - 1))


def turns(
    feeds: Sequence[Callable[[], Any]], step: Callable[[Any], None], steps: int, count: int
) -> list[tuple[Block, ...]]:
    """`count` times a block of each feed, forwards and backwards in turn."""
    found = []
    for number in range(count):
        order = list(range(len(feeds)))[:: 1 if number % 2 == 0 else -1]
        blocks = {which: block(feeds[which], step, steps) for which in order}
        found.append(tuple(blocks[which] for which in range(len(feeds))))
    return found


def block(feed: Callable[[], Any], step: Callable[[Any], None], steps: int) -> Block:
    """Some steps; processor time is read when the threads of the engine sleep again."""
    time.sleep(PAUSE_SECONDS)
    process, main = time.process_time(), time.thread_time()
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        step(feed())
        times.append(time.perf_counter() - begin)
    main = time.thread_time() - main
    time.sleep(PAUSE_SECONDS)
    return Block(trimmed_mean(times, TRIM), (time.process_time() - process) / steps, main / steps)


def trimmed_mean(values: Sequence[float], share: float) -> float:
    """The mean without the `share` least and the `share` greatest values.

    >>> trimmed_mean([1, 2, 3, 4, 100], 0.2)
    3.0
    """
    cut = int(len(values) * share)
    return statistics.fmean(sorted(values)[cut : len(values) - cut])


def make_step(batch: Any, seconds: float) -> Callable[[Any], None]:
    """A step on `batch.inputs` and `batch.labels` with as many products of matrices as fill `seconds` here."""
    import torch

    table = torch.randn(VOCABULARY, WIDTH)
    weight = torch.randn(SIDE, SIDE) / SIDE**0.5

    def step(given: Any, products: int) -> None:
        # Each id is read, as an embedding and a loss read it; a part of them is looked up.
        total = given.inputs.sum() + given.labels.sum()
        hidden = table[given.inputs[:, :: WINDOW // LOOKED_UP]].view(-1, SIDE) + total * 0
        for _ in range(products):
            hidden = torch.tanh(hidden @ weight)

    def cost(products: int) -> float:
        """Processor time, which a busy machine stretches less than the clock."""
        times = []
        for _ in range(9):
            begin = time.thread_time()
            step(batch, products)
            times.append(time.thread_time() - begin)
        return statistics.median(times)

    cost(8)
    nothing, eight = cost(0), cost(8)
    products = max(1, round((seconds - nothing) / max(1e-9, (eight - nothing) / 8)))
    return lambda given: step(given, products)
