"""Runs: the processes of one run write into a folder together, others are refused; leftovers of others stay."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import penstock
import pytest

NODE = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]


def shard(path: Path, number: int, value: int = 1, **options: Any) -> penstock.Writer:
    writer = penstock.Writer(path, {"token": "u2"}, shard=number, **options)
    writer.append(token=[value] * 3)
    return writer


def write_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "penstock", "write", *arguments]


def wait_for(path: Path) -> None:
    for _ in range(600):
        if path.exists():
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} never came")


def slow_write(out: Path, tokenizer_file: str, *options: str) -> subprocess.Popen[bytes]:
    """A run that has begun and waits for more input."""
    command = write_command(
        "-", "--format", "jsonl", "--tokenizer", tokenizer_file, "--workers", "1", "--out", str(out)
    )
    process = subprocess.Popen([*command, *options], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(out / ".partial-run")
    return process


def lines(text: str, count: int) -> bytes:
    return b"".join(json.dumps({"text": f"{text} {i}"}).encode() + b"\n" for i in range(count))


@pytest.mark.parametrize("option", ["--overwrite", "--resume"])
def test_a_second_run_is_refused_while_the_first_works(tmp_path: Path, tokenizer_file: str, option: str) -> None:
    out = tmp_path / "out"
    first = slow_write(out, tokenizer_file)
    (tmp_path / "other.jsonl").write_bytes(lines("other", 50))
    second = write_command(str(tmp_path / "other.jsonl"), "--tokenizer", tokenizer_file, "--out", str(out), option)
    refused = subprocess.run(second, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "another writer is at work in this folder" in refused.stderr
    _, said = first.communicate(lines("first", 50))
    assert first.returncode == 0, said
    assert penstock.verify(out).ok
    assert sorted(each.name for each in out.iterdir()) == ["00000", "dataset.json"]
    done = subprocess.run([*second[:-1], "--overwrite"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_run_that_was_killed_keeps_nobody_out(tmp_path: Path, tokenizer_file: str) -> None:
    out = tmp_path / "out"
    first = slow_write(out, tokenizer_file)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    (tmp_path / "other.jsonl").write_bytes(lines("other", 50))
    second = write_command(str(tmp_path / "other.jsonl"), "--tokenizer", tokenizer_file, "--out", str(out))
    done = subprocess.run(second, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(each.name for each in out.iterdir()) == ["00000", "dataset.json"]


def test_a_run_that_writes_nothing_leaves_no_folder(tmp_path: Path, tokenizer_file: str) -> None:
    out = tmp_path / "out"
    (tmp_path / "bad.jsonl").write_bytes(b"no json\n")
    command = write_command(str(tmp_path / "bad.jsonl"), "--tokenizer", tokenizer_file, "--out", str(out))
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0
    assert not out.exists()


def test_writers_of_one_run_work_together_and_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "d"
    one, two = shard(path, 0, run="nightly"), shard(path, 1, run="nightly")
    for other in ("weekly", None):
        with pytest.raises(penstock.InvalidArgumentError, match=r"another writer is at work.*run nightly"):
            shard(path, 2, run=other)
    one.commit()
    with pytest.raises(penstock.InvalidArgumentError, match="another writer"):
        penstock.commit(path, run="weekly")
    two.commit()
    penstock.commit(path, run="nightly", shards=2)
    assert sorted(each.name for each in path.iterdir()) == ["00000", "00001", "dataset.json"]
    assert not any(b"nightly" in each.read_bytes() for each in path.rglob("*") if each.is_file())


def test_writers_that_name_no_run_work_together(tmp_path: Path) -> None:
    path = tmp_path / "d"
    one, two = shard(path, 0), shard(path, 1)
    with pytest.raises(penstock.InvalidArgumentError, match="another writer"):
        shard(path, 2, run="named")
    two.commit()
    one.commit()
    penstock.commit(path)
    assert penstock.verify(path).ok


def test_a_commit_refuses_shards_of_another_task(tmp_path: Path) -> None:
    path = tmp_path / "d"
    for number in range(2):
        shard(path, number, task={"input": number}).commit()
    for tasks in ([{"input": 0}, {"input": 7}], [{"input": 0}]):
        with pytest.raises(penstock.InvalidArgumentError, match="00001: it was made of another input"):
            penstock.commit(path, tasks=tasks)
    penstock.commit(path, tasks=[{"input": 0}, {"input": 1}])


@pytest.mark.parametrize("run", ["a b", "a/b", "ä", "x" * 65, "a@b"])
def test_names_that_a_run_cannot_have(tmp_path: Path, run: str) -> None:
    with pytest.raises(penstock.InvalidArgumentError, match="a run's name has at most 64"):
        shard(tmp_path / "d", 0, run=run)


# Locks may be local to a node: what lies there under another node's name may be alive.
def test_leftovers_of_other_nodes_and_runs_stay(tmp_path: Path, tokenizer_file: str) -> None:
    path = tmp_path / "d"
    shard(path, 0, run="mine").commit()
    names = {
        "ours, dead": f".partial-00001@{NODE}@other@1-0",
        "another node": ".partial-00001@deadbeef@other@1-0",
        "another node, this run": ".partial-00001@deadbeef@mine@1-0",
        "another node, no run": ".partial-00001@deadbeef@@1-0",
        "who knows": ".partial-00001-1-0",
    }
    for name in names.values():
        (path / name).mkdir()
    penstock.commit(path, run="mine")
    left = {what for what, name in names.items() if (path / name).exists()}
    assert left == {"another node", "another node, no run", "who knows"}
    (tmp_path / "a.txt").write_text("text")
    command = write_command(str(tmp_path / "a.txt"), "--tokenizer", tokenizer_file, "--out", str(path))
    assert subprocess.run([*command, "--overwrite"], capture_output=True, check=False).returncode == 0
    assert sum(each.name.startswith(".partial") for each in path.iterdir()) == 3
    assert subprocess.run([*command, "--overwrite", "--clean"], capture_output=True, check=False).returncode == 0
    assert not any(each.name.startswith(".partial") for each in path.iterdir())
