"""Runs under tests/faults/calls/inject.c: writers whose lock, manifest or folder gives EIO; prints what each said."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import penstock
from penstock._cli.main import main

sys.path.insert(0, str(Path(__file__).parents[2] / "faults" / "calls"))

from injector import COUNT, Injector

OF_COMMANDS = ("fstatat", "create", "open")
CALLS = ("fstat", "fstatat", "read", "pread", "write", "pwrite", "open", "create", "flock", "ftruncate")


def write(path: Path, tokens: list[int], **options: Any) -> None:
    with penstock.Writer(path, {"token": "u2"}, **options) as writer:
        writer.append(token=tokens)


def command(path: Path, *options: str) -> None:
    text = path.parent / "text.jsonl"
    text.write_text('{"ids": [1, 2, 3]}\n' * 9)
    given = ["write", str(text), "--ids-column", "ids", "--dtype", "u2", "--out", str(path), "--workers", "1"]
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(io.StringIO()):
        code = main([*given, "--shard-size", "20", *options])
    if code:
        raise RuntimeError(f"{code}: {said.getvalue()}")


ACTIONS: dict[str, Callable[[Path], None]] = {
    "a shard": lambda path: write(path, [2], shard=0, overwrite=True),
    "over it": lambda path: write(path, [2], overwrite=True),
    "a commit": lambda path: (write(path, [2], shard=0, overwrite=True), penstock.commit(path, overwrite=True))[0],
    "the command": lambda path: command(path, "--overwrite"),
}


def said_of(path: Path, action: Callable[[Path], None], calls: str, end: str, after: bool) -> dict[str, Any]:
    shutil.rmtree(path, ignore_errors=True)
    write(path, [1])
    old = penstock.open(path).fingerprint
    injector, said = Injector(), ""
    with injector.matching(calls, end, after=after), injector.armed(COUNT, root=path.parent):
        try:
            action(path)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
    return {"said": said, "times": injector.times, "replaced": penstock.open(path).fingerprint != old}


def run(folder: Path) -> dict[str, Any]:
    path = folder / "corpus"
    found: dict[str, Any] = {}
    for end in (".partial-run", "/dataset.json"):
        for call in CALLS:
            for name, action in ACTIONS.items():
                if name == "the command" and call not in OF_COMMANDS:  # which takes a second each
                    continue
                result = said_of(path, action, call, end, False)
                if result["times"]:
                    found[f"{name}, {call} of {end}"] = result
    for name in ("over it", "a commit", "the command"):
        found[f"published, {name}"] = said_of(path, ACTIONS[name], "fsync", str(path), True)
    return found


if __name__ == "__main__":  # which its workers import
    print(json.dumps(run(Path(sys.argv[1]))))
