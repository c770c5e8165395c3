"""Datasets of the shards of others, on this machine: several as one, and the other layout."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from penstock import _native
from penstock._base.arguments import one_of
from penstock._base.errors import InvalidArgumentError
from penstock._data.open import refuse_foreign
from penstock._places.paths import PathLike, as_paths, local_path
from penstock._places.remote import refuse_address

_COPY = "write to a folder here, then copy that into the bucket, dataset.json last"


def combine(
    inputs: Iterable[PathLike],
    out: PathLike,
    *,
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> str:
    """One dataset of the shards of several, in order, without re-encoding: files are hard-linked, reflinked or copied.

    Args:
        inputs: the datasets' folders.
        out: the new dataset's folder.
        resume: keep the finished shards that a run left that was killed, where they are the same.
        overwrite: replace a dataset that is there, once the new one is whole, and what such a run left.
        progress: called with (bytes done, bytes in all) now and then; may raise to stop, which leaves nothing new.

    Returns:
        The fingerprint: that of opening the inputs as one.

    Raises:
        InvalidArgumentError: Mode, layout, fields, codec or tokenizer differ, or something is at `out`.
        IoError: Something cannot be written; the message says if the dataset is published.
    """
    if isinstance(inputs, (str, os.PathLike)):
        raise InvalidArgumentError(f"inputs {str(inputs)!r}: a list of datasets is wanted")
    given = as_paths(inputs)
    for each in given:
        refuse_address(
            each,
            "datasets are combined on this machine alone: copy it here first, or leave them where they are and open "
            "them as one, penstock.open(first, second)",
        )
    refuse_address(out, f"datasets are combined on this machine alone: {_COPY}")
    paths = [local_path(each) for each in given]
    for path in paths:
        refuse_foreign(path, "it can be opened as one with others of its kind, but not combined on disk")
    return _native.combine(paths, local_path(out), resume, overwrite, progress)


def convert(path: PathLike, out: PathLike, layout: str, *, overwrite: bool = False) -> str:
    """The dataset in the other layout, "compact" or "ids", at `out`.

    Args:
        path: the dataset's folder.
        out: the new dataset's folder.
        layout: "compact" or "ids".
        overwrite: replace a dataset that is there, once the new one is whole, and what a run left that was killed.

    Returns:
        The fingerprint, which stays.

    Raises:
        InvalidArgumentError: It has this layout or none, or an empty document cannot be expressed in it.
        CorruptionError: Its bytes are not what its manifest says.
    """
    refuse_address(path, "a layout is converted on this machine alone: copy the dataset here first")
    refuse_address(out, f"a layout is converted on this machine alone: {_COPY}")
    one_of("layout", layout, ("compact", "ids"))
    text = local_path(path)
    refuse_foreign(text, "it has no layout of spans to be converted")
    return _native.convert(text, local_path(out), layout, overwrite)
