"""`penstock verify`: bytes, or with a tokenizer ids."""

from __future__ import annotations

from typing import Any

import click

from penstock._base.words import counted
from penstock._cli.command_help import Command, heading
from penstock._cli.data import bucket_options, given_storage, named_by_user
from penstock._cli.output import echo, emit_json, human_bytes, json_option, progress
from penstock._places.remote import shown

_EPILOG = """\b
Examples:
  penstock verify corpus/
  penstock verify s3://bucket/corpus --profile research
  penstock verify corpus/ --tokenizer tokenizer.json --text 'docs/*.jsonl.zst' --sample all
"""


@click.command("verify", cls=Command, epilog=_EPILOG)
@click.argument("data", metavar="DATA")
@click.option(
    "--tokenizer",
    metavar="FILE",
    help="The tokenizer.json that made the ids: encode documents again and compare ids, not bytes. Default: none.",
)
@click.option(
    "--sample",
    metavar="N|all",
    help="With --tokenizer: how many documents, at even places. Default: 1,000, or fewer with four million tokens.",
)
@click.option(
    "--text",
    multiple=True,
    metavar="INPUT",
    help="With --tokenizer: a file, address or glob that the dataset was written of, in the order of `penstock write`. "
    "May be repeated. Default: the text that ids spell.",
)
@heading("Text and tokens")
@click.option("--format", type=click.Choice(["jsonl", "text", "parquet"]), help="Of --text. Default: by suffix.")
@click.option("--text-column", help="Of --text: the column that holds the text. Default: as the dataset was written.")
@click.option(
    "--text-per",
    type=click.Choice(["file", "line"]),
    help="Of plain --text: what one document is. Default: as the dataset was written.",
)
@click.option(
    "--prepend",
    multiple=True,
    metavar="TOKEN",
    help="With --tokenizer: a token before each document. May be repeated. Default: as the dataset was written.",
)
@click.option(
    "--append",
    multiple=True,
    metavar="TOKEN",
    help="With --tokenizer: a token after each document. May be repeated. Default: as the dataset was written.",
)
@click.option(
    "--post-processor/--no-post-processor",
    default=None,
    help="With --tokenizer: it added its own special tokens. Default: as the dataset was written.",
)
@click.option(
    "--special-tokens-in-text/--no-special-tokens-in-text",
    default=None,
    help="With --tokenizer: <|…|> in a text was read as the special token. Default: as the dataset was written.",
)
@bucket_options
@json_option
def command(data: str, as_json: bool, tokenizer: str | None, **given: Any) -> int:
    """Reads every byte of a dataset and checks it against the manifest, the checksums and the digests.

    Names every problem; exit code 1 where there is one. Folders that are no part of the dataset are named too, and are
    no problem. With --tokenizer ids are compared with those that tokenizers gives, in place of all that.
    """
    if tokenizer is not None:
        return _verify_ids(data, tokenizer, as_json, given)
    for name, value in given.items():
        if value not in (None, ()):
            raise click.UsageError(f"--{name.replace('_', '-')} needs --tokenizer FILE: bytes are compared without it")
    import penstock

    with progress(f"verifying {shown(data)}", as_json) as update, named_by_user():
        report = penstock.verify(data, progress=update, storage=given_storage())
    problems, notices = list(report.problems), list(report.notices)
    if as_json:
        emit_json(
            {"path": shown(data), "ok": not problems, "bytes": report.bytes, "problems": problems, "notices": notices}
        )
        return 1 if problems else 0
    for notice in notices:
        click.echo(f"note: {notice}", err=True)
    if problems:
        for problem in problems:
            echo(problem)
        click.echo(f"{shown(data)}: {counted(len(problems) + report.unlisted, 'problem')}", err=True)
    else:
        echo(f"{shown(data)}: {human_bytes(report.bytes)} read, all as written")
    return 1 if problems else 0


def _verify_ids(data: str, tokenizer: str, as_json: bool, given: dict[str, Any]) -> int:
    from penstock._from.text.again import Told
    from penstock._from.text.looking_back import Wanted, look_back
    from penstock._from.text.named_text import InputOptions

    told = Told(
        given["prepend"] or None, given["append"] or None, given["post_processor"], given["special_tokens_in_text"]
    )
    inputs = InputOptions(given["text"], given["format"], given["text_column"], given["text_per"])
    wanted = Wanted(tokenizer, _sample(given["sample"]), told, inputs)
    label = f"encoding documents of {shown(data)}"
    with progress(label, as_json, unit="documents") as update, named_by_user([data]):
        report = look_back(data, wanted, given_storage(), update)
    if as_json:
        emit_json(report.as_json())
        return 0 if report else 1
    for notice in report.notices:
        click.echo(f"note: {notice}", err=True)
    for each in report.unjudged:
        echo(f"not judged: {counted(each.documents, 'document')}, the first {each.first:,}: {each.reason}")
    for problem in report.problems:
        echo(problem)
    of = f"{report.looked_at:,} of {counted(report.documents, 'document')} encoded again (ids by {report.engine})"
    if report:
        echo(f"{shown(data)}: {of}, {report.agreed:,} agree")
    else:
        click.echo(f"{shown(data)}: {of}: {report.agreed:,} agree, {report.differing:,} differ", err=True)
    return 0 if report else 1


def _sample(text: str | None) -> int | str | None:
    """A number, where it is one; look_back says what else is wrong."""
    number = (text or "").replace(",", "").replace("_", "")
    return int(number) if number.isdecimal() and number.isascii() else text
