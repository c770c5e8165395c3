"""What can go wrong with an input, in words that name the place."""

from __future__ import annotations


class InputError(ValueError):
    """An input that cannot be used; the message is one line that names file, line and what to do."""


class UsageError(ValueError):
    """Options that contradict each other or the input; nothing was read or written."""


class OptionError(InputError, UsageError):
    """An option that no document of the input can meet: a column that the first one lacks already."""


class WorkerError(RuntimeError):
    """A worker process ended without finishing its work."""
