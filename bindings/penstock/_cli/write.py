"""`penstock write`."""

from __future__ import annotations

import json
from typing import Any

import click

from penstock._cli.data import bucket_options, given_storage, out_or_bucket_option, scratch_option
from penstock._cli.executors import cluster_of, default_workers, ray_option
from penstock._cli.output import SizeType, json_option, progress, report_of
from penstock._cli.write_report import report, report_estimate
from penstock._places.remote import shown

_EPILOG = """\b
Examples:
  penstock write 'docs/*.jsonl.zst' --tokenizer tokenizer.json --append '<|endoftext|>' --out corpus/
  zcat docs.jsonl.gz | penstock write - --format jsonl --tokenizer tokenizer.json --out corpus/
  penstock write ids.parquet --ids-column input_ids --dtype u2 --metadata url,date --out corpus/
"""


_WORDS = ("all", "boundaries", "none")  # of --metadata; all others are names of columns


def _limit(context: click.Context, option: click.Parameter, text: str | None) -> Any:
    if text is None:
        return None
    from penstock._from.text.skipping import parse_limit
    from penstock._make.errors import UsageError

    try:
        return parse_limit(text)
    except UsageError as error:
        raise click.BadParameter(str(error), context, option) from None


@click.command("write", epilog=_EPILOG, short_help="Make a dataset of text or token ids.")
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@out_or_bucket_option
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
    "--tokenizer", metavar="FILE", help="A tokenizer.json; with --messages its folder. Default: none; text needs it."
)
@click.option("--name", help="The tokenizer's name in the manifest. Default: the name of its file.")
@click.option(
    "--prepend",
    multiple=True,
    metavar="TOKEN",
    help="A token, such as '<s>', put before each document. May be repeated. Default: none.",
)
@click.option(
    "--append",
    multiple=True,
    metavar="TOKEN",
    help="A token, such as '<|endoftext|>', put after each document. May be repeated. Default: none.",
)
@click.option("--post-processor", is_flag=True, help="Let the tokenizer add its own special tokens.")
@click.option("--special-tokens-in-text", is_flag=True, help="Read <|…|> in a text as the special token of that name.")
@click.option(
    "--metadata",
    default="boundaries",
    show_default=True,
    metavar="COLUMNS|all|boundaries|none",
    help="Columns kept with each document, as in url,date (plain text has path, kind and size); boundaries: where each "
    "document begins, 16 bytes; none: tokens alone.",
)
@click.option(
    "--codec",
    type=click.Choice(["json", "msgpack", "raw"]),
    default="json",
    show_default=True,
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
    "--dtype",
    type=click.Choice(["auto", "u1", "u2", "u4"]),
    default="auto",
    show_default=True,
    help="Type of a stored token: u2 is two bytes; auto takes u2 for vocabularies up to 65,536, else u4.",
)
@click.option(
    "--shard-size",
    type=SizeType(),
    default="1GiB",
    show_default=True,
    help="Bytes of input text that one shard is made of, as 64M or 1GiB.",
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
    callback=_limit,
    help="With --on-error skip: the most documents that may be left out, as 1000, or as a share of all documents that "
    "are read, as 0.5%. Default: any number.",
)
@click.option("--workers", type=click.IntRange(1), help="Processes that tokenize; else one for each core.")
@ray_option
@click.option("--resume", is_flag=True, help="Go on with an interrupted run: keep its finished shards.")
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace the dataset in --out, once the new one is whole; with --resume: go on with replacing it.",
)
@click.option(
    "--run-id",
    help="Name of this run, where several processes write into one folder together; another run is refused. "
    "Default: none.",
)
@click.option(
    "--clean", is_flag=True, help="Remove what other runs left unfinished in the folder; they must have ended."
)
@scratch_option
@click.option("--dry-run", is_flag=True, help="Show three documents and what all would cost; write nothing.")
@bucket_options
@json_option
def command(inputs: tuple[str, ...], **given: Any) -> None:
    """Makes a dataset of JSONL, Parquet or plain text, plain or as .gz or .zst.

    INPUT is a file, an address, a glob or - for standard input. The bytes written are the same for any number of
    workers and on any cluster.
    """
    from penstock._from.text.documents import DocumentReader
    from penstock._from.text.inputs import expand_inputs
    from penstock._from.text.pool import Work, make_tokenizer
    from penstock._make.errors import InputError, OptionError, UnusableError

    _check(given)
    cluster = cluster_of(given)
    skips = given["on_error"] == "skip"
    work = Work(_tokenizer_options(given), _columns(given), given["codec"], skips)
    tokenizer = make_tokenizer(work.tokenizer)
    found = expand_inputs(inputs, given["format"], given_storage(), skips=skips)
    for each in found:
        if each.format == "text" and (work.columns.ids is not None or work.columns.messages):
            option = "--messages" if work.columns.messages else "--ids-column"
            raise click.UsageError(f"{each.name}: plain text has no columns: {option} is for JSON lines and Parquet")
    reader = DocumentReader(found, work.columns, skips=skips)
    if given["dry_run"]:
        _refuse_far(found)
        _dry_run(reader, work, tokenizer, given)
        return
    try:
        if cluster is not None:
            _write_on(cluster, reader, work, tokenizer, given)
        else:
            _write(reader, work, tokenizer, given)
    except UnusableError as error:
        if isinstance(error, OptionError):  # of the first document: the option may be wrong
            raise
        raise InputError(f"{error}; --on-error skip leaves out what cannot be used") from error


