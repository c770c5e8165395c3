"""Ctrl-C and SIGTERM while a command imports: one line, and 130 or 143. And while Python ends: the command was done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import penstock
import pytest

HOOK = """
import os, signal, sys
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPT_AT"]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), int(os.environ["INTERRUPT_BY"]))
sys.meta_path.insert(0, Interrupts())
"""
LATE = """
import atexit, builtins, os
class Late:
    def __del__(self, kill=os.kill, process=os.getpid(), by=int(os.environ["INTERRUPT_BY"])):
        kill(process, by)
if os.environ["INTERRUPT_AT"] == "modules":
    builtins.late = Late()  # goes with the last of them
else:
    atexit.register(Late().__del__)
"""
SLEEPS = """
import atexit, os, pathlib, threading, time
def sleep():
    threading.main_thread().join()  # from now on Python waits for this one
    while True:
        time.sleep(0.3)
        os.kill(os.getpid(), int(os.environ["INTERRUPT_BY"]))
def clean():
    pathlib.Path("cleaned").write_text("half")
    time.sleep(0.2)
    os.kill(os.getpid(), int(os.environ["INTERRUPT_BY"]))
    pathlib.Path("cleaned").write_text("all")
atexit.register(clean)
threading.Thread(target=sleep).start()
"""
MINE = """
import os, signal
try:
    import penstock
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("mine")
"""


def interrupted(
    tmp_path: Path, at: str, *command: str, by: int = signal.SIGINT, hook: str = HOOK
) -> tuple[int, str, str]:
    (tmp_path / "sitecustomize.py").write_text(hook)
    environment = dict(os.environ, PYTHONPATH=str(tmp_path), INTERRUPT_AT=at, INTERRUPT_BY=str(int(by)))
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("how", "at"),
    [
        ("-m", "numpy"),
        ("script", "numpy.linalg"),
        ("-m", "penstock._native"),
        ("script", "penstock._native"),
        ("-m", "click"),
        ("script", "penstock._cli.info"),
    ],
)
@pytest.mark.parametrize(("by", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_during_imports_is_one_line_and_130(tmp_path: Path, how: str, at: str, by: int, code: int) -> None:
    script = Path(sys.executable).parent / "penstock"
    if how == "script" and not script.exists():
        pytest.skip("penstock is not installed as a command")
    command = [sys.executable, "-m", "penstock"] if how == "-m" else [str(script)]
    given = [*command, "info", str(tmp_path)]
    assert interrupted(tmp_path, at, *given, by=by) == (code, "", "penstock: interrupted\n")


@pytest.mark.parametrize("at", ["atexit", "modules"])
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_python_ends_is_no_failure_of_the_command(tmp_path: Path, at: str, by: int) -> None:
    given = [sys.executable, "-m", "penstock", "ranks", "64"]
    code, said, errors = interrupted(tmp_path, at, *given, by=by, hook=LATE)
    assert (code, errors) == (0, "") and "64" in said


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_signal_ends_what_waits_for_a_thread_with_the_commands_code(
    tmp_path: Path, by: int, is_damaged: bool
) -> None:
    """And what was to be done at the end is done, though a second signal comes."""
    with penstock.Writer(tmp_path / "data", {"token": "u2"}) as writer:
        writer.append(token=[1, 2, 3])
    if is_damaged:
        (tmp_path / "data" / "00000" / "stream.bin").write_bytes(b"\0" * 6)
    given = [sys.executable, "-m", "penstock", "verify", str(tmp_path / "data"), "--json"]
    code, said, errors = interrupted(tmp_path, "", *given, by=by, hook=SLEEPS)
    assert (code, errors) == (int(is_damaged), "") and said
    assert (tmp_path / "cleaned").read_text() == "all"


@pytest.mark.parametrize(("name", "at"), [("train.py", "penstock._load.job"), ("train.py", ""), ("penstock", "")])
def test_a_script_of_the_users_keeps_its_keyboard_interrupt(tmp_path: Path, name: str, at: str) -> None:
    """A checkpoint at Ctrl-C: whatever the script is called, whatever its options are, and while it imports."""
    (tmp_path / name).write_text(MINE)
    command = [sys.executable, str(tmp_path / name), "--model", "x", "-m", "penstock"]
    assert interrupted(tmp_path, at, *command) == (0, "mine\n", "")
