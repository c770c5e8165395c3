"""A dataset that grew: states of its first shards, and the job that goes on from one with more of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

from penstock import _native
from penstock._base.arguments import MOST
from penstock._base.errors import InvalidArgumentError, StateMismatchError
from penstock._data.loadable import Loadable
from penstock._load import orders
from penstock._load.job_arguments import JobArguments

_NAME = "grown"  # of the order that a state says, and of the word of on_mismatch


class _Stage(NamedTuple):
    """A stretch of a job as a state says it: from `begin` on, epochs in an order over what a source says."""

    begin: int
    order: Any
    source: Any

    @property
    def shards(self) -> int:
        return int(self.source["dataset"]["shards"])

    @property
    def fingerprint(self) -> str:
        return str(self.source["dataset"]["fingerprint"])


@dataclass(frozen=True)
class _Part:
    """The same as a job over the first shards of the loader's dataset."""

    begin: int
    arguments: JobArguments
    job: _native.Job

    @property
    def source(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.job.json)["sources"][0]
        return found

    def epoch_end(self, position: int) -> int:
        """The first end of an epoch at or after a position of the part."""
        size = len(self.arguments.view._first)
        return position + -(position - self.begin) % size

    def order(self) -> tuple[int, _native.Order, str]:
        return self.begin, self.arguments.native_order(), json.dumps(self.source, sort_keys=True, separators=(",", ":"))


def check_growable(given: JobArguments) -> None:
    """Refuses a job that has no meaning over a longer dataset.

    Raises:
        InvalidArgumentError: it has none; the message says what to do.
    """
    view, what = given.view, f"on_mismatch={_NAME!r}"
    view._check_growable(what)
    if isinstance(given.order, orders.Custom):
        raise InvalidArgumentError(
            f"{what}: orders.Custom says itself which observations come, and a state does not tell what it said "
            "before: a view of dataset.select(range(shards)) goes on as if it had not grown"
        )
    if isinstance(given.order, (orders.Weighted, orders.Balanced)):
        raise InvalidArgumentError(
            f"{what}: orders.{type(given.order).__name__} draws from a table of all observations, which changes with "
            "them: use orders.Uniform, Sequential, Blocks or Bucketed"
        )


def grown_job(given: JobArguments, version: int, position: int, text: str) -> _native.Job:
    """The job that goes on from a state of the first shards: its epoch over these, then epochs over all shards.

    Args:
        given: of the loader, over all shards.
        version: of the state.
        position: of the state.
        text: the state's job.

    Raises:
        StateMismatchError: the state is not of the first shards, or of another seed, order, window or view.
        InvalidArgumentError: it is no state.
    """
    whole = _Part(0, given, given.native())
    try:
        whole.job.load(version, position, text, "refuse")
    except StateMismatchError as error:
        refusal = error
    else:
        return whole.job
    stages = _stages(text)
    if stages is None:
        if _order_name(text) != _NAME:
            raise refusal
        raise StateMismatchError(
            "the state's job is not one that this penstock knows: what it says of a dataset that grew is damaged or of "
            "a later version"
        )
    last = whole.source
    if stages[-1].fingerprint != last["dataset"]["fingerprint"] or stages[-1].source.get("view") != last["view"]:
        # Epochs over other shards that were to come later, never came.
        stages = [each for each in stages if each.begin < position] or stages[:1]
        parts = _parts(whole, stages, (version, position, text), refusal)
        if parts[-1].source != last:
            begin = parts[-1].epoch_end(position)
            parts = [*(each for each in parts if each.begin < begin), replace(whole, begin=begin)]
    else:
        parts = _parts(whole, stages, (version, position, text), refusal)
    if len(parts) == 1:
        return whole.job
    try:
        order = _native.GrownOrder([each.order() for each in parts])
        return given.native_with(order)
    except InvalidArgumentError as error:
        raise StateMismatchError(f"the state's job is not one that this penstock knows: {error}") from None


def growth_words(job: _native.Job, position: int) -> str:
    """Where the epochs of all shards begin, if that is after a position; else ""."""
    stages = _stages(job.json) or []
    if len(stages) < 2 or stages[-1].begin < position:
        return ""
    before, last = stages[-2:]
    return (
        f"; the dataset has grown from {before.shards:,} to {last.shards:,} shards: epochs from "
        f"{job.epoch(last.begin):,} on, position {last.begin:,}, are of all of them"
    )


