"""`penstock.Recipe`: what every source of one's own can rely on, on every executor and in every folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import penstock
import pytest
from penstock._make.executors import Processes

LINES = [f"line {number}" * (1 + number % 3) for number in range(40)]


class Lines(penstock.Recipe):
    """A task is a file, a document a line of it: its bytes as tokens."""

    fields: ClassVar = {"token": "u1"}
    metadata = "json"
    columns: ClassVar = {"length": "u4"}

    def __init__(self, folder: Path, shift: int = 0, fail: str = "") -> None:
        self.folder, self.shift, self.fail = str(folder), shift, fail

    def plan(self) -> Iterable[str]:
        return sorted(each.name for each in Path(self.folder).glob("*.txt"))

    def identity(self) -> Any:
        return {"shift": (self.shift,), 1: "a key that JSON makes text"}

    def make(self, task: str, writer: penstock.Writer) -> int:
        lines = (Path(self.folder) / task).read_text().splitlines()
        for number, line in enumerate(lines):
            if line == self.fail:
                raise ValueError(f"cannot use {line}")
            token = np.frombuffer(line.encode(), "u1") + np.uint8(self.shift)
            writer.append({"file": task, "line": number}, token=token, columns={"length": len(line)})
        return len(lines)

    def finish(self, results: Any) -> dict[str, Any]:
        return {"tokenizer": {"name": "bytes", "lines": sum(each.value or 0 for each in results)}}


class Watched(Lines):
    """Its files are watched."""

    def files(self) -> list[str]:
        return [str(Path(self.folder) / each) for each in self.plan()]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    for number in range(4):
        (folder / f"{number}.txt").write_text("\n".join(LINES[10 * number : 10 * number + 10]))
    return folder


def texts(path: Any, storage: Any = None) -> list[str]:
    view = penstock.open(path, storage=storage).documents()
    return [bytes(view[index]["token"]).decode() for index in range(len(view))]


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def interrupt(source: Path, out: Path, **given: Any) -> None:
    """Leaves the first two shards finished."""
    with pytest.raises((ValueError, RuntimeError), match="cannot use line 25"):
        Lines(source, fail=LINES[25], **given).write(out)


def test_a_source_becomes_a_dataset_with_what_it_says(source: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    done = Lines(source).write(tmp_path / "out", progress=lambda *each: seen.append(each))
    assert texts(tmp_path / "out") == LINES and seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert (done.shards, done.kept_shards, done.documents) == (4, 0, 40)
    dataset = penstock.open(tmp_path / "out")
    assert (done.records, done.fingerprint) == (dataset.records, dataset.fingerprint)
    assert dataset.tokenizer == {"name": "bytes", "lines": 40}
    row = dataset.documents(columns=["length"])[11]
    assert row.spans[0].metadata == {"file": "1.txt", "line": 1} and row.columns["length"].item() == len(LINES[11])
    assert penstock.verify(tmp_path / "out")


@pytest.mark.parametrize("workers", [2, Processes(3)])
def test_bytes_are_the_same_on_any_executor(source: Path, tmp_path: Path, workers: Any) -> None:
    Lines(source).write(tmp_path / "here")
    Lines(source).write(tmp_path / "there", workers=workers)
    assert tree(tmp_path / "here") == tree(tmp_path / "there")


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_a_task_keeps_what_is_finished_and_resume_makes_the_rest(
    source: Path, tmp_path: Path, workers: int
) -> None:
    Lines(source).write(tmp_path / "whole")
    interrupt(source, tmp_path / "out")
    assert [each.number for each in penstock.finished_shards(tmp_path / "out")] == [0, 1]
    with pytest.raises(penstock.InvalidArgumentError, match="2 finished shards of a run that did not end"):
        Lines(source).write(tmp_path / "out")
    done = Lines(source).write(tmp_path / "out", resume=True, workers=workers)
    assert (done.shards, done.kept_shards, done.documents) == (4, 2, 40)
    changed = tree(tmp_path / "out")
    kept = json.loads(changed.pop("dataset.json")), changed
    whole = tree(tmp_path / "whole")
    assert kept[0]["tokenizer"]["lines"] == 20 and kept[1] == {k: v for k, v in whole.items() if k != "dataset.json"}


def test_shards_of_another_identity_are_made_again(source: Path, tmp_path: Path) -> None:
    interrupt(source, tmp_path / "out", shift=1)
    done = Lines(source).write(tmp_path / "out", resume=True)
    assert done.kept_shards == 0 and texts(tmp_path / "out") == LINES


class Wide(Lines):
    """Of another type."""

    fields: ClassVar = {"token": "u2"}


class Named(Lines):
    """Tasks that are no JSON, but can be told apart."""

    def plan(self) -> Iterable[Any]:
        return [Path(each) for each in super().plan()]

    def identify(self, task: Any) -> Any:
        return task.name

    def make(self, task: Any, writer: penstock.Writer) -> int:
        return super().make(task.name, writer)


def test_shards_of_another_format_are_made_again(source: Path, tmp_path: Path) -> None:
    interrupt(source, tmp_path / "out")
    assert Wide(source).write(tmp_path / "out", resume=True).kept_shards == 0
    assert penstock.open(tmp_path / "out").dtype == np.dtype([("token", "<u2")])
    with pytest.raises(penstock.InvalidArgumentError, match=r"made of other input or options.* overwrite=True"):
        Lines(source).write(tmp_path / "out", resume=True)


def test_tasks_that_are_no_json_are_told_apart_by_what_they_are_called(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot use"):
        Named(source, fail=LINES[25]).write(tmp_path / "out")
    assert Named(source).write(tmp_path / "out", resume=True).kept_shards == 2
    assert texts(tmp_path / "out") == LINES


def test_shards_of_other_tasks_are_refused(source: Path, tmp_path: Path) -> None:
    interrupt(source, tmp_path / "out")
    (source / "0.txt").rename(source / "00.txt")
    with pytest.raises(penstock.InvalidArgumentError, match=r"00.txt: shard 0 of .* was made of other input"):
        Lines(source).write(tmp_path / "out", resume=True)
    assert len(penstock.finished_shards(tmp_path / "out")) == 2
    assert Lines(source).write(tmp_path / "out", overwrite=True).documents == 40


def test_a_published_dataset_stays_until_another_is_whole(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    Lines(source, shift=1).write(out)
    before = tree(out)
    with pytest.raises(penstock.InvalidArgumentError, match="holds a dataset already"):
        Lines(source).write(out)
    with pytest.raises(ValueError, match="cannot use"):
        Lines(source, fail=LINES[35]).write(out, overwrite=True)
    assert {name: data for name, data in tree(out).items() if name in before} == before
    assert Lines(source).write(out, overwrite=True, resume=True).kept_shards == 3
    assert texts(out) == LINES
    assert Lines(source).write(out, resume=True).kept_shards == 4  # it is the same


def test_files_that_changed_are_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot use"):
        Watched(source, fail=LINES[25]).write(tmp_path / "out")
    later = time.time() + 10
    os.utime(source / "1.txt", (later, later))
    with pytest.raises(penstock.InvalidArgumentError, match=r"1.txt: is another than when 2 finished shards"):
        Watched(source).write(tmp_path / "out", resume=True)
    assert Watched(source).write(tmp_path / "out", overwrite=True).documents == 40
    assert not (tmp_path / "out" / ".import-inputs").exists()


SCRIPT = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from test_recipes import Lines

class Killed(Lines):
    def make(self, task, writer):
        super().make(task, writer)
        if task == "2.txt":
            os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    Killed(sys.argv[2]).write(sys.argv[3], workers=2)
"""


