"""`penstock trace`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from penstock._cli.command_help import Command, heading
from penstock._cli.data import data_options, named_by_user, open_data, sides_as_options, sides_options, told_by_sides
from penstock._cli.output import emit_json, json_option
from penstock._cli.param_type import ParamType
from penstock._cli.schedules import ScheduleType
from penstock._cli.traced_table import draw
from penstock._places.remote import shown
from penstock._view.decoder import Decoder, metadata_of

_POSITIONS = (1 << 63) - 1
_ROWS = 8  # of the batch after a state, where --global-batch-size is not given


class RangeType(ParamType[tuple[int, int]]):
    """A range of positions: 100:200."""

    name = "begin:end"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """(begin, end)."""
        try:
            begin, end = value if isinstance(value, tuple) else value.split(":")
            return int(begin), int(end)
        except ValueError:
            self.fail(f"{value!r} is no range of positions such as 100:200", param, ctx)


_EPILOG = """\b
Examples:
  penstock trace corpus/ --step 1200 --global-batch-size 256 --window 2048 --tokenizer tokenizer.json
  penstock trace corpus/ --state checkpoint.json --global-batch-size 256
"""


@click.command("trace", cls=Command, epilog=_EPILOG)
@data_options
@click.option(
    "--step",
    type=click.IntRange(0, _POSITIONS),
    metavar="N",
    help="Number of the batch in the run, from 0. Default: none; give this or --state.",
)
@click.option(
    "--state",
    metavar="FILE",
    help="File with a saved state, as JSON, by torch.save or by DCP: show the batch after it. Default: none.",
)
@click.option(
    "--global-batch-size", "-b", type=ScheduleType(), metavar="G",
    help="Rows of a batch of all ranks together, or a schedule position:rows, such as 0:256,100000:512. Default: 8 "
    "with --state; --step needs it.",
)  # fmt: skip
@click.option(
    "--window",
    "-w",
    type=click.IntRange(1),
    help="With --step: records (tokens) of a window. Default: none; give this or --documents.",
)
@click.option("--documents", is_flag=True, help="With --step: observations are documents.")
@click.option(
    "--tokenizer", metavar="FILE", help="The tokenizer.json that made the ids. Default: ids are shown, not text."
)
@click.option("--full", is_flag=True, help="Show all of a long text, not its first 24 lines alone.")
@heading("The run")
@click.option(
    "--seed",
    type=click.IntRange(0, (1 << 64) - 1),
    default=0,
    show_default=True,
    help="With --step: the loader's seed.",
)
@click.option(
    "--order",
    type=click.Choice(["uniform", "sequential"]),
    default="uniform",
    show_default=True,
    help="With --step: the loader's order.",
)
@click.option(
    "--lookahead",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Records that a window has beside its own, for labels.",
)
@click.option(
    "--phase",
    type=click.Choice(["random"]),
    help="As the loader's windows(phase=…): another first record each epoch. Default: the first.",
)
@click.option("--packed", is_flag=True, help="Observations are packed rows of --window records.")
@click.option(
    "--indices",
    metavar="FILE",
    multiple=True,
    help="The .npy of the run's orders.Custom: with --step the order, with --state one that it has. May be repeated, "
    "for sources of a mixture. Default: none.",
)
@click.option(
    "--skip",
    type=RangeType(),
    multiple=True,
    help="Positions that the run left out, such as 100:200, without 200. May be repeated. Default: none.",
)
@click.option("--epochs", type=click.IntRange(1), help="Epochs of the run. Default: it has no end.")
@click.option("--per-epoch", is_flag=True, help="The run has per_epoch=True: no batch goes on into the next epoch.")
@click.option(
    "--tail",
    type=click.Choice(["pad", "drop", "short"]),
    default="pad",
    show_default=True,
    help="What became of the rows that fill no batch.",
)
@heading("Ranks")
@click.option(
    "--world-size",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of ranks, to say which rank had a row.",
)
@click.option("--rank", type=click.IntRange(0), help="Show the rows of this rank alone. Default: of all.")
@click.option(
    "--uneven",
    type=click.Choice(["refuse", "pad"]),
    default="refuse",
    show_default=True,
    help="As the loader's uneven=: pad where the ranks do not divide the batch.",
)
@click.option(
    "--balance",
    type=click.Choice(["attention", "tokens"]),
    help="By which cost rows went to ranks, as the loader's balance=. Default: by turns.",
)
@click.option(
    "--micro-batches",
    type=click.IntRange(1),
    help="Micro-batches of a step, as in Balance(micro_batches=…); needs --balance. Default: 1.",
)
@sides_options("no documents")
@json_option
def command(data: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Shows the rows of one global batch: which documents they are of, in which shard, and what they say.

    DATA is a dataset, as of `penstock show`, or the file of a mixture, mix.json. With --step give what the loader was
    given; a state tells it, but for the batch size. It reads this batch and no other.
    """
    if (given["step"] is None) == (given["state"] is None):
        raise click.UsageError("give exactly one of --step and --state")
    if given["step"] is not None and given["global_batch_size"] is None:
        raise click.UsageError("--step counts batches: give --global-batch-size G")
    if given["rank"] is not None and given["rank"] >= given["world_size"]:
        raise click.UsageError(f"--rank {given['rank']}: ranks are below --world-size, {given['world_size']}")
    if given["micro_batches"] is not None and given["balance"] is None:
        raise click.UsageError("--micro-batches needs --balance")
    _refuse_unused(data, given)
    if given["step"] is not None and given["indices"]:
        by_line = click.get_current_context().get_parameter_source("order") == click.core.ParameterSource.COMMANDLINE
        if len(given["indices"]) > 1 or by_line:
            raise click.UsageError("--step: one order: give one --indices, or --order")
    traced = _trace(data, given)
    if as_json:
        emit_json({"path": shown(*data), **traced})
        return
    draw(shown(*data), traced, given["full"])


