"""`penstock pack`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import click

from penstock._base.words import counted
from penstock._cli.command_help import Command, Function, heading
from penstock._cli.data import data_options, in_options, open_data, sides_as_options, sides_options
from penstock._cli.output import echo, emit_json, emit_table, human_seconds, json_option, progress
from penstock._places.remote import shown

_EPILOG = """\b
Example:
  penstock pack corpus/ --window 4096 --out corpus.pack
"""


def _number(name: str, help: str, *, least: int = 1, metavar: str = "N", **more: Any) -> Callable[[Function], Function]:
    return click.option(name, type=click.IntRange(least), metavar=metavar, help=help, **more)


def _choice(name: str, words: list[str], help: str) -> Callable[[Function], Function]:
    """The first word is the default."""
    return click.option(name, type=click.Choice(words), default=words[0], show_default=True, help=help)


@click.command("pack", cls=Command, epilog=_EPILOG)
@data_options
@_number("--window", "Records (tokens) of a row.", metavar="W", required=True)
@click.option("--out", required=True, metavar="FILE", help="File for the table; it must not exist.")
@_number("--lookahead", "Records that a row has behind these, for labels.", least=0, default=0, show_default=True)
@_choice(
    "--fit",
    ["best", "first", "next"],
    "best puts a document into the fullest row that has room for it, first into the first one; next, with --fill "
    "exact, takes documents in their order.",
)
@_choice("--long", ["split", "truncate", "drop", "refuse"], "What becomes of a document longer than a row.")
@click.option(
    "--where",
    metavar="CONDITION",
    help='Pack only documents whose columns are so, such as "score > 0.8", for dataset.where(CONDITION).packed(…). '
    "Default: all.",
)
@heading("Rows")
@_choice(
    "--fill", ["pad", "exact"], "exact cuts a row's last document where the row ends, so that there is no padding."
)
@_number("--buffer", "With --fill exact and --fit best: documents among which one is looked for. Default: 1000.")
@_number("--refill", "With --buffer: documents that come into it together. Default: 128.")
@_number("--group", "Number of documents that are packed together; a row has documents of one group. Default: 65536.")
@_number(
    "--multiple-of",
    "Round the room that a document takes up to a multiple of N records.",
    default=1,
    show_default=True,
)
@_number("--max-document", "Records of a document that a row has at most. Default: those of the row.")
@click.option(
    "--cut",
    type=click.Choice(["split", "truncate"]),
    help="What becomes of a document longer than --max-document. Default: split.",
)
@_number("--max-documents", "Sequences of a row at most: its documents, and what is left of it. Default: any number.")
@sides_options("the files state their documents")
@json_option
def command(data: tuple[str, ...], dtype: str | None, format: str | None, as_json: bool, **given: Any) -> None:
    """Packs a dataset's documents into rows of W records, once, for dataset.packed(W, table=FILE).

    Only the index of the documents is read; of bare token files all tokens. The table has 8 bytes for each document and
    row; it belongs to this very dataset and these options.
    """
    from penstock._data.packed import packing_of, resolve, write_table
    from penstock._data.where import choose
    from penstock._places.paths import local_path

    dataset = open_data(data, dtype, format)
    with sides_as_options(), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        dataset = dataset._told_by(given.pop("end_of_document"), given.pop("begin_of_document"))
    out, where = given.pop("out"), given.pop("where")
    rule = resolve(**given)
    choice = None if where is None else choose(dataset._native, where)
    asked: dict[str, Any] = {} if choice is None else {"where": choice.condition}
    asked |= {name: value for name in given if (value := getattr(rule, name)) is not None}
    begin = time.perf_counter()
    with progress(f"packing {shown(*data)}", as_json, unit="documents") as update:
        header = write_table(dataset._native, rule, local_path(out), lambda done: update(done, dataset.spans), choice)
    packing = packing_of(header)
    notes = [str(each.message) for each in warned]
    if as_json:
        emit_json({"path": out, "fingerprint": header.fingerprint, **asked, **packing._asdict(), "notes": notes})
        return
    left = f", {packing.left_out:,} of them in no row" if packing.left_out else ""
    lost = f", {counted(packing.records_left_out, 'record')} left out" if packing.records_left_out else ""
    emit_table(
        [
            ("table", out),
            ("documents", f"{packing.documents:,}{left}"),
            ("rows", f"{packing.rows:,} of {rule.window:,} records{lost}"),
            ("waste", f"{packing.waste:.2%}"),
            ("took", human_seconds(time.perf_counter() - begin)),
        ]
    )
    for note in notes:
        echo(f"note: {in_options(note)}")
