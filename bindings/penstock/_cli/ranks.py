"""`penstock ranks`."""

from __future__ import annotations

import itertools
from typing import Any

import click

from penstock._base.words import counted
from penstock._cli.command_help import Command
from penstock._cli.output import echo, emit_json, json_option
from penstock._cli.schedules import ScheduleType

_MOST_RANKS = 1 << 32  # that a loader takes
_SHOWN = 64  # numbers of ranks in a line


_EPILOG = """\b
Examples:
  penstock ranks 4096
  penstock ranks 4096 1000 960 7
  penstock ranks 0:1024,100000:4096 96 --micro-batches 2
"""


@click.command("ranks", cls=Command, epilog=_EPILOG)
@click.argument("size", type=ScheduleType())
@click.argument("ranks", type=click.IntRange(1, _MOST_RANKS), nargs=-1)
@click.option(
    "--micro-batches",
    type=click.IntRange(1, _MOST_RANKS),
    default=1,
    show_default=True,
    help="Micro-batches of a step, as in Balance(micro_batches=…): with padding, rows are rounded up to a multiple.",
)
@json_option
def command(size: Any, ranks: tuple[int, ...], micro_batches: int, as_json: bool) -> None:
    """Says which numbers of ranks suit a global batch, and what each rank gets on others.

    SIZE is the global batch size, or a schedule, position:size; RANKS are numbers of ranks. A number suits where all
    ranks get as many rows, and micro-batches as many of these. On others a loader needs uneven="pad".
    """
    schedule = size if isinstance(size, list) else [(0, size)]
    begins, sizes = [at for at, _ in schedule], list(dict.fromkeys(each for _, each in schedule))
    if begins[0] != 0 or any(at >= after for at, after in itertools.pairwise(begins)):
        raise click.UsageError(f"SIZE begins at positions {begins}: a schedule begins at 0, and its positions rise")
    if min(sizes) < 1 or max(sizes) >= 1 << 63:
        raise click.UsageError(f"SIZE {min(sizes) if min(sizes) < 1 else max(sizes)}: from 1 to 2^63 - 1")
    told = [_told(each, ranks, micro_batches) for each in sizes]
    if as_json:
        emit_json({"micro_batches": micro_batches, "sizes": told})
        return
    for each in told:
        _draw(each, micro_batches)


def _told(size: int, ranks: tuple[int, ...], micro_batches: int) -> dict[str, Any]:
    from penstock import _native

    shares = []
    for number in dict.fromkeys(ranks):
        rows = _native.batch_rows(size, number, micro_batches)
        least, more = divmod(size, number)
        valid = [[more, least + 1], [number - more, least]] if more else [[number, least]]
        shares.append({"ranks": number, "rows": rows, "valid": valid, "padding": number * rows - size})
    suiting = _native.ranks_that_suit(size, micro_batches)
    return {"global_batch_size": size, "ranks_that_suit": suiting, "shares": shares}


def _draw(told: dict[str, Any], micro_batches: int) -> None:
    size, suiting = told["global_batch_size"], told["ranks_that_suit"]
    shown = ", ".join(f"{each:,}" for each in suiting[:_SHOWN]) or "no number of"
    more = len(suiting) - _SHOWN
    rest = f" and {more:,} more numbers of" if more > 0 else ""
    parts = f", in {micro_batches:,} equal micro-batches" if micro_batches > 1 else ""
    echo(f"{counted(size, 'row')}: evenly on {shown}{rest} ranks{parts}")
    if not told["shares"]:
        return
    rows = [("ranks", "batch", "of them valid", "padding")]
    for each in told["shares"]:
        valid = ", ".join(f"{count:,} on {counted(number, 'rank')}" for number, count in each["valid"])
        padding = f"{each['padding']:,} ({each['padding'] / (each['ranks'] * each['rows']):.1%})"
        rows.append((f"{each['ranks']:,}", counted(each["rows"], "row"), valid, padding if each["padding"] else "none"))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        cells = [row[0].rjust(widths[0]), row[1].rjust(widths[1]), row[2].ljust(widths[2]), row[3]]
        echo("  ".join(cells).rstrip())
