"""`penstock help`."""

from __future__ import annotations

import click

from penstock._cli.command_help import Command
from penstock._cli.nearest import did_you_mean
from penstock._cli.output import echo

_EPILOG = """\b
Examples:
  penstock help write
  penstock help write --man | man -l -
"""


@click.command("help", cls=Command, epilog=_EPILOG)
@click.argument("name", required=False, metavar="[COMMAND]")
@click.option("--man", is_flag=True, help="Print the manual page, for man and mandoc.")
@click.pass_context
def command(context: click.Context, name: str | None, man: bool) -> None:
    """Shows all options of COMMAND, as its --help does; without COMMAND those of penstock."""
    root = context.find_root()
    group = root.command
    assert isinstance(group, click.Group)
    found: click.Command | None = group
    shown = root
    if name is not None:
        found = group.get_command(root, name)
        if found is None:
            known = group.list_commands(root)
            raise click.UsageError(f"No such command {name!r}{did_you_mean(name, known)}", root)
        shown = click.Context(found, info_name=name, parent=root)
    assert found is not None
    if man:
        from penstock._cli.manual import page

        echo(page(found, shown).rstrip("\n"))
    else:
        echo(found.get_help(shown))
