"""Conversations to ids and a mask, by a transformers tokenizer in a folder of this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import one_line
from penstock._from.engines.engine import Ids
from penstock._from.text.tokenizing import DocumentTokenizer, Encoded, TokenizerOptions
from penstock._make.errors import UsageError

if TYPE_CHECKING:
    from penstock._from.text.raw import RawDocument


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
        super().__init__(options._replace_file(str(folder / "tokenizer.json")))
        try:
            from transformers import AutoTokenizer
        except ImportError as error:
            raise UsageError("--messages needs the extra penstock[chat]: pip install 'penstock[chat]'") from error
        try:
            self._chat = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        except Exception as error:  # the library raises what it likes
            raise UsageError(f"--tokenizer {options.file}: no tokenizer of transformers: {one_line(error)}") from error
        try:
            self._render([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
        except InvalidArgumentError as error:
            raise UsageError(f"--tokenizer {options.file}: {error}") from error
        template = str(self._chat.get_chat_template())
        self.sha256 = hashlib.sha256(f"{self.sha256}\n{template}".encode()).hexdigest()

    def _render(self, messages: Any) -> Any:
        from penstock._from.text import chat_template as chat

        return chat.render(messages, self._chat)

    def encode_messages(self, conversations: Sequence[Any], documents: Sequence[RawDocument]) -> Encoded:
        """Ids and the mask of conversations; `documents` are where they come from, for messages.

        Raises:
            InputError: What the template does not take; an id that does not fit.
        """
        import numpy as np

        found = []
        for messages, document in zip(conversations, documents, strict=True):
            try:
                found.append(self._render(messages))
            except (InvalidArgumentError, UnicodeEncodeError) as error:
                raise document.error(str(error)) from error
        lengths, ids, _ = self._wrap(Ids.listed([each.ids for each in found]), [], [], documents)
        return Encoded(lengths, ids, np.concatenate([each.mask for each in found]).astype("u1"))
