"""`--help` of every command: a stranger learns what each option does, its default, and how a call looks."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from penstock._cli.main import cli
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
        name, record = f"{command.name} {option.opts[0]}", option.get_help_record(context)
        assert record is not None and option.help, f"{name}: no help"
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


def test_each_command_has_an_example_that_parses_and_is_shown_on_a_line(command: click.Command) -> None:
    assert command.help and command.short_help, command.name
    examples = re.findall(r"^ +(?:.*\| )?(penstock .*)$", command.epilog or "", re.MULTILINE)
    assert examples, f"{command.name} --help shows no example"
    shown = command.get_help(click.Context(command, info_name=command.name, max_content_width=110))
    for example in examples:
        program, named, *words = shlex.split(example)
        assert (program, named) == ("penstock", command.name), example
        command.make_context(named, words)  # reads the words, opens nothing
        assert re.search(rf"^ +.*{re.escape(example)}$", shown, re.MULTILINE), example


def test_the_page_of_commands_has_all_of_them() -> None:
    rows = re.findall(r"^\| \[?`(\w+)`", (ROOT / "docs" / "cli.md").read_text(), re.MULTILINE)
    assert [name for name in COMMANDS if name not in rows] == []
