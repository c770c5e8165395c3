"""penstock.shuffle on several workers: the bytes of one process, a killed worker, going on, nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import compact
from test_shuffle import files, lengths_of, write

FEATURES = {"names": [f"gene{i}" for i in range(50)], "length": np.arange(50, dtype="u4")}
SHARD = 5000


def shuffle(data: Path, out: Path, **options: Any) -> str:
    return penstock.shuffle(data, out, **{"seed": 3, "shard_size": SHARD, "memory": 1 << 20, **options})


def with_columns(path: Path) -> Path:
    """Shards with entries, columns, a tokenizer and features."""
    rng = np.random.default_rng(0)
    columns = {"score": "f4", "label": "category"}
    tokenizer = {"name": "mine", "vocabulary_size": 50}
    with penstock.Writer(
        path, {"token": "u2"}, "json", columns=columns, features=FEATURES, tokenizer=tokenizer, shard_size=8000
    ) as writer:
        for number in range(300):
            tokens = rng.integers(0, 50, int(rng.integers(0, 200))).astype("u2")
            values = {"score": number / 7, "label": f"l{number % 3}"}
            writer.append(token=tokens, metadata={"name": "x" * (number % 50)}, columns=values)
    return path


@pytest.mark.parametrize("memory", [1 << 17, 1 << 30])
@pytest.mark.parametrize("what", [{"documents": True}, {"window": 64}])
def test_the_bytes_are_those_of_one_process(tmp_path: Path, what: dict[str, Any], memory: int) -> None:
    data = with_columns(tmp_path / "in")
    one = shuffle(data, tmp_path / "one", **what)
    told: list[tuple[int, int]] = []
    many = shuffle(
        data,
        tmp_path / "many",
        workers=2,
        memory=memory,
        progress=lambda done, total: told.append((done, total)),
        **what,
    )
    assert many == one
    assert files(tmp_path / "many") == files(tmp_path / "one")
    assert len(penstock.open(tmp_path / "many").shards) > 5
    assert told[-1][0] == told[-1][1] > 0 and told == sorted(told)
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


@pytest.mark.parametrize("codec", ["boundaries", None])
@pytest.mark.parametrize("window", [1, 100, 5000])
def test_other_datasets_and_windows(tmp_path: Path, window: int, codec: str | None) -> None:
    data = write(tmp_path / "in", [*lengths_of(300), 1], codec)
    shuffle(data, tmp_path / "one", window=window)
    shuffle(data, tmp_path / "many", window=window, workers=2)
    assert files(tmp_path / "many") == files(tmp_path / "one")


def test_entries_that_do_not_fit_into_memory(tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "in", {"token": "u2"}, "raw", shard_size=40_000) as writer:
        for number in range(60):
            tokens = np.full(20_000 if number % 17 == 3 else 10, number, "u2")
            writer.append(token=tokens, metadata=b"e" * (30_000 if number % 13 == 1 else 5))
    shuffle(tmp_path / "in", tmp_path / "one", documents=True, memory=1 << 17)
    (tmp_path / "scratch").mkdir()
    shuffle(tmp_path / "in", tmp_path / "many", documents=True, memory=1 << 17, workers=2, scratch=tmp_path / "scratch")
    assert files(tmp_path / "many") == files(tmp_path / "one")
    assert not list((tmp_path / "scratch").iterdir())


def test_opaque_and_empty_datasets(tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "in", None, "json", shard_size=100) as writer:
        for number in range(200):
            writer.append({"number": number})
    with penstock.Writer(tmp_path / "empty", {"token": "u2"}, "json"):
        pass
    for name in ("in", "empty"):
        shuffle(tmp_path / name, tmp_path / f"{name}-one", documents=True, shard_size=500)
        shuffle(tmp_path / name, tmp_path / f"{name}-many", documents=True, shard_size=500, workers=2)
        assert files(tmp_path / f"{name}-many") == files(tmp_path / f"{name}-one")


def test_finished_shards_are_kept_by_either(tmp_path: Path) -> None:
    data = with_columns(tmp_path / "in")
    shuffle(data, tmp_path / "whole", documents=True)
    shards = sorted(each.name for each in (tmp_path / "whole").glob("0*"))
    for number, (workers, kept) in enumerate([(2, shards[:3]), (1, shards[:3]), (2, shards[1:4]), (1, shards[1:4])]):
        out = tmp_path / f"out{number}"
        out.mkdir()
        for name in kept:
            shutil.copytree(tmp_path / "whole" / name, out / name)
        before = {name: (out / name / "shard.json").stat().st_ino for name in kept}
        with pytest.raises(penstock.InvalidArgumentError, match="resume"):
            shuffle(data, out, documents=True, workers=workers)
        with pytest.raises(penstock.InvalidArgumentError, match="made of another input or with other options"):
            shuffle(data, out, documents=True, workers=workers, resume=True, seed=4)
        shuffle(data, out, documents=True, workers=workers, resume=True)
        assert files(out) == files(tmp_path / "whole")
        assert {name: (out / name / "shard.json").stat().st_ino for name in kept} == before
        assert shuffle(data, out, documents=True, workers=workers, resume=True) == penstock.open(out).fingerprint
        with pytest.raises(penstock.InvalidArgumentError, match="made of another input or with other options"):
            shuffle(data, out, documents=True, workers=workers, resume=True, shard_size=SHARD // 2)


def test_a_published_dataset_is_replaced_when_the_new_one_is_whole(tmp_path: Path) -> None:
    data = write(tmp_path / "in", lengths_of(300))
    compact(tmp_path, [(3, 4)])
    out = tmp_path / "compact-0"
    with pytest.raises(penstock.InvalidArgumentError, match="overwrite"):
        shuffle(data, out, documents=True, workers=2)
    fingerprint = shuffle(data, out, documents=True, workers=2, overwrite=True)
    assert penstock.open(out).fingerprint == fingerprint
    assert penstock.verify(out) and not penstock.verify(out).notices


def test_damage_is_not_laundered(tmp_path: Path) -> None:
    data = write(tmp_path / "in", lengths_of(300))
    stream = sorted(data.glob("0*/stream.bin"))[2]
    content = bytearray(stream.read_bytes())
    content[100] ^= 4
    stream.write_bytes(content)
    with pytest.raises(penstock.CorruptionError, match=f"{stream.parent.name}/stream.bin"):
        shuffle(data, tmp_path / "out", documents=True, workers=2)
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_is_refused_in_words(tmp_path: Path) -> None:
    data = write(tmp_path / "in", lengths_of(2000))
    for options, words in [
        ({"workers": 0}, "workers=0"),
        ({"workers": "head:6379"}, "workers='head:6379': a number, or an executor"),
        ({"workers": 2.0}, "workers=2.0: a number, or an executor"),
        ({"memory": 1 << 16, "window": 64, "shard_size": 1}, "need more than 65,536 bytes of memory: give"),
        ({"memory": 100}, "memory of 100 bytes, must be at least 65,536"),
    ]:
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            shuffle(data, tmp_path / "out", **{"workers": 2, "window": 64, **options})
        assert not (tmp_path / "out").exists()


def workers_of(parent: int) -> list[int]:
    """Its spawned processes that have begun to work."""
    found = []
    for task in Path(f"/proc/{parent}/task").iterdir():
        for pid in map(int, (task / "children").read_text().split()):
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"spawn_main" in command:
                found.append(pid)
    return found


@pytest.mark.parametrize("phase", [".partial-shuffle@*/0*", ".partial-0*"])
def test_a_killed_worker_is_said_and_resume_goes_on(tmp_path: Path, phase: str) -> None:
    data, out = write(tmp_path / "in", lengths_of(60_000), shard_size=100_000), tmp_path / "out"
    options = ["--seed", "1", "--documents", "--shard-size", "50000", "--memory", "1MiB", "--json"]
    command = [sys.executable, "-m", "penstock", "shuffle", str(data), "--out", str(out), *options, "--workers", "2"]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while program.poll() is None and not list(out.glob(phase)):
        time.sleep(0.001)
    os.kill(workers_of(program.pid)[0], signal.SIGKILL)
    said, _ = program.communicate(timeout=100)
    assert program.returncode == 1
    error = json.loads(said.splitlines()[-1])["error"]
    assert "was killed by SIGKILL" in error and "nothing" in error
    assert not list(out.glob(".partial-*")) and not (out / "dataset.json").exists()
    done = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    penstock.shuffle(data, tmp_path / "one", seed=1, documents=True, shard_size=50_000)
    assert files(out) == files(tmp_path / "one")


def test_a_killed_program_leaves_nothing_that_the_next_run_does_not_remove(tmp_path: Path) -> None:
    data, out = write(tmp_path / "in", lengths_of(60_000), shard_size=100_000), tmp_path / "out"
    options = ["--seed", "1", "--documents", "--shard-size", "50000", "--memory", "1MiB", "--json"]
    command = [sys.executable, "-m", "penstock", "shuffle", str(data), "--out", str(out), *options, "--workers", "2"]
    program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while program.poll() is None and len(list(out.glob("0*"))) < 3:
        time.sleep(0.001)
    program.kill()
    program.wait()
    assert list(out.glob(".partial-*"))
    deadline = time.monotonic() + 20  # its workers end when they see that it is gone
    while time.monotonic() < deadline:
        done = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False, timeout=100)
        if done.returncode == 0:
            break
        time.sleep(0.5)
    assert done.returncode == 0, done.stderr
    penstock.shuffle(data, tmp_path / "one", seed=1, documents=True, shard_size=50_000)
    assert files(out) == files(tmp_path / "one")


def test_ctrl_c_ends_it_and_says_what_is_kept(tmp_path: Path) -> None:
    data, out = write(tmp_path / "in", lengths_of(60_000), shard_size=100_000), tmp_path / "out"
    options = ["--seed", "1", "--documents", "--shard-size", "50000", "--memory", "1MiB"]
    command = [sys.executable, "-m", "penstock", "shuffle", str(data), "--out", str(out), *options, "--workers", "2"]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while program.poll() is None and len(list(out.glob("0*"))) < 3:
        time.sleep(0.001)
    threading.Timer(0, program.send_signal, [signal.SIGINT]).start()
    _, said = program.communicate(timeout=100)
    assert program.returncode == 130 and "finished shards are kept: go on with --resume" in said
    assert not list(out.glob(".partial-*"))
