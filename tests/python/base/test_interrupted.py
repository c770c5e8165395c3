"""The exit code of a command that a signal ended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from penstock._base import start

PROGRAM = f"""
import ctypes, importlib.util, signal, sys
spec = importlib.util.spec_from_file_location("start", {start.__file__!r})
start = importlib.util.module_from_spec(spec)
spec.loader.exec_module(start)
ctypes.pythonapi.PyRun_SimpleString(b"raise KeyboardInterrupt")  # as a library's own text that Ctrl-C interrupts
start._by.append(signal.SIGTERM)
sys.exit(start.interrupted_code())
"""


def test_it_is_said_though_a_librarys_text_was_interrupted(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    ended = subprocess.run([sys.executable, "-m", "program"], cwd=tmp_path, capture_output=True, timeout=60)
    assert ended.returncode == 143, ended.stderr.decode()
