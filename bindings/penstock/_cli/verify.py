"""`penstock verify`."""

from __future__ import annotations

import click

from penstock._base.words import counted
from penstock._cli.data import bucket_options, given_storage, named_by_user
from penstock._cli.output import echo, emit_json, human_bytes, json_option, progress
from penstock._places.remote import shown

_EPILOG = """\b
Examples:
  penstock verify corpus/
  penstock verify s3://bucket/corpus --profile research
"""


@click.command("verify", epilog=_EPILOG, short_help="Read everything and check it.")
@click.argument("data", metavar="DATA")
@bucket_options
@json_option
def command(data: str, as_json: bool) -> int:
    """Reads every byte of a dataset and checks it against the manifest, the checksums and the digests.

    Names every problem; exit code 1 where there is one. Folders that are no part of the dataset are named too, and are
    no problem.
    """
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
