"""The policy of deprecations: two minor versions with a warning, at the user's line, and then gone."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import penstock
import pytest
from penstock._base import deprecated as module
from penstock._base.deprecated import deprecated, gone_in

ROOT = Path(__file__).resolve().parents[3]
MAJOR, MINOR = map(int, penstock.__version__.split(".")[:2])


def test_a_warning_says_what_since_when_until_when_and_what_instead():
    with pytest.warns(FutureWarning) as said:
        deprecated("Loader(workers=)", "Loader(threads=)", since="0.3")
    expected = "Loader(workers=) is deprecated since penstock 0.3 and will be gone in 0.5: use Loader(threads=)"
    assert str(said[0].message) == expected
    assert said[0].filename == __file__


def test_it_is_told_at_the_line_outside_of_the_package_however_deep_the_call(tmp_path: Path, monkeypatch):
    """Modules of a package in a folder of its own stand for penstock's."""
    package = tmp_path / "house"
    package.mkdir()
    text = "from penstock._base.deprecated import deprecated\ndef old():\n    inner()\ndef inner():\n    {}"
    call = "deprecated('house.old', 'house.new', since='0.1')"
    (package / "__init__.py").write_text(text.format(call))
    monkeypatch.syspath_prepend(str(tmp_path))
    # The helper's own frame counts as the package's too.
    monkeypatch.setattr(module, "_is_ours", lambda file: file.startswith(str(package)) or file == module.__file__)
    import house  # type: ignore[import-not-found]

    with pytest.warns(FutureWarning) as said:
        line = sys._getframe().f_lineno + 1
        house.old()
    assert (said[0].filename, said[0].lineno) == (__file__, line)


def test_a_script_shows_it_once_a_line_and_a_library_shows_it_too(tmp_path: Path):
    """DeprecationWarning would be hidden outside of __main__."""
    (tmp_path / "library.py").write_text(
        "from penstock._base.deprecated import deprecated\n"
        "def use():\n    for _ in range(3):\n        deprecated('a', 'b', since='0.1')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", "import library; library.use()"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr.count("FutureWarning: a is deprecated")) == (0, 1)


def versions_in(text: str) -> Iterator[tuple[int, str]]:
    """Lines and versions of calls of `deprecated`; a `since` that is no literal is ""."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "deprecated":
            given = {each.arg: each.value for each in node.keywords}.get("since")
            yield node.lineno, str(given.value) if isinstance(given, ast.Constant) else ""


def test_what_should_be_gone_is_gone():
    for path in (ROOT / "bindings" / "penstock").rglob("*.py"):
        for line, since in versions_in(path.read_text()):
            assert re.fullmatch(r"\d+\.\d+", since), f"{path}:{line}: since= must be a literal version"
            gone = tuple(map(int, gone_in(since).split(".")))
            assert gone > (MAJOR, MINOR), f"{path}:{line}: goes in {gone_in(since)}: remove it, and its tests"


def test_calls_are_found():
    """Else the test above would find nothing for ever."""
    text = "deprecated('a', 'b', since='0.1')\nx.deprecated('a', 'b', since=v)\nother(since='3.0')"
    assert list(versions_in(text)) == [(1, "0.1"), (2, "")]


def test_the_policy_that_is_written_is_the_one_of_the_helper():
    policy = (ROOT / "CONTRIBUTING.md").read_text().partition("**Deprecation.**")[2].partition("\n\n")[0]
    assert "two minor versions" in policy and module.MINOR_VERSIONS == 2
    example = re.search(r"deprecated in (\d+\.\d+).*gone in (\d+\.\d+)", " ".join(policy.split()))
    assert example and gone_in(example[1]) == example[2]
