"""Datasets of shards that are there: each is taken as it is, or changed, by a worker that has it here alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from penstock import _native
from penstock._base.errors import Error, InvalidArgumentError
from penstock._make.base_recipe import BaseRecipe, Workshop
from penstock._make.bucket_look import MANIFEST, SHARD_MANIFEST
from penstock._make.folder import Taker
from penstock._make.place import Made, Numbered, Place
from penstock._make.stored import ONLY_SHARD, Stored, StoredShard, symlink, told_of

_TASK = "task"  # of a shard.json
_OF_LAYOUT = ("layout", "files", "spans", _TASK, "crc32c", "version")  # what differs between layouts
_OF_COLUMNS = ("columns", "files", "values", "crc32c", "version")  # what differs when columns do


class TakenShard(NamedTuple):
    """A task.

    Attributes:
        source: number of the dataset that it is of.
        shard: of it.
        values: of each column that is added, of these documents.
        stays: it is part of the dataset already.
    """

    source: int
    shard: StoredShard
    values: Sequence[Any] = ()
    stays: bool = False


class Change(Protocol):
    """A change of shards: each becomes another."""

    note: str | None  # name of one beside the shards where shard.json does not tell what was done

    def apply(self, local: Path, values: Sequence[Any], to: Path) -> Path:
        """Changes the dataset `local`, of one shard, maybe into the new folder `to`; the finished shard's folder."""

    def is_made_of(self, found: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
        """True if a finished shard may be this change of another one, by their shard.json."""

    def task(self, taken: TakenShard) -> Any:
        """What shard.json says that the shard was made of."""

    def digest(self, values: Sequence[Any]) -> str:
        """Tells it from other changes, where there is a note."""


class Convert:
    """The other layout."""

    note: str | None = None

    def __init__(self, layout: str) -> None:
        self._layout = layout

    def apply(self, local: Path, values: Sequence[Any], to: Path) -> Path:
        _native.convert(str(local), str(to), self._layout, False)
        return to / ONLY_SHARD

    def is_made_of(self, found: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
        return found["layout"] == self._layout and _same(found, given, _OF_LAYOUT)

    def task(self, taken: TakenShard) -> None:
        return None

    def digest(self, values: Sequence[Any]) -> str:
        return ""


class Annotate:
    """Other columns."""

    note: str | None = ".annotating"

    def __init__(self, added: Sequence[tuple[str, list[str], bool]], removed: Sequence[str]) -> None:
        """`added` is what native code takes, without values."""
        self._added = list(added)
        self._removed = list(removed)

    def apply(self, local: Path, values: Sequence[Any], to: Path) -> Path:
        added = [(*each, array) for each, array in zip(self._added, values, strict=True)]
        _native.annotate(str(local), added, self._removed, None)
        return local / str(json.loads((local / MANIFEST).read_bytes())["shards"][0]["name"])

    def is_made_of(self, found: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
        return _same(found, given, _OF_COLUMNS)

    def task(self, taken: TakenShard) -> Any:
        return taken.shard.task

    def digest(self, values: Sequence[Any]) -> str:
        digest = hashlib.sha256(json.dumps([self._added, self._removed]).encode())
        for each in values:
            digest.update(each.tobytes())
        return digest.hexdigest()


def _same(found: Mapping[str, Any], given: Mapping[str, Any], but: Iterable[str]) -> bool:
    names = (found.keys() | given.keys()) - set(but)
    return all(found.get(name) == given.get(name) for name in names)


class ShardRecipe(BaseRecipe):
    """One dataset of the shards of others, in order."""

    _texts: Mapping[int, bytes] = {}
    _noted: list[Any] | None = None

    def __init__(
        self,
        sources: Sequence[Stored],
        tasks: Sequence[TakenShard],
        said: Mapping[str, Any],
        change: Change | None = None,
        *,
        counts_shards: bool = False,
        goes_on: str | None = None,
    ) -> None:
        """Looks at nothing.

        Args:
            sources: the datasets.
            tasks: their shards.
            said: what the manifest says besides: tokenizer and features.
            change: what becomes of each shard; None: nothing.
            counts_shards: progress is in shards, instead of bytes.
            goes_on: how to go on with a run that did not end.
        """
        self._sources = list(sources)
        self._tasks = list(tasks)
        self._said = said
        self._change = change
        self._counts_shards = counts_shards
        self.goes_on = goes_on

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in ("_sources", "_change")}

    # ---- the plan

    def prepare(self, run: Workshop) -> None:
        self._folder = run.folder
        self._texts = run.folder.texts(run.shards.replaces)
        note = self._change.note if self._change is not None else None
        noted = None if note is None else run.folder.read_note(note)
        with suppress(ValueError, TypeError):
            self._noted = None if noted is None else list(json.loads(noted))
        for each in self._sources:  # after the folder was looked at: what is replaced now is seen at the publishing
            if each.path == run.folder.path and run.folder.read_note(MANIFEST) != each.manifest:
                raise InvalidArgumentError(f"{each.path}: another dataset was published here just now: do it again")

    def plan(self) -> Sequence[TakenShard]:
        return self._tasks

    def identity(self) -> None:
        """None: descriptions tell all."""

    def describe(self, number: int, task: TakenShard) -> Any:
        return task.shard.task if self._change is None else self._change.task(task)

    def size(self, task: TakenShard) -> int:
        if task.stays:
            return 0
        return 1 if self._counts_shards else task.shard.bytes

    def place(self, task: TakenShard) -> str:
        return f"{self._sources[task.source].path}/{task.shard.name}"

    def is_made_of(self, each: Numbered, seen: Any, found: Any) -> bool:
        task: TakenShard = each.task
        if task.stays:
            return True
        text = self._texts.get(each.number)
        if text is None or self._change is None:
            return text == task.shard.text
        if self._change.note is not None:
            noted = self._noted or []
            if each.number >= len(noted) or noted[each.number] != self._digest(task):
                return False
        made = json.loads(text)
        return made[_TASK] == self._change.task(task) and self._change.is_made_of(made, json.loads(task.shard.text))

    def refusal(self, each: Numbered, path: str) -> None:
        """None: it is made again."""

    def _digest(self, task: TakenShard) -> str:
        assert self._change is not None
        text = hashlib.sha256(task.shard.text).hexdigest()
        return f"{text} {self._change.digest(task.values)}"

    # ---- shards

    @contextmanager
    def making(self, run: Workshop, waiting: Sequence[Numbered]) -> Iterator[Iterable[Sequence[Numbered]]]:
        note = self._change.note if self._change is not None else None
        if note is not None:
            run.folder.write_note(note, json.dumps([self._digest(each) for each in self._tasks]).encode())
        try:
            yield ([each] for each in waiting)
        except BaseException:
            if note is not None and not run.shards.any_finished():
                with suppress(Error, OSError):
                    run.folder.remove_notes([note])
            raise

    def published(self) -> None:
        if self._change is not None and self._change.note is not None:
            self._folder.remove_notes([self._change.note])

    def make_all(self, together: Sequence[Numbered], place: Place) -> list[Made]:
        with place.folder.taker(place.run, place.overwrite) as taker:
            for each in together:
                self._take(each.number, each.task, taker)
            taker.wait()
        return [Made(number, self.describe(number, task), 0, 0) for number, task in together]

    def _take(self, number: int, task: TakenShard, taker: Taker) -> None:
        source, shard = self._sources[task.source], task.shard
        if self._change is None:
            if not taker.copy(number, source.path, shard.name, shard.text, shard.files):
                finished = Path(taker.path) / f"{number:05}"
                source.bring(shard.name, shard.files, finished, None if taker.keeps_files else symlink)
                (finished / SHARD_MANIFEST).write_bytes(shard.text)
                taker.begin(number)
            return
        local = taker.scratch / "brought"
        with told_of(local, shard.name, source.path):
            source.bring_alone(shard, local)
            changed = self._change.apply(local, task.values, taker.scratch / "changed")
        Path(taker.path).mkdir(exist_ok=True)
        changed.rename(Path(taker.path) / f"{number:05}")
        taker.begin(number)

    def make(self, task: Any, writer: Any) -> None:
        raise NotImplementedError  # shards are taken whole

    def finish(self, results: Sequence[Made]) -> Mapping[str, Any]:
        return self._said


def tasks_of(sources: Sequence[Stored]) -> list[TakenShard]:
    """All shards of datasets, in order."""
    return [TakenShard(number, shard) for number, source in enumerate(sources) for shard in source.shards]
