"""Programs that start at once: forks of one process that has imported before what takes long."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any


class Forks:
    """Runs programs as `python` would, each in a process of its own; one at a time."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self._server = server

    def run(
        self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None, timeout: int = 300
    ) -> subprocess.CompletedProcess[str]:
        """`arguments` are those of Python: "-m", a module, or a file, and what that takes."""
        assert self._server.stdin is not None and self._server.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            task = {"arguments": list(arguments), "cwd": str(cwd), "env": dict(env or os.environ)}
            self._server.stdin.write(json.dumps({**task, "folder": folder, "timeout": timeout}) + "\n")
            self._server.stdin.flush()
            code = int(self._server.stdout.readline())
            out, err = (Path(folder, name).read_text() for name in ("out", "err"))
        return subprocess.CompletedProcess(list(arguments), code, out, err)


@contextlib.contextmanager
def forks(*modules: str) -> Iterator[Forks]:
    """Forks of a process that has imported those of the modules that there are."""
    command, pipe = [sys.executable, __file__, *modules], subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    ) as server:
        yield Forks(server)
        assert server.stdin is not None
        server.stdin.close()


def _serve(modules: Sequence[str]) -> dict[str, Any] | None:
    """Forks for each task; returns it in the child, and None in the parent when there are no more."""
    for name in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        task: dict[str, Any] = json.loads(line)
        child = os.fork()
        if child == 0:
            return task
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    return None


def _become(task: dict[str, Any]) -> None:
    signal.alarm(task["timeout"])
    os.chdir(task["cwd"])
    os.environ.clear()
    os.environ.update(task["env"])
    for descriptor, name, flags in ((0, os.devnull, os.O_RDONLY), (1, "out", os.O_WRONLY), (2, "err", os.O_WRONLY)):
        opened = os.open(Path(task["folder"], name), flags | os.O_CREAT, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    if os.environ.get("PYTHONWARNINGS"):
        warnings.simplefilter("ignore")
    first, *arguments = task["arguments"]
    sys.path[0] = task["cwd"]
    if first == "-m":
        sys.argv = arguments
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [first, *arguments]
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__" and (task := _serve(sys.argv[1:])) is not None:
    _become(task)
