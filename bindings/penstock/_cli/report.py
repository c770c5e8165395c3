"""What commands say of a new dataset."""

from __future__ import annotations

from penstock._cli.data import open_data
from penstock._cli.output import echo, emit_json, report_of
from penstock._places.remote import shown
from penstock._view.describe import describe


def report_new(out: str, as_json: bool) -> None:
    """Says what was made."""
    from penstock._base.words import counted

    with report_of(shown(out)):
        dataset = open_data((out,))
        if as_json:
            emit_json(describe((out,), dataset))
            return
        names = dataset.dtype.names or () if dataset.dtype is not None else ()
        counts = [(dataset.records, "token" if "token" in names else "record"), (len(dataset.shards), "shard")]
        if dataset.mode != "tokens":
            counts.insert(0, (dataset.spans, "cell" if dataset.features is not None else "document"))
        echo(f"{shown(out)}: {', '.join(counted(count, noun) for count, noun in counts)}")
