"""What `penstock.write` was asked for: options that go together, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from penstock._base.arguments import index
from penstock._from.engines.engine import ENGINES, REFERENCE
from penstock._from.text.raw import Columns
from penstock._from.text.skipping import Limit, parse_limit
from penstock._from.text.tokenizing import TokenizerOptions
from penstock._make.errors import UsageError

if TYPE_CHECKING:
    from penstock._from.text.tokenizing import DocumentTokenizer

_CHOICES = {
    "format": (None, "jsonl", "text", "parquet"),
    "text_per": ("file", "line"),
    "codec": (None, "json", "msgpack", "raw"),
    "layout": ("compact", "ids"),
    "dtype": ("auto", "u1", "u2", "u4"),
    "on_error": ("stop", "skip"),
    "tokenizer_engine": ENGINES,
}
_LEAST_MEMORY = 64 << 20  # less than what a tokenizer takes itself
_KEPT = ("all", "boundaries", None)  # of metadata; all others are names of columns


@dataclass(frozen=True)
class Request:
    """The options of `penstock.write` that decide what is made of the inputs.

    Messages name options as the command line does; `penstock.write` says them in Python's words.
    """

    format: str | None = None
    text_column: str = "text"
    ids_column: str | None = None
    messages: str | None = None
    text_per: str = "file"
    tokenizer: str | None = None
    name: str | None = None
    prepend: Sequence[str] = ()
    append: Sequence[str] = ()
    post_processor: bool = False
    special_tokens_in_text: bool = False
    metadata: str | Sequence[str] | None = "boundaries"
    codec: str | None = None
    layout: str = "compact"
    dtype: str = "auto"
    tokenizer_engine: str = "auto"
    memory: int = 1 << 30
    shard_size: int = 1 << 30
    on_error: str = "stop"
    max_skipped: str | int | None = None
    limit: Limit | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Refuses what does not go together.

        Raises:
            UsageError: That.
        """
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                known = ", ".join(str(each) for each in allowed if each is not None)
                raise UsageError(f"--{name.replace('_', '-')} {getattr(self, name)!r:.80}: expected {known}")
        for name in ("prepend", "append"):
            object.__setattr__(self, name, _tokens(name, getattr(self, name)))
        if index("memory", self.memory) < _LEAST_MEMORY:
            raise UsageError(f"--memory {self.memory:,}: give 64MiB or more, which a tokenizer takes itself")
        self._check_messages()
        self._check_text()
        self._check_metadata()
        if self.max_skipped is not None:
            if not self.skips:
                raise UsageError("--max-skipped is for --on-error skip: give both, or neither")
            object.__setattr__(self, "limit", parse_limit(str(self.max_skipped)))

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Of all options."""
        return tuple(each.name for each in fields(cls) if each.init)

    def _check_messages(self) -> None:
        if self.messages is None:
            return
        if self.tokenizer is None:
            raise UsageError("--messages needs --tokenizer DIR, a tokenizer of transformers with a chat template")
        for option in ("ids_column", "prepend", "append", "post_processor", "special_tokens_in_text"):
            if getattr(self, option):
                name = option.replace("_", "-")
                raise UsageError(f"--{name} is for text: the template says all tokens; drop it or --messages")

    def _check_text(self) -> None:
        if self.tokenizer is None and self.ids_column is None:
            raise UsageError("text needs --tokenizer FILE; token ids already made need --ids-column")
        for option in ("special_tokens_in_text", "post_processor"):
            if self.ids_column is not None and getattr(self, option):
                name = option.replace("_", "-")
                raise UsageError(f"--{name} is for text; --ids-column takes ids as they are")

    def _check_metadata(self) -> None:
        columns = [] if self.metadata in _KEPT else list(self.metadata or ())
        self._check_columns(columns)
        if self.codec == "raw" and len(columns) != 1:
            raise UsageError("--codec raw stores the text of one column: name it with --metadata")
        if self.codec is not None and self.metadata != "all" and not columns:
            kept = "none" if self.metadata is None else self.metadata
            raise UsageError(f"--codec is for columns, and --metadata {kept} keeps none: name some")
        if self.layout == "ids" and self.metadata is None:
            raise UsageError("--layout ids stores which document a token is of: leave out --metadata none")

    def _check_columns(self, columns: list[str]) -> None:
        if self.metadata not in _KEPT and not columns:
            raise UsageError("--metadata: no column is named: name some, or boundaries or none")
        if isinstance(self.metadata, str) and columns:  # in Python alone
            kept = 'a list of columns, "all", "boundaries" or None'
            raise UsageError(f"--metadata {self.metadata!r:.80}: give {kept}, which keeps tokens alone")
        if "" in columns or len(set(columns)) < len(columns):
            raise UsageError(f'--metadata "{",".join(columns)}": name each column once, as in url,date')

    # ---- what follows

    @property
    def skips(self) -> bool:
        """Whether documents that cannot be used are left out."""
        return self.on_error == "skip"

    @property
    def entry_codec(self) -> str:
        """Of entries with columns in them."""
        return self.codec or "json"

    @property
    def codec_of_dataset(self) -> str | None:
        """ "boundaries": documents without metadata; None: tokens alone."""
        if self.metadata is None or self.metadata == "boundaries":
            return self.metadata
        return self.entry_codec

    @property
    def columns(self) -> Columns:
        """What is taken of a document."""
        kept = () if self.metadata in ("boundaries", None) else tuple(self.metadata or ())
        metadata = None if self.metadata == "all" else kept
        column = self.messages or self.text_column
        return Columns(column, self.ids_column, metadata, self.text_per, self.messages is not None)

    @property
    def tokenizer_options(self) -> TokenizerOptions:
        """How documents become ids."""
        return TokenizerOptions(
            file=self.tokenizer,
            name=self.name,
            prepend=tuple(self.prepend),
            append=tuple(self.append),
            post_processor=self.post_processor,
            special_tokens_in_text=self.special_tokens_in_text,
            dtype=self.dtype,
            messages=self.messages is not None,
            engine=REFERENCE if self.ids_column is not None else self.tokenizer_engine,
            memory=self.memory,
        )

    def identity(self, tokenizer: DocumentTokenizer) -> dict[str, Any]:
        """All options that decide a shard's bytes; shards of another run are kept only where they are equal."""
        columns = self.columns._asdict()
        del columns["messages"]  # said below where it is true, as in tasks of earlier versions
        columns["metadata"] = "all" if self.columns.metadata is None else list(self.columns.metadata)
        return {
            **columns,
            **tokenizer.identity(),
            "codec": self.codec_of_dataset or self.entry_codec,
            "layout": self.layout,
            "task_bytes": self.shard_size,
            **({} if self.messages is None else {"messages": True}),
        }


def _tokens(name: str, given: Any) -> tuple[str, ...]:
    """Tokens as text, ids as numbers.

    Raises:
        UsageError: A text, which would be taken letter by letter, or what is no token.
    """
    if isinstance(given, (str, bytes)) or not all(isinstance(each, (str, int)) for each in given):
        raise UsageError(f"--{name} {given!r:.80}: a list of tokens is wanted")
    return tuple(map(str, given))
