"""`penstock completion`."""

from __future__ import annotations

import click

from penstock._cli.command_help import Command
from penstock._cli.completion_scripts import SCRIPTS
from penstock._cli.completion_words import commands_of, options_of
from penstock._cli.output import echo

_EPILOG = """\b
Examples:
  penstock completion bash > ~/.local/share/bash-completion/completions/penstock
  penstock completion zsh > ~/.zfunc/_penstock
  penstock completion fish > ~/.config/fish/completions/penstock.fish
"""


def script(group: click.Group, shell: str) -> str:
    """The completion script of a group of commands for "bash", "zsh" or "fish"."""
    context = click.Context(group, info_name="penstock")
    return SCRIPTS[shell](commands_of(group), options_of(group, context))


@click.command("completion", cls=Command, epilog=_EPILOG)
@click.argument("shell", type=click.Choice(list(SCRIPTS)))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Prints a script that completes commands, options and their values in SHELL.

    All that is offered stands in the script, so that completing starts no program. Print it again after an update. The
    folder ~/.zfunc must be in zsh's fpath, before compinit is called.
    """
    group = context.find_root().command
    assert isinstance(group, click.Group)
    echo(script(group, shell).rstrip("\n"))
