"""Errors of inputs, whose messages name the place."""

from __future__ import annotations

from typing import Any


class InputError(ValueError):
    """An input that cannot be used; the message is one line that names file, line and what to do."""


class UsageError(ValueError):
    """Options that contradict each other or the input; nothing was read or written."""


class OptionError(InputError, UsageError):
    """An option that no document of the input can meet: a column that the first one lacks already."""


class UnusableError(InputError):
    """A part of an input that cannot be used while others can: what `--on-error skip` leaves out.

    Attributes:
        reason: The message without the place.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.reason)


class DocumentError(UnusableError):
    """One document."""


class FirstDocumentError(DocumentError, OptionError):
    """The very first document, which lacks a column: perhaps it is dirty, perhaps the option is wrong."""


class FileError(UnusableError):
    """A file, or what follows the documents that were read of it.

    Attributes:
        at: Where that begins, as an entry of the list has it.
    """

    def __init__(self, message: str, reason: str, at: dict[str, Any] | None = None) -> None:
        super().__init__(message, reason)
        self.at = at or {}


class TooManySkippedError(InputError):
    """More documents cannot be used than the user lets be left out."""


class WorkerError(RuntimeError):
    """A worker ended without finishing its work.

    Attributes:
        there: The traceback of what its code raised; empty where it was something else.
    """

    def __init__(self, message: str, there: str = "") -> None:
        super().__init__(message)
        self.there = there

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.there)


class ThereError(Exception):
    """In place of an error of another thread, process or machine, as its cause: the text is the traceback."""
