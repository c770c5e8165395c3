"""A Hugging Face tokenizer.json, made to give each document exactly the tokens that were asked for."""

from __future__ import annotations

import copy
import hashlib
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from penstock import _native
from penstock._base.errors import IoError
from penstock._from.engines.choosing import engine_of
from penstock._from.engines.engine import REFERENCE, EngineError, Ids
from penstock._from.text.token_names import instead_of, instead_of_file, note_on_digits
from penstock._make.errors import InputError, UsageError

if TYPE_CHECKING:
    import numpy.typing as npt

    from penstock._from.engines.engine import Engine
    from penstock._from.engines.pieces import Pieces
    from penstock._from.text.raw import RawDocument

DTYPES = ("u1", "u2", "u4")
_PROBES = ("a", "A b", "0")


@dataclass(frozen=True)
class TokenizerOptions:
    """How documents become ids. `file` None: they are ids already, and added tokens are numbers.

    With `messages` they are conversations, and `file` is the folder of a tokenizer of transformers. `engine` is one of
    ENGINES, which may keep `memory` bytes in each worker; `made_by` is its name and version where a run began with it.
    """

    file: str | None = None
    name: str | None = None
    prepend: tuple[str, ...] = ()
    append: tuple[str, ...] = ()
    post_processor: bool = False
    special_tokens_in_text: bool = False
    dtype: str = "auto"
    messages: bool = False
    engine: str = REFERENCE
    memory: int = 1 << 30
    made_by: str | None = None

    def _replace_file(self, file: str) -> TokenizerOptions:
        return replace(self, file=file, name=self.name or Path(file).parent.name)


class Encoded(NamedTuple):
    """Tokens of some documents: `ids` end to end, in the dataset's type; `lengths` u64, one a document.

    `loss`, u1, is 1 where a token of a conversation is trained on; None of all else.
    """

    lengths: npt.NDArray[np.uint64]
    ids: npt.NDArray[Any]
    loss: npt.NDArray[np.uint8] | None = None

    @classmethod
    def joined(cls, parts: Sequence[Encoded], dtype: str, has_loss: bool) -> Encoded:
        """All documents of these parts, in order; there may be none."""
        if len(parts) == 1:
            return parts[0]
        lengths = [np.empty(0, np.uint64), *(each.lengths for each in parts)]
        ids = [np.empty(0, f"<{dtype}"), *(each.ids for each in parts)]
        loss = [np.empty(0, "u1"), *(each.loss for each in parts if each.loss is not None)]
        return cls(np.concatenate(lengths), np.concatenate(ids), np.concatenate(loss) if has_loss else None)


