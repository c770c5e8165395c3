"""The errors of penstock. The native half raises these too; bindings/errors.cpp maps its kinds to them."""

PUBLISHED = "the new dataset is published"
"""In messages of errors after a rename, here and in writer/folder/dataset_folder.cpp."""

_MOST = 500  # characters of a message
_LAST = 200  # of them, of what is at the end of a longer one, where it says what to do


class Error(Exception):
    """Base of all errors that penstock raises. str() is at most 500 characters; `args` has all."""

    __module__ = "penstock"

    def __str__(self) -> str:
        """The message; of a longer one its begin and its end. What torch makes of a worker's, a traceback, is whole."""
        message = super().__str__()
        return message if message.startswith("Caught ") else shortened(message)


def shortened(message: str) -> str:
    """A message of at most 500 characters: of a longer one its begin and its end."""
    if len(message) <= _MOST:
        return message
    cut = f" … ({len(message):,} characters) … "
    return message[: _MOST - _LAST - len(cut)] + cut + message[-_LAST:]


class InvalidArgumentError(Error, ValueError):
    """An argument that cannot be."""

    __module__ = "penstock"


class _SystemError(Error, OSError):
    """One with `errno` and `filename`. Its message names the file already: str() is the message alone."""

    __module__ = "penstock"

    def __str__(self) -> str:
        """The message."""
        return super().__str__() if self.strerror is None else shortened(self.strerror)


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
