"""Agreement of the loaders of a job's processes: asked over torch.distributed, decided by each alike."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from penstock import _native
from penstock._base.errors import InvalidArgumentError, StateMismatchError
from penstock._base.words import excerpt

_MOST_NAMED = 8  # processes, or differences of one
_SET = "order.steered.stages"
_MISSING = object()


@dataclass(frozen=True)
class Facts:
    """One process's facts of its loader.

    Attributes:
        rank: of the loader.
        world_size: of the loader.
        position: of the loader.
        job: what decides which observation stands where; JSON, with a digest of the weights that were set.
        schedule: [(position, global batch size), …].
        run_end: the run's end; None: endless.
        epoch_size: of epochs that end batches; None: batches run across.
        tail: "pad", "drop" or "short".
        balance: by what rows go to ranks, in words.
        uneven: "refuse" or "pad".
    """

    rank: int
    world_size: int
    position: int
    job: str
    schedule: list[tuple[int, int]]
    run_end: int | None
    epoch_size: int | None
    tail: str
    balance: str = "none"
    uneven: str = "refuse"


def check_agreement(job: _native.Job, position: int, share: tuple[int, int], group: Any, balance: str = "none") -> None:
    """Compares a loader with those of the group's other processes; all of them call it.

    Args:
        job: of this process's loader.
        position: of it.
        share: its rank and world size.
        group: of torch.distributed; None: the default one.
        balance: by what rows go to ranks, in words.

    Raises:
        StateMismatchError: they differ.
        InvalidArgumentError: there is no process group, or this process is not in it.
    """
    rank, world_size = share
    schedule, run_end, epoch_size, tail, uneven = job.batching
    mine = Facts(rank, world_size, position, job.summary, schedule, run_end, epoch_size, tail, balance, uneven)
    distributed = sys.modules.get("torch.distributed")  # who has a process group has imported it
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        if world_size == 1 and group is None:
            return
        raise InvalidArgumentError(
            f"check_agreement: this loader is rank {rank} of {world_size}, and there is no process group to ask the "
            "others: call torch.distributed.init_process_group first"
        )
    if distributed.get_rank(group) < 0:
        raise InvalidArgumentError("check_agreement: this process is not in the group: give one that it is in")
    said: list[Any] = [None] * distributed.get_world_size(group)
    distributed.all_gather_object(said, asdict(mine), group=group)
    if any(each.keys() != said[0].keys() for each in said):
        raise StateMismatchError(f"the loaders of {len(said)} processes are of different versions of penstock")
    found = disagreements([Facts(**each) for each in said])
    if found:
        raise StateMismatchError(f"the loaders of {len(said)} processes do not go together: {'; '.join(found)}")


def disagreements(facts: list[Facts]) -> list[str]:
    """In what processes differ, in words; empty if they agree. The same for all of them.

    Args:
        facts: of each process, by its number in the group.
    """
    found = _about_ranks(facts)
    found += _about("position", [f"{each.position:,}" for each in facts])
    found += _about_jobs([each.job for each in facts])
    found += _about("global batch size", [_schedule_text(each.schedule) for each in facts])
    ends = ["nowhere" if each.run_end is None else f"at {each.run_end:,}" for each in facts]
    found += _about("the run ends", ends)
    per_epoch = ["across epochs" if each.epoch_size is None else "within each epoch" for each in facts]
    found += _about("batches go", per_epoch)
    found += _about("tail", [repr(each.tail) for each in facts])
    found += _about("uneven", [repr(each.uneven) for each in facts])
    return found + _about("balance", [each.balance for each in facts])


def _about_ranks(facts: list[Facts]) -> list[str]:
    found = []
    count = len(facts)
    for size in sorted({each.world_size for each in facts}):
        if size != count:
            which = [process for process, each in enumerate(facts) if each.world_size == size]
            found.append(f"{_named(which)}: world size {size:,}, the group has {count:,}")
    ranks = Counter(each.rank for each in facts)
    for rank, times in sorted(ranks.items()):
        if times > 1:
            which = [process for process, each in enumerate(facts) if each.rank == rank]
            found.append(f"{_named(which)}: all of them are rank {rank:,}")
    missing = sorted(set(range(count)) - ranks.keys())
    if missing and not found:  # else a consequence
        found.append(f"no process is rank {_listed(missing)}")
    elif missing:
        found[-1] += f", and no process is rank {_listed(missing)}"
    return found


def _about(what: str, values: list[str]) -> list[str]:
    """The processes that have another value than most."""
    usual = _usual(values)
    found = []
    for value in dict.fromkeys(values):
        if value != usual:
            which = [process for process, each in enumerate(values) if each == value]
            found.append(f"{_named(which)}: {what} {value}, others {usual}")
    return found


def _about_jobs(jobs: list[str]) -> list[str]:
    usual = _usual(jobs)
    found = []
    for job in dict.fromkeys(jobs):
        if job != usual:
            which = [process for process, each in enumerate(jobs) if each == job]
            differences = _differences(json.loads(job), json.loads(usual), "")
            more = len(differences) - _MOST_NAMED
            text = ", ".join(differences[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
            if any(each.startswith(_SET) for each in differences):
                text += " (weights that were set: call set_weights with the same ones at the same step on every rank)"
            found.append(f"{_named(which)}: another job: {text}")
    return found


def _usual(values: list[str]) -> str:
    """The value that most have; of equally many the first."""
    return Counter(values).most_common(1)[0][0]


def _differences(one: Any, usual: Any, path: str) -> list[str]:
    """Where two values of JSON differ: `order.seed is 7, others 0`."""
    if isinstance(one, dict) and isinstance(usual, dict):
        pairs = [(f".{key}", one.get(key, _MISSING), usual.get(key, _MISSING)) for key in sorted({*one, *usual})]
    elif isinstance(one, list) and isinstance(usual, list) and len(one) == len(usual):
        pairs = [(f"[{number}]", a, b) for number, (a, b) in enumerate(zip(one, usual, strict=True))]
    elif one == usual:
        return []
    else:
        return [f"{path.lstrip('.')} is {_text(one)}, others {_text(usual)}"]
    return [each for key, a, b in pairs for each in _differences(a, b, path + key)]


def _text(value: Any) -> str:
    return "not there" if value is _MISSING else excerpt(json.dumps(value, ensure_ascii=False))


def _schedule_text(schedule: list[tuple[int, int]]) -> str:
    if len(schedule) == 1:
        return f"{schedule[0][1]:,}"
    return ", ".join(f"{size:,} from {at:,}" for at, size in schedule)


def _named(processes: list[int]) -> str:
    return f"process {processes[0]}" if len(processes) == 1 else f"processes {_listed(processes)}"


def _listed(numbers: list[int]) -> str:
    shown = ", ".join(f"{number:,}" for number in numbers[:_MOST_NAMED])
    more = len(numbers) - _MOST_NAMED
    return shown + (f" and {more:,} more" if more > 0 else "")
