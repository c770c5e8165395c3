"""`penstock write`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from penstock._cli.command_help import Command, heading
from penstock._cli.data import bucket_options, given_storage, out_or_bucket_option, scratch_option
from penstock._cli.executors import cluster_of, default_workers, ray_option
from penstock._cli.output import SizeType, json_option, progress, report_of
from penstock._cli.write_report import report, report_estimate, tell
from penstock._places.remote import shown

_EPILOG = """\b
Examples:
  penstock write 'docs/*.jsonl.zst' --tokenizer tokenizer.json --append '<|endoftext|>' --out corpus/
  zcat docs.jsonl.gz | penstock write - --format jsonl --tokenizer tokenizer.json --out corpus/
  penstock write ids.parquet --ids-column input_ids --dtype u2 --metadata url,date --out corpus/
"""


@click.command("write", cls=Command, epilog=_EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "--tokenizer", metavar="FILE", help="A tokenizer.json; with --messages its folder. Default: none; text needs it."
)
@out_or_bucket_option
@click.option(
    "--append",
    multiple=True,
    metavar="TOKEN",
    help="A token, such as '<|endoftext|>', put after each document. May be repeated. Default: none.",
)
@click.option(
    "--metadata",
    default="boundaries",
    show_default=True,
    metavar="COLUMNS|all|boundaries|none",
    help="Columns kept with each document, as in url,date (plain text has path, kind and size); boundaries: where each "
    "document begins, 16 bytes; none: tokens alone.",
)
@click.option("--workers", type=click.IntRange(1), help="Threads or processes that tokenize; else one for each core.")
@click.option("--dry-run", is_flag=True, help="Show three documents and what all would cost; write nothing.")
@click.option("--resume", is_flag=True, help="Go on with an interrupted run: keep its finished shards.")
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace the dataset in --out, once the new one is whole; with --resume: go on with replacing it.",
)
@heading("Input")
@click.option(
    "--format", type=click.Choice(["jsonl", "text", "parquet"]), help="Format of all inputs. Default: by suffix."
)
@click.option("--text-column", default="text", show_default=True, help="The column that holds the text.")
@click.option("--ids-column", help="The column that holds token ids already made, instead of text. Default: none.")
@click.option(
    "--messages",
    metavar="COLUMN",
    help="The column that holds conversations, lists of {role, content}, instead of text; needs --tokenizer DIR, a "
    "tokenizer of transformers whose chat template marks what the assistant says. Stores token and loss. "
    "Default: none.",
)
@click.option(
    "--text-per",
    type=click.Choice(["file", "line"]),
    default="file",
    show_default=True,
    help="Plain text: what one document is.",
)
@click.option(
    "--on-error",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="Documents that cannot be used, as lines that are no JSON: stop at the first, or leave them out and list them "
    "in skipped.jsonl in the dataset's folder.",
)
@click.option(
    "--max-skipped",
    metavar="N|P%",
    help="With --on-error skip: the most documents that may be left out, as 1000, or as a share of all documents that "
    "are read, as 0.5%. Default: any number.",
)
@heading("Tokens")
@click.option(
    "--prepend",
    multiple=True,
    metavar="TOKEN",
    help="A token, such as '<s>', put before each document. May be repeated. Default: none.",
)
@click.option("--post-processor", is_flag=True, help="Let the tokenizer add its own special tokens.")
@click.option("--special-tokens-in-text", is_flag=True, help="Read <|…|> in a text as the special token of that name.")
@click.option(
    "--dtype",
    type=click.Choice(["auto", "u1", "u2", "u4"]),
    default="auto",
    show_default=True,
    help="Type of a stored token: u2 is two bytes; auto takes u2 for vocabularies up to 65,536, else u4.",
)
@click.option(
    "--tokenizer-engine",
    type=click.Choice(["auto", "gigatoken", "tokenizers"]),
    default="auto",
    show_default=True,
    help="What computes the ids. gigatoken is many times faster than tokenizers, and compared with it while it works; "
    "auto takes it where it is installed, reads the tokenizer and agrees.",
)
@click.option(
    "--memory",
    type=SizeType(),
    default="1GiB",
    show_default=True,
    help="Bytes of memory that each worker's engine may keep of text that it has seen.",
)
@click.option("--name", help="The tokenizer's name in the manifest. Default: the name of its file.")
@heading("Files of the dataset")
@click.option(
    "--codec",
    type=click.Choice(["json", "msgpack", "raw"]),
    show_default="json",
    help="How metadata is stored; raw: the text of one column as it is.",
)
@click.option(
    "--layout",
    type=click.Choice(["compact", "ids"]),
    default="compact",
    show_default=True,
    help="ids stores the document's number beside each token, compact does not.",
)
@click.option(
    "--shard-size",
    type=SizeType(),
    default="1GiB",
    show_default=True,
    help="Bytes of input text that one shard is made of, as 64M or 1GiB.",
)
@heading("Where it runs")
@ray_option
@click.option(
    "--run-id",
    help="Name of this run, where several processes write into one folder together; another run is refused. "
    "Default: none.",
)
@click.option(
    "--clean", is_flag=True, help="Remove what other runs left unfinished in the folder; they must have ended."
)
@scratch_option
@bucket_options
@json_option
def command(inputs: tuple[str, ...], **given: Any) -> None:
    """Makes a dataset of JSONL, Parquet or plain text, plain or as .gz or .zst.

    INPUT is a file, an address, a glob or - for standard input. The bytes written are the same for any number of
    workers and on any cluster.
    """
    from penstock._from.text.request import Request
    from penstock._from.text.writing import write_text
    from penstock._make.executors import Processes

    if given["on_error"] == "skip" and given["dry_run"]:
        raise click.UsageError("--dry-run shows what can be used: leave out --on-error skip, or --dry-run")
    if given["messages"] and given["dry_run"]:
        raise click.UsageError("--dry-run is not there for conversations; drop it or --messages")
    given["metadata"] = _metadata(given["metadata"])
    request = Request(**{name: given.pop(name) for name in Request.names()})
    executor = cluster_of(given) or Processes(given["workers"] or default_workers())  # for 1 too: one that may die
    if given["dry_run"]:
        _dry_run(inputs, request, given)
        return
    out, as_json = given["out"], given["as_json"]
    with progress(f"writing {shown(out)}", as_json, of=" of text") as update:

        def observe(done: int, total: int, written: Any) -> None:
            note = f", {written.skipped:,} skipped" if written.skipped else ""
            update(done, total, written.text_bytes, note=note)

        summary = write_text(
            inputs,
            out,
            request,
            executor,
            storage=given_storage(),
            progress=observe,
            preparing=lambda what, done, total: update(done, total, label=what),
            uploading=lambda done, total: update(done, total, label=f"uploading to {shown(out)}"),
            noted=lambda note: None if as_json else tell(note),
            **{name: given[name] for name in ("resume", "overwrite", "run_id", "clean", "scratch")},
        )
    with report_of(shown(out)):
        report(shown(out), as_json, summary)


def _metadata(text: str) -> Any:
    """ "all", "boundaries", None, or names of columns."""
    words = {"all": "all", "boundaries": "boundaries", "none": None}
    return words[text] if text in words else tuple(name.strip() for name in text.split(","))


def _dry_run(inputs: tuple[str, ...], request: Any, given: dict[str, Any]) -> None:
    from penstock._from.engines.engine import REFERENCE, EngineError
    from penstock._from.text.estimate import estimate
    from penstock._from.text.writing import source_of

    workers = given["workers"] or default_workers()
    source = source_of(inputs, request, given_storage())
    notes = source.tokenizer.notes
    try:
        found = estimate(source, workers)
    except EngineError as error:
        if request.tokenizer_engine != "auto" or not source.reader.rereadable:
            raise
        notes.append(f"tokenizers would compute the ids: {error}")
        source = source_of(inputs, replace(request, tokenizer_engine=REFERENCE), given_storage())
        found = estimate(source, workers)
    report_estimate(given, {**found, "notes": notes}, source.tokenizer.dtype, workers)
