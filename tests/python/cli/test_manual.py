"""Manual pages, and the files of share/ in a wheel."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import click
import pytest
from penstock._cli.command_help import headed_options, record_of
from penstock._cli.main import cli, main
from penstock._cli.share import files

SHARE = Path(__file__).resolve().parents[3] / "bindings" / "share"
COMMANDS = cli.list_commands(click.Context(cli))
PAGES = {Path(name).name: text for name, text in files().items() if name.startswith("man/")}


def test_committed_files_are_those_of_the_commands() -> None:
    there = {path.relative_to(SHARE).as_posix(): path.read_text() for path in SHARE.rglob("*") if path.is_file()}
    made = files()
    differing = sorted(name for name in there.keys() | made.keys() if there.get(name) != made.get(name))
    assert differing == [], "run scripts/share and commit bindings/share"


def test_the_installed_package_brings_them() -> None:
    installed = {each.name: each.locate() for each in metadata.files("penstock") or () if "share/" in str(each)}
    assert installed.keys() == {Path(name).name for name in files()}
    assert all("share" in Path(path).parts and Path(path).is_file() for path in map(str, installed.values()))


def test_there_is_a_page_for_each_command_with_all_of_its_options() -> None:
    assert PAGES.keys() == {"penstock.1", *(f"penstock-{name}.1" for name in COMMANDS)}
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        context = click.Context(command, info_name=name)
        text = PAGES[f"penstock-{name}.1"].replace("\\-", "-").replace("\\e", "\\")
        for title, options in headed_options(command, context).items():
            assert f".SS {title}\n" in text
            assert all(f"\\fB{record_of(option, context)[0]}\\fR\n" in text for option in options), (name, title)


def test_no_line_begins_a_request_that_is_none() -> None:
    known = {"TH", "SH", "SS", "TP", "PP", "nf", "fi"}
    for name, text in PAGES.items():
        found = set(re.findall(r"^[.'](\w*)", text, re.MULTILINE))
        assert found <= known, (name, found - known)


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
@pytest.mark.parametrize("name", PAGES)
def test_mandoc_finds_nothing_to_warn_of(name: str) -> None:
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], input=PAGES[name], capture_output=True, text=True)
    said = [line for line in done.stdout.splitlines() if "missing date" not in line]
    assert said == [], done.stdout


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_man_shows_a_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["help", "write", "--man"]) == 0
    page = capsys.readouterr().out
    assert page == PAGES["penstock-write.1"]
    (tmp_path / "page.1").write_text(page)
    done = subprocess.run(
        ["man", "--warnings", "-P", "cat", "-l", str(tmp_path / "page.1")],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MAN_KEEP_FORMATTING": ""},
    )
    if "minimized" in done.stdout:
        pytest.skip("man shows no pages on this machine")
    shown = re.sub(r".\x08|\x1b\[[\d;]*m", "", done.stdout)
    assert done.stderr == "" and "PENSTOCK-WRITE(1)" in shown
    assert "--append '<|endoftext|>'" in shown and re.search(r"^ +--tokenizer FILE$", shown, re.MULTILINE)
