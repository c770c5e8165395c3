"""Records and metadata as text, for commands that show them."""

from __future__ import annotations

import functools
import json
from typing import Any

import click

from penstock._base.errors import InvalidArgumentError
from penstock._view.spelling import Spelling

_VALUES_SHOWN = 24


class Decoder:
    """Ids to text, where a tokenizer is given; else numbers.

    Attributes:
        field: the field that has the ids; None: no field can.
        note: what is odd about the tokenizer; empty: nothing.
    """

    def __init__(self, file: str | None, dataset: Any) -> None:
        """Of a dataset; `file` is a tokenizer.json."""
        names = dataset.dtype.names if dataset.dtype is not None else ()
        self.field = "token" if "token" in names else next((name for name in names if _is_ids(dataset, name)), None)
        self.note = ""
        self._genes = dataset.features if dataset._has_cells else None
        self._tokenizer: Any = None
        if file is None:
            return
        self._tokenizer = _load_tokenizer(file)
        written = (dataset.tokenizer or {}).get("hash")
        is_of_chats = "loss" in (names or ())  # whose hash is of the template too
        if written is not None and not is_of_chats and written != f"sha256:{self._tokenizer.sha256}":
            self.note = f"{file} is not the tokenizer that wrote the dataset: the text may be wrong"
            click.echo(f"penstock: {self.note}", err=True)

    @functools.cached_property
    def spelling(self) -> Spelling | None:
        """What each id stands for; None where `text` gives numbers."""
        return _spelling(self._tokenizer) if self.decodes else None

    @property
    def decodes(self) -> bool:
        """Whether `text` gives text, not numbers."""
        return self._tokenizer is not None and self.field is not None

    def text(self, record_values: Any) -> str:
        """What records say: text, or numbers."""
        if self._tokenizer is not None and self.field is not None:
            return str(self._tokenizer.decode(record_values[self.field].tolist()))
        shown = []
        for name, values in record_values.items():
            listed = values.tolist()
            more = f" … {len(listed):,} in all" if len(listed) > _VALUES_SHOWN else ""
            numbers = " ".join(map(str, self._named(name, listed[:_VALUES_SHOWN])))
            shown.append(f"{numbers}{more}" if len(record_values) == 1 else f"{name}: {numbers}{more}")
        return "\n".join(shown)

    def _named(self, field: str, values: list[Any]) -> list[Any]:
        """Names of genes, where the dataset has them; other values as they are."""
        if field != "gene" or self._genes is None:
            return values
        names = self._genes._all_names
        return [names[each] if each < len(names) else each for each in values]


@functools.cache
def _load_tokenizer(file: str) -> Any:
    from penstock._from.text.tokenizing import DocumentTokenizer, TokenizerOptions

    return DocumentTokenizer(TokenizerOptions(file=file))


@functools.cache
def _spelling(tokenizer: Any) -> Spelling:
    return Spelling(*tokenizer.loaded)


def _is_ids(dataset: Any, name: str) -> bool:
    return bool(dataset.dtype[name].kind in "iu" and dataset.dtype[name].shape == ())


def metadata_of(span: Any) -> Any:
    """A span's metadata, as JSON; None where there is none."""
    try:
        value = span.metadata
    except InvalidArgumentError:  # a codec of the writer's own, which this program does not have
        value = None
    if value is None:
        value = span.raw
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "backslashreplace") or None
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return str(value)
    return value


def visible(line: str) -> str:
    """Without characters that a terminal would obey: data must not move the cursor."""
    return "".join(each if each.isprintable() or each == "\t" else repr(each)[1:-1] for each in line)
