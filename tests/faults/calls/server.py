"""A fork server: imports penstock once, and forks a process for each trial, so that one costs milliseconds.

Runs under the library of this folder. Each line of standard input is a request in JSON, each of standard output the
answer: {"prepare": VERB} gives how many calls an undisturbed run makes, {"verb", "k", "turn"} runs a trial.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import os
import pickle
import pkgutil
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIMIT_S = 120.0  # a trial takes milliseconds, on a machine that has nothing else to do
_ROOMS = ("_cli", "_make", "_data", "_from.text", "_from.tokens", "_load", "_places", "_view")


def import_all() -> None:
    """What trials would import: children have it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for room in _ROOMS:
            package = importlib.import_module(f"penstock.{room}")
            for each in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
                with contextlib.suppress(ImportError):
                    importlib.import_module(each.name)


def forked(call: Callable[[], bytes]) -> bytes | str:
    """What `call` gives in a process of its own; in words how that ended, if it did otherwise."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        faulthandler.enable()  # to tell where it hangs
        try:
            answer = b"+" + call()
        except BaseException:
            answer = b"-" + traceback.format_exc().encode()
        with os.fdopen(theirs, "wb") as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(theirs)
    data, limit = b"", LIMIT_S
    with os.fdopen(ours, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], limit)[0]:
            part = pipe.read(1 << 20)
            if not part:
                break
            data += part
        else:
            data = b"-hung"
            os.kill(child, signal.SIGABRT)
            time.sleep(1)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if data[:1] == b"+":
        return data[1:]
    return data[1:].decode() or f"crashed: exit code {code}"


def main() -> None:
    root = Path(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing that a command prints is an answer
    import_all()
    import trial

    folder, wholes = root / "trial", dict[str, Any]()

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if "verbs" in request:
            return {"verbs": list(trial.VERBS)}
        if "prepare" in request:
            name = request["prepare"]
            found = forked(lambda: pickle.dumps(trial.prepare(name, folder)))
            if isinstance(found, str):
                return {"problem": found}
            wholes[name] = pickle.loads(found)
            return {"calls": wholes[name].calls, "log": wholes[name].log}
        name, k, turn = request["verb"], request["k"], request["turn"]
        found = forked(lambda: trial.as_json(trial.run(name, folder, wholes[name], k, turn)).encode())
        if isinstance(found, str):
            return {"outcome": "hung" if found == "hung" else "crashed", "problems": [found[-1500:]]}
        done: dict[str, Any] = json.loads(found)
        return done

    for line in sys.stdin:
        answers.write(json.dumps(answer(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
