"""Shards for a dataset that is there: those of other datasets, behind its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._data.open import refuse_foreign
from penstock._places.paths import PathLike, as_paths, local_path
from penstock._places.remote import refuse_address


def append(
    path: PathLike,
    more: PathLike | Iterable[PathLike],
    progress: Callable[[int, int], None] | None = None,
    *,
    resume: bool = False,
) -> str:
    """Adds the shards of other datasets at the end of a dataset; those that are there keep their place and their names.

    Files are hard-linked, else reflinked or copied, and one rename publishes the longer dataset: whoever has it open
    reads on what was opened. The first shards have the fingerprint that the dataset had, so a `Loader` with
    on_mismatch="grown" takes its states.

    Args:
        path: the dataset's folder.
        more: the folder of another dataset, or several, in this order; they stay as they are.
        progress: called with (shards done, shards in all); may raise to stop, which leaves the dataset as it was.
        resume: do nothing if the dataset ends with these shards already: for a command that may be run twice.

    Returns:
        The fingerprint, which is that of opening all of them as one.

    Raises:
        InvalidArgumentError: mode, layout, fields, codec, columns, features or tokenizer differ, `path` says its
            tokenizer and one of `more` does not, a writer is at work, an address. Nothing was written then.

    Example:
        >>> import os, penstock, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> corpus, more = os.path.join(folder, "corpus"), os.path.join(folder, "more")
        >>> for path, tokens in ((corpus, [1, 2, 3]), (more, [4, 5])):
        ...     with penstock.Writer(path, {"token": "u2"}, "boundaries") as writer:
        ...         writer.append(token=tokens)
        >>> before = penstock.open(corpus)
        >>> _ = penstock.append(corpus, more)
        >>> after = penstock.open(corpus)
        >>> len(before.shards), len(after.shards), after.windows(5)[0]["token"].tolist()
        (1, 2, [1, 2, 3, 4, 5])
        >>> after.select([0]).fingerprint == before.fingerprint
        True
    """
    copy = (
        "copy it here first, append to that, and copy the result into another folder of the bucket, dataset.json last"
    )
    refuse_address(path, f"shards are appended on this machine alone: {copy}")
    given = as_paths(more)
    if not given:
        raise InvalidArgumentError(f"append: no datasets to be added to {path!s}")
    for each in given:
        refuse_address(each, "datasets are appended on this machine alone: copy it here first")
    paths = [local_path(each) for each in (path, *given)]
    for each in paths:
        refuse_foreign(each, "it can be opened as one with others of its kind, but not appended on disk")
    return _native.append(paths[0], paths[1:], bool(resume), progress)