def _refuse_unused(data: tuple[str, ...], given: dict[str, Any]) -> None:
    """Refuses what a state or a mixture's file says itself."""
    by_file = len(data) == 1 and data[0].endswith(".json")
    if given["state"] is None and not by_file:
        return
    unused = ["window", "lookahead", "phase", "documents", "packed", "end_of_document", "begin_of_document"]
    if given["state"] is not None:
        unused += ["seed", "order", "skip"]
    context = click.get_current_context()
    for name in unused:
        if context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE:
            what = "the file of the mixture" if by_file and name not in ("seed", "order", "skip") else "the state"
            raise click.UsageError(f"--{name.replace('_', '-')}: {what} says it: leave it out")


def _trace(data: tuple[str, ...], given: dict[str, Any]) -> dict[str, Any]:
    import penstock
    from penstock._cli.traced import TracedRun, read_state, refusals_of, run_of_state
    from penstock._load.locate import batch_position

    state = None if given["state"] is None else read_state(given["state"])
    view = _mixture(data)
    dataset = None if view is not None else open_data(data, given["dtype"], given["format"])
    with named_by_user():
        custom = [penstock.orders.Custom(file) for file in given["indices"]]
    if state is not None:
        run = run_of_state(dataset if view is None else view, state, custom)
    else:
        view = _view(dataset, given) if view is None else view
        run = TracedRun(view, given["seed"], custom[0] if custom else given["order"], list(given["skip"]))
    size = given["global_batch_size"]
    options: dict[str, Any] = {"seed": run.seed, "order": run.order, "skip": run.skip, "tail": given["tail"]}
    options |= {"epochs": given["epochs"], "per_epoch": given["per_epoch"], "uneven": given["uneven"]}
    options |= {"global_batch_size": _ROWS if size is None else size}
    balance = None if given["balance"] is None else penstock.Balance(given["balance"], given["micro_batches"])
    reading = _rank_read(given, balance) | {"on_mismatch": "grown" if run.grown else "refuse"}
    with penstock.Loader(run.view, framework="numpy", prefetch=1, **reading, **options) as loader:
        with refusals_of(data):
            position = None if state is None else loader.load_state_dict(state).position
            job = penstock.Job(run.view, **options)
            if state is not None and run.grown:
                job = job.grown(state)
            if state is not None and run.steered:
                job = job.steered(state)
        begin = batch_position(job._native, given["step"], position)
        rows = job.locate(position=begin, world_size=given["world_size"], balance=balance)
        loader.seek(begin)
        batch = next(loader)
        places = {position: place for place, position in enumerate(batch.positions.tolist())}
        shown = sorted((row for row in rows if row.position in places), key=lambda row: places[row.position])
        teller = _Teller(run.view, batch, given["tokenizer"])
        return {
            "step": None if size is None else job._native.steps_before(batch.position),
            "position": batch.position,
            "next_position": batch.state_dict()["position"],
            "rows": [teller.row(number, row) for number, row in enumerate(shown)],
        }


