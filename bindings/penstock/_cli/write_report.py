"""What `penstock write` says: of the dataset that it made, of what one would cost."""

from __future__ import annotations

from typing import Any

import click

from penstock._base.words import counted, escaped
from penstock._cli.output import echo, emit_json, emit_table, human_bytes, human_seconds
from penstock._make.notes import LIST


def report(out: str, as_json: bool, summary: Any) -> None:
    """Of the dataset."""
    skipped = f"{out.rstrip('/')}/{LIST}" if summary.skipped else None
    if as_json:
        said = {"path": out, "bytes": summary.bytes, "codec": summary.codec, **summary.as_json()}
        emit_json({**said, "skipped_list": skipped})
        return
    lost = "" if summary.codec else "; where they begin and end is not kept (--metadata none)"
    rows = [
        ("dataset", out),
        ("documents", f"{summary.documents:,}{lost}"),
        *([("skipped", f"{counted(summary.skipped, 'document')}, listed in {skipped}")] if skipped else []),
        ("tokens", f"{summary.tokens:,}"),
        (
            "shards",
            f"{summary.shards:,}" + (f", {summary.kept_shards:,} of an earlier run" if summary.kept_shards else ""),
        ),
        ("on disk", human_bytes(summary.bytes)),
    ]
    if summary.new_tokens:
        rate = f"{human_bytes(summary.text_bytes / summary.seconds)}/s of text"
        tokens = f"{summary.new_tokens / summary.seconds:,.0f} tokens/s"
        workers = counted(summary.workers, "worker")
        rows.append(("took", f"{human_seconds(summary.seconds)}: {rate}, {tokens}, {workers}"))
        rows.append(("tokenizer", f"{summary.tokenizer_share:.0%} of the workers' time"))
    if summary.fell_back:
        rows.append(("engine", f"tokenizers, with which all was made again: {summary.slow_because}"))
    emit_table(rows)


def tell(note: str) -> None:
    """A note, beside what is reported."""
    click.echo(f"note: {escaped(note)}", err=True)


def report_estimate(given: dict[str, Any], found: dict[str, Any], dtype: str, workers: int) -> None:
    """Of a dry run."""
    if given["as_json"]:
        emit_json(found)
        return
    for note in found["notes"]:
        tell(note)
    for document in found["documents"]:
        echo(click.style(document["place"], bold=True))
        echo(f"  ids      {_shortened(document['ids'])}")
        echo(f"  text     {_one_line(document['text'])}")
        if document["metadata"] is not None:
            echo(f"  metadata {document['metadata']}")
    _tell_estimate(found, dtype, workers)


def _tell_estimate(found: dict[str, Any], dtype: str, workers: int) -> None:
    total = found["estimated"]
    if total is not None:
        about = "" if found["sample"]["whole"] else "about "
        echo(
            f"{about}{counted(total['documents'], 'document')}, {counted(total['tokens'], 'token')} of {dtype},"
            f" {human_bytes(total['bytes'])} on disk in {counted(total['shards'], 'shard')},"
            f" about {human_seconds(total['seconds'])} with {counted(workers, 'worker')}"
        )
    for line in found["rests_on"]:
        echo(line)
    echo("nothing was written")


def _shortened(ids: list[int]) -> str:
    if len(ids) <= 24:
        return " ".join(map(str, ids))
    return f"{' '.join(map(str, ids[:16]))} … {' '.join(map(str, ids[-4:]))} ({len(ids):,} ids)"


def _one_line(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 200 else f"{shown[:150]} … {shown[-40:]}"