def test_a_worker_that_is_killed_ends_the_run_in_words_and_finished_shards_stay(source: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    given = [sys.executable, tmp_path / "script.py", Path(__file__).parent, source, tmp_path / "out"]
    done = subprocess.run(given, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "SIGKILL" in done.stderr and "go on with resume=True" in done.stderr, done.stderr[-800:]
    finished = [each.number for each in penstock.finished_shards(tmp_path / "out")]
    assert 2 not in finished and not list((tmp_path / "out").glob(".partial*"))
    assert Lines(source).write(tmp_path / "out", resume=True).kept_shards == len(finished)
    assert texts(tmp_path / "out") == LINES


def test_into_a_bucket_and_on_from_there(source: Path, tmp_path: Path, place: Any) -> None:
    out = f"{place.url}/out"
    with pytest.raises(ValueError, match="cannot use"):
        Lines(source, fail=LINES[25]).write(out, storage=place.storage)
    done = Lines(source).write(out, resume=True, workers=2, storage=place.storage)
    assert done.kept_shards == 2 and texts(out, place.storage) == LINES
    assert penstock.verify(out, storage=place.storage)


class Odd(Lines):
    """What cannot be."""

    def identity(self) -> Any:
        return {1, 2} if self.fail == "identity" else super().identity()

    def plan(self) -> Iterable[Any]:
        return [{1, 2}] if self.fail == "set" else [] if self.fail == "none" else super().plan()

    def finish(self, results: Any) -> Any:
        return {"name": "x"} if self.fail == "finish" else ["x"] if self.fail == "list" else {}


@pytest.mark.parametrize(
    ("fail", "words"),
    [
        ("set", r"task 0, \{1, 2\}: Object of type set is not JSON serializable: a task must be JSON, or identify"),
        ("identity", r"identity\(\) gave \{1, 2\}, which is no JSON"),
        ("none", "there are no tasks: nothing was written"),
        ("finish", r"finish\(\) gave \{'name': 'x'\}: a dict is wanted of \"tokenizer\", \"features\""),
        ("list", r"finish\(\) gave \['x'\]: a dict"),
    ],
)
def test_what_a_recipe_says_wrong_is_refused(source: Path, tmp_path: Path, fail: str, words: str) -> None:
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        Odd(source, fail=fail).write(tmp_path / "out")
    with pytest.raises(penstock.InvalidArgumentError, match="workers=0"):
        Lines(source).write(tmp_path / "out", workers=0)
    with pytest.raises(penstock.InvalidArgumentError, match=r"workers='ray': a number, or an executor"):
        Lines(source).write(tmp_path / "out", workers="ray")  # type: ignore[arg-type]


def test_ctrl_c_says_how_to_go_on(source: Path, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done == 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match="2 finished shards are kept: go on with resume=True"):
        Lines(source).write(tmp_path / "out", progress=stop)


class Busy(penstock.Recipe):
    """Its own names are those of hooks of the run."""

    fields: ClassVar = {"token": "u1"}
    compares = files_decide = True
    goes_on = "?"

    def __init__(self) -> None:
        self.options, self.look, self.begin, self.took = {"shift": 1}, 2, 3, 4

    def plan(self) -> list[int]:
        return [5, 6]

    def see(self) -> int:
        raise AssertionError

    describe = making = published = prepare = see

    def make(self, task: int, writer: penstock.Writer) -> None:
        writer.append(token=[task + self.options["shift"]])


def test_a_recipes_own_names_are_not_the_runs(tmp_path: Path) -> None:
    for number in range(2):
        written = Busy().write(tmp_path / "out", resume=number > 0, workers=2)
        assert (written.shards, written.kept_shards) == (2, 2 * number)
    assert penstock.open(tmp_path / "out").windows(2)[0]["token"].tolist() == [6, 7]
