"""What worker processes do: make the shards of tasks."""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._from.tokens.cutting import Task
from penstock._from.tokens.formats import open_reader
from penstock._from.tokens.reader import TOKEN, Input, Part, Reader
from penstock._make.folder import Folder
from penstock._make.writer import Writer


class Made(NamedTuple):
    """Of one shard."""

    documents: int
    records: int


class Job(NamedTuple):
    """One task; with it the inputs that it needs, by number, and what shard.json says of it."""

    task: Task
    inputs: dict[int, Input]
    description: dict[str, Any]


@dataclass
class Working:
    """Work of a pool. The answer to a Job is what was Made."""

    fields: dict[str, str]
    codec: str | None
    folder: Folder
    run: str
    overwrite: bool

    def begin(self) -> Callable[[Job], Made]:
        """What is called for each job."""
        return self._make

    def place(self, job: Job) -> str:
        """What the job is about."""
        run = job.task.runs[0]
        return f"{job.inputs[run.source].name}: {run.piece.begin:,}"

    def _make(self, job: Job) -> Made:
        try:
            return self._write(job)
        except InvalidArgumentError:
            # An earlier attempt at this task may have finished it and been killed before it could say so.
            there = self.folder.finished(self.overwrite, now=True)
            made = [each for each in there if (each.number, each.task) == (job.task.number, job.description)]
            if not made:
                raise
            return Made(made[0].spans if self.codec is not None else 0, made[0].records)

    def _write(self, job: Job) -> Made:
        writer = Writer(
            self.folder,
            self.fields,
            self.codec,
            shard=job.task.number,
            run=self.run,
            overwrite=self.overwrite,
            task=job.description,
        )
        documents = records = 0
        with writer:
            for run in job.task.runs:
                reader = open_reader(job.inputs[run.source])
                try:
                    done = self._append(writer, reader, run.piece, job.inputs[run.source].name)
                finally:
                    reader.close()
                documents, records = documents + done.documents, records + done.records
        return Made(documents, records)

    def _append(self, writer: Writer, reader: Reader, piece: Any, path: str) -> Made:
        documents = records = 0
        for part in reader.parts(piece):
            count = len(next(iter(part.fields.values())))
            try:
                self._append_part(writer, part, count)
            except InvalidArgumentError as error:
                misfit = self._misfit(reader, part, piece.begin, documents, records)
                raise InvalidArgumentError(f"{path}: {misfit or error}") from None
            documents += 0 if part.lengths is None else len(part.lengths)
            records += count
        return Made(documents, records)

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

    def _append_part(self, writer: Writer, part: Part, count: int) -> None:
        fields: dict[str, Any] = part.fields
        if part.lengths is None:
            writer.append_batch(**fields)
            return
        encoded = None
        if self.codec == "json":
            encoded = [encode(entry) for entry in part.entries or [{}] * len(part.lengths)]
        writer.append_batch(part.lengths, encoded=encoded, **fields)


def encode(entry: dict[str, Any]) -> bytes:
    """An entry as the codec "json" has it; dates, times and decimals are text.

    Raises:
        InvalidArgumentError: it has what JSON has not.
    """
    try:
        return json.dumps(entry, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        if len(entry) > 1:
            for name, value in entry.items():  # which names the one that is none
                encode({name: value})
        raise InvalidArgumentError(f"metadata {excerpt(entry)} is no JSON: {error}: leave it out") from None


def _plain(value: Any) -> Any:
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is none of its types")