def growth(view: Loadable, text: str) -> str:
    """What to add to the refusal of a state: its dataset is the first shards of the view's.

    Args:
        view: of the loader that refuses it.
        text: the state's job.

    Returns:
        A sentence, or "" if the dataset has not grown.
    """
    dataset, stages = view._growing(), _stages(text)
    if dataset is None or stages is None:
        return ""
    last, shards = stages[-1], len(dataset.shards)
    if last.shards == shards and len(stages) == 1:
        return ""
    if not 0 < last.shards <= shards or dataset.select(range(last.shards)).fingerprint != last.fingerprint:
        return ""
    goes_on = f'on_mismatch="{_NAME}" ends the epoch over them, and takes all shards from the next one on'
    if last.shards < shards:
        return (
            f". It is the same dataset and more: the first {last.shards:,} of these {shards:,} shards are the state's. "
            f"{goes_on}; a view of dataset.select(range({last.shards})) goes on as if it had not grown"
        )
    return f'. The dataset grew in the state\'s run: on_mismatch="{_NAME}" goes on with it'


def _order_name(text: str) -> Any:
    """What an untrusted job calls its order; None: it does not say."""
    try:
        return json.loads(text)["order"]["name"]
    except (LookupError, RecursionError, TypeError, ValueError):
        return None


def _stages(text: str) -> list[_Stage] | None:
    """What an untrusted job of one source says of its stretches; None: it is no such job."""
    try:
        root = json.loads(text)
        (source,) = root["sources"]
        found = _said_stages(root["order"], source)
        return found if _is_growth(found) else None
    except (ArithmeticError, AttributeError, IndexError, LookupError, RecursionError, TypeError, ValueError):
        return None


def _said_stages(order: Any, source: Any) -> list[_Stage]:
    """The stretches as a job's order says them; none where it says what this version does not know."""
    if order.get("name") != _NAME:
        return [_Stage(0, order, source)]
    # What a later version may add decides positions: not passed over.
    if order.keys() != {"name", "stages"} or any(each.keys() != set(_Stage._fields) for each in order["stages"]):
        return []
    found = [_Stage(**each) for each in order["stages"]]
    return found if found[-1].source == source else []


def _is_growth(stages: list[_Stage]) -> bool:
    """True if each has shards that the one before it lacks: no more jobs are made than the dataset has shards."""
    if not all(type(each.begin) is int and each.begin <= MOST and each.fingerprint for each in stages):
        return False
    grows = all(a.begin < b.begin and a.shards < b.shards for a, b in pairwise(stages))
    return grows and bool(stages) and stages[0].begin == 0 and stages[0].shards >= 0


def _parts(whole: _Part, stages: list[_Stage], state: tuple[int, int, str], refusal: StateMismatchError) -> list[_Part]:
    """The stages as jobs over the first shards, each compared with what the state says of it."""
    version, position, text = state
    root = json.loads(text)
    parts = []
    for number, stage in enumerate(stages):
        shards = len(whole.arguments.view._growing().shards)
        if not 0 < stage.shards <= shards:
            raise refusal
        part = whole
        if stage.shards < shards:
            try:
                arguments = _of_first_shards(whole.arguments, stage.shards)
            except InvalidArgumentError:  # such as fewer records than a window has
                raise refusal from None
            part = _Part(stage.begin, arguments, arguments.native())
        ends = stages[number + 1].begin if number + 1 < len(stages) else position
        saved = json.dumps({**root, "order": stage.order, "sources": [stage.source]})
        try:
            part.job.load(version, min(position, ends), saved, "refuse")
        except StateMismatchError as error:
            if part is whole:
                raise
            raise StateMismatchError(
                f"{error}. Compared were the first {stage.shards:,} of these {shards:,} shards"
            ) from None
        parts.append(replace(part, begin=stage.begin))
    return parts


def _of_first_shards(given: JobArguments, count: int) -> JobArguments:
    old = given.view._first._of_first_shards(count)
    if len(old) == 0:
        raise InvalidArgumentError(old._emptiness())
    order = given.order
    if isinstance(order, orders.Bucketed):
        order = orders.Bucketed(order.lengths[: len(old)], order.pool, order.bucket)
    return replace(given, view=old, order=order)
