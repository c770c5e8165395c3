"""What transforms of rows cost: windows with each of them beside the same windows without."""

from __future__ import annotations

import itertools
import time
from functools import partial
from typing import Any

import penstock
from document_columns import WARM_UP_BATCHES, loader, windows_per_second
from penstock.columns import FillInTheMiddle, PerRow, SpanCorruption
from results import Result, alternate, ratios, warm
from workloads import BATCH, TOKEN_BYTES, WINDOW, Corpora


def measure(corpora: Corpora) -> list[Result]:
    path = corpora.documents()
    warm(file for file in path.rglob("*") if file.is_file())
    dataset = penstock.open(str(path))
    view = dataset.windows(WINDOW, lookahead=1, metadata="spans")
    plain = dataset.windows(WINDOW, metadata=False)
    spans = SpanCorruption(range(1 << 30, (1 << 30) - 300, -1), end=1)
    return [
        *compared(corpora, "fill-in-the-middle", view, view, [FillInTheMiddle(1, 2, 3, rate=0.5)]),
        *compared(corpora, "fill-in-the-middle of every piece", view, view, [FillInTheMiddle(1, 2, 3, rate=1)]),
        *compared(corpora, "span corruption", view, plain, [spans], at_least=None),
        *(
            _line(f"a function of rows on {'processes' if processes else 'threads'}", "windows/s", values)
            for processes, values in ((each, functions(corpora, plain, each)) for each in (False, True))
        ),
    ]


def first_token(row: Any, generator: Any) -> int:
    """As little as a function of a row can do."""
    return int(row["token"][0])


def functions(corpora: Corpora, view: Any, processes: bool) -> tuple[float, ...]:
    """Windows a second that two workers finish by `first_token`."""
    column = PerRow(first_token, {"first": "i8"}, workers=2, processes=processes)
    return alternate(corpora.size.repeats, [partial(windows_per_second, view, [column], corpora.size.seconds)])[0]


def windows_per_cpu_second(view: Any, columns: list[Any], batches: int) -> float:
    """Windows for a second of the process's processor time, of all threads: what others do then is left out."""
    with loader(view, columns) as given:
        for _ in itertools.islice(given, WARM_UP_BATCHES):
            pass
        begin = time.process_time()
        for _ in itertools.islice(given, batches):
            pass
        return batches * BATCH / (time.process_time() - begin)


def compared(
    corpora: Corpora, what: str, plain: Any, view: Any, columns: list[Any], at_least: float | None = 0.8
) -> list[Result]:
    """Processor time of a window of `view` with the columns beside that of `plain`, in alternating repeats."""
    runs = [partial(windows_per_cpu_second, each, given, corpora.size.batches) for each, given in
            ((plain, []), (view, columns))]  # fmt: skip
    without, with_it = alternate(corpora.size.repeats, runs)
    return [
        _line(f"windows beside {what}", "windows/CPU s", without),
        _line(what, "windows/CPU s", with_it),
        _line(f"{what} / windows", "ratio", ratios(with_it, without), at_least=at_least),
    ]


def _line(what: str, unit: str, values: tuple[float, ...], at_least: float | None = None) -> Result:
    return Result("transforms", what, unit, values, "warm", WINDOW * TOKEN_BYTES, at_least=at_least)
