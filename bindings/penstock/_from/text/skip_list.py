"""The list of what a run leaves out: in the dataset's folder, task by task while the run goes on, then as one file.

The entries of a task are put beside the shards before its shard is finished, and the shard's description has their
digest: a shard that is kept by --resume has its entries, or is made again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from penstock._base.words import counted
from penstock._from.text.skipping import Limit, SkippedOfTask, described, digest_of, first_reasons, is_larger, names_of
from penstock._make.errors import InputError, TooManySkippedError, UsageError
from penstock._make.notes import LIST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock._from.text.inputs import Input
    from penstock._from.text.raw import RawDocument
    from penstock._from.text.tasks import Task
    from penstock._make.shard_folder import ShardFolder

UNPUBLISHED = "skipped-unpublished.jsonl"  # of a run that left out too much
_OF_A_RUN = re.compile(r"skipped-(\d{5,}|unpublished)\.jsonl")


def name_of_task(number: int) -> str:
    """The file with the entries of one task, until the dataset is published."""
    return f"skipped-{number:05}.jsonl"


class SkipList:
    """Counts what is left out, in the order of the input, and keeps the list. One thread at a time.

    Attributes:
        count: Entries of the tasks before the first that is not known, and of that one as far as it is made.
        larger: Entries of the whole list that stand for more than a document; known at the end.
    """

    def __init__(self, folder: ShardFolder, inputs: Sequence[Input], skips: bool, limit: Limit | None) -> None:
        """Of a run that writes into `folder`, and that `skips` or not."""
        self._folder = folder
        self._notes = folder.folder
        self.names = names_of(inputs)
        self.skips = skips
        self._limit = limit
        self.count = self.larger = 0
        self._total: int | None = None
        self._next = 0  # the first task that is not known
        self._ahead: dict[int, dict[str, Any] | None] = {}  # known tasks behind it
        self._with_entries: list[int] = []  # known tasks before it that have some
        self._now = SkippedOfTask(0, self.names)
        self._data: dict[int, bytes] = {}  # entries of published tasks

    def add(self, documents: Sequence[RawDocument], skipped: Sequence[tuple[int, str]]) -> None:
        """Of a batch of the task after those that are known.

        Raises:
            TooManySkippedError: More than may be.
        """
        self.count += self._now.add(documents, skipped)
        self._check()

    def finish(self, task: Task, options: dict[str, Any]) -> dict[str, Any]:
        """Puts the entries of the task that was made here; its description.

        Raises:
            OSError: They cannot be written.
        """
        said, made = self._now.said(task), self._now
        if said is not None:
            self._notes.write_note(name_of_task(task.number), made.data())
            self.count -= len(made.lines)  # counted again below
        self.know(task.number, said)
        return described(task, options, said)

    def know(self, number: int, said: dict[str, Any] | None) -> None:
        """Of a task that is finished: what its description says of its entries.

        Raises:
            TooManySkippedError: More than may be.
        """
        self._ahead[number] = said
        while self._next in self._ahead:
            known = self._ahead.pop(self._next)
            if known is not None:
                self._with_entries.append(self._next)
                self.count += known["documents"]
            self._next += 1
            self._now = SkippedOfTask(self._next, self.names)
            self._check()

    def is_made_of(self, task: Task, options: dict[str, Any], found: Any) -> bool:
        """Whether a finished shard whose description is `found` is of this very task, and its entries are there.

        Raises:
            UsageError: They are not those of the published dataset that stays.
        """
        said = found.get("skipped") if self.skips and isinstance(found, dict) else None
        if said is not None and not (isinstance(said, dict) and said.get("places") == task.places):
            return False
        if said is not None:
            data = self._entries(task.number)
            if digest_of(data) != said.get("sha256") or data.count(b"\n") != said.get("documents"):
                if self._folder.stays and found == described(task, options, said):
                    raise UsageError(
                        f"{self._list(LIST)} is not there or was changed since the dataset was published: put it back,"
                        " or write the dataset anew with --overwrite"
                    )
                return False
        return bool(found == described(task, options, said))

    def know_total(self, total: int) -> None:
        """How many documents there are in all; what a share of them comes to is known from now on.

        Raises:
            TooManySkippedError: More than may be.
        """
        self._total = total
        self._check()

    def end(self) -> None:
        """Judges the whole; puts the list in the place of what is there.

        Raises:
            InputError: All documents are left out.
            OSError: The list cannot be written.
        """
        if self.count and self.count == self._total:
            told = self._told(None)
            self._folder.remove_made()
            self._notes.remove_notes([name_of_task(number) for number in self._with_entries])
            raise InputError(f"there are no documents in the input that can be used: {told}; nothing was published")
        data = b"".join(self._entries(number) for number in self._with_entries)
        self._folder.has_list = bool(data)
        self.larger = sum(map(is_larger, data.splitlines()))
        if data and not (self._folder.stays and data == self._notes.read_note(LIST)):
            self._notes.write_note(LIST, data)

    def notes(self) -> list[str]:
        """A line, where more is missing than `count` says."""
        if not self.larger:
            return []
        stand = "stands" if self.larger == 1 else "stand"
        return [
            f"{counted(self.larger, 'entry')} of {self._list(LIST)} {stand} for a file, its rest, or many rows: more "
            f"than {counted(self.count, 'document')} may be missing"
        ]

    def clean(self) -> None:
        """Removes what is only of use until the dataset is published."""
        names = self._notes.notes() | {name_of_task(number) for number in self._with_entries}
        self._notes.remove_notes([each for each in sorted(names) if _OF_A_RUN.fullmatch(each)])

    def _entries(self, number: int) -> bytes:
        found = self._notes.read_note(name_of_task(number))
        if found is None and self._folder.stays:
            if not self._data:
                self._data = _by_task(self._notes.read_note(LIST) or b"")
            found = self._data.get(number)
        return found or b""

    def _check(self) -> None:
        if self._limit is None or (self._limit.percent is not None and self._total is None):
            return
        most = self._limit.most(self._total or 0)
        if self.count <= most:
            return
        if self._limit.percent is None:
            said, shown = f"more than {counted(most, 'document')} cannot be used", most + 1
        else:
            said, shown = f"{self.count:,} of {counted(self._total or 0, 'document')} cannot be used", self.count
        raise TooManySkippedError(f"{said} (--max-skipped {self._limit.text}): {self._told(shown)}")

    def _told(self, most: int | None) -> str:
        """Puts what is listed so far, up to `most` entries, where it is not published; in words."""
        data = b"".join(self._entries(number) for number in self._with_entries) + self._now.data()
        lines = data.splitlines(keepends=True)[:most]
        if self._folder.stays:  # its list has them
            return f"{first_reasons(lines)} (the list is {self._list(LIST)})"
        self._notes.write_note(UNPUBLISHED, b"".join(lines))
        return f"{first_reasons(lines)} ({counted(len(lines), 'entry')} in {self._list(UNPUBLISHED)})"

    def _list(self, name: str) -> str:
        return f"{self._folder.path.rstrip('/')}/{name}"


def _by_task(data: bytes) -> dict[int, bytes]:
    """The lines of a published list, for each task."""
    found: dict[int, list[bytes]] = {}
    for line in data.splitlines(keepends=True):
        number = re.match(rb'\{"shard": (\d+),', line)
        if number is not None:
            found.setdefault(int(number[1]), []).append(line)
    return {number: b"".join(lines) for number, lines in found.items()}
