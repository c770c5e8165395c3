"""Ctrl-C in the command's first second, while it imports: one line and 130."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HOOK = """
import os, signal, sys
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPT_AT"]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
"""


def interrupted(tmp_path: Path, at: str, *command: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "sitecustomize.py").write_text(HOOK)
    environment = dict(os.environ, PYTHONPATH=str(tmp_path), INTERRUPT_AT=at)
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("at", ["numpy", "numpy.linalg", "penstock._native", "click", "penstock._cli.info"])
@pytest.mark.parametrize("how", ["-m", "script"])
def test_ctrl_c_during_imports_is_one_line_and_130(tmp_path: Path, at: str, how: str) -> None:
    script = Path(sys.executable).parent / "penstock"
    if how == "script" and not script.exists():
        pytest.skip("penstock is not installed as a command")
    command = [sys.executable, "-m", "penstock"] if how == "-m" else [str(script)]
    done = interrupted(tmp_path, at, *command, "info", str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "penstock: interrupted\n")


def test_a_script_of_the_users_gets_its_keyboard_interrupt(tmp_path: Path) -> None:
    code = "try:\n    import penstock\nexcept KeyboardInterrupt:\n    print('mine')"
    done = interrupted(tmp_path, "penstock._load.job", sys.executable, "-c", code)
    assert (done.returncode, done.stdout) == (0, "mine\n"), done.stderr


MINE = """
import os, signal
import penstock
try:
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("mine")
"""


@pytest.mark.parametrize("name", ["train.py", "penstock"])
def test_a_script_of_the_users_keeps_its_keyboard_interrupt(tmp_path: Path, name: str) -> None:
    """A checkpoint at Ctrl-C: whatever the script is called, and whatever its options are."""
    (tmp_path / name).write_text(MINE)
    command = [sys.executable, str(tmp_path / name), "--model", "x", "-m", "penstock"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "mine\n"), done.stderr
