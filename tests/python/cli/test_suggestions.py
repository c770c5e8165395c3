"""A mistyped command or option: the one that was meant, and none for a word that is far from all."""

from __future__ import annotations

import click
import pytest
from penstock._cli.main import cli, main
from penstock._cli.nearest import nearest

COMMANDS = cli.list_commands(click.Context(cli))


def options_of(name: str) -> list[str]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    given = command.get_params(click.Context(command, info_name=name))
    return [each for option in given if isinstance(option, click.Option) for each in option.opts if each[:2] == "--"]


def slips(word: str) -> set[str]:
    """The word with a letter missing, twice, changed, or swapped with the next, after its first letter."""
    found: set[str] = set()
    for i in range(1, len(word)):
        found |= {word[:i] + word[i + 1 :], word[:i] + word[i] + word[i:], f"{word[:i]}q{word[i + 1 :]}"}
        found.add(word[:i] + word[i : i + 2][::-1] + word[i + 2 :])
    return found - {word}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("inof", ["info"]),
        ("verfiy", ["verify"]),
        ("shufle", ["shuffle"]),
        ("comibne", ["combine"]),
        ("anotate", ["annotate"]),
        ("Write", ["write"]),
        ("ver", ["verify"]),
        ("co", []),
        ("com", ["combine", "commit", "completion"]),
        ("nonsense", []),
        ("tokenize", []),
        ("report", []),
        ("list", []),
        ("ls", []),
        ("check", []),
        ("merge", []),
        ("", []),
        ("x" * 500, []),
    ],
)
def test_commands(typed: str, meant: list[str]) -> None:
    assert nearest(typed, COMMANDS) == meant


def test_names_of_other_tools_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    for name, meant in (("locate", "trace"), ("tokenize", "write"), ("merge", "combine")):
        assert main([name]) == 2 and f"did you mean {meant!r}?" in capsys.readouterr().err


@pytest.mark.parametrize("word", COMMANDS)
def test_a_slip_in_a_command_is_understood(word: str) -> None:
    assert [slip for slip in slips(word) if slip not in COMMANDS and word not in nearest(slip, COMMANDS)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_a_slip_in_an_option_is_understood(name: str) -> None:
    known = options_of(name)
    for word in known:
        lost = [
            slip for slip in slips(word[2:]) if f"--{slip}" not in known and word not in nearest(f"--{slip}", known)
        ]
        assert lost == [], word


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("inof x", "No such command 'inof' (did you mean 'info'?): see penstock --help"),
        ("nonsense x", "No such command 'nonsense': see penstock --help"),
        ("com", "No such command 'com' (did you mean 'combine' or 'commit' or 'completion'?): see penstock --help"),
        ("help inof", "No such command 'inof' (did you mean 'info'?): see penstock --help"),
        (
            "write x --tokeniser y",
            "No such option: --tokeniser (did you mean '--tokenizer'?): see penstock write --help",
        ),
        ("write x --colour", "No such option: --colour: see penstock write --help"),
        ("write x -z", "No such option: -z: see penstock write --help"),
        ("info x --window 3", "No such option: --window: see penstock info --help"),
        ("--versoin", "No such option: --versoin (did you mean '--version'?): see penstock --help"),
    ],
)
def test_messages(arguments: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments.split()) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"penstock: {said}\n")
