"""Two exports of one name at once: neither removes the other's unfinished files, in whatever moment it looks."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import penstock
import pytest
from penstock._from.cells.output_file import OutputFile
from penstock._from.tokens.new_files import NewFiles, new_folder
from penstock._places import unfinished


def _file(path: Path) -> None:
    with NewFiles([str(path)]) as new:
        new.open(str(path)).write(b"whole")


def _folder(path: Path) -> None:
    with new_folder(str(path)) as folder:
        (folder / "a").write_bytes(b"whole")


def _cells(path: Path) -> None:
    output = OutputFile(str(path))
    output.write(b"whole")
    output.sync()
    output.close()
    Path(output.path).rename(path)


def _export(to: str, name: str) -> Callable[[Path], None]:
    def export(path: Path) -> None:
        with penstock.Writer(path.parent / "data", {"token": "u2"}) as writer:
            writer.append(token=[1, 2, 3])
        penstock.export(path.parent / "data", path.parent / name, to=to)
        assert penstock.open(path.parent / name).kind == to
        (path.parent / "out").touch()

    return export


MAKERS = {
    "file": _file,
    "folder": _folder,
    "cells": _cells,
    "megatron": _export("megatron", "out"),
    "datatrove": _export("datatrove", "out.ds"),
    "mds": _export("mds", "out"),
}


@pytest.mark.parametrize("is_under_way", [False, True])
@pytest.mark.parametrize("maker", MAKERS)
def test_one_that_is_taken_for_dead_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, maker: str, is_under_way: bool
) -> None:
    """The other run has removed it then, or has locked it and is about to."""
    lock, seen = fcntl.flock, list[Path]()

    def late(descriptor: int, how: int) -> None:
        names = [each for each in tmp_path.iterdir() if ".partial-" in each.name]
        new = [each for each in names if each not in seen]
        first, seen[:] = not seen, [*seen, *new]
        if not first:
            return lock(descriptor, how)
        if not is_under_way:
            with monkeypatch.context() as patch:
                patch.setattr(unfinished.fcntl, "flock", lock)
                unfinished.remove_dead(str(new[0]).split(".partial-")[0])
            return lock(descriptor, how)
        other = os.open(new[0], os.O_RDONLY)
        try:
            lock(other, fcntl.LOCK_EX)
            lock(descriptor, how)
        finally:
            unfinished.removed(str(new[0]))
            os.close(other)

    monkeypatch.setattr(unfinished.fcntl, "flock", late)
    MAKERS[maker](tmp_path / "out")
    monkeypatch.undo()
    assert len(seen) > 1 and (tmp_path / "out").exists()
    assert not [each for each in tmp_path.iterdir() if ".partial-" in each.name]


def test_one_that_is_held_is_nobody_elses(tmp_path: Path) -> None:
    path = str(tmp_path / "out")
    with NewFiles([path]) as new:
        new.open(path).write(b"whole")
        unfinished.remove_dead(path)
        assert len([*tmp_path.iterdir()]) == 1
    with new_folder(str(tmp_path / "folder")) as folder:
        unfinished.remove_dead(str(tmp_path / "folder"))
        assert folder.exists()
    assert {each.name for each in tmp_path.iterdir()} == {"out", "folder"}
