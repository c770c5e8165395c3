"""Scratch folders: none is left behind, and none is taken from under a process that lives."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from penstock._places.scratch import Scratch, beside_shards, remove_dead

MAKES = """
import sys
from penstock._places.scratch import Scratch
for _ in range(150):
    made = Scratch(sys.argv[1])
    (made.path / "file").write_text("x")
    assert (made.path / "file").exists()
    made.close()
"""


def test_a_folder_whose_owner_was_killed_before_it_locked_it_is_removed(tmp_path: Path) -> None:
    tempfile.mkdtemp(prefix="penstock-scratch-", dir=tmp_path)
    remove_dead(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_link_that_another_user_laid_is_not_followed(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "penstock-scratch-0").symlink_to(mine)
    Scratch(shared).close()
    assert list(mine.iterdir()) == []


def test_a_folder_that_goes_before_it_is_locked_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    real = tempfile.mkdtemp

    def taken_once(prefix: str, dir: Path) -> str:
        made.append(real(prefix=prefix, dir=dir))
        if len(made) == 1:
            remove_dead(tmp_path)
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", taken_once)
    with Scratch(tmp_path) as path:
        assert made[1:] == [str(path)] and path.is_dir()
        remove_dead(tmp_path)
        assert path.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_beside_shards_that_was_not_removed_is_in_nobodys_way(tmp_path: Path) -> None:
    with beside_shards(str(tmp_path), "run", "import") as one, beside_shards(str(tmp_path), "run", "import") as two:
        assert one != two and one.is_dir() and two.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_processes_that_make_and_remove_at_once_take_nothing_from_each_other(tmp_path: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", MAKES, str(tmp_path)]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert list(tmp_path.iterdir()) == []
