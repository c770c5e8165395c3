"""Where a dataset's shards go: the seam between those who make shards and the place where these lie.

`LocalFolder` is a folder of this machine, over the native writer's; `BucketFolder` one in a bucket. `folder_of` of
`penstock._make.folders` is the one place that asks which of them a path means.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from typing_extensions import Self

    from penstock import _native


@dataclass(frozen=True)
class ShardInfo:
    """A finished shard.

    Attributes:
        number: of its folder.
        task: what its writer said that it was made from; None if nothing.
        records: of the stream.
        spans: documents, or runs of one id.
        entries: of metadata.
        bytes: of its files, without the side files of check values.
    """

    number: int
    task: Any
    records: int
    spans: int
    entries: int
    bytes: int


def shard_infos(found: Iterable[Any]) -> list[ShardInfo]:
    """Native code's shards as ShardInfo."""
    return [
        ShardInfo(each.number, json.loads(each.task_json), each.records, each.spans, each.entries, each.bytes)
        for each in found
    ]


@dataclass(frozen=True)
class Publication:
    """Arguments of publishing: the dataset of the finished shards.

    Attributes:
        tokenizer: JSON text.
        shards: how many there must be, or the numbers of all, ascending; None: those without a gap from 0 on.
        tasks: JSON text of each shard's; None: any.
        features: a table of them as native code takes it, or None.
        overwrite: in the place of a published dataset.
        run: name of the run that the writers belong to.
    """

    tokenizer: str = "null"
    shards: int | Sequence[int] | None = None
    tasks: Sequence[str] | None = None
    features: Any = field(default=None, repr=False)
    overwrite: bool = False
    run: str | None = None


class Uploads(Protocol):
    """A Writer's uploads, beside its native half, which writes into the folder `path` of this machine."""

    path: str

    def advance(self, native: _native.DatasetWriter) -> None:
        """After an append: takes what the native half has finished."""

    def commit(self, native: _native.DatasetWriter) -> None:
        """Finishes the native half, and publishes what it made unless it is a shard alone."""

    def abort(self) -> None:
        """Removes what was taken, but for what is published."""

    @property
    def uploaded(self) -> tuple[int, int]:
        """Bytes sent, and bytes of all files that are to be sent."""


