"""Type checkers know what `next` gives, and refuse a word that no argument takes. `make types` has mypy read them."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import penstock
from penstock._load.options import LoaderOptions

TYPED = Path(__file__).parents[2] / "typed"


def test_pyright_knows_what_next_gives_and_refuses_wrong_words(tmp_path):
    # Its fork basedpyright, whose wheel has all that it needs, with pyright's own rules. What is refused is marked, and
    # a mark that is not needed is an error.
    settings = {
        "typeCheckingMode": "standard",
        "reportUnnecessaryTypeIgnoreComment": "error",
        "include": [str(TYPED)],
        "pythonVersion": "3.12",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run([*command, "-p", str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 2
    assert [(each["file"], each["range"]["start"]["line"] + 1, each["message"])
            for each in report["generalDiagnostics"] if each["severity"] == "error"] == []  # fmt: skip


def test_the_options_of_a_checker_are_those_of_a_loader():
    taken = set(inspect.signature(penstock.Loader.__init__).parameters) - {"self", "view", "batch_size", "transform"}
    assert set(LoaderOptions.__annotations__) == taken
