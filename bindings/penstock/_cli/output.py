"""How commands speak: text for people, one JSON object for machines, progress on a terminal alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.progress import Task
    from rich.text import Text

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object, also for an error, and no progress."
)

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_FACTORS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_FACTORS.update({f"{unit}i": 1024**power for power, unit in enumerate("kmgt", 1)})


class SizeType(click.ParamType[int]):
    """A number of bytes: 1000000, 64M, 1GiB. K, M, G and T count in thousands, KiB and so on in 1,024."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The bytes that `value` says; usage error for what is not a size or is below 1."""
        if isinstance(value, int):
            return value
        text = str(value).strip().lower().removesuffix("b")
        digits = text.rstrip("kmgti")
        try:
            size = int(float(digits) * _FACTORS[text[len(digits) :]])
        except (KeyError, ValueError):
            size = 0
        if size < 1:
            self.fail(f"{value!r} is not a size such as 500000, 64M or 1GiB", param, ctx)
        return size


def human_bytes(count: float) -> str:
    """`1.5 GiB`."""
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count /= 1024
        unit += 1
    return f"{count:,.0f} {_UNITS[unit]}" if unit == 0 else f"{count:,.1f} {_UNITS[unit]}"


def human_seconds(seconds: float) -> str:
    """`0.2 s`, `3 min 20 s`, `5 h 12 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


class OutputError(RuntimeError):
    """Standard output took no more; the message says so."""


def echo(text: str) -> None:
    """Prints a line.

    Raises:
        OutputError: Standard output is closed or full.
        BrokenPipeError: Its reader is gone.
    """
    if sys.stdout is None:
        raise OutputError("standard output is closed")
    try:
        click.echo(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"standard output: {error.strerror or error}") from error


@contextmanager
def report_of(out: str) -> Iterator[None]:
    """Makes an OutputError say that the dataset `out` is there, and only its report is not."""
    try:
        yield
    except OutputError as error:
        raise OutputError(f"{out} was written; only the report could not be printed: {error}") from error


def emit_json(value: Any) -> None:
    """Prints one JSON object."""
    echo(json.dumps(value, ensure_ascii=False, default=str))


def emit_table(rows: list[tuple[str, str]]) -> None:
    """Prints names and values in two columns."""
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        echo(f"{name:<{width}}  {value}".rstrip())


Update = Callable[..., None]
"""Called with what is done and the total, 0 where that is unknown; then, if the rate is not that of what is done, with
what it is the rate of; with `label=`, if it is not yet what the bar is named after: that is counted by itself; and with
`note=`, which stands behind the label."""


@contextmanager
def progress(label: str, quiet: bool, unit: str = "bytes", of: str = "") -> Iterator[Update]:
    """A bar with rate and time left on standard error; nothing where that is no terminal, or where `quiet`.

    Where the total is unknown it shows what is done instead of a percentage.

    Args:
        label: What is being done.
        quiet: No bar at all.
        unit: "bytes", or a noun in the plural.
        of: What the rate is of, as " of text".
    """
    if quiet or not sys.stderr.isatty():
        yield lambda done, total, rated=None, label="", note="": None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.text import Text

    def amount(count: float) -> str:
        return human_bytes(count) if unit == "bytes" else f"{count:,.0f} {unit}"

    class Done(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(amount(task.completed) if task.total is None else f"{task.percentage:>3.0f}%")

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{amount(task.fields['rated'] / max(task.elapsed or 0.0, 1e-3))}/s{of}")

    columns = [TextColumn("{task.description}"), BarColumn(), Done(), Rate()]
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bars:
        task = bars.add_task(label, total=None, rated=0)

        shown = label

        def update(done: int, total: int, rated: int | None = None, label: str = label, note: str = "") -> None:
            nonlocal shown
            if label != shown:
                shown = label
                bars.reset(task, description=label, rated=0)
            rated = done if rated is None else rated
            bars.update(task, description=label + note, completed=done, total=total or None, rated=rated)

        yield update
