"""`--help` of every command: a stranger learns what each option does, its default, and how a call looks."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from penstock._cli.main import cli
from penstock._cli.output import SizeType

ROOT = Path(__file__).resolve().parents[3]
COMMANDS = cli.list_commands(click.Context(cli))


def command_of(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def options_of(command: click.Command) -> list[click.Option]:
    return [each for each in command.params if isinstance(each, click.Option)]


def examples_of(command: click.Command) -> list[str]:
    return re.findall(r"^ +(?:.*\| )?(penstock .*)$", command.epilog or "", re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_option_says_what_it_does_and_its_default(name: str) -> None:
    command = command_of(name)
    context = click.Context(command, info_name=name)
    for option in options_of(command):
        record = option.get_help_record(context)
        assert record is not None and option.help, f"{name} {option.opts[0]}: no help"
        words = record[1]
        assert option.help[0].isupper() or option.help.split()[0] in str(option.type), f"{option.opts[0]}: {words}"
        if not option.is_flag:
            known = option.required or re.search(r"default: |; else ", words.lower())
            assert known, f"{name} {option.opts[0]} takes a value: say its default, or that it is required: {words}"
        if option.multiple:
            assert "may be repeated" in words.lower(), f"{name} {option.opts[0]}: {words}"


@pytest.mark.parametrize("name", COMMANDS)
def test_sizes_and_counts_say_their_unit(name: str) -> None:
    for option in options_of(command_of(name)):
        words = (option.help or "").lower()
        if isinstance(option.type, SizeType):
            assert "bytes" in words, f"{name} {option.opts[0]}: {words}"
        elif option.opts[0] == "--window":
            assert "record" in words, f"{name} {option.opts[0]}: {words}"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_an_example_that_parses(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = command_of(name)
    assert command.help and command.short_help, name
    examples = examples_of(command)
    assert examples, f"{name} --help shows no example"
    for example in examples:
        program, named, *words = shlex.split(example)
        assert (program, named) == ("penstock", name), example
        command.make_context(name, words)  # reads the words, opens nothing


def test_the_examples_of_a_command_are_shown_one_a_line(capsys: Any) -> None:
    for name in COMMANDS:
        command = command_of(name)
        words = command.get_help(click.Context(command, info_name=name, max_content_width=110))
        for example in examples_of(command):
            assert re.search(rf"^ +.*{re.escape(example)}$", words, re.MULTILINE), f"{name}: {example}"


def test_the_page_of_commands_has_all_of_them() -> None:
    rows = re.findall(r"^\| \[?`(\w+)`", (ROOT / "docs" / "cli.md").read_text(), re.MULTILINE)
    assert [name for name in COMMANDS if name not in rows] == []
