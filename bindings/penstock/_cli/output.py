"""How commands speak: text for people, one JSON object for machines, progress on a terminal alone."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from penstock._cli.bar import Update, bar
from penstock._cli.command_help import PRINTED, headed
from penstock._cli.param_type import ParamType

json_option = headed(
    PRINTED,
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object, also for an error, and no progress."),
)

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_FACTORS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_FACTORS.update({f"{unit}i": 1024**power for power, unit in enumerate("kmgt", 1)})


class SizeType(ParamType[int]):
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
    """Makes errors say that the dataset `out` is there, and only its report is not.

    Raises:
        OutputError: It could not be printed.
        penstock.IoError: What is reported could not be read.
    """
    from penstock._base.errors import IoError

    try:
        yield
    except OutputError as error:
        raise OutputError(f"{out} was written; only the report could not be printed: {error}") from error
    except OSError as error:
        said = f"{out} was written; only what is to be reported could not be read: {error}"
        raise IoError(error.errno, said, error.filename) from error


def emit_json(value: Any) -> None:
    """Prints one JSON object."""
    echo(json.dumps(value, ensure_ascii=False, default=str))


_NUMBER = re.compile(r"(\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?=[ :;%]|, |$)")


def emit_table(rows: Sequence[tuple[str, str]]) -> None:
    """Prints names and values in two columns; where values begin with a number, its units stand in one column."""
    width = max(len(name) for name, _ in rows)
    numbers = [_NUMBER.match(value) for _, value in rows]
    digits = max((len(number[1]) for number in numbers if number), default=0)
    for (name, value), number in zip(rows, numbers, strict=True):
        shift = digits - len(number[1]) if number else 0
        echo(f"{name:<{width}}  {' ' * shift}{value}".rstrip())


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

    def amount(count: float) -> str:
        return human_bytes(count) if unit == "bytes" else f"{count:,.0f} {unit}"

    with bar(label, amount, of) as update:
        yield update
