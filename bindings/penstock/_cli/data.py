"""How commands are told which data to open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def data_options(command: Command) -> Command:
    """Adds the argument DATA… and the hints for files that are not ours."""
    command = click.option("--format", help="Of foreign files, where their names do not say it.")(command)
    command = click.option("--dtype", help="Of a record of bare files, as u2.")(command)
    return click.argument("data", nargs=-1, required=True, metavar="DATA...")(command)


def open_data(data: tuple[str, ...], dtype: str | None, format: str | None) -> Any:
    """The dataset; several paths are one after the other.

    Raises:
        penstock.Error: It cannot be opened.
    """
    import penstock

    hints = {name: value for name, value in (("dtype", dtype), ("format", format)) if value is not None}
    return penstock.open(*data, **hints)
