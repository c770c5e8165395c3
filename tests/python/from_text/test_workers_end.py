"""Workers end with the run that started them, whatever ended it and whenever: none is there a second later."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import penstock
import pyarrow
import pyarrow.parquet
import pytest
from text_corpus import train_tokenizer

ENDS = (signal.SIGKILL, signal.SIGINT)  # of which nothing, and of which all can be seen to
LEFT = 1.0  # seconds that a worker may outlive its run


class Run:
    """A command in a session of its own, whose processes /proc tells."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-m", "penstock", *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )

    def others(self) -> list[int]:
        """Processes of the session but the first, zombies left out."""
        found = []
        for each in Path("/proc").iterdir():
            if each.name.isdigit() and int(each.name) != self.process.pid:
                try:
                    state, _, _, session = (each / "stat").read_text().rpartition(") ")[2].split()[:4]
                except (FileNotFoundError, ProcessLookupError):
                    continue
                if int(session) == self.process.pid and state != "Z":
                    found.append(int(each.name))
        return found

    def workers(self) -> list[int]:
        return [pid for pid in self.others() if b"spawn_main" in command_of(pid)]

    def until(self, is_so: Callable[[], object]) -> None:
        end = time.monotonic() + 60
        while not is_so():
            assert self.process.poll() is None, self.process.communicate()[0]
            assert time.monotonic() < end
            time.sleep(0.002)

    def end(self, number: int) -> None:
        """Ends it by the signal, and asserts that nothing of it is there a second after it."""
        self.process.send_signal(number)
        assert self.process.stdin is not None
        code = self.process.wait(20)
        assert code in (-number, 128 + number), code
        last = time.monotonic() + LEFT
        while (left := self.others()) and time.monotonic() < last:
            time.sleep(0.01)
        try:
            assert left == [], [command_of(pid) for pid in left]
        finally:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            self.process.stdin.close()
            assert self.process.stdout is not None
            self.process.stdout.close()


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def seconds_of(pid: int) -> float:
    """Seconds of processor time."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def put(folder: Path, documents: int) -> Path:
    line = json.dumps({"ids": list(range(1_000)), "text": " ".join(map(str, range(1_000)))})
    (folder / "text.jsonl").write_text(f"{line}\n" * documents)
    return folder / "text.jsonl"


def write(text: object, out: Path, *more: object) -> Run:
    """Of the text, by an engine that has processes; of the ids by threads, with `--ids-column`."""
    given = ("--shard-size", "200K", "--workers", "2", *more)
    if "--ids-column" not in more:
        given = ("--tokenizer", tokenizer(), "--tokenizer-engine", "tokenizers", *given)
    return Run("write", text, "--out", out, *given)


@cache
def tokenizer() -> Path:
    return train_tokenizer(Path(tempfile.mkdtemp()) / "tokenizer.json")


@pytest.mark.parametrize(
    ("seconds", "number"), [(0.0, signal.SIGKILL), (0.0, signal.SIGINT), (0.1, signal.SIGKILL), (0.3, signal.SIGTERM)]
)
def test_while_workers_start_and_import(tmp_path: Path, seconds: float, number: int) -> None:
    run = write(put(tmp_path, 2_000), tmp_path / "out")
    run.until(run.workers)
    time.sleep(seconds)
    run.end(number)


@pytest.mark.parametrize("number", ENDS)
def test_while_a_worker_is_at_work_on_a_long_document(tmp_path: Path, number: int) -> None:
    (tmp_path / "text.jsonl").write_text(f'{{"text": "{"many words " * 1_000_000}"}}')
    run = write(tmp_path / "text.jsonl", tmp_path / "out", "--shard-size", "1GiB")
    run.until(lambda: any(seconds_of(pid) > 1.5 for pid in run.workers()))  # imports take less
    run.end(number)


@pytest.mark.parametrize("engine", [(), ("--ids-column", "ids")], ids=["processes", "threads"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_while_the_run_waits_for_input(tmp_path: Path, number: int, engine: tuple[str, ...]) -> None:
    run = write("-", tmp_path / "out", "--format", "jsonl", *engine)
    assert run.process.stdin is not None
    text = put(tmp_path, 300).read_bytes()
    run.process.stdin.write(text)
    run.process.stdin.flush()
    run.until((tmp_path / "out" / "00000").exists)
    run.end(number)


@pytest.mark.parametrize("number", ENDS)
def test_while_it_finishes_shards_and_while_it_resumes(tmp_path: Path, number: int) -> None:
    text, out = put(tmp_path, 400), tmp_path / "out"
    run = write(text, out)
    run.until((out / "00000").exists)
    run.end(number)
    if not (out / "dataset.json").exists():
        run = write(text, out, "--resume")
        run.until(run.workers)
        run.end(number)


def test_workers_of_other_commands(tmp_path: Path) -> None:
    ids = pyarrow.array(np.arange(3_000_000).reshape(3_000, 1_000).tolist(), pyarrow.list_(pyarrow.int32()))
    pyarrow.parquet.write_table(pyarrow.table({"ids": ids}), tmp_path / "tokens.parquet", row_group_size=100)
    with penstock.Writer(tmp_path / "corpus", {"token": "u2"}) as writer:
        writer.append_batch(np.full(20_000, 50), token=np.zeros(1_000_000, "u2"))
    commands: list[tuple[object, ...]] = [
        ("import", tmp_path / "tokens.parquet", "--column", "ids", "--out", tmp_path / "a"),
        ("shuffle", tmp_path / "corpus", "--documents", "--seed", 1, "--out", tmp_path / "b"),
    ]
    for command in commands:
        run = Run(*command, "--workers", 2, "--shard-size", "100K")
        run.until(run.workers)
        run.end(signal.SIGKILL)
