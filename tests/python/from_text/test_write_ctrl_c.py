"""Ctrl-C in each phase of `penstock write` of text: it ends soon and in one line, and --resume goes on with it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _dirty import files
from _text_runs import ENGINES, assert_goes_on, children, command, finished, inputs, seconds_of, start, until, write
from penstock._from.engines import gigatoken
from penstock._from.engines.engine import Ids
from penstock._from.engines.pieces import Pieces


def interrupted(process: subprocess.Popen[str], by: signal.Signals = signal.SIGINT) -> str:
    """Ends it by Ctrl-C, or by SIGTERM: it says one line, soon."""
    process.send_signal(by)
    error = process.communicate(timeout=20)[1]
    assert process.returncode == 128 + by, error
    assert error.count("\n") == 1 and "Traceback" not in error, error
    return error


def test_ctrl_c_while_the_tokenizer_is_read(text: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "tokenizer.json"
    os.mkfifo(fifo)
    opened: list[int] = []

    def is_read() -> bool:
        with contextlib.suppress(OSError):  # nobody has it open
            opened.append(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
        return bool(opened)

    with start(*command(text, tmp_path / "out", str(fifo), "auto")) as process:
        until(is_read, process)
        interrupted(process)
    os.close(opened[0])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("engine", ENGINES)
def test_ctrl_c_while_an_engine_is_at_work_on_a_long_document(tokenizer_file: str, tmp_path: Path, engine: str) -> None:
    (tmp_path / "text").mkdir()
    words = " ".join(map(str, np.random.default_rng(1).integers(0, 1 << 60, 3_000_000).tolist()))
    (tmp_path / "text" / "a.jsonl").write_text(json.dumps({"text": words, "n": 1}))
    process = start(*command(tmp_path / "text", tmp_path / "out", tokenizer_file, engine))
    with process:
        until(lambda: sum(map(seconds_of, [process.pid, *children(process.pid)])) > 1.5, process)
        assert "nothing was published; no shard was finished: start again" in interrupted(process)
    assert not (tmp_path / "out" / "dataset.json").exists()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shard", [0, 3])
def test_ctrl_c_while_shards_are_made(
    text: Path, made: dict[str, Path], tokenizer_file: str, tmp_path: Path, engine: str, shard: int
) -> None:
    out = tmp_path / "out"
    (tmp_path / "text").mkdir()
    process = start(*command(text, out, tokenizer_file, engine))
    with process:
        until(lambda: (out / f"{shard:05}").exists(), process)
        by = signal.SIGTERM if shard else signal.SIGINT
        assert "go on with --resume" in interrupted(process, by)
    assert_goes_on(text, out, tokenizer_file, engine, made[engine])


@pytest.mark.parametrize("engine", ENGINES)
def test_ctrl_c_while_input_is_waited_for(text: Path, tokenizer_file: str, tmp_path: Path, engine: str) -> None:
    out = tmp_path / "out"
    given = command(text, out, tokenizer_file, engine)[len(inputs(text)) :]
    process = start("-", "--format", "jsonl", *given, stdin=subprocess.PIPE)
    with process:
        assert process.stdin is not None
        process.stdin.write((text / "b.jsonl").read_text())
        process.stdin.flush()
        until(lambda: (out / "00002").exists(), process)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        error = process.stderr.read()
        assert process.wait(20) == 130 and error.count("\n") == 1 and "go on with --resume" in error, error
        process.stdin.close()


def test_ctrl_c_at_every_step_of_a_run(tmp_path: Path) -> None:
    """Of ids by threads: each call that tells of the progress is interrupted once, and the run is gone on with."""
    lines, expected = tmp_path / "ids.jsonl", tmp_path / "expected"
    lines.write_text("".join(f'{{"ids": {list(range(n % 300))}, "n": {n}}}\n' for n in range(600)))
    options: dict[str, Any] = {"ids_column": "ids", "dtype": "u2", "metadata": ["n"], "shard_size": 100_000}
    calls = []
    penstock.write(lines, expected, workers=2, progress=lambda *told: calls.append(told), **options)
    assert len(calls) > 10
    for step in range(len(calls)):
        out, left = tmp_path / f"out{step}", [step]

        def stop(done: int, total: int, written: Any, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt, match="nothing was published"):
            penstock.write(lines, out, workers=2, progress=stop, **options)
        kept = finished(out)
        assert penstock.write(lines, out, workers=2, resume=True, **options).kept_shards == kept
        assert files(out) == files(expected)


def test_ctrl_c_while_all_is_made_again_by_tokenizers(
    text: Path, made: dict[str, Path], tokenizer_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, plain = tmp_path / "out", gigatoken.Gigatoken._plain
    last = json.loads((text / "c.jsonl").read_text().splitlines()[-1])["text"].encode()

    def wrong(self: Any, texts: Pieces) -> Ids:
        found = plain(self, texts)
        if found.ids.size and last in bytes(memoryview(texts.data)):
            found.ids[-1] ^= 1
        return found

    def stop(done: int, total: int, written: Any) -> None:
        if not written.engine and written.shards > 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(gigatoken.Gigatoken, "_plain", wrong)
        with pytest.raises(KeyboardInterrupt, match="finished shards are kept"):
            write(text, out, tokenizer_file, workers=1, progress=stop)
    assert_goes_on(text, out, tokenizer_file, "tokenizers", made["tokenizers"])
