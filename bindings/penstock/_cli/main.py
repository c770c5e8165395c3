"""Entry point: finds the command, turns every error into one line and an exit code."""

from __future__ import annotations

import importlib
import json
import keyword
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import click

from penstock._base import start as _start
from penstock._base.errors import shortened
from penstock._base.extras import install_for
from penstock._base.words import NO_MEMORY, NO_NEW_THREAD, NO_THREAD, escaped, is_of_memory
from penstock._cli.command_help import ENVIRONMENT, EXIT_CODES, MAIN, Helped, record_of, write_sections
from penstock._cli.nearest import did_you_mean
from penstock._cli.output import OutputError

EXIT_OK = 0
EXIT_ERROR = 1
EXIT_USAGE = 2

_COMMANDS = {
    "Make datasets": {
        "write": "Make a dataset of text, or of token ids.",
        "import": "Make a dataset of other formats' token files, or of cells.",
        "commit": "Publish the shards that several writers finished.",
        "combine": "Join datasets into one, with no byte encoded again.",
        "append": "Add the shards of other datasets to the end of one.",
        "shuffle": "Put windows or documents into a shuffled order.",
        "annotate": "Add typed columns to a dataset's documents.",
        "convert": "Change a dataset's layout of spans.",
        "export": "Write a dataset as files of another format.",
    },
    "Look at them": {
        "info": "Show a dataset's sizes, fields and tokenizer.",
        "show": "Show windows or documents, decoded, with their spans.",
        "view": "Show datasets in the browser.",
        "query": "Ask about documents' columns in SQL.",
        "verify": "Read everything and check it against what was written.",
    },
    "Plan and trace training": {
        "mix": "Show what a mixture comes to, before it runs.",
        "pack": "Pack documents into rows of one length, into a table.",
        "ranks": "Show how a global batch is dealt to numbers of ranks.",
        "trace": "Show which documents a training step saw, as text.",
        "bench": "Measure how fast the loader reads here.",
        "cache": "Show or clear a local cache of remote datasets.",
    },
    "Help": {
        "doctor": "Report this machine and versions, to paste into an issue.",
        "completion": "Print a completion script for bash, zsh or fish.",
        "help": "Show the help of a command.",
    },
}
COMMANDS = {name: words for commands in _COMMANDS.values() for name, words in commands.items()}

# Commands by the names that Python's functions and other tools have for them.
_OTHERS = {"locate": "trace", "tokenize": "write", "merge": "combine", "mixture": "mix", "stats": "info"}


class _Commands(Helped, click.Group):
    """Imports a command when it is asked for, so that `penstock info` does not wait for the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command = importlib.import_module(f"penstock._cli.{module}").command
        assert isinstance(command, click.Command)
        command.short_help = COMMANDS[cmd_name]
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS:
            near = did_you_mean(args[0], COMMANDS)
            if args[0] in _OTHERS:
                near = f" (did you mean {_OTHERS[args[0]]!r}?)"
            raise click.UsageError(f"No such command {args[0]!r}{near}", ctx)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [record_of(each, ctx) for each in self.get_params(ctx) if isinstance(each, click.Option)]
        write_sections(formatter, self._listed())
        write_sections(formatter, {MAIN: options})
        write_sections(formatter, {"Environment": list(ENVIRONMENT)})
        write_sections(formatter, {"Exit codes": list(EXIT_CODES)})

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """They stand before the options."""

    def format_short_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        write_sections(formatter, self._listed())
        formatter.write_paragraph()
        formatter.write_text("`penstock COMMAND -h` shows a command's main options, `penstock help COMMAND` all.")

    def _listed(self) -> dict[str, list[tuple[str, str]]]:
        return {title: list(commands.items()) for title, commands in _COMMANDS.items()}


@click.command(
    cls=_Commands,
    context_settings={"max_content_width": 110},
)
@click.version_option(package_name="penstock", message="%(prog)s %(version)s", help="Show the version.")
def cli() -> None:
    """Token datasets for training: written once, opened in milliseconds, shuffled and resumed by arithmetic."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; gives the exit code.

    Args:
        arguments: Without the program's name; None takes those of the process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    meta: dict[str, Any] = {}
    try:
        _start.imported()
        # Not cli.main(), which turns Ctrl-C into an Abort without words, and a blank line.
        with cli.make_context("penstock", list(given) or ["-h"]) as context:
            meta = context.meta
            result = cli.invoke(context)
        if sys.stdout is not None:
            sys.stdout.flush()  # which may wait for whoever reads it
        code = result if isinstance(result, int) else EXIT_OK
        _start.done(code)
        return code
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        return _report(given, _usage_line(error), EXIT_USAGE)
    except (KeyboardInterrupt, click.Abort) as error:
        # Ctrl-C between a writer's making and its `with`: the line below says all that there is to say.
        warnings.filterwarnings("ignore", "(?s).*it was never closed", RuntimeWarning)
        return _report(given, str(error) or "interrupted", _start.interrupted_code())
    except BrokenPipeError:
        # The reader of our output is gone, as in `penstock show … | head`: the rest is dropped.
        _drop_output()
        return EXIT_OK
    except Exception as error:
        if isinstance(error, OutputError):
            _drop_output()
        message, code = _classified(error)
        return _report(given, _in_options(message, meta), code)


def _drop_output() -> None:
    """Sends what standard output still holds nowhere, so that the interpreter's end does not fail on it."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage_line(error: click.ClickException) -> str:
    command = getattr(getattr(error, "ctx", None), "command_path", "penstock")
    return f"{error.format_message().rstrip('.')}: see {command} --help"


def _classified(error: Exception) -> tuple[str, int]:
    import penstock
    from penstock._make import errors

    if isinstance(error, (errors.UsageError, penstock.InvalidArgumentError)):
        return str(error), EXIT_USAGE
    if is_of_memory(error):
        return (str(error) if isinstance(error, MemoryError) else "") or NO_MEMORY, EXIT_ERROR
    if isinstance(error, (OutputError, errors.InputError, errors.WorkerError, penstock.Error, OSError)):
        return str(error) or type(error).__name__, EXIT_ERROR
    if isinstance(error, RuntimeError) and str(error) == NO_NEW_THREAD:
        return f"no thread can be started: {NO_THREAD}", EXIT_ERROR
    if isinstance(error, ModuleNotFoundError):
        said = str(error) if "pip install" in str(error) else ""
        return said or f"this needs the package {error.name}: {install_for(error.name or '')}", EXIT_ERROR
    if "PENSTOCK_TRACEBACK" in os.environ:
        raise error
    return f"unexpected {type(error).__name__}: {error} (PENSTOCK_TRACEBACK=1 shows where)", EXIT_ERROR


def _in_options(message: str, meta: dict[str, Any]) -> str:
    from penstock._cli.data import reaching_options
    from penstock._cli.option_words import in_options

    return in_options(message, reaching_options(meta))


def _report(arguments: list[str], message: str, code: int) -> int:
    line = shortened(" ".join(message.split()))
    print(f"penstock: {shortened(escaped(line))}", file=sys.stderr)  # names and keys of the input may be in it
    if "--json" in arguments:
        print(json.dumps({"error": line, "exit_code": code}))
    return code


if __name__ == "__main__":
    sys.exit(main())