def _refuse_far(inputs: Any) -> None:
    from penstock._from.text.far import FarFile

    for each in inputs:
        if isinstance(each.path, FarFile):
            raise click.UsageError(f"{each.name}: --dry-run looks at files of this machine: copy some of them here")


def _check(given: dict[str, Any]) -> None:
    if given["tokenizer"] is None and given["ids_column"] is None:
        raise click.UsageError("text needs --tokenizer FILE; token ids already made need --ids-column")
    _check_messages(given)
    if given["on_error"] != "skip" and given["max_skipped"] is not None:
        raise click.UsageError("--max-skipped is for --on-error skip: give both, or neither")
    if given["on_error"] == "skip" and given["dry_run"]:
        raise click.UsageError("--dry-run shows what can be used: leave out --on-error skip, or --dry-run")
    for option in ("special_tokens_in_text", "post_processor"):
        if given["ids_column"] is not None and given[option]:
            name = option.replace("_", "-")
            raise click.UsageError(f"--{name} is for text; --ids-column takes ids as they are")
    if given["codec"] == "raw" and (given["metadata"] in _WORDS or "," in given["metadata"]):
        raise click.UsageError("--codec raw stores the text of one column: name it with --metadata")
    source = click.get_current_context().get_parameter_source("codec")
    if given["metadata"] in ("boundaries", "none") and source is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError(f"--codec is for columns, and --metadata {given['metadata']} keeps none: name some")
    if given["layout"] == "ids" and given["metadata"] == "none":
        raise click.UsageError("--layout ids stores which document a token is of: leave out --metadata none")


def _check_messages(given: dict[str, Any]) -> None:
    if given["messages"] is None:
        return
    if given["tokenizer"] is None:
        raise click.UsageError("--messages needs --tokenizer DIR, a tokenizer of transformers with a chat template")
    for option in ("ids_column", "prepend", "append", "post_processor", "special_tokens_in_text", "dry_run"):
        if given[option]:
            name = option.replace("_", "-")
            why = (
                "is not there for conversations" if option == "dry_run" else "is for text: the template says all tokens"
            )
            raise click.UsageError(f"--{name} {why}; drop it or --messages")


def _tokenizer_options(given: dict[str, Any]) -> Any:
    from penstock._from.text.tokenizing import TokenizerOptions

    return TokenizerOptions(
        file=given["tokenizer"],
        name=given["name"],
        prepend=given["prepend"],
        append=given["append"],
        post_processor=given["post_processor"],
        special_tokens_in_text=given["special_tokens_in_text"],
        dtype=given["dtype"],
        messages=given["messages"] is not None,
    )


def _columns(given: dict[str, Any]) -> Any:
    from penstock._from.text.raw import Columns

    metadata: tuple[str, ...] | None
    if given["metadata"] == "all":
        metadata = None
    elif given["metadata"] in _WORDS:
        metadata = ()
    else:
        metadata = tuple(name.strip() for name in given["metadata"].split(","))
        if "" in metadata or len(set(metadata)) < len(metadata):
            raise click.UsageError(f'--metadata "{given["metadata"]}": name each column once, as in url,date')
    column, is_chat = given["messages"] or given["text_column"], given["messages"] is not None
    return Columns(column, given["ids_column"], metadata, given["text_per"], is_chat)


def _codec(given: dict[str, Any]) -> str | None:
    """Of the dataset; None: tokens alone."""
    return {"none": None, "boundaries": "boundaries"}.get(given["metadata"], given["codec"])


