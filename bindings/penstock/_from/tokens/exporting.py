"""`penstock.export`: what it takes, and what each format can hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from penstock._base.arguments import index, one_of
from penstock._base.errors import InvalidArgumentError
from penstock._base.words import counted, excerpt
from penstock._data.dataset import Dataset
from penstock._data.open import open as open_dataset
from penstock._from.tokens.feed import Feed
from penstock._from.tokens.to_datatrove import LOSS, empty_documents, write_datatrove
from penstock._from.tokens.to_mds import write_mds
from penstock._from.tokens.to_megatron import write_megatron
from penstock._places.paths import PathLike, local_path

FORMATS = ("megatron", "datatrove", "mds")
_METADATA = "metadata"
_EMPTY = "empty"
_CODECS = {"json": "json", "msgpack": "json", "raw": "bytes"}  # of MDS


@dataclass
class Exported:
    """Counts of an export.

    Attributes:
        paths: of the files or the folder.
        sequences: documents or windows.
        records: of all of them.
        left_out: what the dataset has and the files have not.
        seconds: that it took.
    """

    paths: list[str]
    sequences: int = 0
    records: int = 0
    left_out: list[str] = field(default_factory=list)
    seconds: float = 0.0


def export(
    path: PathLike | Dataset,
    out: PathLike,
    to: str,
    *,
    window: int | None = None,
    drop: Iterable[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Exported:
    """Writes a dataset as token files of another format: whole files with their names, or nothing.

    Args:
        path: the dataset, or what `penstock.open` opens.
        out: Megatron's prefix, datatrove's .ds file, or the folder of MDS. Nothing may be there.
        to: "megatron", "datatrove" or "mds".
        window: sequences are windows of this many records; records behind the last are left out. None: documents.
        drop: what is left out of what the format cannot hold: "metadata", "columns", "features", fields' names, or, of
            datatrove, "empty": documents without tokens.
        progress: called with (bytes done, bytes in all) now and then; may raise to stop.

    Returns:
        Counts, and what was left out.

    Raises:
        InvalidArgumentError: something that the format cannot hold and that is not dropped; a token or a document that
            does not fit; a dataset without documents and no window; something is at `out`.
        IoError: the files cannot be written.
        CorruptionError: the dataset is damaged.

    Examples:
        >>> import os, penstock, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with penstock.Writer(os.path.join(folder, "a"), fields={"token": "u2"}, metadata="json") as writer:
        ...     writer.append(token=[1, 2, 3], metadata={"url": "example.org"})
        >>> done = penstock.export(
        ...     os.path.join(folder, "a"), os.path.join(folder, "b"), to="megatron", drop=["metadata"]
        ... )
        >>> done.left_out, penstock.open(os.path.join(folder, "b")).documents()[0]["token"].tolist()
        (['metadata'], [1, 2, 3])
    """
    begin = time.perf_counter()
    one_of("to", to, FORMATS)
    if isinstance(drop, str):
        raise InvalidArgumentError(f"drop={drop!r:.80}: a list of names is wanted")
    dataset = path if isinstance(path, Dataset) else open_dataset(path)
    length = None if window is None else index("window", window, 1)
    names = list(drop)
    drops_empty = to == "datatrove" and _EMPTY in names
    if drops_empty and _EMPTY not in _parts(dataset):
        names = [each for each in names if each != _EMPTY]
    keep, left_out = _kept(dataset, to, length, names)
    feed = Feed(dataset, length, [each for each in keep if each != _METADATA], progress or (lambda done, total: None))
    place = _place(local_path(out), to)
    empty = _count_empty(feed, drops_empty) if to == "datatrove" else 0
    if empty:
        left_out.append(f"{counted(empty, 'document')} without tokens")
    paths = _write(feed, place, to, keep)
    if feed.tail:
        left_out.append(f"{feed.tail:,} records behind the last window")
    return Exported(paths, feed.count - empty, feed.records, left_out, time.perf_counter() - begin)


def _write(feed: Feed, place: str, to: str, keep: list[str]) -> list[str]:
    if to == "megatron":
        return write_megatron(feed, place)
    if to == "datatrove":
        return write_datatrove(feed, place, LOSS in keep)
    codec = _CODECS[feed.dataset.codec or ""] if _METADATA in keep else None
    return write_mds(feed, place, [each for each in keep if each != _METADATA], codec)


def _count_empty(feed: Feed, drops: bool) -> int:
    """Documents that datatrove's files are to be without.

    Raises:
        InvalidArgumentError: there are some, and they are not dropped.
    """
    found = empty_documents(feed)
    if found and not drops:
        raise InvalidArgumentError(
            f"{feed.dataset.path}: {counted(found, 'document')} without tokens: behind one datatrove's reader finds no "
            f"beginning of a document: --drop {_EMPTY} leaves them out"
        )
    return found


def _place(out: str, to: str) -> str:
    """Without slashes at the end.

    Raises:
        InvalidArgumentError: it names no file where files are written.
    """
    place = out.rstrip("/")
    if to != "mds" and (place != out or not place or Path(out).name in ("", ".", "..")):
        example = "corpus_text_document" if to == "megatron" else "corpus.ds"
        said = (
            f"{out!r:.200}: names no file: {to} writes files, so say their {'prefix' if to == 'megatron' else 'name'}"
        )
        raise InvalidArgumentError(f"{said}, as {Path(place or '.') / example}")
    if not place:
        raise InvalidArgumentError(f"{out!r}: no name of a new folder")
    return place


def _kept(dataset: Dataset, to: str, window: int | None, drop: list[str]) -> tuple[list[str], list[str]]:
    """What is written beside the tokens, and what is left out.

    Raises:
        InvalidArgumentError: something that can be neither; a name in `drop` that there is not.
    """
    has = _parts(dataset)
    for name in drop:
        if name not in has:
            there = excerpt(", ".join(has)) or "nothing"
            raise InvalidArgumentError(
                f"drop={excerpt(name)!r}: there is none: beside its tokens {dataset.path} has {there}"
            )
    keep = [name for name in has if name not in drop]
    wrong = {name: why for name in keep if (why := _cannot(dataset, to, window, name))}
    if wrong:
        dropped = " ".join(f"--drop {name}" for name in wrong)
        leaves = "leaves it out" if len(wrong) == 1 else "leave them out"
        raise InvalidArgumentError(f"{dataset.path}: {'; '.join(wrong.values())}: {dropped} {leaves}")
    return keep, [name for name in has if name in drop]


def _parts(dataset: Dataset) -> list[str]:
    """What a dataset has beside its tokens."""
    from penstock._data.fields import token_leaf

    found = []
    if dataset.dtype is not None:
        token, _ = token_leaf(dataset.dtype)
        found += [name for name in dataset.dtype.names or () if name != token]
    if dataset.codec not in (None, "boundaries"):
        found.append(_METADATA)
    if len(dataset.columns):
        found.append("columns")
    if dataset.features is not None:
        found.append("features")
    return found


def _cannot(dataset: Dataset, to: str, window: int | None, name: str) -> str:
    """Why the format cannot hold a part; "": it can."""
    if name in ("columns", "features"):
        return f"{to} holds no {name}"
    if name == _METADATA:
        if to != "mds":
            return f"{to} holds no metadata of documents"
        if window is not None:
            return "a window has the metadata of several documents, and a sample holds one"
        return "" if dataset.codec in _CODECS else f"MDS holds metadata of {', '.join(_CODECS)}, not {dataset.codec}"
    assert dataset.dtype is not None
    dtype = dataset.dtype[name]
    if to == "datatrove":
        is_mask = name == LOSS and dtype.str[1:] in ("b1", "u1")
        return "" if is_mask else f"datatrove holds tokens and a mask called {LOSS} of 0 and 1, not the field {name}"
    if to == "megatron":
        return f"Megatron holds tokens alone, not the field {name}"
    plain = dtype.subdtype is None and dtype.names is None and dtype.kind in "biuf"
    return "" if plain else f"MDS holds fields of plain numbers, not {name}: {dtype}"
