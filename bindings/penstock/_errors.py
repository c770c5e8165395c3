"""The errors of penstock. The native half raises these too; bindings/errors.cpp maps its kinds to them."""


class Error(Exception):
    """Base of all errors that penstock raises."""

    __module__ = "penstock"


class InvalidArgumentError(Error, ValueError):
    """An argument that cannot be."""

    __module__ = "penstock"


class _SystemError(Error, OSError):
    """One with `errno` and `filename`. Its message names the file already: str() is the message alone."""

    __module__ = "penstock"

    def __str__(self) -> str:
        """The message."""
        return super().__str__() if self.strerror is None else self.strerror


class NotFoundError(_SystemError, FileNotFoundError):
    """No such file or dataset; `errno` and `filename` say which."""

    __module__ = "penstock"


class IoError(_SystemError):
    """The operating system refused; `errno` and `filename` say why and where."""

    __module__ = "penstock"


class CorruptionError(Error):
    """Bytes on disk that are not what the manifest says."""

    __module__ = "penstock"


class StateMismatchError(Error, ValueError):
    """A state of another job; the message names what differs."""

    __module__ = "penstock"