def _options_of_task(work: Any, tokenizer: Any, given: dict[str, Any]) -> dict[str, Any]:
    """All options that decide a shard's bytes; shards of another run are kept only where they are equal."""
    columns = work.columns._asdict()
    del columns["messages"]  # said below where it is true, as in tasks of earlier versions
    columns["metadata"] = "all" if work.columns.metadata is None else list(work.columns.metadata)
    return {
        **columns,
        **tokenizer.identity(),
        "codec": _codec(given) or given["codec"],
        "layout": given["layout"],
        "task_bytes": given["shard_size"],
        **({} if given["messages"] is None else {"messages": True}),
    }


def _folder(given: dict[str, Any], inputs: Any) -> Any:
    """Where the dataset goes."""
    from penstock._make.folders import folder_of
    from penstock._places.remote import is_address

    reads_far = any(map(is_address, inputs))
    return folder_of(given["out"], given_storage(), given["scratch"], reads_far=reads_far)


def _with_skipped(update: Any, writer: Any) -> Any:
    """An `observe` that shows how many documents are left out so far."""

    def observe(done: int, total: int, text: int) -> None:
        count = writer.skipped.count
        update(done, total, text, note=f", {count:,} skipped" if count else "")

    return observe


def _write(reader: Any, work: Any, tokenizer: Any, given: dict[str, Any]) -> None:
    from penstock._from.text.pipeline import TextWriter
    from penstock._from.text.sink import ShardSink

    sink = ShardSink(
        _folder(given, [each.name for each in reader.inputs]),
        dtype=tokenizer.dtype,
        codec=_codec(given),
        layout=given["layout"],
        tokenizer=tokenizer.manifest_entry(),
        resume=given["resume"],
        overwrite=given["overwrite"],
        run=given["run_id"],
        clean=given["clean"],
        loss=given["messages"] is not None,
    )
    given = {**given, "out": shown(given["out"])}
    with progress(f"writing {given['out']}", given["as_json"], of=" of text") as update:
        writer = TextWriter(
            reader=reader,
            work=work,
            sink=sink,
            task_bytes=given["shard_size"],
            workers=given["workers"] or default_workers(),
            options=_options_of_task(work, tokenizer, given),
            limit=given["max_skipped"],
        )
        writer.observe = _with_skipped(update, writer)
        if not sink.folder.is_here:
            sink.uploading = lambda done, total: update(done, total, label=f"uploading to {given['out']}")
        summary = writer.run()
    with report_of(given["out"]):
        report(given, summary, sink.folder.size_bytes(), _codec(given))


def _write_on(cluster: Any, reader: Any, work: Any, tokenizer: Any, given: dict[str, Any]) -> None:
    from penstock._from.text.sink import fields_of
    from penstock._from.text.whole_tasks import TaskWriter
    from penstock._make.shard_folder import ShardFolder

    folder = ShardFolder(
        _folder(given, [each.name for each in reader.inputs]),
        tokenizer=tokenizer.manifest_entry(),
        resume=given["resume"],
        overwrite=given["overwrite"],
        run=given["run_id"],
        clean=given["clean"],
    )
    given = {**given, "out": shown(given["out"])}
    with progress(f"writing {given['out']}", given["as_json"], of=" of text") as update:
        writer = TaskWriter(
            reader=reader,
            work=work,
            folder=folder,
            writing={
                "fields": fields_of(tokenizer.dtype, given["messages"] is not None),
                "metadata": _codec(given),
                "layout": given["layout"],
                "overwrite": folder.replaces,
                "run": folder.run,
            },
            task_bytes=given["shard_size"],
            executor=cluster,
            options=_options_of_task(work, tokenizer, given),
            limit=given["max_skipped"],
            measured=lambda done, total: update(done, total, label="cutting the input into tasks"),
        )
        writer.observe = _with_skipped(update, writer)
        summary = writer.run()
    with report_of(given["out"]):
        report(given, summary, folder.folder.size_bytes(), _codec(given))


def _dry_run(reader: Any, work: Any, tokenizer: Any, given: dict[str, Any]) -> None:
    from penstock._from.text.estimate import Target, estimate

    workers = given["workers"] or default_workers()
    target = Target(
        item_bytes=int(tokenizer.dtype[1:]),
        codec=_codec(given),
        layout=given["layout"],
        task_bytes=given["shard_size"],
        task_options=_options_of_task(work, tokenizer, given),
        tokenizer_json=json.dumps(tokenizer.manifest_entry()),
    )
    found = estimate(reader, work, tokenizer, workers, target)
    report_estimate(given, found, tokenizer.dtype, workers)
