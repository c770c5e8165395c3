"""The rows that `penstock trace` found, as a table."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from penstock._base.words import counted
from penstock._cli.output import echo
from penstock._view.decoder import visible

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH = 140  # where the output is no terminal
_LONGEST = 160  # characters of a text or of metadata, unless all of it is wanted


def draw(path: str, traced: dict[str, Any], full: bool) -> None:
    """Prints the rows of a batch as a table.

    Args:
        path: of the dataset, for the title.
        traced: step, position, next_position and rows.
        full: all of each text is shown.
    """
    from rich.table import Table

    rows = traced["rows"]
    step = "" if traced["step"] is None else f"step {traced['step']:,}, "
    title = f"{step}positions {traced['position']:,} to {traced['next_position']:,} of {path}"
    why = "" if step else ", since --global-batch-size was not given; a state does not hold it"
    echo(f"{title}: {counted(len(rows), 'row')}{why}")
    has_sources = any(row["source"] is not None for row in rows)
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    for name in ("position", "rank", "row", *(["source"] if has_sources else []), "epoch", "index"):
        table.add_column(name, justify="left" if name == "source" else "right", no_wrap=True)
    for name in ("document", "records"):
        table.add_column(name, no_wrap=True)
    has_metadata = any(span["metadata"] is not None for row in rows for span in row["spans"])
    if has_metadata:
        table.add_column("metadata", overflow="fold", ratio=2)
    table.add_column("text", overflow="fold", ratio=3)
    for row in rows:
        head = [f"{row[name]:,}" for name in ("position", "rank", "row")]
        head += [row["source"]] if has_sources else []
        head += [f"{row[name]:,}" for name in ("epoch", "index")]
        for document, records, metadata, text in _documents(row, full):
            cells = [*head, document, records, *([metadata] if has_metadata else []), text]
            table.add_row(*map(_cell, cells))
            head = [""] * len(head)
    for line in _rendered(table):
        echo(line.rstrip())


def _documents(row: dict[str, Any], full: bool) -> list[list[str]]:
    """Document, records, metadata and text of each span; of a row without spans its shard and text."""
    if not row["spans"]:
        return [[_place(row), f"0 to {row['records']:,}", "", _cut(row["text"], full)]]
    found = []
    for span in row["spans"]:
        metadata = "" if span["metadata"] is None else json.dumps(span["metadata"], ensure_ascii=False)
        offset = span["offset"]
        name = f"{_file(span['shard'])}/{span['id'][1]:,}" + (f" from {offset:,}" if offset else "")
        where = f"{span['start']:,} to {span['stop']:,}"
        found.append([name, where, _cut(metadata, full), _cut(span["text"], full)])
    return found


def _place(row: dict[str, Any]) -> str:
    """The shards that a row is cut from, the first with its place in it."""
    names = list(map(_file, row["shards"]))
    if names and row["shard_offset"] is not None:
        names[0] += f" from {row['shard_offset']:,}"
    return ", ".join(names)


def _file(shard: str) -> str:
    """Files of others are shards by their whole path, which no column has room for."""
    return shard.rsplit("/", 1)[-1]


def _cut(text: str, full: bool) -> str:
    line = text if full else " ".join(text.split())
    return line if full or len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _cell(text: str) -> Any:
    from rich.text import Text

    return Text("\n".join(map(visible, text.splitlines())))  # data is no markup


def _rendered(table: Any) -> list[str]:
    from rich.console import Console

    out = io.StringIO()
    console: Console = Console()
    width = console.width if console.is_terminal else _WIDTH
    Console(file=out, width=width, color_system=None).print(table)
    return out.getvalue().splitlines()
