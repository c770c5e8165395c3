"""What an import makes of its inputs, decided by them alone: fields, documents, entries, tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock._base.errors import InvalidArgumentError
from penstock._data.dtype import numpy_dtype
from penstock._from.tokens.cutting import Cutter, Task
from penstock._from.tokens.formats import open_reader
from penstock._from.tokens.in_place import InPlace
from penstock._from.tokens.reader import TOKEN, Input, Reader

_SMALLEST = {"u1": "u1", "i1": "u1", "u2": "u2", "i2": "u2"}  # others: u4
_DTYPES = ("u1", "u2", "u4")


@dataclass
class Plan:
    """All that decides the bytes of shards, but for the inputs.

    Attributes:
        inputs: of which files are opened again by who reads.
        identities: what tells each input's content from others'.
        fields: of the dataset.
        codec: of entries; None: tokens without documents.
        options: what the caller chose.
        files: of this machine that the inputs are made of.
        is_native: native code makes the shards, without the GIL.
    """

    inputs: list[Input]
    identities: list[str]
    fields: dict[str, str]
    codec: str | None
    options: dict[str, Any]
    files: list[str]
    tasks: Sequence[Task]
    is_native: bool = True

    def identity(self) -> dict[str, Any]:
        """What shard.json says of it; two runs of other options differ in it."""
        return {**self.options, "fields": self.fields, "codec": self.codec}

    def description(self, task: Task) -> dict[str, Any]:
        """What shard.json keeps of a task."""
        return {
            "version": 3,
            "number": task.number,
            "inputs": [[self.identities[each.source], each.piece.begin, each.piece.end] for each in task.slices],
            "options": self.identity(),
        }


def make_plan(inputs: list[Input], options: dict[str, Any], dtype: str | None, task_bytes: int) -> Plan:
    """Opens the inputs one after the other.

    Raises:
        InvalidArgumentError: they do not go together, or there is nothing in them.
    """
    cutter, seen = Cutter(task_bytes), dict[Any, str]()
    plan = Plan([], [], {}, None, options, [], [])
    first: Reader | None = None
    for each in inputs:
        reader = open_reader(each)
        try:
            key: Any = reader.key() if isinstance(reader, InPlace) else None
            if key is not None and seen.setdefault(key, each.at.path) != each.at.path:
                continue  # as of corpus*, which matches the files beside each other
            if first is None:
                first, plan.fields = reader, _fields(reader, dtype)
                plan.codec = "boundaries" if reader.has_documents else None
            if reader.has_documents and reader.has_metadata:
                plan.codec = "json"
            _check_alike(plan, first, reader, inputs[0].name, each.name, dtype)
            cutter.add(len(plan.inputs), reader.pieces(cutter.piece_bytes))
            plan.inputs.append(each)
            plan.identities.append(reader.identity())
            plan.files += reader.files()
            plan.is_native = plan.is_native and isinstance(reader, InPlace) and reader.is_native
        finally:
            reader.close()
    plan.tasks = cutter.finish()
    if not plan.tasks:
        raise InvalidArgumentError(f"{', '.join(each.name for each in inputs[:3])}: there are no tokens")
    return plan


def _fields(reader: Reader, dtype: str | None) -> dict[str, str]:
    stored = {name: each.lstrip("<|=") for name, each in reader.fields.items()}
    given = "" if dtype is None else numpy_dtype(dtype).str.lstrip("<|=")
    if given and given not in _DTYPES and given != stored[TOKEN]:
        raise InvalidArgumentError(f"dtype {dtype!r:.20}: a token of a dataset has {', '.join(_DTYPES)}")
    stored[TOKEN] = given if given in _DTYPES else _SMALLEST.get(stored[TOKEN], "u4")
    return stored


def _check_alike(plan: Plan, first: Reader, other: Reader, one: str, two: str, dtype: str | None) -> None:
    wanted, has = list(first.fields), list(other.fields)
    if wanted != has:
        raise InvalidArgumentError(f"{one} has {', '.join(wanted)} and {two} has {', '.join(has)}: import them apart")
    if first.has_documents != other.has_documents:
        which = (one, two) if first.has_documents else (two, one)
        raise InvalidArgumentError(f"{which[0]} has documents and {which[1]} has none: import them apart")
    if _fields(other, dtype) != plan.fields:
        raise InvalidArgumentError(
            f"{one} has tokens of {first.fields[TOKEN]} and {two} of {other.fields[TOKEN]}: say with dtype what the "
            "dataset has"
        )
