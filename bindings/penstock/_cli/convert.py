"""`penstock convert`."""

from __future__ import annotations

import re
from typing import Any

import click

from penstock._cli.command_help import Command, heading
from penstock._cli.data import (
    bucket_options,
    given_storage,
    named_by_user,
    open_data,
    out_or_bucket_option,
    passing_option,
    refuse_existing,
)
from penstock._cli.document_names import document_number, number_of, split_name
from penstock._cli.executors import ray_option, workers_of, workers_option
from penstock._cli.output import json_option, progress
from penstock._cli.report import report_new
from penstock._places.remote import shown

_LIST = re.compile(r"(0|[1-9]\d*)(,(0|[1-9]\d*))+")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(,\d{3})+")
_EPILOG = """\b
Examples:
  penstock convert corpus/ --layout ids --out corpus-ids/
  penstock convert corpus/ --where "score > 0.5 and lang = 'en'" --out good/
  penstock convert corpus/ --without 17 --without 203 --out good/
  penstock convert s3://bucket/corpus --layout ids --out s3://bucket/corpus-ids
"""


@click.command("convert", cls=Command, epilog=_EPILOG)
@click.argument("data", metavar="DATA")
@click.option(
    "--layout",
    type=click.Choice(["compact", "ids"]),
    help="Layout of the new dataset: ids stores the document's number in each record, compact does not. Default: as it "
    "is; give this, or --where or --without.",
)
@click.option(
    "--where",
    metavar="CONDITION",
    help="Leave out documents whose columns are not so, as in \"score > 0.5 and lang = 'en'\". Default: keep all.",
)
@click.option(
    "--without",
    multiple=True,
    metavar="N|SHARD/ENTRY|FILE.npy",
    help="Leave out the document of this number, those of a list such as 300,305, that of this name, as trace prints "
    "it (00000/2,855); or those that `penstock query --out FILE.npy` found. May be repeated. Default: none.",
)
@out_or_bucket_option
@workers_option
@click.option("--resume", is_flag=True, help="Go on with a run that did not end: keep its finished shards.")
@click.option("--overwrite", is_flag=True, help="Replace the dataset in --out, once the new one is whole.")
@heading("Where it runs")
@ray_option
@passing_option
@bucket_options
@json_option
def command(
    data: str, layout: str | None, where: str | None, without: tuple[str, ...], out: str, as_json: bool, **given: Any
) -> None:
    """Writes a dataset again with its spans in another layout, or without some of its documents.

    With --layout records and entries stay as they are. With --where or --without documents are left out, and the others
    keep their order, metadata and columns. Columns for --where are made by penstock annotate, also of metadata.
    """
    import penstock

    if layout is not None and (where is not None or without):
        raise click.UsageError("one run does one of them: leave documents out first, then give --layout to the result")
    if layout is None and where is None and not without:
        raise click.UsageError("what is converted: give --layout; or --where or --without, to leave documents out")
    given["without"] = [number for each in _separated(without, data) for number in _numbers(each, data)]
    refuse_existing(out, given["resume"] or given["overwrite"])
    given["workers"] = workers_of(given)
    with named_by_user((data,)), progress(f"converting {shown(data)}", as_json) as update:
        penstock.convert(data, out, layout, where=where, progress=update, storage=given_storage(), **given)
    report_new(out, as_json)


def _separated(given: tuple[str, ...], data: str) -> list[str]:
    """With lists such as "300,305" as their numbers.

    Raises:
        UsageError: It may be a list, or one number with commas.
    """
    found = []
    for text in given:
        parts = text.split(",") if _LIST.fullmatch(text) else [text]
        if _THOUSANDS.fullmatch(text) and int(text.replace(",", "")) < open_data((data,)).spans:
            raise click.UsageError(
                f"--without {text}: a list, or one number? Give --without {text.replace(',', '')}, or "
                f"{' '.join(f'--without {part}' for part in text.split(','))}"
            )
        found += parts
    return found


def _numbers(text: str, data: str) -> list[int]:
    """Numbers of documents: one that is given, by its number or its name in `data`, or those of a file."""
    import numpy as np

    from penstock._make.errors import InputError
    from penstock._places.paths import local_path

    if not text.endswith(".npy"):
        number = number_of(text)
        if number is None and split_name(text) is not None:
            number = document_number(text, open_data((data,)), "--without")
        if number is None:
            raise click.UsageError(
                f"--without {text}: the number of one document is wanted, its name SHARD/ENTRY, or a .npy of numbers"
            )
        return [number]
    try:
        found = np.load(local_path(text))
    except FileNotFoundError:
        raise click.UsageError(f"--without {text}: there is no such file") from None
    except (ValueError, EOFError) as error:
        raise InputError(f"--without {text}: not an array that numpy.save wrote: {error}") from None
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise InputError(f"--without {text}: {found.dtype} {list(found.shape)}: numbers of documents are wanted, [n]")
    return list(found.tolist())
