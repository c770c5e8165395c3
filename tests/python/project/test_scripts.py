"""What the project's scripts find: circles of modules, imports against the rooms, private names that others use."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module


def put(folder: Path, **texts: str) -> Path:
    """Modules of these texts in packages below a folder; `__in__` stands for a slash."""
    for name, text in texts.items():
        path = folder / f"{name.replace('__in__', '/')}.py"
        for package in [each for each in path.parents if each.is_relative_to(folder) and each != folder]:
            package.mkdir(parents=True, exist_ok=True)
            (package / "__init__.py").touch()
        path.write_text(text)
    return folder


# ---- check_imports.py


@pytest.mark.parametrize(
    "text",
    [
        "import house.first",
        "from house import first",
        "from house.first import name",
        "from . import first",
        "from .first import name",
        "def late():\n    from .first import name",
        "if TYPE_CHECKING:\n    from house.first import name",
    ],
)
def test_a_circle_is_found_however_it_is_imported(script, tmp_path, text):
    modules = {"first": "from house.second import other", "second": "import house.third", "third": text}
    folder = put(tmp_path, **{f"house__in__{name}": each for name, each in modules.items()})
    found = script("check_imports").circle(folder)
    assert set(found) == {"house.first", "house.second", "house.third"} and found[0] == found[-1]


def test_a_module_that_a_package_exports_must_not_import_that_package(script, tmp_path):
    exported = {"house__in__first": "def late():\n    import house", "house__in____init__": "from .first import name"}
    assert script("check_imports").circle(put(tmp_path, **exported)) in (
        ["house", "house.first", "house"], ["house.first", "house", "house.first"]
    )  # fmt: skip


def test_imports_in_one_direction_pass(script, tmp_path):
    put(tmp_path, house__in__first="import os\nfrom house.second import name", house__in__second="import sys")
    put(tmp_path, house__in____init__="from house import first, second")
    assert script("check_imports").circle(tmp_path) == []


def test_rooms_import_only_those_below_and_have_all_private_modules(script, tmp_path, monkeypatch, capsys):
    rooms = {
        "_base__in__low": "def late():\n    from penstock._data import high",
        "_data__in__high": "from penstock import open",
        "open": "",
        "_loose": "",
        "_native": "",
        "_other__in__module": "",
        "_from__in__text__in__a": "from penstock._from.cells import b",
        "_from__in__text__in__d": "",
        "_from__in__cells__in__b": "",
        "_from__in__cells__in__c": "from penstock._from.text import d",
    }
    put(tmp_path, **{f"penstock__in__{name}": text for name, text in rooms.items()})
    checks = script("check_imports")
    monkeypatch.setattr("sys.argv", ["check_imports.py", str(tmp_path)])
    assert checks.main() == 1
    found = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert sorted(found) == [
        "penstock._base.low imports penstock._data.high",
        "penstock._data.high imports penstock.open",
        "penstock._loose",
        "penstock._other",
        "penstock._other.module",
        "penstock/_from/cells and penstock/_from/text import each other",
    ]


# ---- check_includes.py: modules are a header and its source together


@pytest.mark.parametrize(
    ("includes", "expected"),
    [
        (
            {"a.h": "", "a.cpp": "a c", "b.h": "a", "b.cpp": "b", "c.h": "b", "d.h": "a b c"},
            ["modules that include each other in a circle: core/base/a, core/base/b, core/base/c"],
        ),
        (
            {"a.h": "b", "b.h": "a", "c.h": "a d", "d.h": "c"},
            [f"modules that include each other in a circle: {each}"
             for each in ("core/base/a, core/base/b", "core/base/c, core/base/d")],
        ),
        ({"a.h": "", "a.cpp": "a b", "b.h": "c", "b.cpp": "b", "c.h": ""}, []),
    ],
)  # fmt: skip
def test_modules_that_include_each_other_are_found(script, tmp_path, monkeypatch, includes, expected):
    checks, folder = script("check_includes"), tmp_path / "core" / "base"
    monkeypatch.setattr(checks, "ROOT", tmp_path)
    folder.mkdir(parents=True)
    for name, text in includes.items():
        (folder / name).write_text("".join(f'#include "core/base/{other}.h"\n' for other in text.split()))
    assert sorted(checks.circle_problems(checks.module_graph([folder / name for name in includes]))) == expected


# ---- check_public_names.py


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
def test_a_private_name_is_named_with_its_line(script, tmp_path, capsys, text, what):
    put(tmp_path / "benchmarks", deeper__in__one=text)
    assert script("check_public_names").main(tmp_path) == 1
    line = 1 + text.count("\n")
    assert f"benchmarks/deeper/one.py:{line}: {what} is private to the package\n" in capsys.readouterr().out


def test_public_names_and_private_ones_of_others_pass_and_pages_are_read_too(script, tmp_path, capsys):
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
    put(tmp_path / "tests", adapters__in__one=text)
    assert script("check_public_names").main(tmp_path) == 0
    page = "# Title\n\n`penstock._native` may be named.\n\n"
    page += "    ```python\n    import penstock\n\n    penstock._x\n    ```\n"
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(page)
    assert script("check_public_names").main(tmp_path) == 1
    assert capsys.readouterr().out == "docs/page.md:8: penstock._x is private to the package\n"


# ---- check_prose.py

LONG = "word " * 38 + "end."


@pytest.mark.parametrize(
    "text",
    [
        LONG,
        f"# A title\n\nShort. {LONG} Short.",
        f"- an item\n- {LONG[:80]}\n  {LONG[80:]}",
        f"1. an item\n2. {LONG}",
        "[word](a.md#place) " * 38 + "`some code` end.",
        f"```python\nx = 1\n```\n{LONG}",
    ],
)
def test_a_long_sentence_is_found(script, tmp_path, text):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(text)
    assert script("check_prose").main(tmp_path) == 1


@pytest.mark.parametrize(
    "text",
    [
        LONG.replace("word ", "", 1),
        LONG[: 20 * 5] + "end. Another " + LONG[20 * 5 :],
        f"```text\n{LONG}\n```",
        f"| {LONG} |\n| --- |",
        f"# {LONG}",
        f"![{LONG}](picture.png)",
        "\n".join(f"- {LONG[: 5 * 15]}" for _ in range(3)),
        "`" + "word " * 40 + "`",
        "word " * 30 + "in\n1999. " + "word " * 30 + "end.",
    ],
)
def test_what_is_no_long_sentence_passes(script, tmp_path, text):
    (tmp_path / "README.md").write_text(text)
    assert script("check_prose").main(tmp_path) == 0
