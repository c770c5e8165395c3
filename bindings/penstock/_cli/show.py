"""`penstock show`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from penstock._base.words import counted
from penstock._cli.command_help import Command
from penstock._cli.data import data_options, open_data, sides_as_options, sides_options, told_by_sides
from penstock._cli.document_names import document_number, number_of, split_name
from penstock._cli.output import echo, emit_json, human_bytes, json_option
from penstock._places.remote import shown
from penstock._view.decoder import Decoder, metadata_of, visible

_LINES_SHOWN = 24
_CHARACTERS_SHOWN = 20_000  # of one span's text, on a terminal
_LONGEST_VALUE = 60  # characters of a column's value, on a terminal
_WINDOW = 256  # records, unless --window says otherwise


_EPILOG = """\b
Examples:
  penstock show corpus/ 0 12 --window 256 --tokenizer tokenizer.json
  penstock show corpus/ --documents --index -1
  penstock show corpus/ 00000/2,855 --documents
  penstock show corpus/ --documents --where "lang = 'de' and score > 0.9"
"""


@click.command("show", cls=Command, epilog=_EPILOG)
@data_options
@click.option(
    "--index",
    "-i",
    "indices",
    multiple=True,
    metavar="N|SHARD/ENTRY",
    help="Number of a window or document, from 0; a negative one counts from the end. With --documents also a name, "
    "such as 00000/2,855, as trace prints it. May be repeated. Default: 0.",
)
@click.option(
    "--window",
    "-w",
    type=click.IntRange(1),
    help="Records (tokens) of a window. Default: 256, or all where there are fewer.",
)
@click.option("--documents", is_flag=True, help="Show documents instead of windows.")
@click.option(
    "--where",
    metavar="CONDITION",
    help='Count and show only what lies in documents whose columns are so, such as "score > 0.8". Default: all.',
)
@click.option(
    "--tokenizer", metavar="FILE", help="The tokenizer.json that made the ids. Default: ids are shown, not text."
)
@click.option(
    "--full", is_flag=True, help="Show all of a long text, not its first 24 lines or 20,000 characters alone."
)
@sides_options("no documents")
@json_option
def command(data: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Shows windows of the stream (or documents) with the spans that they are cut from.

    DATA may be followed by the numbers to show, and with --documents by names SHARD/ENTRY, as trace prints them.
    """
    paths, asked = _split(data)
    dataset = told_by_sides(open_data(paths, given["dtype"], given["format"]), given)
    documents = given["documents"] or dataset.mode == "opaque" or dataset.features is not None
    noun = "document" if documents else "window"
    indices = [_index(each, dataset, documents, given["where"]) for each in (*given["indices"], *asked)]
    decoder = Decoder(given["tokenizer"], dataset)
    found: list[dict[str, Any]] = []
    if _is_empty(dataset, documents):
        if indices:
            raise click.UsageError(f"there is no {noun} {indices[0]:,}: {shown(*paths)} has none")
    else:
        window = given["window"] or min(_WINDOW, dataset.records)
        names = list(dataset.columns)
        with sides_as_options():
            view = dataset.documents(columns=names) if documents else dataset.windows(window, columns=names)
        if given["where"] is not None:
            view = view.where(given["where"])
        if len(view) > 0 or indices:
            places = [_in_range(view, index) for index in indices or (0,)]
            found = [_describe(view, place, decoder) for place in places]
            if given["where"] is not None:
                for row, number in zip(found, view.base_indices(places).tolist(), strict=True):
                    row |= {"number": number, "chosen": len(view)}
    if as_json:
        emit_json({"path": shown(*paths), "rows": found})
        return
    if not found:
        what = "documents" if documents else "records" if given["where"] is None else "windows"
        of = "" if given["where"] is None else f" where {given['where']}"
        echo(f"{shown(*paths)}: no {what}{of}: there is nothing to show")
    for row in found:
        title = f"{noun} {row['index']:,}"
        if "number" in row:  # it is counted among those that --where chooses
            title = (
                f"{noun} {row['number']:,}, which is {row['index']:,} of the {row['chosen']:,} where {given['where']}"
            )
        _draw(row, title, given["full"])


def _is_empty(dataset: Any, documents: bool) -> bool:
    if documents:
        return bool(dataset.mode != "tokens" and dataset.layout != "ids" and dataset.spans == 0)
    return bool(dataset.records == 0)


