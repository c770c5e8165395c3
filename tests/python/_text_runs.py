"""Runs of `penstock write` of two files of a megabyte, which threads read ahead, and a small one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import penstock
from _dirty import files
from text_corpus import END, rows, write_jsonl

ENGINES = ["gigatoken", "tokenizers"]  # which have threads, and processes
PROGRAM = [sys.executable, "-m", "penstock"]
SHARD = 100_000


def put(folder: Path) -> Path:
    """The files, in a folder that is there."""
    content = [{"text": each["text"], "n": number} for number, each in enumerate(rows() * 5)]
    half = len(content) // 2
    for name, part in (("a", content[:half]), ("b", content[half:]), ("c", content[:20])):
        write_jsonl(folder / f"{name}.jsonl", part)
    assert (folder / "b.jsonl").stat().st_size > 1 << 20
    return folder


def inputs(text: Path) -> list[Path]:
    """The files of a folder."""
    return sorted(text.glob("*.jsonl"))


def write(text: Path, out: Path, tokenizer: str, **options: Any) -> Any:
    """In Python."""
    given: dict[str, Any] = {"append": [END], "metadata": ["n"], "shard_size": SHARD, **options}
    return penstock.write(inputs(text), out, tokenizer=tokenizer, **given)


def command(text: Path, out: Path, tokenizer: str, engine: str, *more: str) -> list[str]:
    """The arguments of the same as a command with two workers."""
    options = ["--tokenizer", tokenizer, "--append", END, "--metadata", "n", "--shard-size", str(SHARD)]
    return [*map(str, inputs(text)), "--out", str(out), *options, "--tokenizer-engine", engine, "--workers", "2", *more]


def start(*arguments: str, **given: Any) -> subprocess.Popen[str]:
    """The command under way."""
    return subprocess.Popen([*PROGRAM, "write", *arguments], stderr=subprocess.PIPE, text=True, **given)


def until(is_so: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Waits while the command is under way."""
    end = time.monotonic() + 60
    while not is_so():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.002)


def children(pid: int) -> list[int]:
    """Worker processes."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(each) for each in found if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()]


def seconds_of(pid: int) -> float:
    """Seconds of processor time."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def finished(out: Path) -> int:
    """Shards of a run that did not end."""
    return len(penstock.finished_shards(out)) if out.exists() else 0


def assert_goes_on(text: Path, out: Path, tokenizer: str, engine: str, expected: Path) -> None:
    """A run that ended is gone on with: it keeps what is finished, and its bytes are the same."""
    assert not (out / "dataset.json").exists()
    kept = finished(out)
    done = write(text, out, tokenizer, tokenizer_engine=engine, resume=True, workers=2)
    assert done.kept_shards == kept
    assert files(out) == files(expected)
