"""`penstock.verify_ids`: encodes documents of a dataset again, by tokenizers, and compares the ids.

Their text is that of the inputs, where those are named, or what their ids spell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, islice
from typing import NamedTuple

from penstock._base.arguments import index
from penstock._base.errors import InvalidArgumentError
from penstock._data.open import open as open_dataset
from penstock._from.engines.engine import REFERENCE
from penstock._from.text.again import Again, Rules, Spelled, Told
from penstock._from.text.named_text import InputOptions, NamedText, Text
from penstock._from.text.raw import RawDocument
from penstock._from.text.request import Request
from penstock._from.text.sampling import evenly
from penstock._from.text.stored import Beside, StoredDocuments
from penstock._from.text.verified import VerifiedIds, compared
from penstock._make.errors import DocumentError, UsageError
from penstock._make.notes import LIST
from penstock._make.python_words import said_in_python
from penstock._places.paths import PathLike, as_paths
from penstock._places.storage import Storage

_DOCUMENTS = 1000  # looked at, unless it is said how many …
_TOKENS = 4_000_000  # … or fewer, once these are so many
_TOGETHER = 32  # documents that are encoded at once


class Wanted(NamedTuple):
    """The dataset to be looked at, and how its ids were made."""

    tokenizer: str
    sample: int | str | None
    told: Told
    inputs: InputOptions


def verify_ids(
    path: PathLike,
    tokenizer: PathLike,
    *,
    text: PathLike | Iterable[PathLike] = (),
    sample: int | str | None = None,
    format: str | None = None,
    text_column: str | None = None,
    text_per: str | None = None,
    prepend: Sequence[str] | None = None,
    append: Sequence[str] | None = None,
    post_processor: bool | None = None,
    special_tokens_in_text: bool | None = None,
    storage: Storage | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> VerifiedIds:
    """Encodes documents of a dataset again, by the library tokenizers, and compares the ids with those that are stored.

    The text of a document is the one in `text`, else what its ids spell, which is certain for byte-level tokenizers.
    Of other tokenizers, and of documents that are parts of a text, ids that differ are no proof: they are counted as
    not judged. `penstock verify --tokenizer` is this function; the bytes are for `penstock.verify`.

    Args:
        path: the dataset's folder, or its address.
        tokenizer: the tokenizer.json that made the ids. One whose hash is not that of the manifest is a notice.
        text: the inputs that `penstock.write` made the dataset of, in their order. Documents that skipped.jsonl lists
            are passed over.
        sample: how many documents, at even places, or "all"; None: 1,000, or fewer with four million tokens.
        format: of the inputs, as for `penstock.write`.
        text_column: of the inputs; None: as the dataset says that it was written, else "text".
        text_per: of plain text, likewise; else "file".
        prepend: tokens before each document; None: as the dataset says that it was written. Where nothing says so,
            special tokens at both ends of a document are taken to be put there.
        append: tokens after each document, likewise.
        post_processor: whether the tokenizer added its own special tokens, likewise.
        special_tokens_in_text: whether special tokens were read in texts, likewise.
        storage: how addresses are reached.
        progress: called with (documents done, documents in all) now and then; may raise to stop.

    Returns:
        Counts and the first difference; true if nothing is wrong.

    Raises:
        InvalidArgumentError: options that do not go together; a dataset without documents of token ids, or of
            conversations; a tokenizer whose ids are drawn.
        NotFoundError: no dataset.
        ValueError: an input that cannot be read, a document in it that cannot be used and is not listed.

    Examples:
        >>> import os, penstock, tempfile, tokenizers
        >>> from tokenizers import models, pre_tokenizers
        >>> folder = tempfile.mkdtemp()
        >>> file, text, out = (os.path.join(folder, name) for name in ("t.json", "a.jsonl", "corpus"))
        >>> alphabet = {each: number for number, each in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
        >>> tokenizer = tokenizers.Tokenizer(models.BPE(alphabet, []))
        >>> tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        >>> tokenizer.save(file)
        >>> with open(text, "w") as lines:
        ...     _ = lines.write('{"text": "one"}\\n{"text": "two"}\\n')
        >>> done = penstock.write(text, out, tokenizer=file)
        >>> found = penstock.verify_ids(out, file)
        >>> bool(found), found.agreed, found.differing
        (True, 2, 0)
        >>> bool(penstock.verify_ids(out, file, text=text))
        True
    """
    paths = [str(each) for each in as_paths(text)]
    with said_in_python():
        try:
            told = Told(prepend, append, post_processor, special_tokens_in_text)
            inputs = InputOptions(paths, format, text_column, text_per)
            wanted = Wanted(str(tokenizer), sample, told, inputs)
            return look_back(path, wanted, storage, progress)
        except UsageError as error:
            raise InvalidArgumentError(str(error)) from None


def look_back(
    path: PathLike, wanted: Wanted, storage: Storage | None, progress: Callable[[int, int], None] | None
) -> VerifiedIds:
    """As `verify_ids`; messages name options as the command line does.

    Raises:
        UsageError: Options that do not go together, or a dataset that cannot be judged.
    """
    _check(wanted)
    dataset = open_dataset(path, storage=storage)
    stored = StoredDocuments(dataset)
    beside = Beside(path, storage)
    manifest = dataset.tokenizer or {}
    report = VerifiedIds(dataset.path, str(manifest.get("engine") or REFERENCE), stored.count)
    named = None
    if wanted.inputs.text:
        noted = beside.options(stored.name(0)) if stored.count else {}
        named = NamedText(wanted.inputs, noted, beside.read(LIST), storage)
    again = Again(wanted.tokenizer, wanted.told, manifest.get("end_of_document"), guesses=named is None)
    if manifest.get("hash") not in (None, f"sha256:{again.sha256}"):
        report.notices.append(
            f"{wanted.tokenizer} is not the tokenizer.json that the manifest names: its sha256 is {again.sha256}, not"
            f" {str(manifest['hash']).removeprefix('sha256:')}; where ids differ, that may be why"
        )
    numbers = _chosen(stored, wanted.sample)
    look = _Look(stored, again, beside, report)
    texts = ((each, None, b"") for each in numbers) if named is None else named.texts(numbers)
    while some := list(islice(texts, _TOGETHER)):
        look.at(some)
        if progress is not None:
            progress(report.looked_at, len(numbers))
    if named is not None:
        report.text_documents = named.count
    return report


def _check(wanted: Wanted) -> None:
    inputs, told = wanted.inputs, wanted.told
    for option in ("format", "text_column", "text_per"):
        if getattr(inputs, option) is not None and not inputs.text:
            raise UsageError(f"--{option.replace('_', '-')} is of inputs: name them with --text, or drop it")
    Request(  # says what cannot be
        tokenizer=wanted.tokenizer,
        format=inputs.format,
        text_per=inputs.text_per or "file",
        prepend=told.prepend or (),
        append=told.append or (),
    )
    if wanted.sample in (None, "all"):
        return
    try:
        index("sample", wanted.sample, 1)
    except InvalidArgumentError:
        raise UsageError(f"--sample {wanted.sample!r:.80}: expected a number from 1 on, or all") from None


def _chosen(stored: StoredDocuments, sample: int | str | None) -> Sequence[int]:
    """The numbers of the documents that are looked at, ascending."""
    count = stored.count
    if sample == "all":
        return range(count)
    if sample is not None:
        most = min(count, int(sample))
        return [(2 * number + 1) * count // (2 * most) for number in range(most)]
    found: list[int] = []
    order, tokens = evenly(count, _DOCUMENTS), 0
    while tokens < _TOKENS and (some := list(islice(order, _TOGETHER))):
        for number, ids in zip(some, stored.read(some), strict=True):
            if tokens < _TOKENS:
                found.append(number)
            tokens += len(ids or ())
    return sorted(found)


class _Look:
    """Compares documents. One thread at a time."""

    def __init__(self, stored: StoredDocuments, again: Again, beside: Beside, report: VerifiedIds) -> None:
        """Adds to `report`."""
        self._stored, self._again, self._beside, self._report = stored, again, beside, report
        self._last: tuple[str, Rules] | None = None  # of the shard that was last

    def at(self, some: Sequence[Text]) -> None:
        """Compares some documents, ascending: number, where its text is (None: its ids spell it), text.

        Raises:
            DocumentError: A text of the inputs that cannot be used.
        """
        self._report.looked_at += len(some)
        ids = self._stored.read([number for number, _, _ in some])
        there = [(each, own) for each, own in zip(some, ids, strict=True) if own is not None]
        for (number, _, _), own in zip(some, ids, strict=True):
            if own is None:
                self._report.cannot_judge(number, "its records do not follow one another (layout ids)")
        for rules, group in groupby(there, lambda each: self._rules_of(each[0][0])):
            self._compare(rules, list(group))

    def _rules_of(self, number: int) -> Rules:
        name = self._stored.name(number)
        if self._last is None or self._last[0] != name:
            self._last = name, self._again.rules(self._beside.options(name))
        return self._last[1]

    def _compare(self, rules: Rules, some: Sequence[tuple[Text, list[int]]]) -> None:
        texts = [rules.spelled(ids) if source is None else Spelled(text) for (_, source, text), ids in some]
        sources = [
            source or RawDocument(number, self._report.path, 0, "row", b"", None) for (number, source, _), _ in some
        ]
        for ((number, source, _), ids), text, expected in zip(some, texts, rules.encode(texts, sources), strict=True):
            if expected == ids:
                self._report.agreed += 1
            elif source is not None:
                if isinstance(expected, DocumentError):
                    raise expected
                self._differs(number, source.place(), ids, expected or [])
            elif isinstance(expected, DocumentError):
                self._report.cannot_judge(number, expected.reason)
            elif unsure := text.unsure or self._again.decoder.unsure_of(ids, expected or []):
                self._report.cannot_judge(number, unsure)
            else:
                self._differs(number, "", ids, expected or [])

    def _differs(self, number: int, place: str, ids: list[int], expected: list[int]) -> None:
        name, excerpt = self._stored.name(number), self._again.decoder.excerpt
        self._report.differs(compared(number, name, place, ids, expected, excerpt))
