"""scripts/check_imports.py finds circles, however an import is written."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_imports.py"


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
