"""`penstock.shuffle` on several workers: parts of the input are put aside in files, then each shard is made of all."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._data.open import open as open_dataset
from penstock._make.base_recipe import BaseRecipe, Workshop
from penstock._make.place import Made, Numbered, Place

_PART_BYTES = 256 << 20  # of the input, put aside in one file: whole shards, together no fewer


class Aside(NamedTuple):
    """Work before shards are made: the pieces of the input's shards [begin, end) are put aside in a file."""

    number: int
    begin: int
    end: int


class Destined(NamedTuple):
    """A task: the observations of one shard.

    Attributes:
        text: what shard.json says of it.
        begin: first destination.
        end: behind the last one.
        first_bucket: of those that hold them, and that workers know.
        end_bucket: behind the last.
    """

    text: str
    begin: int
    end: int
    first_bucket: int = 0
    end_bucket: int = 0


class Planned(NamedTuple):
    """The plan, which follows from the input's index.

    Attributes:
        identity: what tells this shuffle from others.
        tasks: of each shard of the result, as its shard.json has it.
        ranges: of each shard the first destination, the one behind the last, and its bytes.
        buckets: destinations [begin, end) of each: a part of a shard, or several whole ones.
        input_bytes: of each shard of the input.
    """

    identity: str
    tasks: list[str]
    ranges: list[tuple[int, int, int]]
    buckets: list[tuple[int, int]]
    input_bytes: list[int]

    def shards_of(self, waiting: Sequence[Numbered]) -> tuple[list[list[Numbered]], list[tuple[int, int]]]:
        """Shards, ascending, that are made together because they share buckets, and the buckets that they need."""
        groups, buckets = list[list[Numbered]](), list[tuple[int, int]]()
        known = 0  # of the planned buckets, those that are in `buckets` or are not needed
        for each in waiting:
            task: Destined = each.task
            first = bisect_right(self.buckets, task.begin, key=itemgetter(0)) - 1  # which may begin in a shard before
            behind = bisect_left(self.buckets, task.end, key=itemgetter(0))
            if groups and first < known:
                before: Destined = groups[-1][0].task
                shared = task._replace(first_bucket=before.first_bucket, end_bucket=before.end_bucket)
                groups[-1].append(each._replace(task=shared))
                continue
            first = max(first, 0)
            own = task._replace(first_bucket=len(buckets), end_bucket=len(buckets) + behind - first)
            groups.append([each._replace(task=own)])
            buckets += self.buckets[first:behind]
            known = behind
        return groups, buckets


def parts_of(input_bytes: Sequence[int], least: int) -> list[Aside]:
    """Runs of the input's shards, each of at least so many bytes but the last."""
    parts, begin, size = list[Aside](), 0, 0
    for end, count in enumerate(input_bytes, 1):
        size += count
        if size >= least or end == len(input_bytes):
            parts.append(Aside(len(parts), begin, end))
            begin, size = end, 0
    return parts


class ShuffleRecipe(BaseRecipe):
    """One shuffle: the input's pieces are put aside in files by where they go, and shards are made of these."""

    def __init__(self, given: dict[str, Any]) -> None:
        """Looks at nothing; `given`: path, seed, window, memory and shard_bytes."""
        self._given = given

    def __getstate__(self) -> dict[str, Any]:
        """For the workers: what they know of the plan."""
        kept = ("_given", "_work", "_aside", "_parts", "_is_far")
        return {name: self.__dict__[name] for name in kept}

    def begin(self) -> None:
        self._native = _native.ShuffleWork(**self._work)

    # ---- the plan

    def prepare(self, run: Workshop) -> None:
        self._out = run.folder.path
        self._planned = Planned(*_native.plan_shuffle(**self._given, progress=lambda done, total: None))

    def plan(self) -> list[Destined]:
        planned = self._planned
        return [Destined(text, begin, end) for text, (begin, end, _) in zip(planned.tasks, planned.ranges, strict=True)]

    def identity(self) -> None:
        """None: descriptions tell all."""

    def describe(self, number: int, task: Destined) -> Any:
        return json.loads(task.text)

    def size(self, task: Destined) -> int:
        first = bisect_left(self._planned.ranges, task.begin, key=itemgetter(0))
        return self._planned.ranges[first][2]

    def place(self, task: Destined) -> str:
        return f"{self._given['path']}: observation {task.begin:,} of the result"

    def refusal(self, each: Numbered, path: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"{path}: shard {each.number:05}: it was made of another input or with other options than this run's: give "
            "those, or begin anew with overwrite"
        )

    # ---- shards

    @contextmanager
    def making(self, run: Workshop, waiting: Sequence[Numbered]) -> Iterator[Iterable[Sequence[Numbered]]]:
        sizes = self._planned.input_bytes
        asides = parts_of(sizes, min(_PART_BYTES, self._given["shard_bytes"]))
        groups, buckets = self._planned.shards_of(waiting)
        run.expect(sum(sizes))
        with run.aside("shuffle") as folder:
            self._work = {**self._given, "identity": self._planned.identity, "buckets": buckets}
            self._aside, self._parts, self._is_far = str(folder), len(asides), run.is_far
            for aside, _ in zip(asides, run.map(asides, len(asides)), strict=True):
                run.passed(sum(sizes[aside.begin : aside.end]))
            yield groups

    def look(self, item: Aside) -> None:
        if not Path(self._aside).is_dir():
            raise InvalidArgumentError(f"{self._aside}: not there: what is put aside must be where all workers have it")
        if not self._file(item.number).exists():  # an earlier attempt may have been killed before it could say so
            # What other machines put aside has to outlast the loss of the one that wrote it.
            self._native.put_aside(item.begin, item.end, str(self._file(item.number)), self._is_far)

    def place_of(self, item: Aside) -> str:
        return f"{self._given['path']}: shard {item.begin:,}"

    def make_all(self, together: Sequence[Numbered], place: Place) -> list[Made]:
        uploads = place.folder.shard_uploads()
        if uploads is None:
            self._write(together, place.folder.path, place.overwrite, place.run)
        else:
            with uploads:
                self._write(together, uploads.path, False, None)
                for each in together:
                    uploads.begin(each.number)
                uploads.wait()
        return [Made(each.number, self.describe(*each), 0, 0) for each in together]

    def make(self, task: Any, writer: Any) -> None:
        raise NotImplementedError  # shards are made natively, several together

    def _file(self, number: int) -> Path:
        return Path(self._aside) / f"{number:06}"

    def _write(self, together: Sequence[Numbered], out: str, overwrite: bool, run: str | None) -> None:
        files = [str(self._file(number)) for number in range(self._parts)]
        shards = [(each.number, each.task.text, each.task.begin, each.task.end) for each in together]
        first: Destined = together[0].task
        self._native.make_shards(shards, first.first_bucket, first.end_bucket, files, out, overwrite, run)

    def finish(self, results: Sequence[Made]) -> Mapping[str, Any]:
        given = open_dataset(self._given["path"])
        return {"tokenizer": given.tokenizer, "features": given.features}
