"""Words that shells complete: commands, their options, and the kinds of values that options and arguments take."""

from __future__ import annotations

import re
from typing import NamedTuple

import click

from penstock._cli.command_help import headed_options, one_sentence

FILES, FOLDERS, NOTHING = "files", "folders", "nothing"
_OF_FILES = ("FILE", "PATH", ".npy", ".png", "INPUT", "DATA", "MORE", "DIR|URL")


class Values(NamedTuple):
    """Values that an option or an argument takes.

    Attributes:
        kind: FILES, FOLDERS or NOTHING, for the names that a shell offers.
        choices: words in place of names; empty if there are none.
        name: the value's name in help.
    """

    kind: str
    choices: tuple[str, ...] = ()
    name: str = ""


class Option(NamedTuple):
    """An option.

    Attributes:
        names: as they are typed.
        help: one sentence.
        values: None for a flag.
        repeats: it may be given more than once.
    """

    names: tuple[str, ...]
    help: str
    values: Values | None
    repeats: bool


class Command(NamedTuple):
    """A command: its name, a sentence, its options in the order of help, and its arguments."""

    name: str
    help: str
    options: tuple[Option, ...]
    arguments: Values


def commands_of(group: click.Group) -> list[Command]:
    """All commands, in the order of help."""
    context = click.Context(group, info_name="penstock")
    names = group.list_commands(context)
    return [_command(name, group, context, tuple(names)) for name in names]


def options_of(command: click.Command, context: click.Context) -> tuple[Option, ...]:
    """The options of a command, or of the group."""
    found = [each for options in headed_options(command, context).values() for each in options]
    return tuple(
        Option(
            (*sorted(each.opts, key=len, reverse=True), *each.secondary_opts),
            one_sentence(each.help or "").rstrip("."),
            None if each.is_flag or each.secondary_opts or _may_stand_alone(each) else _values(each, context),
            each.multiple,
        )
        for each in found
    )


def _command(name: str, group: click.Group, context: click.Context, names: tuple[str, ...]) -> Command:
    command = group.get_command(context, name)
    assert command is not None
    inside = click.Context(command, info_name=name, parent=context)
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    values = _values(arguments[0], inside) if arguments else Values(NOTHING)
    if name == "help":
        values = Values(NOTHING, names, "COMMAND")
    return Command(name, (command.get_short_help_str(limit=200)).rstrip("."), options_of(command, inside), values)


def _may_stand_alone(option: click.Option) -> bool:
    """True for options whose value may be left out."""
    return (option.metavar or "").startswith("[")


def _values(parameter: click.Parameter, context: click.Context) -> Values:
    name = re.sub(r"\W+$", "", parameter.metavar or parameter.type.name.upper())
    if isinstance(parameter.type, click.Choice):
        return Values(NOTHING, tuple(map(str, parameter.type.choices)), name)
    if name in ("DIR", "DIR|URL") and isinstance(parameter, click.Option):
        return Values(FOLDERS, (), name)
    return Values(FILES if any(each in name for each in _OF_FILES) else NOTHING, (), name)
