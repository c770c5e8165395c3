"""`penstock view`."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from penstock._cli.command_help import Command
from penstock._cli.data import data_options, named_by_user, open_data
from penstock._cli.output import echo, emit_json, json_option
from penstock._make.errors import UsageError

if TYPE_CHECKING:
    from penstock._data.dataset import Dataset


_EPILOG = """\b
Examples:
  penstock view corpus/ --tokenizer tokenizer.json
  penstock view corpus/ 'tokens/*.bin' --dtype u2 --port 8000 --no-open
  penstock view mix.json --tokenizer tokenizer.json
"""


@click.command("view", cls=Command, epilog=_EPILOG)
@data_options
@click.option(
    "--tokenizer", metavar="FILE", help="The tokenizer.json that made the ids. Default: ids are shown, not text."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port on 127.0.0.1; 0 takes any that is free.",
)
@click.option("--no-open", is_flag=True, help="Print the address only; do not open a browser.")
@json_option
def command(
    data: tuple[str, ...],
    dtype: str | None,
    format: str | None,
    tokenizer: str | None,
    port: int,
    no_open: bool,
    as_json: bool,
) -> None:
    """Serves a page on this machine that shows datasets, until Ctrl-C.

    Each DATA is a dataset of its own; a glob in quotes is one dataset. Of several, --dtype and --format are for those
    that do not say it themselves. The file of a mixture, mix.json, shows its sources.

    The page has a table of documents that is filtered and sorted, search, any document or window with its tokens and
    what training sees of it, the rows of a step, charts, duplicates, and two datasets side by side. It answers on
    127.0.0.1 alone, at the address that is printed, whose key keeps out others who use the machine. On a machine far
    away: ssh -L PORT:127.0.0.1:PORT HOST, with --port PORT.
    """
    from penstock._view.exhibit import Exhibit
    from penstock._view.server import ViewServer

    mixture = _mixture(data)
    if mixture is None:
        exhibits = [Exhibit((each,), _opened(each, len(data) > 1, dtype, format), tokenizer) for each in data]
    else:
        datasets = [each.dataset for each in mixture[1].sources.values()]
        exhibits = [Exhibit((each.path,), each, tokenizer) for each in datasets]
    try:
        server = ViewServer(exhibits, port, mixture)
    except OSError as error:
        raise UsageError(f"--port {port}: {error.strerror or error}: choose another, or 0 for any") from None
    try:
        with contextlib.suppress(KeyboardInterrupt):  # how it is ended
            _tell(server.address, as_json)
            if not (no_open or as_json) and _may_open():
                _open(server.address)
            server.serve_forever(poll_interval=0.2)
    finally:
        server.close()


def _mixture(data: tuple[str, ...]) -> tuple[str, Any] | None:
    """Name and mixture, if DATA is the file of one.

    Raises:
        UsageError: it is, and there are other DATA.
    """
    import penstock

    files = [each for each in data if each.endswith(".json") and Path(each).is_file()]
    if not files:
        return None
    if len(data) > 1:
        raise UsageError(f"{files[0]}: the file of a mixture stands alone: its sources are shown")
    with named_by_user():
        return files[0], penstock.Mixture.from_file(files[0])


def _opened(path: str, is_one_of_several: bool, dtype: str | None, format: str | None) -> Dataset:
    """With the hints where they are needed: of several, some may say themselves what they hold."""
    import penstock

    if is_one_of_several and (dtype or format):
        with contextlib.suppress(penstock.InvalidArgumentError):
            return cast("Dataset", open_data((path,)))
    return cast("Dataset", open_data((path,), dtype, format))


def _tell(address: str, as_json: bool) -> None:
    if as_json:
        emit_json({"address": address})
    else:
        echo(f"{address}\nCtrl-C ends it")
    sys.stdout.flush()


def _may_open() -> bool:
    """Whether someone sits before this terminal, with a browser that is not drawn into it."""
    return sys.stdout.isatty() and any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _open(address: str) -> None:
    import threading
    import webbrowser

    # Some browsers keep their caller waiting until they are closed.
    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
