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
from penstock._base.words import escaped
from penstock._cli.output import OutputError

EXIT_OK = 0
EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

_COMMANDS = {
    "write": "Make a dataset of text, or of token ids, on many processes.",
    "import": "Make a dataset of token files of other formats, or of single cells.",
    "export": "Write a dataset as files of another format: Megatron, datatrove, MDS, AnnData.",
    "commit": "Publish the shards that several writers finished.",
    "info": "What a dataset is: fields, sizes, tokenizer, fingerprint.",
    "show": "Windows or documents, decoded, with their spans.",
    "view": "A page that shows datasets in the browser: shards, histograms, windows, documents.",
    "trace": "Which documents a training step saw, as text.",
    "ranks": "How a global batch is dealt to any number of ranks.",
    "verify": "Read everything and check it against what was written.",
    "combine": "Join datasets into one, with no byte encoded again.",
    "append": "Add the shards of other datasets to the end of one.",
    "convert": "Change a dataset's layout of spans.",
    "annotate": "Add typed columns to a dataset's documents.",
    "query": "Ask about documents' columns in SQL.",
    "shuffle": "Put a dataset's windows or documents into a shuffled order.",
    "mix": "What a mixture comes to, before it runs.",
    "pack": "Pack documents into rows of one length; writes the table that says which.",
    "cache": "What a local cache of remote datasets holds.",
    "bench": "Measure what the loader reads here.",
}


class _Commands(click.Group):
    """Imports a command when it is asked for, so that `penstock info` does not wait for the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command = importlib.import_module(f"penstock._cli.{module}").command
        assert isinstance(command, click.Command)
        return importlib.import_module("penstock._cli.data").in_order_of_use(command)  # type: ignore[no-any-return]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.command(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 done, 1 data or system error, 2 wrong use, 130 interrupted.",
)
@click.version_option(package_name="penstock", message="%(prog)s %(version)s")
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
        with cli.make_context("penstock", list(given) or ["--help"]) as context:
            meta = context.meta
            result = cli.invoke(context)
        return result if isinstance(result, int) else EXIT_OK
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        return _report(given, _usage_line(error), EXIT_USAGE)
    except (KeyboardInterrupt, click.Abort) as error:
        # Ctrl-C between a writer's making and its `with`: the line below says all that there is to say.
        warnings.filterwarnings("ignore", "(?s).*it was never closed", RuntimeWarning)
        return _report(given, str(error) or "interrupted", EXIT_INTERRUPTED)
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
    expected = (OutputError, errors.InputError, errors.WorkerError, penstock.Error, OSError, MemoryError)
    if isinstance(error, expected):
        return str(error) or type(error).__name__, EXIT_ERROR
    if isinstance(error, ModuleNotFoundError):
        said = str(error) if "pip install" in str(error) else ""
        extra = "query" if error.name == "duckdb" else "text"
        return said or f"this needs the package {error.name}: pip install 'penstock[{extra}]'", EXIT_ERROR
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
