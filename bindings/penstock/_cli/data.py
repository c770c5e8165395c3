"""How commands are told which data to open, and where new data goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from penstock import _native
from penstock._cli.output import SizeType

Command = TypeVar("Command", bound=Callable[..., Any])

_OPENING = "penstock.opening"  # keyword arguments of penstock.open, in a command's context

_STORAGE = "penstock.storage"  # Storage's fields, as they were given

out_option = click.option("--out", required=True, metavar="DIR", help="The new dataset's folder.")


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value:
        context.meta.setdefault(_STORAGE, {})[parameter.name] = value


def storage_options(command: Command) -> Command:
    """Adds what says how addresses are opened and kept; open_data() finds it."""
    for option in (
        click.option(
            "--requester-pays", is_flag=True, expose_value=False, callback=_keep, help="The asking account is billed."
        ),
        click.option("--anonymous", is_flag=True, expose_value=False, callback=_keep, help="Ask without credentials."),
        click.option("--profile", expose_value=False, callback=_keep, help="Of the vendor's configuration files."),
        click.option("--region", expose_value=False, callback=_keep, help="Where the bucket lies."),
        click.option(
            "--endpoint", expose_value=False, callback=_keep, help="Of a server that speaks the store's language."
        ),
    ):
        command = option(command)
    command = click.option(
        "--cache-bytes",
        type=SizeType(),
        expose_value=False,
        callback=_note,
        help="It takes at most, as 20GiB; half of what is free if left out.",
    )(command)
    command = click.option(
        "--cache", metavar="DIR", expose_value=False, callback=_note, help="Keeps what is read of an address."
    )(command)
    return command


def data_options(command: Command) -> Command:
    """Adds the argument DATA…, the hints for files that are not ours and how addresses are opened."""
    formats = click.Choice(_native.format_names())
    command = storage_options(command)
    command = click.option("--format", type=formats, help="Where the names do not say it.")(command)
    command = click.option("--dtype", help="Of a record of bare files, as u2.")(command)
    return click.argument("data", nargs=-1, required=True, metavar="DATA...")(command)


def _note(context: click.Context, option: click.Parameter, given: Any) -> None:
    """Keeps what open_data() gives on, so that no command has to."""
    if given is not None:
        context.meta.setdefault(_OPENING, {})[option.name] = given


def open_data(data: Sequence[str], dtype: str | None = None, format: str | None = None) -> Any:
    """The dataset; several paths are one after the other.

    Raises:
        UsageError: There is no dataset of this name.
        penstock.Error: It cannot be opened.
    """
    import penstock

    if dtype is not None:
        _check_dtype(dtype)
    hints: dict[str, Any] = {name: value for name, value in (("dtype", dtype), ("format", format)) if value is not None}
    context = click.get_current_context(silent=True)
    opening: dict[str, Any] = dict(context.meta.get(_OPENING, {})) if context is not None else {}
    if context is not None and _STORAGE in context.meta:
        opening["storage"] = penstock.Storage(**context.meta[_STORAGE])
    with named_by_user():
        return penstock.open(data[0], *data[1:], **hints, **opening)


def shown(*data: str) -> str:
    """Paths as they may be printed: addresses without passwords and signatures."""
    from penstock._remote import is_address

    return " ".join(_native.shown_address(each) if is_address(each) else each for each in data)


def _check_dtype(text: str) -> None:
    import numpy as np

    try:
        np.dtype(text)
    except (TypeError, ValueError, SyntaxError):
        raise click.UsageError(f'--dtype {text}: no type that NumPy knows: "u2" and "u4" are') from None


@contextmanager
def named_by_user(paths: Sequence[str] | None = None) -> Iterator[None]:
    """Makes a file that is not there the wrong use that it is where the user named it: one of `paths`; None: any."""
    import penstock
    from penstock._paths import local_path
    from penstock._text.errors import UsageError

    try:
        yield
    except penstock.NotFoundError as error:
        if paths is not None and error.filename not in map(local_path, paths):
            raise
        raise UsageError(str(error)) from None


def refuse_existing(out: str) -> None:
    """Says that something is there where a new dataset is to be made.

    Raises:
        UsageError: A dataset, or a file.
    """
    from penstock._paths import local_path
    from penstock._text.errors import UsageError
    from penstock._text.sink import refuse_file

    folder = Path(local_path(out))
    refuse_file(str(folder))
    if (folder / "dataset.json").exists():
        raise UsageError(f"{out} holds a dataset already: choose another --out")
