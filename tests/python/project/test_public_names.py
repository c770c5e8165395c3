"""scripts/check_public_names.py finds private names of the package in benchmarks, examples, scripts and pages."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "check_public_names.py"


def check(root: Path, name: str, text: str) -> subprocess.CompletedProcess[str]:
    path = root / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return subprocess.run([sys.executable, str(SCRIPT), str(root)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("import penstock._load.loader", "penstock._load.loader"),
        ("import numpy, penstock._load.loader as loader", "penstock._load.loader"),
        ("from penstock import _native", "penstock._native"),
        ("def late():\n    from penstock._from.text.tasks import Task", "penstock._from.text.tasks.Task"),
        ("from penstock.columns import _Column", "penstock.columns._Column"),
        ("import penstock\npenstock._loader._READERS", "penstock._loader"),
        ("import penstock as p\np.orders._check(1)", "p.orders._check"),
        ("from penstock import open as o\no('x').windows(8)[0]._view", "o('x').windows(8)[0]._view"),
        ("import penstock\nloader = penstock.Loader(v, 8)\nloader._native.stop()", "loader._native"),
        ("import penstock\nwith penstock.Loader(v, 8) as loader:\n    loader._engine", "loader._engine"),
        ("import penstock\nfor batch in penstock.Loader(v, 8):\n    batch._arena", "batch._arena"),
        ("import penstock\nself.data = penstock.open(p)\nview = self.data.windows(8)\nview._job", "view._job"),
        ("import penstock\ndef f(view: penstock.View):\n    view._job", "view._job"),
        ("import penstock\ngetattr(penstock, '_native')", "penstock._native"),
        ("import penstock\nloader, n = penstock.Loader(v, 8), 1\nloader._native", "loader._native"),
        ("import penstock\nfor n, batch in enumerate(x):\n    a, *b = penstock.open(p)\nb._view", "b._view"),
        ("import penstock\nloader = penstock.Loader(v, 8) if v else None\nloader._native", "loader._native"),
        ("run(['python', '-c', 'import penstock._native'])", "penstock._native in a string"),
    ],
)
def test_a_private_name_is_named_with_its_line(tmp_path, text, what):
    done = check(tmp_path, "benchmarks/deeper/one.py", text)
    assert done.returncode == 1
    places = [line.partition(": ") for line in done.stdout.splitlines()]
    assert (f"benchmarks/deeper/one.py:{1 + text.count(chr(10))}", f"{what} is private to the package") in [
        (place, said) for place, _, said in places
    ]


def test_public_names_and_private_ones_of_others_pass(tmp_path):
    text = """
import penstock, penstock.orders
from penstock.columns import LossMask
from _servers import nginx

class Mine:
    def __init__(self):
        self._loader = penstock.Loader(penstock.open("x").windows(8), 8)
        self._loader.state_dict()
        self._count = os._exit

print(penstock.__version__, penstock.__file__, penstock.Loader.__name__)
"""
    done = check(tmp_path, "tests/adapters/one.py", text)
    assert (done.returncode, done.stdout) == (0, "")


def test_python_of_a_page_is_checked_and_named_by_its_line(tmp_path):
    page = "# Title\n\n`penstock._native` may be named.\n\n"
    page += "    ```python\n    import penstock\n\n    penstock._x\n    ```\n"
    done = check(tmp_path, "docs/page.md", page)
    assert done.stdout == "docs/page.md:8: penstock._x is private to the package\n"
