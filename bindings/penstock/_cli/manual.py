"""Manual pages in man(7), of the same commands and options as --help."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from importlib import metadata

import click

from penstock._cli.command_help import ENVIRONMENT, EXIT_CODES, examples, headed_options, record_of

_WIDTH = 70  # of the source's lines, before hyphens are written out


def pages(group: click.Group) -> dict[str, str]:
    """All pages by the names of their files: penstock.1, penstock-write.1, …"""
    context = click.Context(group, info_name="penstock")
    found = {"penstock.1": page(group, context)}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found[f"penstock-{name}.1"] = page(command, click.Context(command, info_name=name, parent=context))
    return found


def page(command: click.Command, context: click.Context) -> str:
    """One page; it ends with a line break."""
    return "".join(f"{line}\n" for line in _lines(command, context))


def _lines(command: click.Command, context: click.Context) -> Iterator[str]:
    name = context.command_path.replace(" ", "-")
    group = command if isinstance(command, click.Group) else None
    brief = command.get_short_help_str(limit=200) if group is None else (command.help or "")
    yield f'.TH {name.upper()} 1 "" "penstock {metadata.version("penstock")}" "penstock"'
    yield ".SH NAME"
    yield f"{_text(name)} \\- {_text(brief[0].lower() + brief[1:].rstrip('.'))}"
    yield ".SH SYNOPSIS"
    yield rf"\fB{_text(context.command_path)}\fR {_text(' '.join(command.collect_usage_pieces(context)))}"
    if group is None:
        yield ".SH DESCRIPTION"
        yield from _paragraphs(command.help or "")
    else:
        yield from _commands(group, context)
    yield ".SH OPTIONS"
    for title, options in headed_options(command, context).items():
        yield f".SS {_text(title)}"
        for option in options:
            yield from _item(*record_of(option, context))
    shown = list(examples(command))
    if shown:
        yield from (".SH EXAMPLES", ".nf", *(_line(each) for each in shown), ".fi")
    for title, rows in (("EXIT STATUS", EXIT_CODES), ("ENVIRONMENT", ENVIRONMENT)):
        yield f".SH {title}"
        for term, words in rows:
            yield from _item(term, words)
    yield ".SH SEE ALSO"
    others = ["penstock"] if group is None else [f"penstock-{each}" for each in group.list_commands(context)]
    yield ",\n".join(rf"\fB{_text(each)}\fR(1)" for each in others)


def _commands(group: click.Group, context: click.Context) -> Iterator[str]:
    yield ".SH COMMANDS"
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from _item(f"penstock-{name}(1)", command.get_short_help_str(limit=200))


def _item(term: str, words: str) -> Iterator[str]:
    yield ".TP"
    yield rf"\fB{_text(term)}\fR"
    yield from _prose(words)


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text.strip())):
        if number:
            yield ".PP"
        yield from _prose(paragraph)


def _prose(text: str) -> Iterator[str]:
    """Each sentence on lines of its own, as man(7) wants it: a space between sentences is the formatter's."""
    for sentence in re.split(r"(?<=[.?!])\s+", " ".join(text.split())):
        yield from map(_line, textwrap.wrap(sentence, _WIDTH, break_long_words=False, break_on_hyphens=False))


def _line(text: str) -> str:
    """A line that begins no request."""
    return f"\\&{_text(text)}" if text[:1] in ".'" else _text(text)


def _text(text: str) -> str:
    """With what troff would read as its own written out: a hyphen that is typed, quotes that stay straight."""
    for letter, written in (
        ("\\", "\\e"),
        ("-", "\\-"),
        ("'", "\\(aq"),
        ("`", "\\(ga"),
        ("^", "\\(ha"),
        ("~", "\\(ti"),
    ):
        text = text.replace(letter, written)
    return text
