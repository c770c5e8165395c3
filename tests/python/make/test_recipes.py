"""`penstock.Recipe`: what every source of one's own can rely on, on every executor and in every folder."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import penstock
import pytest
from _places import tree
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


def texts(path: Any, shift: int = 0) -> list[str]:
    tokens = [each["token"] - np.uint8(shift) for each in penstock.open(path).documents()]
    return [bytes(each.astype("u1")).decode() for each in tokens]


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


@pytest.mark.parametrize("workers", [1, 2, Processes(3)])
def test_an_error_in_a_task_keeps_what_is_finished_and_resume_makes_the_rest(
    source: Path, tmp_path: Path, workers: Any
) -> None:
    Lines(source).write(tmp_path / "whole")
    interrupt(source, tmp_path / "out")
    assert [each.number for each in penstock.finished_shards(tmp_path / "out")] == [0, 1]
    with pytest.raises(penstock.InvalidArgumentError, match="2 finished shards of a run that did not end"):
        Lines(source).write(tmp_path / "out")
    done = Lines(source).write(tmp_path / "out", resume=True, workers=workers)
    assert (done.shards, done.kept_shards, done.documents) == (4, 2, 40)
    found, whole = tree(tmp_path / "out"), tree(tmp_path / "whole")
    assert json.loads(found.pop("dataset.json"))["tokenizer"]["lines"] == 20 and whole.pop("dataset.json")
    assert found == whole


@pytest.mark.parametrize(
    ("recipe", "kept"),
    [
        (lambda source: Named(source), 2),
        (lambda source: Lines(source, shift=1), 0),
        (lambda source: Wide(source), 0),
    ],
    ids=["tasks that are no JSON", "another identity", "another format"],
)
def test_shards_are_kept_that_the_same_recipe_made(source: Path, tmp_path: Path, recipe: Any, kept: int) -> None:
    first = recipe(source) if kept else Lines(source)
    first.fail = LINES[25]
    with pytest.raises(ValueError, match="cannot use line 25"):
        first.write(tmp_path / "out")
    assert recipe(source).write(tmp_path / "out", resume=True).kept_shards == kept
    shift = getattr(recipe(source), "shift", 0)
    assert texts(tmp_path / "out", shift=shift) == LINES
    assert recipe(source).write(tmp_path / "out", resume=True).kept_shards == 4  # it is the same
    if not kept:
        with pytest.raises(penstock.InvalidArgumentError, match=r"made of other input or options.* overwrite=True"):
            Lines(source).write(tmp_path / "out", resume=True)


def test_what_a_run_keeps_it_says_also_where_a_dataset_is_replaced(source: Path, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done == 2:
            signal.raise_signal(signal.SIGINT)

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt, match="2 finished shards are kept: go on with resume=True"):
        Lines(source).write(out, progress=stop)
    Lines(source, shift=1).write(out, overwrite=True)
    before = tree(out)
    with pytest.raises(KeyboardInterrupt, match="the old dataset stays; 2 finished shards are kept"):
        Lines(source).write(out, overwrite=True, progress=stop)
    assert all(tree(out)[name] == data for name, data in before.items())
    assert Lines(source).write(out, overwrite=True, resume=True).kept_shards == 2
    assert texts(out) == LINES


def test_shards_of_other_tasks_are_refused(source: Path, tmp_path: Path) -> None:
    interrupt(source, tmp_path / "out")
    (source / "0.txt").rename(source / "00.txt")
    with pytest.raises(penstock.InvalidArgumentError, match=r"00.txt: shard 0 of .* was made of other input"):
        Lines(source).write(tmp_path / "out", resume=True)
    assert len(penstock.finished_shards(tmp_path / "out")) == 2
    assert Lines(source).write(tmp_path / "out", overwrite=True).documents == 40


def test_files_that_changed_are_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot use"):
        Watched(source, fail=LINES[25]).write(tmp_path / "out")
    later = time.time() + 10
    os.utime(source / "1.txt", (later, later))
    with pytest.raises(penstock.InvalidArgumentError, match=r"1.txt: is another than when 2 finished shards"):
        Watched(source).write(tmp_path / "out", resume=True)
    assert Watched(source).write(tmp_path / "out", overwrite=True).documents == 40
    assert not (tmp_path / "out" / ".import-inputs").exists()


class Odd(Lines):
    """What cannot be."""

    def identity(self) -> Any:
        return {1, 2} if self.fail == "identity" else super().identity()

    def plan(self) -> Iterable[Any]:
        plans: dict[str, Any] = {"set": [{1, 2}], "none": [], "no plan": None}
        return plans[self.fail] if self.fail in plans else super().plan()

    def make(self, task: str, writer: penstock.Writer) -> Any:
        return (line for line in LINES) if self.fail == "yield" else super().make(task, writer)

    def files(self) -> Any:
        return "1.txt" if self.fail == "files" else ()

    def finish(self, results: Any) -> Any:
        return {"name": "x"} if self.fail == "finish" else ["x"] if self.fail == "list" else {}


@pytest.mark.parametrize(
    ("fail", "words"),
    [
        ("set", r"task 0, \{1, 2\}: Object of type set is not JSON serializable: a task must be JSON, or identify"),
        ("identity", r"identity\(\) gave \{1, 2\}, which is no JSON"),
        ("none", "there are no tasks: nothing was written"),
        ("no plan", r"plan\(\) gave None: a list of tasks is wanted"),
        (
            "yield",
            r"make\(\) gave <generator .*: it has a yield, or returns an iterator: append documents to its writer",
        ),
        ("files", r"files\(\) gave '1.txt': a list of paths is wanted"),
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


def test_shards_of_another_recipe_are_made_again(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot use"):
        Lines(source, fail=LINES[25]).write(tmp_path / "out")
    assert Watched(source).write(tmp_path / "out", resume=True).kept_shards == 0