class Taker(ABC):
    """Takes shards that were finished elsewhere on this machine, or lie in the same bucket. Entered, it ends itself.

    Attributes:
        path: a folder of this machine, for shards that are finished as 00000, 00001, ….
        scratch: another for whatever; it is removed in the end.
        keeps_files: else files in `path` may be links.
    """

    path: str
    scratch: Path
    keeps_files: bool

    @abstractmethod
    def begin(self, number: int) -> None:
        """Begins to take a shard that is finished in `path`. Raises InvalidArgumentError, IoError."""

    @abstractmethod
    def copy(self, number: int, at: str, name: str, text: bytes, files: Sequence[tuple[str, int]]) -> bool:
        """Takes a shard from the folder `name` of the dataset at an address, on the server, its shard.json last.

        Args:
            number: here.
            at: the dataset's address.
            name: of the shard's folder there.
            text: of its shard.json.
            files: (name, bytes) of the others.

        Returns:
            False: It does not lie where the server can copy it, or is larger than what it copies at once.

        Raises:
            NotFoundError, IoError: It cannot be copied.
        """

    @abstractmethod
    def wait(self) -> None:
        """Until all that were begun are taken. Raises IoError."""

    @abstractmethod
    def abort(self, keep: bool = False) -> None:
        """Ends what is under way; what was taken stays with `keep`."""

    @abstractmethod
    def close(self) -> None:
        """Removes the folders. May be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if error is not None:
                self.abort(keep=True)
        finally:
            self.close()


class Folder(ABC):
    """A dataset's folder as those who make its shards see it. One thread at a time. Pickles, without what it holds.

    Attributes:
        path: of the folder, or its address; as messages name it.
        is_here: whether it is on this machine, as far as that can be said.
        is_live: whether workers see it as it is, not as it was when the run began.
    """

    path: str
    is_here: bool
    is_live: bool

    @property
    @abstractmethod
    def beside(self) -> Path | None:
        """A folder of this machine where what is brought for it may lie; None: that of temporary files."""

    # ---- one run

    @abstractmethod
    def hold(self, run: str) -> None:
        """Keeps other runs away until `close`, where the place can, and looks at what is there.

        Raises:
            InvalidArgumentError: Another run is at work.
            penstock.Error: A file is in its place; it cannot be looked at.
        """

    @abstractmethod
    def close(self) -> None:
        """Lets it go. May be called twice."""

    @property
    @abstractmethod
    def is_published(self) -> bool:
        """True if a dataset is there."""

    @abstractmethod
    def version(self) -> Hashable | None:
        """A value that only the manifest that is published now has; None: there is none, or it is not known."""

    @abstractmethod
    def finished(self, overwrite: bool, *, now: bool = False, is_impatient: bool = False) -> list[ShardInfo]:
        """Finished shards by number: of the published dataset, or with `overwrite` or without one those not published.

        In a bucket as they were when the folder was held; with `now` it is looked at anew, and with `is_impatient` a
        server is not waited for long.

        Raises:
            NotFoundError: No such folder.
            CorruptionError: A shard.json is damaged.
        """

    @abstractmethod
    def remove(self, numbers: Iterable[int], overwrite: bool, run: str | None) -> None:
        """Removes finished shards that are not published.

        Raises:
            InvalidArgumentError: A dataset is published, and `overwrite` is not given; a writer is at work.
            NotFoundError: A shard is not there.
        """

    @abstractmethod
    def clean(self, run: str) -> None:
        """Removes what is unfinished; its writers are known to have ended."""

    @abstractmethod
    def clean_after(self, run: str, replaces: bool) -> None:
        """Removes what writers of this run left unfinished, if nobody can be going on with it. Raises nothing."""

    @abstractmethod
    def publish(self, publication: Publication) -> str:
        """Publishes; the fingerprint. After `hold` only in the place of the dataset that was there then.

        Raises:
            penstock.Error: As penstock.commit().
        """

    # ---- notes: small files beside the shards, of which no dataset is made

    @abstractmethod
    def read_note(self, name: str) -> bytes | None:
        """A note; None: there is none. Raises OSError."""

    @abstractmethod
    def write_note(self, name: str, data: bytes) -> None:
        """Writes it whole, over what is there, or not at all. Raises OSError."""

    @abstractmethod
    def remove_notes(self, names: Sequence[str]) -> None:
        """Removes those that are there. In a bucket that does not answer they stay; nobody takes them for data."""

    @abstractmethod
    def notes(self) -> set[str]:
        """Names of files beside the shards; in a bucket those that were there when it was looked at."""

    # ---- workers

    @abstractmethod
    def absolute(self) -> Folder:
        """The same for workers whose working directory is another."""

    @abstractmethod
    def make(self) -> None:
        """Makes it, if it has to be there before the first shard. Raises IoError."""

    @abstractmethod
    def is_there(self) -> bool:
        """True if this process can write into it; always for a bucket."""

    @abstractmethod
    def aside(self, run: str, what: str) -> AbstractContextManager[Path]:
        """A folder of this machine for what a run puts aside, until it is left; `what` is in its name."""

    @abstractmethod
    def remove_dead(self) -> None:
        """Removes what killed workers of this machine put aside."""

    @abstractmethod
    def uploads(self, shard: int | None, overwrite: bool) -> Uploads | None:
        """A Writer's uploads; None: its native half writes into the folder itself.

        Raises:
            InvalidArgumentError: Something is there: a published dataset, finished shards, this shard.
            IoError: It may not be listed; the scratch folder cannot be made.
        """

    @abstractmethod
    def shard_uploads(self) -> Taker | None:
        """A taker of shards that native code finished elsewhere on this machine; None: it writes into the folder."""

    @abstractmethod
    def taker(self, run: str, overwrite: bool) -> Taker:
        """A taker of shards that were finished elsewhere. Raises IoError."""

    @abstractmethod
    def texts(self, overwrite: bool) -> dict[int, bytes]:
        """The shard.json of each of the shards that `finished` gives, by number, as they were when it was held."""

    @abstractmethod
    def fingerprint(self) -> str:
        """The published dataset's. Raises NotFoundError, CorruptionError, IoError."""

    @abstractmethod
    def size_bytes(self) -> int:
        """Bytes of all files, side files included."""
