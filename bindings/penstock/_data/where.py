"""Documents that a condition on their columns chooses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._base.resources import default_threads
from penstock._base.words import excerpt, quoted, warn_caller
from penstock._data.category_order import warn_of_order

_STEP = 1 << 21  # documents of one call, between two looks at Ctrl-C
_FAR_STEP = 1 << 18  # of a server, which is asked for one piece at a time by each …
_FAR_THREADS = 16  # … of so many threads
_MOST_COMPARED = 10_000  # names of a category among which one is looked for that is meant
_STEP_WINDOWS = 1 << 20  # documents between two looks at Ctrl-C

_LIKE = re.compile(r"\b(i?like|glob|similar\s+to)\b", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Choice:
    """The documents of a dataset that a condition chose; pickles.

    Attributes:
        condition: its text, one for all ways to write it.
        documents: those that it chose.
        said: what views say of it, as JSON.
    """

    condition: str
    documents: _native.Chosen
    said: str


def choose(dataset: _native.Dataset, condition: Any) -> Choice:
    """Looks at the columns of all documents, by several threads; reads those alone that the condition names.

    Raises:
        InvalidArgumentError: no condition, or none on this dataset's columns.
    """
    given = checked(condition)
    try:
        choosing = _native.Choosing(dataset, given)
    except InvalidArgumentError as error:
        if _LIKE.search(given) is None:
            raise
        raise InvalidArgumentError(
            f'{error}; SQL has like: `penstock query DATA "select document where …" --out FILE.npy` finds documents, '
            "which `view.select` takes, and `penstock convert --without FILE.npy` leaves out"
        ) from None
    far = dataset.is_remote
    step = _FAR_STEP if far else _STEP
    count = choosing.documents
    firsts = range(0, count, step)
    _in_threads(
        lambda first: choosing.look(first, min(step, count - first)), firsts, _FAR_THREADS if far else default_threads()
    )
    documents = choosing.chosen()
    _warn_of_unknown(dataset, choosing.texts, bool(documents.count))
    warn_of_order(dataset, choosing.condition)
    return Choice(choosing.condition, documents, _native.choice_json(choosing.condition, documents))


def _warn_of_unknown(dataset: _native.Dataset, texts: Sequence[tuple[str, str]], some_chosen: bool) -> None:
    """Says which texts no document has: most are misspelt.

    That a category is known and no document has it is looked for only where nothing is chosen: it is a second look at
    the column.
    """
    for column in dict.fromkeys(column for column, _ in texts):
        names = dataset.categories(column)
        if not some_chosen:
            used = np.unique(dataset.read_column(column, 0, dataset.entries, np.dtype(np.int32)))
            names = [names[code] for code in used.tolist() if code >= 0]
        known = set(names)
        for text in dict.fromkeys(text for each, text in texts if each == column):
            if text not in known:
                nearest = get_close_matches(text, names, 1) if len(names) <= _MOST_COMPARED else []
                meant = f": is {nearest[0]!r:.80} meant?" if nearest else ":"
                warn_caller(
                    f"where: no document has {excerpt(column)} = {text!r:.80}{meant} "
                    f"{'there are' if names else 'no category has a document'} {quoted(names)}".rstrip()
                )


def windows_in(dataset: _native.Dataset, choice: Choice, window: int, lookahead: int) -> _native.Chosen:
    """The windows that lie in chosen documents, their lookahead too; reads where these begin and end."""
    windows = _native.ChoosingWindows(dataset, choice.documents, window, lookahead)
    while windows.step(_STEP_WINDOWS):
        pass
    return windows.chosen()


def refuse_words(given: Mapping[str, Any]) -> None:
    """Refuses keyword arguments, which are meant as a condition.

    Raises:
        TypeError: there are some.
    """
    if not given:
        return
    said = ", ".join(f"{name}={value!r:.40}" for name, value in given.items())
    meant = " and ".join(_compared(name, value) for name, value in given.items())
    raise TypeError(f'where({said}): where takes a condition as one text: where("{meant}")')


def _compared(name: str, value: Any) -> str:
    if value is None:
        return f"{name} is null"
    if isinstance(value, bool):
        return name if value else f"not {name}"
    if isinstance(value, (list, tuple, set)):
        return f"{name} in ({', '.join(map(_literal, value))})"
    return f"{name} = {_literal(value)}"


def _literal(value: Any) -> str:
    return f"{value}" if isinstance(value, (int, float)) else "'" + f"{value!s:.40}".replace("'", "''") + "'"


def checked(condition: Any) -> str:
    """A condition as it was given.

    Raises:
        InvalidArgumentError: it is no text.
    """
    if not isinstance(condition, str):
        raise InvalidArgumentError(
            f"where: {condition!r:.80} is no text: a condition such as \"score > 0.8 and lang = 'en'\" is wanted; "
            "view.select takes masks and numbers"
        )
    try:
        condition.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"where: character {error.start + 1} of the condition is half of a character"
        ) from None
    return condition


def _in_threads(work: Callable[[int], None], items: Sequence[int], threads: int) -> None:
    if min(len(items), threads) <= 1:
        for item in items:
            work(item)
        return
    with ThreadPoolExecutor(min(len(items), threads)) as pool:
        running = [pool.submit(work, item) for item in items]
        try:
            for each in running:
                each.result()
        except BaseException:  # Ctrl-C too
            pool.shutdown(wait=False, cancel_futures=True)
            raise
