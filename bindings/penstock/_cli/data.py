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

_OPENING = "penstock.opening"  # in a command's context: what storage_options() were given
_CACHE = ("cache", "cache_bytes")  # of them; the others are Storage's

out_option = click.option("--out", required=True, metavar="DIR", help="The new dataset's folder.")
out_or_bucket_option = click.option(
    "--out", required=True, metavar="DIR|URL", help="The new dataset's folder, or its address in a bucket."
)

scratch_option = click.option(
    "--scratch",
    metavar="DIR",
    help="With --out in a bucket: where a few shards are until they are uploaded; else in the temporary files.",
)


_REACHING: dict[str, dict[str, Any]] = {
    "--requester-pays": {"is_flag": True, "help": "Of a bucket: the asking account is billed."},
    "--anonymous": {"is_flag": True, "help": "Of a bucket: ask without credentials."},
    "--profile": {"metavar": "NAME", "help": "Of a bucket: a profile of ~/.aws/config; else AWS_PROFILE."},
    "--region": {"metavar": "NAME", "help": "Of a bucket: where it lies; else AWS_REGION, else us-east-1."},
    "--endpoint": {
        "metavar": "URL",
        "help": "Of a bucket: a server that speaks S3, as http://minio:9000; else AWS_ENDPOINT_URL_S3.",
    },
}
_KEEPING: dict[str, dict[str, Any]] = {
    "--cache-bytes": {"type": SizeType(), "help": "What --cache takes at most, as 20GiB; else half of what is free."},
    "--cache": {"metavar": "DIR", "help": "A folder that keeps what is read of an address."},
}


def bucket_options(command: Command) -> Command:
    """Adds what says how buckets are reached; given_storage() finds it."""
    return _noted(_REACHING, command)


def storage_options(command: Command) -> Command:
    """Adds what says how addresses are opened and kept; open_data() finds it."""
    return _noted({**_REACHING, **_KEEPING}, command)


def _noted(options: dict[str, dict[str, Any]], command: Command) -> Command:
    for name, given in options.items():
        command = click.option(name, expose_value=False, callback=_note, **given)(command)
    return command


def given_storage() -> Any:
    """The Storage that the options of this command say; None: they say nothing."""
    import penstock

    context = click.get_current_context(silent=True)
    given = context.meta.get(_OPENING, {}) if context is not None else {}
    reaching = {name: value for name, value in given.items() if name not in _CACHE}
    return penstock.Storage(**reaching) if reaching else None


def data_options(command: Command) -> Command:
    """Adds the argument DATA…, the hints for files that are not ours and how addresses are opened."""
    formats = click.Choice(_native.format_names())
    command = storage_options(command)
    command = click.option("--format", type=formats, help="Where the names do not say it.")(command)
    command = click.option("--dtype", help="Of a record of bare files, as u2.")(command)
    return click.argument("data", nargs=-1, required=True, metavar="DATA...")(command)


def _note(context: click.Context, option: click.Parameter, given: Any) -> None:
    """Keeps what open_data() gives on, so that no command has to."""
    if given is not None and given is not False:
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
    given: dict[str, Any] = context.meta.get(_OPENING, {}) if context is not None else {}
    opening: dict[str, Any] = {name: value for name, value in given.items() if name in _CACHE}
    if (storage := given_storage()) is not None:
        opening["storage"] = storage
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
    from penstock._remote import is_address
    from penstock._text.errors import UsageError

    try:
        yield
    except penstock.NotFoundError as error:
        mine = [each if is_address(each) else local_path(each) for each in paths or ()]
        if paths is not None and error.filename not in mine:
            raise
        raise UsageError(str(error)) from None


def refuse_existing(out: str, otherwise: str = "choose another --out") -> None:
    """Says that something is there where a new dataset is to be made.

    Raises:
        UsageError: A dataset, or a file.
    """
    from penstock._bucket_folder import is_bucket
    from penstock._paths import local_path
    from penstock._text.errors import UsageError
    from penstock._text.shard_folder import refuse_file

    if is_bucket(out):  # where the writer looks
        return
    folder = Path(local_path(out))
    refuse_file(str(folder))
    if (folder / "dataset.json").exists():
        raise UsageError(f"{out} holds a dataset already: {otherwise}")
