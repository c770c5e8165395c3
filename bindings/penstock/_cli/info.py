"""`penstock info`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from penstock._base.words import counted
from penstock._cli.command_help import Command
from penstock._cli.data import data_options, open_data, sides_options, told_by_sides
from penstock._cli.output import emit_json, emit_table, human_bytes, json_option
from penstock._make.notes import LIST
from penstock._view.describe import describe, disk_bytes, id_bytes

_LOOKED_AT = 4096  # tokens of bare files
_EPILOG = """\b
Examples:
  penstock info corpus/
  penstock info 'tokens/*.bin' --dtype u2
"""


@click.command("info", cls=Command, epilog=_EPILOG)
@data_options
@sides_options("the files state their documents")
@json_option
def command(data: tuple[str, ...], dtype: str | None, format: str | None, as_json: bool, **given: Any) -> None:
    """Shows sizes, fields, tokenizer and fingerprint of a dataset, or of token files in place.

    With --dtype also the smallest and largest of the first 4,096 tokens: ids beyond the vocabulary tell a wrong type.

    DATA is a dataset's folder; a Megatron prefix; .bin or .npy files (with --dtype where they do not say it). With
    --end-of-document or --begin-of-document all tokens are read, to count their documents.
    """
    dataset = told_by_sides(open_data(data, dtype, format), given)
    described = describe(data, dataset)
    if dtype is not None and (first := _first_tokens(dataset)):
        described["first_tokens"] = first
    if as_json:
        emit_json(described)
        return
    emit_table(_rows(data, dataset, described))
    for notice in described["notices"]:
        click.echo(f"note: {notice}", err=True)


def _rows(data: tuple[str, ...], dataset: Any, described: dict[str, Any]) -> list[tuple[str, str]]:
    """In the words of `penstock write` and `penstock import`, and in their order."""
    rows = [("dataset", described["path"])]
    if dataset.features is not None:
        rows += [("cells", f"{dataset.spans:,}"), ("genes", f"{len(dataset.features):,}")]
    else:
        rows.append(("documents", "not kept" if dataset.mode == "tokens" else f"{dataset.spans:,}"))
    if dataset.mode != "opaque":
        names = {name: _short(dataset.dtype[name]) for name in dataset.dtype.names or ()}
        fields = ", ".join(f"{name} {words}" for name, words in names.items())
        rows.append(("tokens" if "token" in names else "records", f"{dataset.records:,} of {fields}"))
        hidden = id_bytes(dataset.layout)
        of = f", of which {hidden} metadata_id" if hidden else ""
        if first := described.get("first_tokens"):
            least, most, count = (f"{first[name]:,}" for name in ("smallest", "largest", "count"))
            rows.append(("token ids", f"{least} to {most} in the first {count} tokens"))
        rows.append(("record bytes", f"{described['record_bytes']:,}{of}"))
    rows.append(("shards", f"{len(dataset.shards):,}"))
    data_size = human_bytes(described["size_bytes"])
    on_disk = disk_bytes(data, dataset)
    rows.append(("on disk", f"{human_bytes(on_disk)}, of which {data_size} data") if on_disk else ("data", data_size))
    skipped = _skipped(data) if on_disk else None
    if skipped is not None:
        rows.insert(2, ("skipped", f"{counted(_lines(skipped), 'document')}, listed in {skipped}"))
    if described["columns"]:
        rows.append(("columns", ", ".join(f"{name} {kind}" for name, kind in described["columns"].items())))
    rows.append(("metadata", dataset.codec or "none"))
    layout = f", layout {dataset.layout}" if dataset.layout else ""
    rows.append(("format", f"{dataset.kind}{layout}"))
    rows += _of_tokenizer(dataset.tokenizer)
    rows.append(("fingerprint", dataset.fingerprint))
    return rows


def _first_tokens(dataset: Any) -> dict[str, int]:
    """The smallest and the largest of the first tokens, by which a wrong --dtype is seen; {}: no integers."""
    count = min(_LOOKED_AT, dataset.records)
    if count == 0 or "token" not in (dataset.dtype.names or ()) or dataset.dtype["token"].kind not in "iu":
        return {}
    tokens = dataset.windows(count, metadata=False)[0]["token"]
    return {"count": count, "smallest": int(tokens.min()), "largest": int(tokens.max())}


def _short(dtype: Any) -> str:
    """`u2`, `f4 [50]`."""
    axes = f" {list(dtype.shape)}" if dtype.shape else ""
    return str(dtype.base.str).lstrip("<|") + axes


def _of_tokenizer(noted: dict[str, Any] | None) -> list[tuple[str, str]]:
    if not noted:
        return [("tokenizer", "none")]
    noted = dict(noted)
    words = [str(noted.pop("name", "without a name"))]
    if (size := noted.pop("vocabulary_size", None)) is not None:
        words.append(f"vocabulary of {size:,}")
    if (end := noted.pop("end_of_document", None)) is not None:
        words.append(f"documents end with {end:,}" if isinstance(end, int) else f"documents end with {end}")
    digest = noted.pop("hash", None)
    words += [f"{key} {value}" for key, value in noted.items()]
    return [("tokenizer", ", ".join(words)), *([("its hash", str(digest))] if digest else [])]


def _skipped(data: tuple[str, ...]) -> Path | None:
    """The list of documents that `penstock write` left out of a dataset here; None: there is none."""
    from penstock._places.stores.location import location_of

    lists = [Path(folder) / LIST for folder in location_of(data[0]).on_disk()]
    return next((path for path in lists if path.is_file()), None)


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)