class DocumentTokenizer:
    """Turns documents into ids of the dataset's type. One thread at a time; one for each process.

    Attributes:
        sha256: of the tokenizer's file; None: there is none.
        dtype: of a token.
        slow_because: why the engine is none that is faster than tokenizers; empty: it is one.
        notes: what the user is to know of the options, a line for each.
    """

    def __init__(self, options: TokenizerOptions) -> None:
        """Reads the tokenizer's file, if there is one.

        Raises:
            UsageError: No such file, not a tokenizer, an unknown token, a token asked for twice.
        """
        self._options = options
        self._tokenizer: Any = None
        self.sha256: str | None = None
        if options.file is not None:
            self._load(options.file)
        self._prepend = [self._token_id(token) for token in options.prepend]
        self._append = [self._token_id(token) for token in options.append]
        self._processed: tuple[list[int], list[int]] = ([], [])
        if options.post_processor:
            self._processed = self._added_by_post_processor()
        self._refuse_tokens_asked_twice()
        self._size = self.vocabulary_size
        self.dtype = self._choose_dtype(options.dtype)
        most = int(np.iinfo(self.dtype).max)
        self._last = most if self._size is None else min(most, self._size - 1)
        self.notes = self._notes_on_digits()
        self._engine: Engine | None = None
        self.slow_because = ""
        if options.file is not None:
            self._choose_engine()

    def _load(self, file: str) -> None:
        import tokenizers

        try:
            data = Path(file).expanduser().read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
            raise UsageError(f"--tokenizer {file}: {error.strerror}{instead_of_file(file)}") from error
        except OSError as error:  # of the system, and not of how it is used
            raise IoError(error.errno, f"--tokenizer {file}: {error.strerror}", file) from error
        try:
            tokenizer = tokenizers.Tokenizer.from_str(data.decode("utf-8"))
        except Exception as error:  # the library raises Exception itself
            raise UsageError(
                f"--tokenizer {file}: not a tokenizer.json of Hugging Face's tokenizers ({error})"
            ) from error
        # What the file stores for training batches must not cut or fill documents.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = not self._options.special_tokens_in_text
        self._tokenizer, self._data = tokenizer, data
        self.sha256 = hashlib.sha256(data).hexdigest()

    def _choose_engine(self) -> None:
        """The engine of texts."""
        self._take_engine(
            self._tokenizer,
            self._data,
            self._processed,
            post_processor=self._options.post_processor,
            special_tokens_in_text=self._options.special_tokens_in_text,
        )

    def _take_engine(self, tokenizer: Any, data: bytes, around: tuple[list[int], list[int]], **ways: bool) -> None:
        """Chooses an engine; the arguments are those of `engine_of`.

        Raises:
            UsageError: The one that is asked for cannot be it.
            EngineError: This is a worker, and where the run began there is another one.
        """
        options = self._options
        chosen = engine_of(options.engine, tokenizer, data, around=around, memory=options.memory, **ways)
        self._engine, self.slow_because = chosen.engine, chosen.slow_because
        if chosen.gave_others:
            self.notes.append(f"tokenizers computes the ids: {chosen.slow_because}")
        self._refuse_another_engine()

    def _refuse_another_engine(self) -> None:
        """On a worker: the run's manifest says which engine there was when it began.

        Raises:
            EngineError: There is another one here.
        """
        wanted = self._options.made_by
        if wanted is not None and self.engine != wanted:
            here = self.engine or f"tokenizers ({self.slow_because})"
            raise EngineError(f"{platform.node()} has {here}, where the run began there is {wanted or 'tokenizers'}")

    def refuse_draws(self) -> None:
        """Refuses a tokenizer of which no two runs have the same ids.

        Raises:
            UsageError: It is one.
        """
        dropout = getattr(getattr(self._tokenizer, "model", None), "dropout", None)
        if dropout:
            raise UsageError(
                f"--tokenizer {self._options.file}: it draws its ids (dropout {dropout:.2g}), so that no two runs give "
                'the same: set "dropout" to null in it'
            )

    def for_thread(self) -> DocumentTokenizer:
        """The same for another thread, with an engine of its own."""
        other = copy.copy(self)
        other._engine = None if self._engine is None else self._engine.for_thread()
        return other

    @property
    def engine(self) -> str:
        """The engine's name and version; empty where it is tokenizers, or there is none."""
        return "" if self._engine is None else self._engine.name

    @property
    def shares_threads(self) -> bool:
        """True if several threads of one process tokenize as fast as several processes."""
        return self._tokenizer is None or bool(self.engine)

    @cached_property
    def vocabulary_size(self) -> int | None:
        """One more than the largest id, added tokens included; None without a tokenizer."""
        if self._tokenizer is None:
            return None
        return max(self._tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    @property
    def end_of_document(self) -> int | None:
        """The id that ends each document; None where no token does."""
        last = self._append or self._processed[1]
        return last[-1] if last else None

    @property
    def around(self) -> tuple[list[int], list[int]]:
        """Ids that each document has before and behind those of its text."""
        return [*self._prepend, *self._processed[0]], [*self._processed[1], *self._append]

    @property
    def added(self) -> int:
        """Tokens that each document has beside those of its text."""
        return sum(map(len, self.around))

    @property
    def loaded(self) -> tuple[Any, bytes]:
        """The tokenizer of the library tokenizers, and its file's bytes; there is a file."""
        return self._tokenizer, self._data

    def identity(self) -> dict[str, Any]:
        """All that decides the ids, free of paths; JSON values."""
        return {
            "tokenizer": self.sha256,
            "prepend": self._prepend,
            "append": self._append,
            "post_processor": self._options.post_processor,
            "special_tokens_in_text": self._options.special_tokens_in_text,
            "dtype": self.dtype,
        }

    def manifest_entry(self) -> dict[str, Any] | None:
        """What `dataset.json` says of the tokenizer; None where nothing is known."""
        if self._options.file is None:
            return None
        return {
            "name": self._options.name or Path(self._options.file).stem,
            "vocabulary_size": self.vocabulary_size,
            "end_of_document": self.end_of_document,
            "hash": f"sha256:{self.sha256}",
            **({"engine": self.engine} if self.engine else {}),
        }

    def decode(self, ids: Sequence[int]) -> str:
        """Text of `ids`, special tokens shown; numbers without a tokenizer."""
        if self._tokenizer is None:
            return " ".join(map(str, ids))
        return str(self._tokenizer.decode(list(map(int, ids)), skip_special_tokens=False))

    def encode(self, texts: Pieces, documents: Sequence[RawDocument]) -> Encoded:
        """Ids of `texts`; `documents` are where they come from, for messages.

        Raises:
            InputError: An id that does not fit, an end that was there already, a text that the library refuses.
            EngineError: The engine gives others than tokenizers.
        """
        assert self._engine is not None
        found = self._encoded(texts, documents)
        before, behind = self._engine.around
        if self._options.special_tokens_in_text:
            # What the post-processor adds stands between the text and what is added to both.
            prepend, append = [] if before else self._prepend, [] if behind else self._append
            self._refuse_ends_already_there(found, documents, prepend, append)
        return self._wrap(found, [*self._prepend, *before], [*behind, *self._append], documents)

    def _encoded(self, texts: Pieces, documents: Sequence[RawDocument]) -> Ids:
        """What the engine gives, with errors that name the document."""
        assert self._engine is not None
        try:
            return self._engine.encode(texts)
        except EngineError as error:
            place = "" if error.index is None else f"{documents[error.index].place()}: "
            raise EngineError(f"{place}{error}") from None
        except MemoryError:
            raise
        except Exception as error:  # the library raises Exception itself
            if len(documents) == 1:
                raise documents[0].error(str(error)) from error
            raise InputError(f"{documents[0].place()} or one of the next {len(documents):,}: {error}") from error

    def encode_ids(self, ids: Ids, documents: Sequence[RawDocument]) -> Encoded:
        """Ids already made, with the tokens asked for around them, checked and in the dataset's type."""
        self._refuse_ends_already_there(ids, documents, self._prepend, self._append)
        return self._wrap(ids, self._prepend, self._append, documents)

    def _wrap(self, ids: Ids, prepend: list[int], append: list[int], documents: Sequence[RawDocument]) -> Encoded:
        """The ids of each document with others around them, in the dataset's type.

        Raises:
            InputError: One that does not fit.
        """
        for each in (*prepend, *append):
            if not 0 <= each <= self._last and documents:
                self._refuse_id(each, documents[0])
        size = int(self.dtype[1:])
        lengths, found, wrong = _native.wrap_ids(ids.ids, ids.offsets, prepend, append, size, self._last)
        if wrong >= 0:
            index = int(np.searchsorted(np.cumsum(lengths), wrong, "right"))
            at = wrong - int(lengths[:index].sum())
            own = ids.ids[int(ids.offsets[index]) : int(ids.offsets[index + 1])]
            self._refuse_id(int([*prepend, *own.tolist(), *append][at]), documents[index])
        return Encoded(lengths, found.view(f"<{self.dtype}"))

    def _refuse_id(self, value: int, document: RawDocument) -> NoReturn:
        """Says why an id of a document does not fit."""
        most = int(np.iinfo(self.dtype).max)
        if value < 0:
            what = "is negative: ids count from 0"
        elif self._size is not None and value >= self._size:
            what = f"is not in the tokenizer's vocabulary of {self._size:,}: the ids are of another tokenizer"
        else:
            wider = next((dtype for dtype in DTYPES if value <= np.iinfo(dtype).max), None)
            advice = f"use --dtype {wider}" if wider else "no token type holds it"
            what = f"does not fit {self.dtype} (max {most:,}): {advice}"
        raise document.error(f"token {value:,} {what}", f"token {value:,} in {document.place()} {what}")

    def _refuse_ends_already_there(
        self, ids: Ids, documents: Sequence[RawDocument], prepend: list[int], append: list[int]
    ) -> None:
        begins, ends = ids.offsets[:-1], ids.offsets[1:]
        has_some = ends > begins
        for at, tokens, option in (
            (begins, prepend[-1:], "--prepend"),  # the one that would stand next to the text
            (ends - 1, append[:1], "--append"),
        ):
            for edge in tokens:
                there = np.flatnonzero(ids.ids[at[has_some]] == edge)
                if there.size:
                    where = "begins" if option == "--prepend" else "ends"
                    document, name = documents[int(np.flatnonzero(has_some)[there[0]])], self._show(edge)
                    what = f"already {where} with {name}: drop {option} {name}"
                    raise document.error(what, f"{document.place()} {what}")

    def _token_id(self, token: str) -> int:
        if self._tokenizer is None:
            if not token.isdecimal():
                raise UsageError(f'"{token}" needs --tokenizer: without one, give --prepend and --append an id')
            return int(token)
        found = self._tokenizer.token_to_id(token)
        if found is None:
            raise UsageError(f'the tokenizer has no token "{token}": {instead_of(token, self._tokenizer)}')
        return int(found)

    def _notes_on_digits(self) -> list[str]:
        if self._tokenizer is None:
            return []
        options = self._options
        given = [("--prepend", *each) for each in zip(options.prepend, self._prepend, strict=True)]
        given += [("--append", *each) for each in zip(options.append, self._append, strict=True)]
        return [note for each in given if (note := note_on_digits(*each, self._tokenizer))]

    def _added_by_post_processor(self) -> tuple[list[int], list[int]]:
        if self._tokenizer is None:
            raise UsageError("--post-processor needs --tokenizer: drop it, or name the tokenizer's file")
        for probe in _PROBES:
            bare = self._tokenizer.encode(probe, add_special_tokens=False).ids
            full = self._tokenizer.encode(probe, add_special_tokens=True).ids
            for at in range(len(full) - len(bare) + 1):
                if bare and full[at : at + len(bare)] == bare:
                    return full[:at], full[at + len(bare) :]
        return [], []

    def _refuse_tokens_asked_twice(self) -> None:
        seen = dict.fromkeys(self._processed[0] + self._processed[1], "--post-processor")
        for option, tokens in (("--prepend", self._prepend), ("--append", self._append)):
            for token in tokens:
                if token in seen:
                    name = self._show(token)
                    raise UsageError(f"{name} is asked for twice, by {seen[token]} and by {option}: drop one of them")
                seen[token] = option

    def _show(self, token: int) -> str:
        return f'"{self._tokenizer.id_to_token(token)}"' if self._tokenizer is not None else str(token)

    def _choose_dtype(self, wanted: str) -> str:
        if wanted != "auto":
            return wanted
        size = self.vocabulary_size
        return "u2" if size is not None and size <= 1 << 16 else "u4"
