"""What `penstock.write` says of what it made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class WrittenText:
    """Counts of the dataset and of this run. Shards kept from an earlier run count in the first five alone.

    Attributes:
        path: the dataset's folder or address.
        documents: of the dataset.
        skipped: documents that were left out.
        tokens: of the dataset.
        shards: of the dataset.
        kept_shards: those among them that an earlier run had made.
        new_tokens: of this run.
        text_bytes: of this run's input, as tasks count them.
        workers: that tokenized.
        seconds: that it took.
        tokenizing_seconds: that all workers together spent in the tokenizer.
        dtype: of a token.
        codec: of documents' metadata; None: tokens alone.
        engine: that computed the ids, with its version; empty for tokenizers, and for ids.
        slow_because: why it was tokenizers; empty where it was not.
        fell_back: whether another engine was found to be wrong, and all of it was made again.
        bytes: of the dataset's files.
        notes: what is to be known beside that, a line for each.
    """

    path: str = ""
    documents: int = 0
    skipped: int = 0
    tokens: int = 0
    shards: int = 0
    kept_shards: int = 0
    new_tokens: int = 0
    text_bytes: int = 0
    workers: int = 0
    seconds: float = 0.0
    tokenizing_seconds: float = 0.0
    dtype: str = ""
    codec: str | None = None
    engine: str = ""
    slow_because: str = ""
    fell_back: bool = False
    bytes: int = 0
    notes: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """All figures, rates and the tokenizer's share of the processes' time with them."""
        seconds = max(self.seconds, 1e-9)
        return {
            "documents": self.documents,
            "skipped": self.skipped,
            "tokens": self.tokens,
            "shards": self.shards,
            "kept_shards": self.kept_shards,
            "new_tokens": self.new_tokens,
            "text_bytes": self.text_bytes,
            "workers": self.workers,
            "seconds": round(self.seconds, 3),
            "megabytes_per_second": round(self.text_bytes / seconds / 1e6, 3),
            "tokens_per_second": round(self.new_tokens / seconds),
            "tokenizer_share": round(self.tokenizer_share, 3),
            "tokenizer_engine": self.engine or ("tokenizers" if self.slow_because else None),
            "slow_because": self.slow_because or None,
            "notes": self.notes,
        }

    @property
    def tokenizer_share(self) -> float:
        """The part of all workers' time that was spent inside the tokenizer: 1 is the best there is."""
        return self.tokenizing_seconds / max(self.seconds * self.workers, 1e-9)
