"""How commands are told which data to open, and where new data goes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from penstock import _native
from penstock._cli.command_help import ADDRESSES, FOREIGN, headed
from penstock._cli.output import SizeType

Command = TypeVar("Command", bound=Callable[..., Any])

_OPENING = "penstock.opening"  # in a command's context: what storage_options() were given
_CACHE = ("cache", "cache_bytes")  # of them; the others are Storage's

out_or_bucket_option = click.option(
    "--out", required=True, metavar="DIR|URL", help="The new dataset's folder, or its address in a bucket."
)

scratch_option = click.option(
    "--scratch",
    metavar="DIR",
    help="With --out in a bucket: folder that holds a few shards until they are uploaded. Default: a new one among the "
    "temporary files.",
)

passing_option = click.option(
    "--scratch",
    metavar="DIR",
    help="With an address: folder for shards that pass through this machine. Default: a new one in that of --out, or "
    "among the temporary files.",
)

_REACHING: dict[str, dict[str, Any]] = {
    "--requester-pays": {"is_flag": True, "help": "Bucket: bill the account that asks. Default: off."},
    "--anonymous": {"is_flag": True, "help": "Bucket: ask without credentials. Default: off."},
    "--profile": {"metavar": "NAME", "help": "Bucket: profile of ~/.aws/config. Default: AWS_PROFILE."},
    "--region": {
        "metavar": "NAME",
        "help": "Bucket: its region, such as eu-west-1. Default: AWS_REGION, else us-east-1.",
    },
    "--endpoint": {
        "metavar": "URL",
        "help": "Bucket: address of a server that speaks S3, such as http://minio:9000. Default: AWS_ENDPOINT_URL_S3.",
    },
}
_KEEPING: dict[str, dict[str, Any]] = {
    "--cache-bytes": {
        "type": SizeType(),
        "help": "Bytes that --cache takes at most, such as 20GiB. Default: half of what is free there or kept already.",
    },
    "--cache": {
        "metavar": "DIR",
        "help": "Folder of this machine that keeps what was read from an address, for the next time. Default: none.",
    },
}


def bucket_options(command: Command) -> Command:
    """Adds what says how buckets are reached; given_storage() finds it."""
    return _noted(_REACHING, command)


def storage_options(command: Command) -> Command:
    """Adds what says how addresses are opened and kept; open_data() finds it."""
    return _noted({**_REACHING, **_KEEPING}, command)


def _noted(options: dict[str, dict[str, Any]], command: Command) -> Command:
    for name, given in options.items():
        option = click.option(name, expose_value=False, callback=_note, **given)
        command = headed(ADDRESSES, option)(command)
    return command


def given_storage() -> Any:
    """The Storage that the options of this command say; None: they say nothing."""
    import penstock

    context = click.get_current_context(silent=True)
    reaching = reaching_options(context.meta) if context is not None else {}
    return penstock.Storage(**reaching) if reaching else None


def reaching_options(meta: dict[str, Any]) -> dict[str, Any]:
    """The options in a command's context that say how buckets are reached."""
    return {name: value for name, value in meta.get(_OPENING, {}).items() if name not in _CACHE}


def data_options(command: Command) -> Command:
    """Adds the argument DATA…, the hints for files that are not ours and how addresses are opened."""
    formats = _native.format_names()
    command = storage_options(command)
    option = click.option(
        "--format",
        type=click.Choice(formats),
        metavar="FORMAT",
        help=f"Format of the files: {', '.join(formats)}. Default: told by name and content.",
    )
    command = headed(FOREIGN, option)(command)
    option = click.option(
        "--dtype",
        metavar="T",
        help="Type of a token in bare files, such as u2 or u4. Default: the type that the files state.",
    )
    command = headed(FOREIGN, option)(command)
    return click.argument("data", nargs=-1, required=True, metavar="DATA...")(command)


def sides_options(otherwise: str) -> Callable[[Command], Command]:
    """Adds the options of the token that bounds documents of bare files; told_by_sides() takes them.

    Args:
        otherwise: what there is without them, as their default.
    """

    def add(command: Command) -> Command:
        for side in ("begin", "end"):
            option = click.option(
                f"--{side}-of-document",
                type=click.IntRange(0),
                metavar="ID",
                help=f"Bare token files: a document {side}s with each token ID. Default: {otherwise}.",
            )
            command = headed(FOREIGN, option)(command)
        return command

    return add


def told_by_sides(dataset: Any, given: dict[str, Any]) -> Any:
    """The dataset with the documents that `sides_options` tell, which are taken out of `given`; what is doubtful of the
    token is a note on standard error.

    Raises:
        InvalidArgumentError: As `dataset.documents`, in the words of options.
    """
    end, begin = given.pop("end_of_document"), given.pop("begin_of_document")
    with sides_as_options(), warnings_as_notes():
        told = dataset._told_by(end, begin)
    return told


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Prints warnings of what is called as notes on standard error."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", UserWarning)
        yield
    for each in warned:
        click.echo(f"note: {in_options(str(each.message))}", err=True)


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
    from penstock._make.errors import UsageError
    from penstock._places.stores.location import location_of

    try:
        yield
    except penstock.NotFoundError as error:
        mine = [location_of(each).path for each in paths or ()]
        if paths is not None and error.filename not in mine:
            raise
        raise UsageError(str(error)) from None


_SIDE = re.compile(r"(?<![\w/.-])(begin|end)_of_document(?:=(?:([\d,]*\d)|…)?)?(?![\w/.-])")


def in_options(text: str) -> str:
    """The text with `begin_of_document=9` of Python as the option of commands: `--begin-of-document 9`."""
    return _SIDE.sub(lambda found: f"--{found[1]}-of-document" + (f" {found[2]}" if found[2] else ""), text)


@contextmanager
def sides_as_options() -> Iterator[None]:
    """Makes an error name the token that bounds documents as `in_options` does.

    Raises:
        InvalidArgumentError: As inside.
    """
    import penstock

    try:
        yield
    except penstock.InvalidArgumentError as error:
        raise penstock.InvalidArgumentError(in_options(str(error))) from None


def refuse_existing(out: str, overwrite: bool) -> None:
    """Says that something is there where a new dataset is to be made.

    Args:
        out: The folder.
        overwrite: A dataset may be there.

    Raises:
        UsageError: A dataset, or a file.
    """
    from penstock._make.errors import UsageError
    from penstock._make.folders import folder_of
    from penstock._make.local_folder import refuse_file
    from penstock._places.paths import is_there

    folder = folder_of(out)
    if not folder.is_here:  # where the writer looks
        return
    refuse_file(folder.path)
    if not overwrite and is_there(str(Path(folder.path) / "dataset.json")):
        raise UsageError(f"{out} holds a dataset already: replace it with --overwrite, or choose another --out")
