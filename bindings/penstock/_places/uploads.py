"""What is asked of a bucket that is written to: lists, small objects, uploads of files, and conditions."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from penstock import _native
from penstock._base.errors import InvalidArgumentError, IoError, NotFoundError
from penstock._places import buckets as _buckets
from penstock._places.attempts import FIRST_PAUSE, LONGEST_PAUSE, Attempts, Silent, in_one_operation, within
from penstock._places.bucket_requests import BucketRequests
from penstock._places.obstore_errors import Said
from penstock._places.remote import scheme_of
from penstock._places.storage import Storage
from penstock._places.upload_problem import Problem

PART_BYTES = 8 << 20
_PARTS_AT_ONCE = 4
_MOST_PARTS = 9_000  # S3 takes 10,000
_SMALL_AT_ONCE = 16
_SLOWEST_REQUEST, _FASTEST_REQUEST = 60.0, 5.0  # seconds that an answer may take …
_SMALL_SHARE = 4  # … of the deadline at most one in so many where little is sent: a silent server is asked again
_AFTER_REQUEST = 3.0  # seconds: what is silent for longer than a request may take is a list that asks without end
_SMALL_BYTES = 1 << 18
_MOST_READ = 256 << 20  # bytes of an object that is read whole
WRITABLE = ("s3", "gs", "az")
_COPYING = ("s3", "gs")  # on the server
_CONFLICT = "ConditionalRequestConflict"
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")


class Refused(Exception):
    """A condition did not hold: the object is there, or is not of the version that was seen."""


@dataclass(frozen=True)
class Version:
    """Tells an object from what may later be in its place."""

    e_tag: str | None
    version: str | None

    @classmethod
    def of(cls, meta: Any) -> Version:
        return cls(meta.get("e_tag"), meta.get("version"))

    def mode(self) -> dict[str, str]:
        """As obstore wants it."""
        return {name: value for name, value in (("e_tag", self.e_tag), ("version", self.version)) if value is not None}


def check_writable(url: str) -> None:
    """Refuses addresses that datasets are not written to.

    Raises:
        InvalidArgumentError: It says which are.
    """
    if scheme_of(url) not in WRITABLE:
        raise InvalidArgumentError(
            f"{_native.shown_address(url)}: {scheme_of(url)}:// is not written to: paths of this machine, s3://, gs:// "
            "and az:// are"
        )
    if set("*?[") & set(url):
        raise InvalidArgumentError(f"{_native.shown_address(url)}: *, ? and [ are of globs: write to another name")


class Bucket(BucketRequests):
    """Objects below one prefix of a bucket. Requests are tried again until the deadline, but for refusals."""

    def __init__(self, url: str, storage: Storage | None) -> None:
        """Asks for nothing yet.

        Raises:
            InvalidArgumentError: Not an address of a bucket; obstore is not installed; no credentials.
        """
        check_writable(url)
        super().__init__(url, storage)
        bucket, _, self._prefix = self.url.partition("://")[2].partition("/")
        deadline = self.storage.deadline
        patient = {
            "max_retries": 1_000_000,
            "retry_timeout": timedelta(seconds=deadline),
            "backoff": {
                "init_backoff": timedelta(seconds=FIRST_PAUSE),
                "max_backoff": timedelta(seconds=LONGEST_PAUSE),
                "base": 2,
            },
        }
        impatient = {"max_retries": 0, "retry_timeout": timedelta(seconds=deadline)}
        scheme = scheme_of(url)
        long = min(_SLOWEST_REQUEST, max(_FASTEST_REQUEST, deadline))
        self._timeout = min(long, max(_FASTEST_REQUEST, deadline / _SMALL_SHARE))
        self._silence = self._timeout + _AFTER_REQUEST
        # The first is for uploads in parts, of which obstore tries each again; of the others it is done here.
        self._patient, self._large, self._store = (
            _buckets.bucket_of(scheme, bucket, self.storage, self._credentials, retries, timedelta(seconds=timeout))[0]
            for retries, timeout in ((patient, long), (impatient, long), (impatient, self._timeout))
        )

    def key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def sizes(self) -> dict[str, int]:
        """Names below the prefix, and their sizes."""
        import obstore

        before = f"{self._prefix}/" if self._prefix else ""
        found: dict[str, int] = {}
        last = ""  # what fails goes on behind it

        def ask(attempts: Attempts) -> dict[str, int]:
            nonlocal last
            again, behind = 0, last or None
            try:
                for page in within(self._silence, lambda: obstore.list(self._store, before or None, offset=behind)):
                    known = len(found)
                    found.update((each["path"][len(before) :], each["size"]) for each in page)
                    again += known + len(page) - len(found)
                    if again > len(found):
                        self.refuse_list(f"the server lists again what it listed before, {page[0]['path']:.200}")
                    last = max(last, page[-1]["path"])
                    attempts.answered()
            except Silent:
                self.refuse_list(f"no more of the list came in {self._silence:g} s")
            return found

        return self.done("listed", "", ask)

    def get(self, name: str) -> tuple[bytes, Version] | None:
        """An object and its version; None: there is none."""
        import obstore

        def ask(_: Attempts) -> tuple[bytes, Version] | None:
            try:
                got = obstore.get(self._store, self.key(name))
            except FileNotFoundError as error:
                if Said.of(error).code in _NO_BUCKET:
                    raise
                return None
            if got.meta["size"] > _MOST_READ:
                shown, size = self.address(name), got.meta["size"]
                raise IoError(errno.EFBIG, f"{shown}: {size:,} bytes, and at most {_MOST_READ:,} are expected", shown)
            return bytes(got.bytes()), Version.of(got.meta)

        return self.done("read", name, ask)

    def get_all(self, names: Iterable[str]) -> list[bytes]:
        """Small objects, all at once.

        Raises:
            NotFoundError: One is not there.
        """

        def ask(name: str) -> bytes:
            found = self.get(name)
            if found is None:
                raise NotFoundError(errno.ENOENT, f"{self.address(name)}: no such object", self.address(name))
            return found[0]

        with ThreadPoolExecutor(_SMALL_AT_ONCE, "penstock-bucket") as threads:
            return list(threads.map(in_one_operation(ask), names))

    def put(self, name: str, data: bytes) -> None:
        """A small object, over what is there."""
        import obstore

        def ask(_: Attempts) -> None:
            store = self._store if len(data) <= _SMALL_BYTES else self._large
            obstore.put(store, self.key(name), data, use_multipart=False)

        self.done("uploaded", name, ask)

    def put_file(self, name: str, path: Path, passed: Callable[[int], None]) -> None:
        """A file, in parts where it is large; over what is there.

        `passed` is called with the bytes of each part before it is sent; it may raise `Stopped`.
        """
        import obstore

        size = self.done("uploaded", name, lambda _: path.stat().st_size)
        if size <= PART_BYTES:
            passed(size)
            self.put(name, self.done("uploaded", name, lambda _: path.read_bytes()))
            return
        part_bytes = max(PART_BYTES, -(-size // _MOST_PARTS))
        furthest = 0  # a part that is sent again is no progress

        def parts(attempts: Attempts) -> Iterator[bytes]:
            nonlocal furthest
            with path.open("rb") as file:
                while part := file.read(part_bytes):
                    passed(len(part))
                    if file.tell() > furthest:
                        furthest = file.tell()
                        attempts.answered()
                    yield part

        def send(attempts: Attempts) -> None:
            obstore.put(
                self._patient,
                self.key(name),
                parts(attempts),
                use_multipart=True,
                chunk_size=part_bytes,
                max_concurrency=_PARTS_AT_ONCE,
            )

        self.done("uploaded", name, send)

    def holds(self, url: str) -> bool:
        """Whether an address is of the same bucket."""
        scheme, _, rest = self.url.partition("://")
        return scheme in _COPYING and url.startswith(f"{scheme}://{rest.partition('/')[0]}/")

    def copy(self, name: str, source: str) -> None:
        """An object of the address `source`, which this bucket `holds`, over what is there; on the server.

        Raises NotFoundError where there is none.
        """
        import obstore

        key = source.partition("://")[2].partition("/")[2]

        def ask(_: Attempts) -> None:
            try:
                obstore.copy(self._large, key, self.key(name))
            except FileNotFoundError as error:
                if Said.of(error).code in _NO_BUCKET:
                    raise
                raise NotFoundError(errno.ENOENT, f"{source}: no such object", source) from None

        self.done("copied", name, ask)

    def put_new(self, name: str, data: bytes, replaced: Version | None) -> None:
        """An object where there is none, or in the place of that version.

        An answer may be lost after the object was put: an attempt that finds its own bytes there has succeeded.

        Raises:
            Refused: There is another one.
        """
        import obstore

        mode: Any = "create" if replaced is None else replaced.mode()
        attempts = Attempts(self.storage.deadline)
        while True:
            refused, problem = False, None
            try:
                obstore.put(self._store, self.key(name), data, mode=mode, use_multipart=False)
            except Exception as error:
                refused = _is_refusal(error)
                problem = Problem.of(error)
            if problem is None:
                return attempts.answered()
            if refused:
                there = self.get(name) if attempts.count > 0 else None
                if there is not None and there[0] == data:
                    return attempts.answered()
                raise Refused
            self.look("uploaded", name, problem, attempts)

    def ignores_conditions(self, name: str, data: bytes) -> bool:
        """Whether the server puts an object `name`, which is there with these very bytes, though it must not."""
        import obstore

        modes: list[Any] = ["create", {"e_tag": '"0123456789abcdef0123456789abcdef"'}]
        if self.url.startswith("gs://"):
            modes.pop()  # its condition is a number
        attempts = Attempts(self.storage.deadline)
        while modes:
            refused, problem = False, None
            try:
                obstore.put(self._store, self.key(name), data, mode=modes[0], use_multipart=False)
            except Exception as error:
                refused = _is_refusal(error)
                problem = Problem.of(error)
            if problem is None or (not refused and problem.is_unsupported):
                return True
            if refused:
                del modes[0]
            else:
                self.look("uploaded", name, problem, attempts)
        return False

    def remove(self, names: Iterable[str]) -> None:
        """Objects; of those that are not there nothing is said."""
        import obstore

        keys = [self.key(name) for name in names]

        def ask(_: Attempts) -> None:
            # S3 says nothing of keys that are not there; elsewhere obstore stops at the first one.
            with suppress(FileNotFoundError):
                obstore.delete(self._store, keys)
                return
            with ThreadPoolExecutor(_SMALL_AT_ONCE, "penstock-bucket") as threads:
                list(threads.map(remove, keys))

        def remove(key: str) -> None:
            with suppress(FileNotFoundError):
                obstore.delete(self._store, key)

        if keys:
            self.done("removed", "", ask)


def _is_refusal(error: Exception) -> bool:
    """True if a condition did not hold, which S3's conflict of two requests under way does not say."""
    from obstore.exceptions import AlreadyExistsError, PreconditionError

    return isinstance(error, AlreadyExistsError | PreconditionError) and Said.of(error).code != _CONFLICT
