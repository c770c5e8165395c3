"""What can go wrong with an input, in words that name the place."""

from __future__ import annotations


class InputError(ValueError):
    """An input that cannot be used; the message is one line that names file, line and what to do."""


class UsageError(ValueError):
    """Options that contradict each other or the input; nothing was read or written."""


class WorkerError(RuntimeError):
    """A worker process ended without finishing its work."""


def counted(number: int, noun: str) -> str:
    """A count with its noun: `1 document`, `18,203 documents`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def quoted(names: list[str], most: int = 12) -> str:
    """Names in quotes, as a list that a person reads; long lists are cut and say so."""
    shown = ", ".join(f'"{name}"' for name in names[:most])
    return shown + (f" and {len(names) - most:,} more" if len(names) > most else "") if names else "no columns"
