"""The bar that long commands show on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Task
    from rich.text import Text

Update = Callable[..., None]
"""Called with what is done and the total, 0 where that is unknown; then, if the rate is not that of what is done, with
what it is the rate of; with `label=`, if it is not yet what the bar is named after: that is counted by itself; and with
`note=`, which stands behind the label."""

_COLOR = "cyan"
_NUMBERS = 46  # columns that the percentage, the rate and the times take
_LABEL, _LEAST_LABEL = 20, 12  # columns for the label beside a bar, and without one
_NOTE = 24  # columns for a note behind the label
_RECENT = 30.0  # seconds


def seconds_left(done: float, total: float, elapsed: float, recent: float | None) -> float | None:
    """Seconds until all is done; None before anything is.

    Args:
        done: how much is.
        total: how much there is.
        elapsed: seconds since the begin.
        recent: rich's estimate by the last half minute, which counts once that is over: a resumed run begins fast.
    """
    if recent is not None and elapsed > _RECENT:
        return recent
    return elapsed * (total - done) / done if done > 0 else None


def clock(seconds: float) -> str:
    """`0:07`, `12:45`, `3:02:10`."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def cut(label: str, room: int) -> str:
    """The label, without its middle where it has more letters than `room`: its first word and its end stay."""
    if len(label) <= room:
        return label
    first = label.partition(" ")[0] + " …"
    rest = room - len(first)
    return first + label[-rest:] if rest > 0 else label[:room]


@contextmanager
def bar(label: str, amount: Callable[[float], str], of: str) -> Iterator[Update]:
    """A bar on standard error.

    Args:
        label: what is being done.
        amount: words for a count, as `1.5 GiB`.
        of: what the rate is of, as " of text".
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
    from rich.table import Column
    from rich.text import Text

    class Done(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(amount(task.completed) if task.total is None else f"{task.percentage:>3.0f}%")

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{amount(task.fields['rated'] / max(task.elapsed or 0.0, 1e-3))}/s{of}")

    class Left(ProgressColumn):
        max_refresh = 0.5

        def render(self, task: Task) -> Text:
            elapsed = task.elapsed or 0.0
            if task.total is None or task.finished:
                return Text(clock(elapsed))
            left = seconds_left(task.completed, task.total, elapsed, task.time_remaining)
            return Text(f"{clock(elapsed)}, " + ("…" if left is None else f"{clock(left)} left"))

    console = Console(stderr=True)
    free = console.width - _NUMBERS
    length = 40 if free - 40 >= len(label) + _NOTE else 12 if free - 12 >= _LABEL else 0
    room = max(_LEAST_LABEL, free - length)
    line = BarColumn(bar_width=length, complete_style=_COLOR, finished_style=_COLOR, pulse_style=_COLOR)
    widest = len(f"{amount(1023.9 * 1024)}/s{of}")
    numbers = [  # as wide as they may become, so that they stay in place
        Done(table_column=Column(no_wrap=True, min_width=4, justify="right")),
        Rate(table_column=Column(no_wrap=True, min_width=widest, justify="right")),
        Left(table_column=Column(no_wrap=True, min_width=10)),
    ]
    columns = [TextColumn("{task.description}"), *([line] if length else []), *numbers]
    with Progress(*columns, console=console) as bars:
        task = bars.add_task(cut(label, room), total=None, rated=0)
        shown = label

        def update(done: int, total: int, rated: int | None = None, label: str = label, note: str = "") -> None:
            nonlocal shown
            if label != shown:
                shown = label
                bars.reset(task, description=cut(label, room), rated=0)
            rated = done if rated is None else rated
            bars.update(task, description=cut(label + note, room), completed=done, total=total or None, rated=rated)

        yield update
