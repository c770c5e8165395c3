"""The first thing that the command line imports: Ctrl-C and SIGTERM end it in one line, from the first import on."""

import atexit
import os
import signal
import sys

_INTERRUPTED, _TERMINATED = 130, 143
_by: list[int] = []  # the signal that ended it
_ours: list[int] = []  # signals whose handlers are set here


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
    os._exit(_TERMINATED if number == signal.SIGTERM else _INTERRUPTED)


def _stop(number: int, frame: object) -> None:
    """SIGTERM is Ctrl-C, once: what a scheduler ends says what it kept, and removes its temporary files."""
    signal.signal(number, signal.SIG_DFL)
    _by.append(number)
    raise KeyboardInterrupt


def _begin() -> None:
    try:
        if not _is_command():
            return
        for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
            if signal.getsignal(number) is usual:
                signal.signal(number, _end)
    except (AttributeError, IndexError, OSError, ValueError):  # an embedded interpreter; no main thread
        return


def imported() -> None:
    """From here on Ctrl-C is a KeyboardInterrupt again, and SIGTERM too."""
    for number, then in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, _stop)):
        if signal.getsignal(number) is _end:
            _ours.append(number)
            signal.signal(number, then)


def done(code: int) -> None:
    """The command has ended, with this code. Python's own end, in which no handler runs, is not told as its failure.

    First Python waits for threads of the user's code. A signal then ends the command, and all else is still cleaned up.
    """

    def leave(number: int, frame: object) -> None:
        try:
            atexit._run_exitfuncs()  # as Python does behind the threads
        finally:
            os._exit(code)

    for number in _ours:
        signal.signal(number, leave)
    if _ours:
        atexit.register(_ignore)


def _ignore() -> None:
    for number in _ours:
        signal.signal(number, signal.SIG_IGN)


def interrupted_code() -> int:
    """The exit code of what was interrupted.

    CPython notes an interrupt of text that an extension module has it run (PyRun_String), though it is caught later,
    and then ends `python -m` by SIGINT whatever the exit code. Other text that runs well takes the note back.
    """
    import ctypes

    ctypes.pythonapi.PyRun_SimpleString(b"")
    return _TERMINATED if signal.SIGTERM in _by else _INTERRUPTED


_begin()
