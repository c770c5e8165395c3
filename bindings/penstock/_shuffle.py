"""A dataset whose observations lie on the disk in a shuffled order."""

from __future__ import annotations

from collections.abc import Callable

from penstock import _native
from penstock._arguments import index
from penstock._errors import InvalidArgumentError
from penstock._open import refuse_foreign
from penstock._paths import PathLike, local_path


def shuffle(
    path: PathLike,
    out: PathLike,
    *,
    seed: int,
    window: int | None = None,
    documents: bool = False,
    memory: int = 1 << 30,
    scratch: PathLike | None = None,
    shard_size: int = 1 << 30,
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> str:
    """Writes the dataset again with its windows or documents in a shuffled order.

    Observation i of the result is observation `Permutation(n, seed)[i]` of the input. Windows keep their spans: each
    document's piece with its entry, so a document that windows cut becomes several; the records past the last window
    come last. The bytes do not depend on `memory`. Finished shards stay after an error or Ctrl-C, for `resume`.

    Args:
        path: the dataset's folder: of the layout "compact", a token stream or opaque documents.
        out: the new dataset's folder.
        seed: of the permutation, 0 to 2^64 - 1.
        window: shuffle windows of so many records; or
        documents: shuffle documents. Exactly one of them.
        memory: bytes to work in, beside 8 MiB for files; at least 64 KiB.
        scratch: folder of the scratch file, which takes as much room as what is shuffled; None: `out`. It has no name
            and is gone when the process ends, however that ends.
        shard_size: bytes of records and entries after which a shard ends, between two observations.
        resume: keep the finished shards of an earlier run with the same input, seed, window and shard size.
        overwrite: replace a published dataset, which stays as it is until the new one is whole.
        progress: called with (bytes done, bytes in all) now and then; may raise to stop.

    Returns:
        The fingerprint.

    Raises:
        InvalidArgumentError: No such observations, too little memory (it says how much is needed), another layout,
            something is at `out`.
        CorruptionError: A checksum or a digest of the input is wrong.
        IoError: It cannot be read or written; the disk is full.

    Example:
        >>> import os, tempfile, penstock
        >>> folder = tempfile.mkdtemp()
        >>> with penstock.Writer(os.path.join(folder, "a"), fields={"token": "u2"}, metadata="json") as writer:
        ...     for number in range(10):
        ...         writer.append(token=[number] * 3, metadata=number)
        >>> _ = penstock.shuffle(os.path.join(folder, "a"), os.path.join(folder, "b"), seed=1, documents=True)
        >>> view = penstock.open(os.path.join(folder, "b")).documents()
        >>> permutation = penstock.Permutation(10, seed=1)
        >>> [view[i].spans[0].metadata for i in range(10)] == [permutation[i] for i in range(10)]
        True
    """
    if (window is None) == (not documents):
        raise InvalidArgumentError("what is shuffled: give window= or documents=True, one of them")
    text = local_path(path)
    refuse_foreign(text, "it has no checksums; write a dataset of it first")
    return _native.shuffle(
        text,
        local_path(out),
        index("seed", seed),
        None if window is None else index("window", window, 1),
        index("memory", memory),
        index("shard_size", shard_size, 1),
        "" if scratch is None else local_path(scratch),
        bool(resume),
        bool(overwrite),
        progress,
    )