def _split(data: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Paths, and the numbers and names of documents that follow the last of them."""
    end = len(data)
    while end > 1 and _is_number(data[end - 1]):
        end -= 1
    return data[:end], data[end:]


def _is_number(text: str) -> bool:
    return number_of(text) is not None or (split_name(text) is not None and not Path(text).exists())


def _index(text: str, dataset: Any, documents: bool, where: str | None) -> int:
    """The number that --index or an argument says; negative ones count from the end."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text)
    number = number_of(rest)
    if number is not None:
        return sign * number
    if split_name(text) is not None and not documents:
        raise click.UsageError(f"{text} is the name of a document: give --documents")
    if split_name(text) is not None and where is not None:
        raise click.UsageError(f"{text} is the name of a document; with --where give a number among those chosen")
    found = document_number(text, dataset)
    if found is None:
        raise click.UsageError(f"{text}: a number is wanted, or with --documents a name such as 00000/2,855")
    return found


def _in_range(view: Any, index: int) -> int:
    count = len(view)
    if not -count <= index < count:
        raise click.UsageError(f"there is no {index:,}: there are {count:,}, from 0 on")
    return index % count


def _describe(view: Any, index: int, decoder: Decoder) -> dict[str, Any]:
    row = view[index]
    fields = {name: row[name] for name in row}
    length = len(next(iter(fields.values()))) if fields else 0
    columns = row._batch.columns if view.columns else {}
    spans = [
        {
            "id": list(span.id),
            "start": span.start,
            "stop": span.stop,
            "begins": span.begins,
            "ends": span.ends,
            "offset": span.offset,
            "metadata": metadata_of(span),
            "columns": {name: _shown(view.dataset.columns[name], values[at]) for name, values in columns.items()},
            "text": decoder.text({name: values[span.start : span.stop] for name, values in fields.items()}),
        }
        for at, span in enumerate(row.spans)
    ]
    ids = fields[decoder.field].tolist() if decoder.field in fields else None
    return {"index": index, "records": length, "ids": ids, "spans": spans, "text": decoder.text(fields)}


def _shown(column: Any, value: Any) -> Any:
    """A value of a document's column, as JSON."""
    if column.categories is not None:
        return None if value < 0 else column.categories[int(value)]
    return value.tolist()


def _draw(row: dict[str, Any], title: str, full: bool) -> None:
    sizes = f"{counted(row['records'], 'record')}, {counted(len(row['spans']), 'span')}"
    echo(click.style(f"{title}: {sizes}", bold=True))
    for number, span in enumerate(row["spans"]):
        color = ("cyan", "yellow", "green", "magenta")[number % 4]
        echo(click.style("┌ ", fg=color) + click.style(_span_title(span), fg=color, bold=True))
        if span["metadata"] is not None:
            echo(click.style("│ ", fg=color) + visible(json.dumps(span["metadata"], ensure_ascii=False)))
        if span["columns"]:
            echo(click.style("│ ", fg=color) + visible(_columns_line(span["columns"])))
        _draw_text(span["text"], color, full)
    if not row["spans"]:
        _draw_text(row["text"], "cyan", full)


def _columns_line(columns: dict[str, Any]) -> str:
    texts = ((name, json.dumps(value, ensure_ascii=False)) for name, value in columns.items())
    return ", ".join(
        f"{name}={text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + '…'}" for name, text in texts
    )


def _span_title(span: dict[str, Any]) -> str:
    shard, entry = span["id"]
    offset = "" if span["offset"] is None else f" from its record {span['offset']:,}"
    beginning = " from its beginning" if span["begins"] else offset
    end = " to its end" if span["ends"] else ""
    return f"{span['start']:,} to {span['stop']:,}: document {shard}/{entry:,}{beginning}{end}"


def _draw_text(text: str, color: str, full: bool) -> None:
    lines = text.splitlines() or [""]
    first = lines if full else lines[:_LINES_SHOWN]
    left = len(text) if full else _CHARACTERS_SHOWN
    for line in first:
        echo(click.style("│ ", fg=color) + visible(line[:left]))
        if len(line) > left:
            size = human_bytes(len(text.encode(errors="replace")) * (1 - _CHARACTERS_SHOWN / len(text)))
            echo(click.style("│ ", fg=color) + click.style(f"… about {size} more (--full)", dim=True))
            return
        left -= len(line)
    if len(first) < len(lines):
        echo(
            click.style("│ ", fg=color)
            + click.style(f"… {counted(len(lines) - len(first), 'more line')} (--full)", dim=True)
        )
