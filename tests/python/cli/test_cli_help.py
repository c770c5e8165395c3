"""`--help` of every command: a stranger learns what each option does, its default, and how a call looks."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from penstock._cli.command_help import MAIN, headed_options, record_of, short_help
from penstock._cli.main import COMMANDS as DESCRIPTIONS
from penstock._cli.main import cli, main
from penstock._cli.output import SizeType

ROOT = Path(__file__).resolve().parents[3]
COMMANDS = cli.list_commands(click.Context(cli))


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest) -> click.Command:
    found = cli.get_command(click.Context(cli), request.param)
    assert found is not None and found.name == request.param
    return found


def test_each_option_says_what_it_does_its_default_and_its_unit(command: click.Command) -> None:
    context = click.Context(command, info_name=command.name)
    for option in (each for each in command.params if isinstance(each, click.Option)):
        name, record = f"{command.name} {option.opts[0]}", record_of(option, context)
        assert record[1] and option.help, f"{name}: no help"
        words = record[1].lower()
        assert option.help[0].isupper() or option.help.split()[0] in str(option.type), f"{name}: {words}"
        if not option.is_flag:
            known = option.required or re.search(r"default: |; else ", words)
            assert known, f"{name} takes a value: say its default, or that it is required: {words}"
        if option.multiple:
            assert "may be repeated" in words, f"{name}: {words}"
        if isinstance(option.type, SizeType):
            assert "bytes" in words, f"{name}: {words}"
        elif option.opts[0] == "--window":
            assert "record" in words, f"{name}: {words}"


def names_in(text: str) -> list[str]:
    """Options as a help lists them."""
    return re.findall(r"^  (-\S.*?)(?:  .*)?$", text, re.MULTILINE)


def test_help_has_each_option_once_under_its_heading_and_the_main_ones_first(command: click.Command) -> None:
    context = click.Context(command, info_name=command.name, terminal_width=80)
    text, headed = command.get_help(context), headed_options(command, context)
    titles = re.findall(r"^(\w[^:\n]*):$", text, re.MULTILINE)
    assert titles == list(headed) and len(titles) == len(set(titles))
    names = [record_of(option, context)[0] for options in headed.values() for option in options]
    assert names == names_in(text[text.index(f"\n{titles[0]}:") :])
    given = [option for option in command.get_params(context) if isinstance(option, click.Option)]
    assert len(names) == len(given) and names[-2:] == ["-h", "--help"]
    required = {option for option in given if option.required}
    assert required <= set(headed.get(MAIN, [])), "a required option is under another heading"


def test_short_help_has_the_main_options_and_fits_a_screen(command: click.Command) -> None:
    context = click.Context(command, info_name=command.name, terminal_width=80)
    text, headed = short_help(context), headed_options(command, context)
    assert len(text.splitlines()) <= 48, text
    shown = names_in(text[text.index(f"\n{MAIN}:") :]) if MAIN in headed else []
    assert shown == [record_of(option, context)[0] for option in headed.get(MAIN, [])]
    words = " ".join(text.split()).lower()
    assert "--help has all options" in words and all(title.lower() in words for title in headed)


@pytest.mark.parametrize("is_short", [True, False])
def test_help_fits_eighty_columns(command: click.Command, is_short: bool) -> None:
    context = click.Context(command, info_name=command.name, terminal_width=80)
    text = short_help(context) if is_short else command.get_help(context)
    for line in text.splitlines():
        assert len(line) <= 80 or " penstock " in line, line  # an example stays on one line


def test_both_helps_of_all_are_lists_of_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert max(len(f"  completion  {words}") for words in DESCRIPTIONS.values()) <= 80
    said = []
    for arguments in ([], ["-h"], ["--help"], ["help"]):
        assert main(arguments) == 0
        said.append(capsys.readouterr().out)
        for name, words in DESCRIPTIONS.items():
            assert re.search(rf"^  {name} +{re.escape(words)}$", said[-1], re.MULTILINE), (arguments, name)
    assert said[0] == said[1] and said[2] == said[3] and "Exit codes:" in said[2] and len(said[0]) < len(said[2])


def test_help_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        assert main([name, "--help"]) == 0
        by_option = capsys.readouterr().out
        assert main(["help", name]) == 0
        assert capsys.readouterr().out == by_option and by_option.startswith(f"Usage: penstock {name} ")
        assert main([name, "-h"]) == 0
        assert capsys.readouterr().out.startswith(f"Usage: penstock {name} ")


@pytest.mark.parametrize("arguments", [["--help"], ["write", "--help"], ["completion", "bash"], ["inof"]])
def test_help_imports_no_more_than_the_package_and_click(arguments: list[str]) -> None:
    code = """
import sys
import penstock, click
before = set(sys.modules)
from penstock._cli.main import main
main(sys.argv[1:])
more = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
print(sorted(more - {"penstock", "click"}), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_each_command_has_an_example_that_parses_and_is_shown_on_a_line(command: click.Command) -> None:
    assert command.help and command.short_help == DESCRIPTIONS[command.name or ""], command.name
    examples = re.findall(r"^ +(?:.*\| )?(penstock .*)$", command.epilog or "", re.MULTILINE)
    assert examples, f"{command.name} --help shows no example"
    shown = command.get_help(click.Context(command, info_name=command.name, max_content_width=110))
    for example in examples:
        program, named, *words = shlex.split(example)
        words = words[: next((at for at, word in enumerate(words) if word in (">", "|")), None)]
        assert (program, named) == ("penstock", command.name), example
        command.make_context(named, words)  # reads the words, opens nothing
        assert re.search(rf"^ +.*{re.escape(example)}$", shown, re.MULTILINE), example


def test_the_page_of_commands_has_all_of_them() -> None:
    rows = re.findall(r"^\| \[?`(\w+)`", (ROOT / "docs" / "cli.md").read_text(), re.MULTILINE)
    assert [name for name in COMMANDS if name not in rows] == []
