"""Columns: arrays that the loader's threads compute beside the fields; `Loader(columns=…)` takes them.

A batch's records, end to end and without the lookahead, are sequences: one begins where a row does and where a document
does. Where the dataset has spans, those are its documents; else a document ends after each end-of-document token.

Example:
    >>> import os, tempfile, penstock
    >>> path = os.path.join(tempfile.mkdtemp(), "corpus")
    >>> with penstock.Writer(path, fields={"token": "u2"}, metadata="json") as writer:
    ...     for length in (3, 7, 6):
    ...         writer.append(token=range(length), metadata=None)
    >>> view = penstock.open(path).windows(8)
    >>> options = dict(order="sequential", columns=["cu_seqlens", "position_ids"], framework="numpy")
    >>> batch = next(penstock.Loader(view, batch_size=2, max_documents=6, **options))
    >>> batch["token"].tolist()
    [[0, 1, 2, 0, 1, 2, 3, 4], [5, 6, 0, 1, 2, 3, 4, 5]]
    >>> batch.cu_seqlens.tolist(), batch.max_seqlen
    ([0, 3, 8, 10, 16, 16, 16], 6)
    >>> batch.position_ids.tolist()
    [[0, 1, 2, 0, 1, 2, 3, 4], [0, 1, 0, 1, 2, 3, 4, 5]]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from penstock._arguments import index
from penstock._errors import InvalidArgumentError
from penstock._layout import SequenceSpec, token_leaf

_MOST_DOCUMENTS = (1 << 31) - 2  # int32 holds one value more


@dataclass(frozen=True)
class CuSeqlens:
    """`batch.cu_seqlens`: int32, where each sequence of the flattened batch begins, and the last one's end.

    [documents + 1], or with `max_documents` of the loader [max_documents + 1], padded with the last value: empty
    sequences. A row of padding is one sequence (of documents: none). With it comes `batch.max_seqlen`, the longest.

    Attributes:
        end_of_document: the token that ends a document, for datasets whose spans or tokenizer do not say.

    Example:
        >>> import numpy as np, os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
        >>> np.array([5, 6, 0, 7, 8, 9, 9, 0], "u2").tofile(path)
        >>> view = penstock.open(path, dtype="u2").windows(4)
        >>> ends = penstock.columns.CuSeqlens(end_of_document=0)
        >>> batch = next(penstock.Loader(view, 2, order="sequential", columns=[ends, "document_ids"]))
        >>> batch.cu_seqlens.tolist(), batch.document_ids.tolist()
        ([0, 3, 4, 8], [[0, 0, 0, 1], [2, 2, 2, 2]])
    """

    name: ClassVar[str] = "cu_seqlens"
    end_of_document: int | None = None


@dataclass(frozen=True)
class PositionIds:
    """`batch.position_ids`: int32 [rows, window] (of documents [records]), each record's place in its sequence.

    Attributes:
        end_of_document: as of `CuSeqlens`.
    """

    name: ClassVar[str] = "position_ids"
    end_of_document: int | None = None


@dataclass(frozen=True)
class DocumentIds:
    """`batch.document_ids`: int32 [rows, window] (of documents [records]), the number of each record's sequence.

    Sequences are numbered through the batch, from 0; -1 in rows that are padding.

    Attributes:
        end_of_document: as of `CuSeqlens`.
    """

    name: ClassVar[str] = "document_ids"
    end_of_document: int | None = None


Column = CuSeqlens | PositionIds | DocumentIds
_KINDS: dict[str, type[Column]] = {each.name: each for each in (CuSeqlens, PositionIds, DocumentIds)}


def resolve(columns: Iterable[str | Column], max_documents: int | None, view: Any) -> tuple[SequenceSpec, ...]:
    """What the native loader makes for a loader's `columns` of this view.

    Raises:
        InvalidArgumentError: an unknown column, one that is given twice, several ends of documents or none that is
            known, `max_documents` without `cu_seqlens`.
    """
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise InvalidArgumentError(f'columns={columns!r:.80}: must be a list, such as ["cu_seqlens"]')
    wanted = [_column(each) for each in columns]
    names = [each.name for each in wanted]
    for name in names:
        if names.count(name) > 1:
            raise InvalidArgumentError(f"columns=: {name} is there twice")
    if max_documents is not None:
        if "cu_seqlens" not in names:
            raise InvalidArgumentError('max_documents= is of cu_seqlens: give columns=["cu_seqlens"] too')
        max_documents = index("max_documents", max_documents, 1, _MOST_DOCUMENTS)
    if not wanted:
        return ()
    if view.dtype is None:
        raise InvalidArgumentError(f"columns={names}: opaque documents have no records")
    field, end = _ends(wanted, view)
    made = [*names, "max_seqlen"] if "cu_seqlens" in names else names
    return tuple(
        SequenceSpec(name, view.lookahead, field, end, max_documents if name == "cu_seqlens" else None) for name in made
    )


def _column(given: Any) -> Column:
    if isinstance(given, str):
        if given not in _KINDS:
            raise InvalidArgumentError(f"columns=: there is no column {given!r}; there are {', '.join(_KINDS)}")
        return _KINDS[given]()
    if not isinstance(given, CuSeqlens | PositionIds | DocumentIds):
        raise InvalidArgumentError(f"columns=: {given!r:.80} is neither a name nor one of penstock.columns")
    return given


def _ends(wanted: list[Column], view: Any) -> tuple[str, int | None]:
    """The field and the value in it after which a document ends; ("", None) where spans say it."""
    given = {each.end_of_document for each in wanted if each.end_of_document is not None}
    if len(given) > 1:
        raise InvalidArgumentError(f"columns=: end_of_document is {' and '.join(map(str, sorted(given)))}: give one")
    end = given.pop() if given else None
    dataset = view.dataset
    if end is None and dataset.spans > 0:
        return "", None
    if end is None:
        end = (dataset.tokenizer or {}).get("end_of_document")
    if end is None:
        raise InvalidArgumentError(
            f"{wanted[0].name}: {dataset.path} has no spans, and no tokenizer that says which token ends a document: "
            f"give penstock.columns.{type(wanted[0]).__name__}(end_of_document=…)"
        )
    leaf, why = token_leaf(view.dtype)
    if leaf is None:
        raise InvalidArgumentError(f"{wanted[0].name}: end_of_document of which field? {why}")
    return leaf, index("end_of_document", end, 0, (1 << 63) - 1)