def _rank_read(given: dict[str, Any], balance: Any) -> dict[str, Any]:
    """Without --rank all rows are read as those of one rank."""
    if given["rank"] is None:
        return {"rank": 0, "world_size": 1}
    return {"rank": given["rank"], "world_size": given["world_size"], "balance": balance}


def _mixture(data: tuple[str, ...]) -> Any:
    """The mixture, if DATA is the file of one."""
    import penstock

    if len(data) != 1 or not data[0].endswith(".json") or not Path(data[0]).is_file():
        return None
    with named_by_user():
        return penstock.Mixture.from_file(data[0])


def _view(dataset: Any, given: dict[str, Any]) -> Any:
    dataset = told_by_sides(dataset, given)
    with sides_as_options():
        if given["documents"] or dataset.mode == "opaque" or dataset.features is not None:
            return dataset.documents()
        if given["window"] is None:
            raise click.UsageError("what is an observation: give --window W, or --documents")
        if given["packed"]:
            return dataset.packed(given["window"])
    return dataset.windows(given["window"], given["lookahead"], phase=given["phase"])


class _Teller:
    """The lines that tell of the rows of a batch."""

    def __init__(self, view: Any, batch: Any, tokenizer: str | None) -> None:
        views = getattr(view, "sources", {None: view})
        self._names = list(views)
        self._datasets = [each.dataset for each in views.values()]
        self._shards = [each.shards for each in self._datasets]
        self._decoders = [Decoder(tokenizer, each) for each in self._datasets]
        self._has_entries = next(iter(views.values())).metadata is True
        self._batch = batch

    def row(self, number: int, located: Any) -> dict[str, Any]:
        """Row `number` of the batch, which is the one that was located."""
        fields = self._fields(number)
        source = located.source
        decoder, shards = self._decoders[source], self._shards[source]
        entries = self._batch.spans.of_row(number) if self._has_entries else [None] * len(located.spans)
        spans = [
            {
                **span._asdict(),
                "id": list(span.id),
                "shard": shards[span.id.shard].name,
                "metadata": None if entry is None else metadata_of(entry),
                **_told(decoder, {name: values[span.start : span.stop] for name, values in fields.items()}),
            }
            for span, entry in zip(located.spans, entries, strict=True)
        ]
        records = len(next(iter(fields.values()))) if fields else 0
        told = {**vars(located), "source": self._names[source], "records": records, "spans": spans}
        names, offset = self._shards_of(located, records)
        return {**told, "shards": names, "shard_offset": offset, **_told(decoder, fields)}

    def _fields(self, number: int) -> dict[str, Any]:
        batch = self._batch
        if not batch._layout.ragged:
            return {name: batch[name][number] for name in batch}
        begin, end = batch.offsets[number : number + 2].tolist()
        return {name: batch[name][begin:end] for name in batch}

    def _shards_of(self, located: Any, records: int) -> tuple[list[str], int | None]:
        """Names of the shards that a row is cut from, whether it has spans or none, and its first record in the first
        of them; None: it has no one place.
        """
        shards = self._shards[located.source]
        if located.first_record < 0:
            return list(dict.fromkeys(shards[span.id.shard].name for span in located.spans)), None
        begin, end, at = located.first_record, located.first_record + max(records, 1), 0
        found: list[str] = []
        offset = begin
        for shard in shards:
            if at < end and at + shard.records > begin:
                offset = offset if found else begin - at
                found.append(shard.name)
            at += shard.records
        return found, offset


def _told(decoder: Decoder, fields: dict[str, Any]) -> dict[str, Any]:
    ids = fields[decoder.field].tolist() if decoder.field in fields else None
    return {"ids": ids, "text": decoder.text(fields) if fields else ""}
