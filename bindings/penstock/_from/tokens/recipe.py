"""Token files as a recipe: tasks are slices of inputs, decided by them alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock._base.errors import InvalidArgumentError
from penstock._from.tokens.cutting import Slice, Task
from penstock._from.tokens.entries import encode
from penstock._from.tokens.formats import open_reader
from penstock._from.tokens.in_place import InPlace
from penstock._from.tokens.plan import Plan
from penstock._from.tokens.reader import TOKEN, Input, Part, Reader
from penstock._make.base_recipe import BaseRecipe
from penstock._make.place import Numbered
from penstock._make.threads import check_stopped
from penstock._make.writer import Writer


@dataclass
class ImportedTokens:
    """Counts of an import.

    Attributes:
        path: the dataset's folder or address.
        documents: of the dataset; 0 of tokens without documents.
        records: of the dataset.
        shards: of the dataset.
        kept_shards: those among them that an earlier run had made.
        fields: of a record, with their types.
        codec: of documents' entries: "json", "boundaries" or None, tokens without documents.
        seconds: that it took.
        notes: what may be another result than was wanted.
    """

    path: str
    documents: int = 0
    records: int = 0
    shards: int = 0
    kept_shards: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    codec: str | None = None
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Given:
    """A task as workers get it: with the inputs that it needs, by number, and what shard.json says of it."""

    task: Task
    inputs: dict[int, Input]
    description: dict[str, Any]


class TokenRecipe(BaseRecipe):
    """What `make_plan` planned. A task goes to workers with the inputs that it needs."""

    def __init__(self, plan: Plan) -> None:
        """Opens nothing."""
        self._plan = plan
        self.fields = plan.fields
        self.metadata = plan.codec

    def __getstate__(self) -> dict[str, Any]:
        """For the workers, whose tasks have what they need of the plan."""
        return {"fields": self.fields, "metadata": self.metadata}

    def plan(self) -> list[_Given]:
        plan = self._plan
        return [
            _Given(task, {each.source: plan.inputs[each.source] for each in task.slices}, plan.description(task))
            for task in plan.tasks
        ]

    def identity(self) -> dict[str, Any]:
        return self._plan.identity()

    def files(self) -> Sequence[str]:
        return self._plan.files

    def size(self, task: _Given) -> int:
        return task.task.bytes

    def place(self, task: _Given) -> str:
        first = task.task.slices[0]
        return f"{task.inputs[first.source].name}: {first.piece.begin:,}"

    def describe(self, number: int, task: _Given) -> dict[str, Any]:
        return task.description

    def refusal(self, each: Numbered, path: str) -> InvalidArgumentError:
        first = each.task.task.slices[0]
        return InvalidArgumentError(
            f"{each.task.inputs[first.source].name}: shard {each.number} of {path} was made of other input: go on "
            "with that, or start anew with --overwrite and without --resume"
        )

    def make(self, task: _Given, writer: Writer) -> None:
        for each in task.task.slices:
            reader = open_reader(task.inputs[each.source])
            try:
                name = task.inputs[each.source].name
                if not isinstance(reader, InPlace) or not self._stream(writer, reader, each, name):
                    self._append(writer, reader, each, name)
            finally:
                reader.close()

    def _stream(self, writer: Writer, reader: InPlace, each: Slice, path: str) -> bool:
        try:
            return reader.append_to(writer, each.piece)
        except InvalidArgumentError as error:
            documents = records = 0
            for part in reader.parts(each.piece):  # again, for the number of the token
                misfit = self._misfit(reader, part, each.piece.begin, documents, records)
                if misfit:
                    raise InvalidArgumentError(f"{path}: {misfit}") from None
                documents += 0 if part.lengths is None else len(part.lengths)
                records += len(part.fields[TOKEN])
            raise InvalidArgumentError(f"{path}: {error}") from None

    def _append(self, writer: Writer, reader: Reader, each: Slice, path: str) -> None:
        documents = records = 0
        for part in reader.parts(each.piece):
            check_stopped()
            try:
                self._append_part(writer, part)
            except InvalidArgumentError as error:
                misfit = self._misfit(reader, part, each.piece.begin, documents, records)
                raise InvalidArgumentError(f"{path}: {misfit or error}") from None
            documents += 0 if part.lengths is None else len(part.lengths)
            records += len(next(iter(part.fields.values())))

    def _append_part(self, writer: Writer, part: Part) -> None:
        fields: dict[str, Any] = part.fields
        if part.lengths is None:
            writer.append_batch(**fields)
            return
        encoded = None
        if self.metadata == "json":
            encoded = [encode(entry) for entry in part.entries or [{}] * len(part.lengths)]
        writer.append_batch(part.lengths, encoded=encoded, **fields)

    def _misfit(self, reader: Reader, part: Part, begin: int, documents: int, records: int) -> str:
        """Which token the dataset's type does not hold, `documents` and `records` behind unit `begin`; "": none."""
        tokens, limits = part.fields[TOKEN], np.iinfo(self.fields[TOKEN])
        bad = (tokens > limits.max) | (tokens < limits.min)
        if not bad.any():
            return ""
        at = int(np.argmax(bad))
        if part.lengths is None:
            place = f"record {begin + records + at:,}"
        else:
            number = documents + int(np.searchsorted(np.cumsum(part.lengths), at, "right"))
            unit = reader.place(begin) if begin else ""
            place = f"document {number:,} from {unit} on" if unit else f"document {begin + number:,}"
        token = int(tokens[at])
        if token < 0 or token > np.iinfo("u4").max:
            advice = "no dtype of tokens holds it: are these tokens? Leave out what marks padding"
        else:
            advice = "say with dtype what does, or leave the document out"
        return (
            f"{place}: token {token:,} does not fit {self.fields[TOKEN]} ({limits.min:,} to {limits.max:,}): {advice}"
        )
