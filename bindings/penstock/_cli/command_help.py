"""Help of commands: options under headings, short by -h and long by --help; suggestions for mistyped options.

click 8 knows no headings. rich-click, which does, imports rich for each `--help`; cloup wraps all of click.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from penstock._cli.nearest import did_you_mean

Function = TypeVar("Function", bound=Callable[..., Any])
Row = tuple[str, str]

MAIN = "Options"
FOREIGN, ADDRESSES, PRINTED = "Files of other formats", "Buckets and caches", "Output and help"
_LAST = (FOREIGN, ADDRESSES, PRINTED)  # headings that many commands share stand behind a command's own
_COUNTS = re.compile(r"\s*\[(?:x>=[01]|[01]<=x<=\d{10,})\]|; (?:x>=[01]|[01]<=x<=\d{10,})(?=[;\]])")

ENVIRONMENT = (
    ("NO_COLOR", "Nothing is coloured where it is set."),
    ("PENSTOCK_TRACEBACK", "Unexpected errors show where they were raised, where it is set."),
)

EXIT_CODES = (
    ("0", "Done."),
    ("1", "Something is wrong with the data or the system; with verify: a problem was found."),
    ("2", "Wrong use."),
    ("130", "Interrupted."),
    ("143", "Interrupted by SIGTERM."),
)

_NAMES = 22  # columns for names of options; longer ones have a line of their own


def heading(title: str) -> Callable[[Function], Function]:
    """Puts the options below this decorator, up to the next heading, under `title`; those above are the main ones."""

    def mark(function: Function) -> Function:
        for each in getattr(function, "__click_params__", ()):  # decorators run from the last one up
            vars(each).setdefault("heading", title)
        return function

    return mark


def headed(title: str, option: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """An option's decorator that puts it under `title`, wherever it stands."""

    def mark(function: Function) -> Function:
        function = option(function)
        added: click.Parameter = function.__click_params__[-1]  # type: ignore[attr-defined]
        vars(added)["heading"] = title
        return function

    return mark


def _asked(is_short: bool) -> Callable[[click.Context, click.Parameter, bool], None]:
    def show(context: click.Context, option: click.Parameter, is_given: bool) -> None:
        if is_given and not context.resilient_parsing:
            click.echo(short_help(context) if is_short else context.get_help())
            context.exit()

    return show


def _help_options() -> list[click.Option]:
    given: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False}
    options = [
        click.Option(["asked_short", "-h"], callback=_asked(True), help="Show the main options.", **given),
        click.Option(["asked_long", "--help"], callback=_asked(False), help="Show all options.", **given),
    ]
    for each in options:
        vars(each)["heading"] = PRINTED
    return options


def short_help(context: click.Context) -> str:
    """The text of -h."""
    formatter = context.make_formatter()
    command = context.command
    assert isinstance(command, Helped)
    command.format_short_help(context, formatter)
    return formatter.getvalue().rstrip("\n")


def headed_options(command: click.Command, context: click.Context) -> dict[str, list[click.Option]]:
    """Options by their headings, in the order of help: the main ones, the command's own, those that many share."""
    found: dict[str, list[click.Option]] = {MAIN: []}
    for each in command.get_params(context):
        if isinstance(each, click.Option) and not each.hidden:
            found.setdefault(vars(each).get("heading", MAIN), []).append(each)
    order = [title for title in found if title not in _LAST] + [title for title in _LAST if title in found]
    return {title: found[title] for title in order if found[title]}


def record_of(option: click.Option, context: click.Context) -> Row:
    """An option's names with its value, and its text. Bounds that any count has are left out."""
    if option.metavar is None and isinstance(option.type, (click.IntRange, type(click.INT))):
        option.metavar = "N"
    names, text = option.get_help_record(context) or ("", "")
    return names, _COUNTS.sub("", text).rstrip()


def one_sentence(text: str) -> str:
    """The first sentence, with its full stop."""
    return re.split(r"(?<=[.?!])\s", " ".join(text.split()), maxsplit=1)[0]


class Helped(click.Command):
    """Commands and their group: -h, --help, and suggestions for options."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """None of click's own, which has one text for both names."""
        return None

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """With -h and --help."""
        return [*super().get_params(ctx), *_help_options()]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does; an unknown option's error says which one was meant, if one is near."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            known = [name for each in self.get_params(ctx) for name in (*each.opts, *each.secondary_opts)]
            name = error.option_name
            meant = did_you_mean(name, [each for each in known if each.startswith("--")]) if name[:2] == "--" else ""
            raise click.UsageError(f"No such option: {name}{meant}", ctx) from None

    def format_short_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the text of -h."""
        raise NotImplementedError


class Command(Helped):
    """A command whose help has headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """All options under their headings."""
        headed = headed_options(self, ctx)
        sections = {title: [record_of(each, ctx) for each in options] for title, options in headed.items()}
        write_sections(formatter, sections)

    def format_short_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Usage, a sentence, the main options, the first example, and the other headings by name."""
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(one_sentence(self.help or ""))
        headed = headed_options(self, ctx)
        main = [record_of(each, ctx) for each in headed.pop(MAIN, [])]
        if main:
            write_sections(formatter, {MAIN: main})
        if example := next(examples(self), ""):
            with formatter.section("Example"):
                formatter.write(f"{' ' * formatter.current_indent}{example}\n")
        formatter.write_paragraph()
        formatter.write_text(f"{ctx.command_path} --help has all options: {', '.join(map(_as_words, headed))}.")


def _as_words(title: str) -> str:
    return title[0].lower() + title[1:]


def examples(command: click.Command) -> Iterator[str]:
    """The lines of a command's examples."""
    for line in (command.epilog or "").splitlines():
        if line.startswith("  "):
            yield line.strip()


def write_sections(formatter: click.HelpFormatter, sections: dict[str, list[Row]]) -> None:
    """Writes lists of names and texts under their titles, all with the same columns."""
    lengths = [len(name) for rows in sections.values() for name, _ in rows]
    width = max((length for length in lengths if length <= _NAMES), default=0)
    for title, rows in sections.items():
        with formatter.section(title):
            formatter.write_dl([(name.ljust(width), text) for name, text in rows], col_max=width)
