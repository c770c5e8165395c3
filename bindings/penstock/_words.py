"""How counts and names stand in messages."""

from __future__ import annotations

from collections.abc import Sequence


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
    """What a file says, as messages have it: its first 80 characters, and how many there are if that is not all.

    What no terminal should get (control characters, halves of characters) is escaped.
    """
    whole = str(text)
    most = 80
    shown = escaped(whole[:most])
    return shown if len(whole) <= most else f"{shown}… ({len(whole):,} characters)"
