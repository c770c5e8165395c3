"""scripts/check_includes.py finds circles of modules, which are a header and its source together."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    module = importlib.import_module("check_includes")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def circles(script: ModuleType, **includes: str) -> list[str]:
    folder = script.ROOT / "core" / "base"
    folder.mkdir(parents=True)
    paths = []
    for name, text in includes.items():
        path = folder / name.replace("_in_", ".")
        path.write_text("".join(f'#include "core/base/{other}.h"\n' for other in text.split()))
        paths.append(path)
    return script.circle_problems(script.module_graph(paths))


def test_a_source_that_includes_who_includes_its_header_makes_a_circle(script):
    found = circles(script, a_in_h="", a_in_cpp="a c", b_in_h="a", b_in_cpp="b", c_in_h="b", d_in_h="a b c")
    assert found == ["modules that include each other in a circle: core/base/a, core/base/b, core/base/c"]


def test_two_circles_are_told_apart(script):
    assert len(circles(script, a_in_h="b", b_in_h="a", c_in_h="a d", d_in_h="c")) == 2


def test_a_source_of_its_own_header_and_of_others_below_makes_none(script):
    assert circles(script, a_in_h="", a_in_cpp="a b", b_in_h="c", b_in_cpp="b", c_in_h="") == []
