"""Messages that name options of the command line, in the words of Python's functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from penstock._base.errors import CorruptionError, InvalidArgumentError, IoError
from penstock._make.errors import InputError, WorkerError

_FLAGS = ("resume", "overwrite", "clean", "post-processor", "special-tokens-in-text")
_NAMES = (
    "out|format|text-column|ids-column|messages|text-per|tokenizer|name|prepend|append|metadata|codec|layout|dtype"
    "|tokenizer-engine|memory|shard-size|on-error|max-skipped|workers|run-id|scratch|ray|text|sample"
)
_OPTION = re.compile(rf"(?<![\w/.-])--({'|'.join(_FLAGS)}|{_NAMES})(?![\w-])")


def in_python(text: str) -> str:
    """The text with `--ids-column` as `ids_column`, `--resume` as `resume=True`."""

    def said(found: re.Match[str]) -> str:
        name = found[1].replace("-", "_")
        return f"{name}=True" if found[1] in _FLAGS else name

    return _OPTION.sub(said, text.replace("--resume --overwrite", "--resume and --overwrite"))


@contextmanager
def said_in_python() -> Iterator[None]:
    """Makes what ends a call name Python's arguments.

    Raises:
        InvalidArgumentError, CorruptionError, IoError, InputError, MemoryError, WorkerError, KeyboardInterrupt: As
            inside.
    """
    try:
        yield
    except IoError as error:
        raise IoError(error.errno, in_python(str(error)), error.filename) from error.__cause__
    except (InvalidArgumentError, CorruptionError, InputError, MemoryError, WorkerError, KeyboardInterrupt) as error:
        error.args = tuple(in_python(each) if isinstance(each, str) else each for each in error.args)
        raise
