"""How counts and names stand in messages."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

NO_MEMORY = "no memory is left"
NO_NEW_THREAD = "can't start new thread"  # Python's words
NO_THREAD = "no memory or no thread is left (ulimit -v, ulimit -u)"


def is_of_memory(error: BaseException) -> bool:
    """True if no memory was left. Calls of CPython's own that find none may end without an exception of theirs."""
    is_silent = isinstance(error, SystemError) and "without setting an exception" in str(error)
    return isinstance(error, MemoryError) or is_silent


def counted(number: int, noun: str) -> str:
    """A count with its noun: `1 document`, `18,203 documents`, `2 entries`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"


def quoted(names: Sequence[str], most: int = 12) -> str:
    """Names in quotes, as a list that a person reads; long lists are cut and say so."""
    shown = ", ".join(f'"{name}"' for name in names[:most])
    return shown + (f" and {len(names) - most:,} more" if len(names) > most else "")


def escaped(text: str) -> str:
    """The text, with what no terminal should get as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def excerpt(text: object) -> str:
    """A file's text for messages: its first 80 characters, and how many there are if that is not all.

    What no terminal should get (control characters, halves of characters) is escaped.
    """
    whole = str(text)
    most = 80
    shown = escaped(whole[:most])
    return shown if len(whole) <= most else f"{shown}… ({len(whole):,} characters)"


def one_line(error: BaseException, most: int = 200) -> str:
    """An error's text, on one line and cut to `most` characters."""
    return " ".join(str(error).split())[:most]


def warn_caller(message: str) -> None:
    """A UserWarning at the line outside of this package that led here."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "penstock":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def warn_over() -> None:
    """Says to whom iterates a loader again that has ended that there is nothing more."""
    warnings.warn(
        "this loader's run is over, so this loop gets nothing: rewind() begins it again, per_epoch=True makes each "
        "loop an epoch, and an eval_loader begins at 0 in each",
        RuntimeWarning,
        stacklevel=3,
    )


class NoSampler:
    """Words for attributes that loops for other loaders ask of a loader, and that it does not have."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Refuses: AttributeError, so that hasattr() is false."""
            if name not in ("set_epoch", "sampler", "batch_sampler"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {excerpt(name)!r}")
            raise AttributeError(
                f"a {type(self).__name__} has no {name}: the epoch is part of its position, and it shuffles each epoch "
                "anew by itself: leave the call out"
            )
