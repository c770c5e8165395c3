"""The bar of long commands: time left from the first update on, its colours, narrow terminals."""

from __future__ import annotations

import json
import re
from pathlib import Path

import penstock
import pytest
from _terminal import on_a_terminal
from penstock._cli.bar import clock, seconds_left

COLOR = re.compile(r"\x1b\[((?:\d+;)*(?:3[0-8]|9[0-7])(?:;\d+)*)m")
REDS = {"31", "91", "38;5;1", "38;5;9", "38;5;197", "38;5;198", "38;2;249;38;114"}  # the last is rich's own, by depth


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bar") / "corpus-with-a-name-that-is-long-enough-for-a-narrow-terminal"
    for number in range(3):
        with penstock.Writer(path.with_name(f"{number}"), {"token": "u4"}) as writer:
            writer.append(token=range(100_000))
    penstock.combine([path.with_name(f"{number}") for number in range(3)], path)
    return path


def test_time_left_is_known_from_the_first_update_on() -> None:
    assert seconds_left(0, 100, 5.0, None) is None
    assert seconds_left(10, 100, 5.0, None) == 45.0
    assert seconds_left(10, 100, 5.0, 30.0) == 45.0
    assert seconds_left(10, 100, 50.0, 30.0) == 30.0
    assert [clock(each) for each in (0, 7.4, 65, 3599.6, 3 * 3600 + 130)] == [
        "0:00",
        "0:07",
        "1:05",
        "1:00:00",
        "3:02:10",
    ]


@pytest.mark.parametrize("depth", ["", "truecolor"])
def test_a_bar_is_in_colour_and_never_red(data: Path, depth: str) -> None:
    variables = {"NO_COLOR": "", "COLORTERM": depth}
    shown, _ = on_a_terminal([str(data)], "verify", codes=True, variables=variables)
    found = {each.removeprefix("1;") for each in COLOR.findall(shown)}
    assert found and not found & REDS, shown


def test_no_color_is_respected(data: Path) -> None:
    shown, _ = on_a_terminal([str(data)], "verify", codes=True, variables={"NO_COLOR": "1"})
    assert "100%" in shown and not COLOR.search(shown), shown


@pytest.mark.parametrize("columns", [60, 80, 160])
def test_a_bar_is_one_line_with_its_numbers(data: Path, columns: int) -> None:
    shown, _ = on_a_terminal([str(data)], "verify", columns=columns)
    lines = [line for line in re.split(r"[\r\n]+", shown) if line.strip()]
    assert all(len(line) <= columns for line in lines)
    assert re.search(r"^verifying .* 100% +\S+ [KMG]?i?B/s +\d:\d\d *$", lines[-1]), lines
    assert all(line.startswith("verifying ") for line in lines), lines
    assert columns == 60 or "terminal " in lines[-1]


def test_nothing_is_shown_where_no_terminal_is(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from penstock._cli.main import main

    assert main(["verify", str(data)]) == 0
    said = capsys.readouterr()
    assert said.err == "" and "all as written" in said.out and "\x1b" not in said.out
    assert main(["verify", str(data), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"]
