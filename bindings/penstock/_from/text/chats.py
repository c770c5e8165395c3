"""Conversations to ids and a mask, by a transformers tokenizer in a folder of this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._base.errors import InvalidArgumentError
from penstock._base.extras import install
from penstock._base.words import one_line
from penstock._from.engines.engine import EngineError, Ids
from penstock._from.engines.gigatoken import Gigatoken
from penstock._from.engines.pieces import Pieces
from penstock._from.text.token_names import hub_advice
from penstock._from.text.token_places import TokenPlaces, trims_offsets
from penstock._from.text.tokenizing import DocumentTokenizer, Encoded, TokenizerOptions
from penstock._make.errors import UsageError

if TYPE_CHECKING:
    import numpy.typing as npt

    from penstock._from.text.raw import RawDocument

_FOLDER = "--messages needs the folder that save_pretrained of a fast tokenizer of transformers wrote, template and all"
_FIRST, _EVERY = 64, 1000  # conversations whose masks are compared with those of transformers


class ChatTokenizer(DocumentTokenizer):
    """Turns conversations into ids and what is to be trained on. One thread at a time; one for each process."""

    def __init__(self, options: TokenizerOptions) -> None:
        """Reads the tokenizer's folder.

        Raises:
            UsageError: No such folder, no fast tokenizer or no template in it, a template without marks of generation.
        """
        assert options.file is not None
        folder = Path(options.file).expanduser()
        folder = folder.parent if folder.is_file() else folder
        if not (folder / "tokenizer.json").is_file():
            what = "there is no tokenizer.json in it" if folder.is_dir() else "no such file or folder"
            raise UsageError(f"--tokenizer {options.file}: {what}: {_FOLDER}{hub_advice(options.file, 'DIR')}")
        super().__init__(options._replace_file(str(folder / "tokenizer.json")))
        try:
            from transformers import AutoTokenizer
        except ImportError as error:
            raise UsageError(f"--messages needs the package transformers: {install('chat')}") from error
        try:
            self._chat = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        except Exception as error:  # the library raises what it likes
            raise UsageError(
                f"--tokenizer {options.file}: no tokenizer of transformers: {one_line(error)}: {_FOLDER}"
            ) from error
        try:
            self._render([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
        except InvalidArgumentError as error:
            advice = "" if self._chat.chat_template else f": {_FOLDER}"
            raise UsageError(f"--tokenizer {options.file}: {error}{advice}") from error
        template = str(self._chat.get_chat_template())
        self.sha256 = hashlib.sha256(f"{self.sha256}\n{template}".encode()).hexdigest()
        self._places: TokenPlaces | None = None
        self._conversations = 0
        self._choose_engine_of_chats()

    def _choose_engine_of_chats(self) -> None:
        tokenizer = self._chat.backend_tokenizer
        data = tokenizer.to_str().encode()
        self._take_engine(tokenizer, data, ([], []), post_processor=False, special_tokens_in_text=True)
        if isinstance(self._engine, Gigatoken):
            self._places = TokenPlaces(self._engine.vocabulary, trims=trims_offsets(data))

    def _choose_engine(self) -> None:
        """Nothing yet: the tokenizer of transformers, which may have more tokens than the file, is not loaded yet."""

    @property
    def shares_threads(self) -> bool:
        """False: templates are Python, which threads would wait for."""
        return False

    def _render(self, messages: Any) -> Any:
        from penstock._from.text import chat_template as chat

        return chat.render(messages, self._chat)

    def encode_messages(self, conversations: Sequence[Any], documents: Sequence[RawDocument]) -> Encoded:
        """Ids and the mask of conversations; `documents` are where they come from, for messages.

        Raises:
            InputError: What the template does not take; an id that does not fit.
            EngineError: The engine gives other ids or masks than transformers.
        """
        if self._places is None:
            found = [
                self._each(self._render, messages, of) for messages, of in zip(conversations, documents, strict=True)
            ]
            ids = Ids.listed([each.ids.tolist() for each in found])
            masks = [each.mask for each in found]
        else:
            ids, masks = self._by_engine(self._places, conversations, documents)
        lengths, wrapped, _ = self._wrap(ids, [], [], documents)
        return Encoded(lengths, wrapped, np.concatenate(masks).astype("u1"))

    def _by_engine(
        self, places: TokenPlaces, conversations: Sequence[Any], documents: Sequence[RawDocument]
    ) -> tuple[Ids, list[npt.NDArray[np.bool_]]]:
        from penstock._from.text import chat_template as chat

        def marked(messages: Any) -> tuple[str, bytes, list[tuple[int, int]]]:
            text, ranges = chat.marked_text(messages, self._chat)
            return text, text.encode(), ranges

        texts = [self._each(marked, messages, of) for messages, of in zip(conversations, documents, strict=True)]
        ids = self._encoded(Pieces.of([data for _, data, _ in texts]), documents)
        masks = []
        for number, (text, data, ranges) in enumerate(texts):
            own = ids.ids[int(ids.offsets[number]) : int(ids.offsets[number + 1])]
            mask = places.mask(own, text, data, ranges)
            if mask is None or self._conversations < _FIRST or self._conversations % _EVERY == 0:
                right = chat.encoded(text, ranges, self._chat)
                if not np.array_equal(right.ids, own) or (mask is not None and not np.array_equal(right.mask, mask)):
                    raise EngineError(
                        f"{documents[number].place()}: {self.engine} gives other ids or another mask than transformers"
                    )
                mask = right.mask
            self._conversations += 1
            masks.append(mask)
        return ids, masks

    def _each(self, work: Callable[[Any], Any], messages: Any, document: RawDocument) -> Any:
        try:
            return work(messages)
        except (InvalidArgumentError, UnicodeEncodeError) as error:
            raise document.error(str(error)) from error
