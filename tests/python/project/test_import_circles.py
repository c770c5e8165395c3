"""scripts/check_imports.py finds circles, however an import is written, and imports against the table of rooms."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "check_imports.py"


def check(folder: Path, **texts: str) -> subprocess.CompletedProcess[str]:
    package = folder / "house"
    package.mkdir()
    for name, text in {"__init__": "", **texts}.items():
        (package / f"{name}.py").write_text(text)
    return subprocess.run([sys.executable, str(SCRIPT), str(folder)], capture_output=True, text=True, check=False)


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
def test_a_circle_is_named_however_it_is_imported(tmp_path, text):
    done = check(tmp_path, first="from house.second import other", second="import house.third", third=text)
    assert done.returncode == 1
    for one, other in (("first", "second"), ("second", "third"), ("third", "first")):
        assert f"house.{one}, which imports house.{other}" in done.stdout


def test_a_module_that_a_package_exports_must_not_import_that_package(tmp_path):
    done = check(tmp_path, __init__="from .first import name", first="def late():\n    import house")
    assert done.returncode == 1 and "house, which imports house.first, which imports house" in done.stdout


def test_imports_in_one_direction_pass(tmp_path):
    done = check(
        tmp_path,
        __init__="from house import first, second",
        first="import os\nfrom house.second import name",
        second="import sys",
    )
    assert (done.returncode, done.stdout) == (0, "")


def check_rooms(folder: Path, **texts: str) -> str:
    for name, text in texts.items():
        path = folder / "penstock" / f"{name.replace('__in__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        for package in {folder / "penstock", path.parent}:
            (package / "__init__.py").touch()
        path.write_text(text)
    return subprocess.run([sys.executable, str(SCRIPT), str(folder)], capture_output=True, text=True).stdout


def test_a_room_imports_only_those_below_it(tmp_path):
    said = check_rooms(
        tmp_path,
        _base__in__low="def late():\n    from penstock._data import high",
        _data__in__high="from penstock import open",
        open="",
    )
    assert "penstock._base.low imports penstock._data.high: _base may import no other room" in said
    assert "penstock._data.high imports penstock.open: _data may import _base, _places" in said


def test_private_modules_lie_in_rooms_that_the_table_names(tmp_path):
    said = check_rooms(tmp_path, _loose="", _other__in__module="", _base__in__module="", _native="")
    assert "penstock._loose: at the top are public words" in said and "penstock._other.module: a room that" in said
    assert "_native" not in said and "_base" not in said


def test_folders_of_one_room_do_not_import_each_other(tmp_path):
    said = check_rooms(
        tmp_path,
        _from__in__text__in__a="from penstock._from.cells import b",
        _from__in__cells__in__b="",
        _from__in__cells__in__c="from penstock._from.text import d",
        _from__in__text__in__d="",
    )
    assert "penstock/_from/cells and penstock/_from/text import each other" in said
