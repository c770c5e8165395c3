"""datatrove's .ds of a dataset, with its .index, .metadata and, of a mask, .loss."""

from __future__ import annotations

import numpy as np

from penstock._base.errors import InvalidArgumentError
from penstock._from.tokens.feed import Feed
from penstock._from.tokens.new_files import NewFiles
from penstock._from.tokens.to_megatron import fitting

LOSS = "loss"


def empty_documents(feed: Feed) -> int:
    """How many sequences have no tokens: behind one datatrove's reader finds no document's beginning."""
    return sum(len(each) - int(np.count_nonzero(each)) for each in feed.lengths())


def write_datatrove(feed: Feed, out: str, has_loss: bool) -> list[str]:
    """Writes all files, without sequences of no tokens; their names, that of the tokens last.

    Raises:
        InvalidArgumentError: a token or a mask that they cannot hold; something is there; a name that does not end in
            .ds.
        IoError: they cannot be written.
    """
    if not out.endswith(".ds"):
        raise InvalidArgumentError(f"{out}: the name of datatrove's tokens ends in .ds: {out}.ds?")
    assert feed.dataset.dtype is not None
    dtype = np.dtype("<u2" if feed.dataset.dtype[feed.token].str[1:] in ("u1", "u2") else "<u4")
    paths = [f"{out}.index", f"{out}.metadata", *([f"{out}.loss"] if has_loss else []), out]
    with NewFiles(paths) as new:
        files = {path: new.open(path) for path in paths}
        first = before = 0
        for part in feed.parts():
            assert part.lengths is not None
            files[out].write(fitting(part.fields[feed.token], dtype, first, part.lengths, "datatrove").data)
            if has_loss:
                mask = part.fields[LOSS]
                if mask.dtype != bool and len(mask) and int(mask.max()) > 1:
                    raise InvalidArgumentError(
                        f"{feed.dataset.path}: {LOSS} has the value {int(mask.max()):,}, and datatrove holds 0 and 1"
                    )
                files[f"{out}.loss"].write(np.ascontiguousarray(mask).view(np.uint8).data)
            ends = np.cumsum(part.lengths) + before
            files[f"{out}.index"].write(ends[part.lengths > 0].astype("<u8").data)
            first, before = first + len(part.lengths), int(ends[-1]) if len(ends) else before
        name = (feed.dataset.tokenizer or {}).get("name") or "unknown"
        files[f"{out}.metadata"].write(f"{name}|{dtype.itemsize}\n{before}\n{before:,} T".encode())
    return paths
