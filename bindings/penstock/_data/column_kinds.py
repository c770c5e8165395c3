"""Columns that users may ask loaders for: `penstock.columns`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from penstock._base.arguments import index, is_fraction, shown
from penstock._base.errors import InvalidArgumentError


@dataclass(frozen=True)
class CuSeqlens:
    """`batch.cu_seqlens`: int32, where each sequence of the flattened batch begins, and the last one's end.

    [documents + 1], or with `max_documents` of the loader [max_documents + 1], padded with the last value: empty
    sequences. A row of padding is one sequence (of documents: none). With it comes `batch.max_seqlen`: the longest, or
    of windows with `max_documents` the window, so that it is the same in all batches.

    Attributes:
        end_of_document: the token that ends a document, for datasets whose spans or tokenizer do not say; the same as
            `dataset.windows(…, end_of_document=…)`.
        begin_of_document: the token with which a document begins, likewise.

    Examples:
        >>> import numpy as np, os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
        >>> np.array([5, 6, 0, 7, 8, 9, 9, 0], "u2").tofile(path)
        >>> view = penstock.open(path, dtype="u2").windows(4)
        >>> ends = penstock.columns.CuSeqlens(end_of_document=0)
        >>> batch = next(penstock.Loader(view, 2, order="sequential", columns=[ends, "document_ids"]))
        >>> batch.cu_seqlens.tolist(), batch.document_ids.tolist()
        ([0, 3, 4, 8], [[0, 0, 0, 1], [0, 0, 0, 0]])
    """

    name: ClassVar[str] = "cu_seqlens"
    end_of_document: int | None = None
    begin_of_document: int | None = None


@dataclass(frozen=True)
class PositionIds:
    """`batch.position_ids`: int32 [rows, window] (of documents [records]), each record's place in its sequence.

    Attributes:
        end_of_document: as of `CuSeqlens`.
        begin_of_document: as of `CuSeqlens`.
    """

    name: ClassVar[str] = "position_ids"
    end_of_document: int | None = None
    begin_of_document: int | None = None


@dataclass(frozen=True)
class DocumentIds:
    """`batch.document_ids`: int32 [rows, window] (of documents [records]), the number of each record's sequence.

    Sequences are numbered from 0 in each row, those of documents, which have no axis of rows, through the batch; -1 in
    rows that are padding.

    Attributes:
        end_of_document: as of `CuSeqlens`.
        begin_of_document: as of `CuSeqlens`.
    """

    name: ClassVar[str] = "document_ids"
    end_of_document: int | None = None
    begin_of_document: int | None = None


@dataclass(frozen=True)
class LossMask:
    """`batch.loss_mask`: bool [rows, window] (of documents [records]), whether the loss at each record counts.

    It belongs to the *target*, the record that follows: false where that does not count, where there is none (the last
    record of a row without lookahead, or of a document in a packed or padded row) and in padding. `batch.labels` are
    -100 there. Several masks count together: a target that one of them leaves out is out.

    Attributes:
        field: of the records, bool or integers: a target counts where it is not 0.
        spans: a function of a document's metadata that gives the ranges [[begin, end), …] of its records that count,
            counted from the document's begin. `next` calls it, once for each entry of a batch, on entries that were
            read ahead; the arrays are then filled by native code.

    Examples:
        >>> import os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "chats")
        >>> with penstock.Writer(path, fields={"token": "u2"}, metadata="json") as writer:
        ...     writer.append(token=[1, 2, 3, 4], metadata={"answers": [[2, 4]]})
        ...     writer.append(token=[5, 6, 7, 8, 9], metadata={"answers": [[1, 2], [4, 5]]})
        >>> view = penstock.open(path).windows(4, lookahead=1)
        >>> answers = penstock.columns.LossMask(spans=lambda metadata: metadata["answers"])
        >>> batch = next(penstock.Loader(view, 2, order="sequential", columns=[answers], framework="numpy"))
        >>> batch.inputs.tolist(), batch.labels.tolist()
        ([[1, 2, 3, 4], [5, 6, 7, 8]], [[-100, 3, 4, -100], [6, -100, -100, 9]])
        >>> batch.loss_mask.astype(int).tolist()
        [[0, 1, 1, 0], [1, 0, 0, 1]]
    """

    name: ClassVar[str] = "loss_mask"
    field: str | None = None
    spans: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        """Refuses a function in the place of a field's name.

        Raises:
            InvalidArgumentError: `field` is a function.
        """
        if callable(self.field):
            raise InvalidArgumentError(
                f"LossMask(field={shown(self.field)}): a field's name is wanted; a function goes to spans=, "
                "LossMask(spans=…)"
            )


@dataclass(frozen=True)
class Labels:
    """Which of `batch.labels` are left out. Those of packed and padded rows never cross documents.

    Attributes:
        cross_document: False: labels whose record is of another document than its input are -100, and `loss_mask` is
            false there.
    """

    name: ClassVar[str] = "labels"
    cross_document: bool = True


@dataclass(frozen=True)
class PerSpan:
    """`batch.columns[name]`: [rows, window] (of documents [records]), a value of each document, for all its records.

    Attributes:
        name: of the array.
        f: a function of the document's metadata that gives the value; called as `LossMask.spans` is.
        dtype: of the array: a bool, an integer or a float.
        fill: the value in padding.

    Examples:
        >>> import os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "corpus")
        >>> with penstock.Writer(path, fields={"token": "u2"}, metadata="json") as writer:
        ...     for length in (3, 7):
        ...         writer.append(token=range(length), metadata={"quality": length / 2})
        >>> quality = penstock.columns.PerSpan("quality", lambda metadata: metadata["quality"], "f4", fill=0)
        >>> view = penstock.open(path).windows(5)
        >>> batch = next(penstock.Loader(view, 2, order="sequential", columns=[quality], framework="numpy"))
        >>> batch.columns["quality"].tolist()
        [[1.5, 1.5, 1.5, 3.5, 3.5], [3.5, 3.5, 3.5, 3.5, 3.5]]
    """

    name: str
    f: Callable[[Any], Any]
    dtype: Any
    fill: Any = 0


@dataclass(frozen=True)
class FillInTheMiddle:
    """Rearranges documents for infilling, in the rows themselves: fields, `inputs`, `labels`, masks are made after.

    A row's piece of a document is chosen with probability `rate`. Its last three tokens are dropped, what is left is
    cut at two uniform points into prefix, middle and suffix, and three sentinels come in:

        PSM: prefix-token, prefix, suffix-token, suffix, middle-token, middle
        SPM: prefix-token, suffix-token, suffix, middle-token, prefix, middle

    (Bavarian et al., 2022, arXiv 2207.14255, sections 3 and 4.1; SPM is their variant 2, which Megatron and StarCoder
    use). So pieces, rows, spans and padding stay where they are. Pieces of fewer than four tokens stay as they are.
    Records move whole: their other fields go along, a sentinel has those of the record that it stands before. What is
    drawn is a pure function of (the loader's seed, epoch, observation; of a mixture also the source's name).

    Attributes:
        prefix: the token before the prefix.
        middle: the token before the middle.
        suffix: the token before the suffix.
        rate: of pieces that are rearranged, from 0 to 1.
        spm_rate: of those, the part that is SPM; the others are PSM.
        sources: names of a mixture's sources, for these alone; None: all.
        end_of_document: the token that stays a document's last; None: the view's, or that of the dataset's tokenizer.
            Where nothing else tells documents, it does.
        begin_of_document: the token that stays a document's first; None: the view's, if it has one.

    Examples:
        >>> import os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "code")
        >>> with penstock.Writer(path, fields={"token": "u2"}, metadata="json") as writer:
        ...     writer.append(token=[1, 2, 3, 4, 5, 6, 7, 8, 0], metadata=None)
        ...     writer.append(token=[11, 12, 13, 14, 15, 16, 0], metadata=None)
        >>> fim = penstock.columns.FillInTheMiddle(97, 98, 99, rate=1, spm_rate=0, end_of_document=0)
        >>> view = penstock.open(path).windows(16)
        >>> batch = next(penstock.Loader(view, 1, columns=[fim], framework="numpy"))
        >>> batch["token"].tolist()
        [[97, 1, 2, 99, 98, 3, 4, 5, 0, 97, 99, 13, 98, 11, 12, 0]]
    """

    name: ClassVar[str] = "fill_in_the_middle"
    prefix: int
    middle: int
    suffix: int
    rate: float = 0.5
    spm_rate: float = 0.5
    sources: Collection[str] | None = None
    end_of_document: int | None = None
    begin_of_document: int | None = None

    def __post_init__(self) -> None:
        """Refuses rates and sentinels that cannot be; a loader checks that its records can hold the sentinels.

        Raises:
            InvalidArgumentError: a rate that is no number from 0 to 1; sentinels that are no three different integers
                from 0 on.
        """
        tokens = {name: getattr(self, name) for name in ("prefix", "middle", "suffix")}
        for name, token in tokens.items():
            index(f"FillInTheMiddle: {name}", token, 0, (1 << 63) - 1)
        if len(set(tokens.values())) < len(tokens):
            said = ", ".join(f"{name}={token}" for name, token in tokens.items())
            raise InvalidArgumentError(f"FillInTheMiddle({said}): must be three different tokens")
        for name in ("rate", "spm_rate"):
            if not is_fraction(value := getattr(self, name)):
                raise InvalidArgumentError(f"FillInTheMiddle({name}={shown(value)}): must be a number from 0 to 1")


@dataclass(frozen=True)
class SpanCorruption:
    """T5's objective: spans of each row's tokens are cut out, and the labels say them.

    Of a row of n tokens, a window or a document, round(n * density) are noise, in round(noise / mean_length) spans, at
    least one of each (halves are rounded to even). Noise and the rest are parted into so many runs, all ways equally
    likely; a row begins with tokens that stay and ends with a span (Raffel et al., 2020, JMLR 21, section 3.1.4, and
    their code). `batch.inputs` have the k-th sentinel in place of the k-th span, `batch.labels` each sentinel before
    the tokens of its span. All windows give one shape: [rows, n - noise + spans] and [rows, noise + spans], one more
    each with `end`; documents are padded to the batch's longest, labels by -100, and `batch.attention_mask`, int64, is
    1 where inputs are no padding. Both are int64, or the signed type chosen for the field of tokens. What is drawn is a
    pure function of (the loader's seed, epoch, observation; of a mixture also the source's name).

    Attributes:
        sentinels: tokens, the first span's first: T5's are range(32099, 31999, -1). A document with more spans has
            fewer and longer ones.
        density: of noise, above 0 and below 1.
        mean_length: of a span of noise, at least 1.
        end: the token that comes last in inputs and labels; None: none does.
        pad: the token behind a document's inputs.

    Examples:
        >>> import numpy as np, os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
        >>> np.arange(2, 1002, dtype=np.uint16).tofile(path)
        >>> view = penstock.open(path, dtype="u2").windows(12)
        >>> spans = penstock.columns.SpanCorruption([99, 98], density=0.3, mean_length=2, end=1)
        >>> batch = next(penstock.Loader(view, 1, order="sequential", columns=[spans], framework="numpy"))
        >>> batch.inputs.tolist(), batch.labels.tolist()
        ([[2, 99, 6, 7, 8, 9, 10, 11, 12, 98, 1]], [[99, 3, 4, 5, 98, 13, 1]])
    """

    name: ClassVar[str] = "span_corruption"
    sentinels: Sequence[int]
    density: float = 0.15
    mean_length: float = 3.0
    end: int | None = None
    pad: int = 0


@dataclass(frozen=True)
class PerRow:
    """`batch.columns[name]`: arrays [rows, …] that a Python function makes of each row, ahead of the training loop.

    `function(row, generator)` gets a `penstock.columns.Row`, all that the row's other columns are made of, and a
    `numpy.random.Generator`, `numpy.random.default_rng([seed, epoch, observation])`: the loader's seed (of a mixture
    the source's own), the row's epoch, and the observation's number in the whole view (`view.base_indices`). What it
    returns must depend on these alone; then batches are the same on any ranks and after any resume. Several functions
    get equal generators for a row.

    It is called by threads of Python, or by processes, for batches that are read ahead. Rows of padding are zeros.
    Where it raises, or returns anything else, `next` raises InvalidArgumentError, which names the observation, at the
    batch that needs it; the batch comes again. Where a process ends, that is an IoError.

    Attributes:
        function: returns one array where there is one name, else a mapping of names.
        arrays: {name: type of a row's array}: as `numpy.dtype` takes it, "f4" or ("f4", (3, 32, 32)). A value that it
            does not hold is refused.
        workers: how many threads or processes; None: this process's share of the cores. All `PerRow` of a loader have
            the same ones.
        processes: False: threads, for functions that let go of the GIL; True: processes, which import the function's
            module; then it must pickle, and a script needs `if __name__ == "__main__":`.

    Examples:
        >>> import numpy as np, os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
        >>> np.arange(1000, dtype=np.uint16).tofile(path)
        >>> view = penstock.open(path, dtype="u2").windows(6)
        >>> def dropped(row, generator):
        ...     return row["token"] * (generator.random(6) >= 0.3)
        >>> column = penstock.columns.PerRow(dropped, {"dropped": ("i8", 6)})
        >>> with penstock.Loader(view, 2, order="sequential", columns=[column], framework="numpy") as loader:
        ...     next(loader).columns["dropped"].tolist()
        [[0, 0, 0, 0, 4, 5], [6, 7, 8, 0, 0, 0]]
    """

    name: ClassVar[str] = "per_row"
    function: Callable[..., Any]
    arrays: Mapping[str, Any]
    workers: int | None = None
    processes: bool = False


@dataclass(frozen=True)
class Names:
    """`batch.columns[name]`: the strings that the codes of a category stand for, as NumPy has them, also with torch.

    An object array of the shape of the codes; None where a document has no category, and in padding. It is made of the
    codes at once when `batch.columns` is first looked at. The strings are those of the dataset, not copies.

    Attributes:
        column: one of the view's `columns=`, a category.
        name: of the array; None: the column's own, so that strings stand in place of codes.

    Examples:
        >>> import os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "cells")
        >>> with penstock.Writer(path, {"token": "u2"}, columns={"plate": "category"}) as writer:
        ...     for plate in ("p7", None, "p2"):
        ...         writer.append(token=[1, 2], columns={"plate": plate})
        >>> view = penstock.open(path).documents(columns=["plate"], metadata=False)
        >>> names = penstock.columns.Names("plate", "plate_name")
        >>> batch = next(penstock.Loader(view, 3, order="sequential", columns=[names]))
        >>> batch.columns["plate"].tolist(), batch.columns["plate_name"].tolist()
        ([0, -1, 1], ['p7', None, 'p2'])
    """

    column: str
    name: str | None = None


Column = (
    CuSeqlens
    | PositionIds
    | DocumentIds
    | LossMask
    | Labels
    | PerSpan
    | FillInTheMiddle
    | SpanCorruption
    | PerRow
    | Names
)
