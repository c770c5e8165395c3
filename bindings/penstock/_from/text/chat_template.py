"""Conversations as token ids by the tokenizer's template: `penstock.chat`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import one_line, quoted

__all__ = ["Rendered", "render"]

_MARK = re.compile(r"\{%[-+]?\s*generation\s*[-+]?%\}")

_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)


class Rendered(NamedTuple):
    """A conversation as the model reads it.

    Attributes:
        ids: int64 [n], the tokens.
        mask: bool [n], true where the token is one that is trained on.
    """

    ids: npt.NDArray[np.int64]
    mask: npt.NDArray[np.bool_]


def render(
    messages: Sequence[Mapping[str, Any]],
    tokenizer: Any,
    train_on: Iterable[str] = ("assistant",),
    *,
    tools: Sequence[Any] | None = None,
    **variables: Any,
) -> Rendered:
    """Token ids of a conversation by the tokenizer's own template, and which of them are to be trained on.

    The template says by `{% generation %}` and `{% endgeneration %}` what the assistant says; a token counts where a
    character of it lies between these. (transformers' own `return_assistant_tokens_mask` marks the same tokens, but
    where a mark stands at a space that the tokenizer drops it loses the turns after it, or marks all of them.)

    Args:
        messages: mappings with `role` and `content`, as the template wants them.
        tokenizer: one of `transformers` with a chat template, and a fast one.
        train_on: ("assistant",), or () for none: templates mark no other role.
        tools: what the template is told of tools, as `apply_chat_template` takes it.
        **variables: further variables of the template, as enable_thinking.

    Raises:
        InvalidArgumentError: a template without marks of generation, or none at all; messages that the template does
            not take; a slow tokenizer; a role that templates do not mark.
    """
    text, ranges = marked_text(messages, tokenizer, train_on, tools=tools, **variables)
    return encoded(text, ranges, tokenizer)


def marked_text(
    messages: Sequence[Mapping[str, Any]],
    tokenizer: Any,
    train_on: Iterable[str] = ("assistant",),
    *,
    tools: Sequence[Any] | None = None,
    **variables: Any,
) -> tuple[str, list[tuple[int, int]]]:
    """A conversation as text, and the characters [begin, end) of it that are trained on; the rest as `render`."""
    roles = _roles(train_on)
    template = _template(tokenizer, tools)
    _refuse_lacking(messages, template)
    if roles and not _has_marks(template):
        raise InvalidArgumentError(
            f"the chat template of {_name(tokenizer)} has no {{% generation %}} marks, so it does not say which tokens "
            "are the assistant's: put {% generation %} and {% endgeneration %} around what it says, and set "
            "tokenizer.chat_template"
        )
    if not getattr(tokenizer, "is_fast", False):
        raise InvalidArgumentError(f"{_name(tokenizer)} is a slow tokenizer: only a fast one tells where tokens lie")
    text, ranges = _rendered(messages, tokenizer, template, tools, variables)
    return text, ranges if roles else []


def encoded(text: str, ranges: Sequence[tuple[int, int]], tokenizer: Any) -> Rendered:
    """What `render` gives of a text and the characters of it that are trained on.

    Raises:
        InvalidArgumentError: The text has a character that is none.
    """
    try:
        found = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    except (TypeError, UnicodeEncodeError) as error:
        raise InvalidArgumentError(
            f"{_name(tokenizer)} does not take the conversation, which has a character that is no Unicode text: "
            f"{one_line(error)}"
        ) from error
    ids = np.asarray(found["input_ids"], np.int64)
    places = np.asarray(found["offset_mapping"], np.int64).reshape(-1, 2)
    return Rendered(ids, mask_of(places[:, 0], places[:, 1], ranges))


def mask_of(
    begins: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], ranges: Sequence[tuple[int, int]]
) -> npt.NDArray[np.bool_]:
    """The tokens of which something lies in one of the ranges, by where each begins and ends."""
    mask = np.zeros(len(begins), np.bool_)
    for begin, end in ranges:
        mask |= (begins < end) & (ends > begin) & (begins < ends)
    return mask


def _roles(train_on: Iterable[str]) -> tuple[str, ...]:
    if not isinstance(train_on, Iterable):
        raise InvalidArgumentError(f"train_on={train_on!r:.80}: give ('assistant',) or ()")
    roles = (train_on,) if isinstance(train_on, str) else tuple(train_on)
    for role in roles:
        if role != "assistant":
            raise InvalidArgumentError(
                f"train_on={roles!r}: templates mark what the assistant says and nothing else: give ('assistant',) or "
                "()"
            )
    return roles


def _has_marks(template: str) -> bool:
    return bool(_MARK.search(_COMMENT.sub("", template)))


def _template(tokenizer: Any, tools: Any) -> str:
    if not hasattr(tokenizer, "get_chat_template"):
        raise InvalidArgumentError(
            f"a {type(tokenizer).__name__} is no tokenizer of transformers: give AutoTokenizer.from_pretrained(…)"
        )
    try:
        return str(tokenizer.get_chat_template(tools=tools))
    except ValueError as error:
        raise InvalidArgumentError(f"{_name(tokenizer)} has no chat template: {one_line(error)}") from None


@lru_cache(16)
def _words_in(template: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", _COMMENT.sub("", template)))


def _refuse_lacking(messages: Any, template: str) -> None:
    """Refuses messages without what the template reads of them: of what is not there it would make nothing.

    Raises:
        InvalidArgumentError: One has no role, or nothing to say.
    """
    read = _words_in(template)
    for number, each in enumerate(messages, 1):
        if not isinstance(each, Mapping):
            continue  # what a template makes of it is the template's
        there = [name for name, value in each.items() if value is not None]
        lacks = ["role"] if "role" in read and "role" not in there else []
        if "content" in read and not any(name in read for name in there if name != "role"):
            lacks.append("content")
        if lacks:
            names = f"there are {quoted(there)}" if there else "there is nothing"
            raise InvalidArgumentError(
                f"message {number:,} has no {quoted(lacks)}, which the chat template reads: {names}"
            )


def _rendered(
    messages: Any, tokenizer: Any, template: str, tools: Any, variables: Mapping[str, Any]
) -> tuple[str, list[tuple[int, int]]]:
    """The text, and the characters of it that the template marks."""
    from transformers.utils.chat_template_utils import render_jinja_template

    known = {**tokenizer.special_tokens_map, **variables}
    marks = _has_marks(template)
    try:
        rendered: Any = render_jinja_template(
            [list(messages)], tools=tools, chat_template=template, return_assistant_tokens_mask=marks, **known
        )
    except Exception as error:  # the template is a program of the user's
        raise InvalidArgumentError(f"the chat template of {_name(tokenizer)}: {one_line(error)}") from error
    texts, ranges = rendered
    return texts[0], [(int(begin), int(end)) for begin, end in ranges[0]] if marks else []


def _name(tokenizer: Any) -> str:
    return str(getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__)
