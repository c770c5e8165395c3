"""The first thing that the command line imports: Ctrl-C ends it in one line while the rest is being imported."""

import os
import signal
import sys

_INTERRUPTED = 130


def _is_command() -> bool:
    """True in `penstock` and `python -m penstock`, which call `imported`; false in a user's script and in workers."""
    given, first = sys.orig_argv, sys.argv[0]
    if "--multiprocessing-fork" in given:
        return False
    if first == "-m":  # while the packages of a module that `python -m` runs are imported
        return given[given.index("-m") + 1] == "penstock"
    if os.path.basename(first) != "penstock":  # noqa: PTH119 - pathlib takes long to import
        return False
    with open(first, "rb") as file:  # noqa: PTH123 - as above
        return b"from penstock._cli.main import" in file.read(4_096)  # else a user's program of this name


def _end(number: int, frame: object) -> None:
    # Not by an exception: extension modules make others of it.
    os.write(2, b"penstock: interrupted\n")
    os._exit(_INTERRUPTED)


def _begin() -> None:
    try:
        if _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _end)
    except (AttributeError, IndexError, OSError, ValueError):  # an embedded interpreter; no main thread
        return


def imported() -> None:
    """From here on Ctrl-C is a KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


_begin()
