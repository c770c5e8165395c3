"""What is asked of a bucket that is written to: lists, small objects, uploads of files, and conditions."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from penstock import _native
from penstock._base.errors import Error, InvalidArgumentError, IoError, NotFoundError
from penstock._places import buckets as _buckets
from penstock._places import s3 as _s3
from penstock._places.obstore_errors import Said, of_region
from penstock._places.remote import scheme_of
from penstock._places.storage import Storage
from penstock._places.upload_problem import Problem

PART_BYTES = 8 << 20
_PARTS_AT_ONCE = 4
_MOST_PARTS = 9_000  # S3 takes 10,000
_SMALL_AT_ONCE = 16
_SLOWEST_REQUEST, _FASTEST_REQUEST = 60.0, 5.0  # seconds that an answer may take
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # between attempts
WRITABLE = ("s3", "gs", "az")
_COPYING = ("s3", "gs")  # on the server
_MALFORMED = ("AuthorizationHeaderMalformed", "AuthorizationQueryParametersError")  # of another region, or no key
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
Result = TypeVar("Result")


class Stopped(Exception):
    """An upload that was told to end."""


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


class Bucket:
    """Objects below one prefix of a bucket. Any thread; not in a forked child.

    Requests are tried again until `Storage.deadline`, but for refusals. What obstore raises holds addresses, headers
    and replies of servers, which may have secrets: it is not kept, and errors say the status and the server's code.
    """

    def __init__(self, url: str, storage: Storage | None) -> None:
        """Asks for nothing yet.

        Raises:
            InvalidArgumentError: Not an address of a bucket; obstore is not installed; no credentials.
        """
        check_writable(url)
        self.storage = storage or Storage()
        self.url = _s3.checked(url) if scheme_of(url) == "s3" else _checked(url)
        bucket, _, self._prefix = self.url.partition("://")[2].partition("/")
        deadline = self.storage.deadline
        patient = {
            "max_retries": 1_000_000,
            "retry_timeout": timedelta(seconds=deadline),
            "backoff": {
                "init_backoff": timedelta(seconds=_FIRST_PAUSE),
                "max_backoff": timedelta(seconds=_LONGEST_PAUSE),
                "base": 2,
            },
        }
        impatient = {"max_retries": 0, "retry_timeout": timedelta(seconds=deadline)}
        scheme = scheme_of(url)
        self._credentials = _buckets.credentials_of(scheme, self.storage)
        timeout = timedelta(seconds=min(_SLOWEST_REQUEST, max(_FASTEST_REQUEST, deadline)))
        self._store, self._impatient = (
            _buckets.bucket_of(scheme, bucket, self.storage, self._credentials, retries, timeout)[0]
            for retries in (patient, impatient)
        )

    def address(self, name: str) -> str:
        """Of an object, as it is shown."""
        return f"{self.url}/{name}" if name else self.url

    def key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def sizes(self) -> dict[str, int]:
        """Names below the prefix, and their sizes."""
        import obstore

        before = f"{self._prefix}/" if self._prefix else ""

        def ask() -> dict[str, int]:
            pages = obstore.list(self._store, before or None)
            return {each["path"][len(before) :]: each["size"] for page in pages for each in page}

        return self._done("listed", "", ask)

    def get(self, name: str) -> tuple[bytes, Version] | None:
        """An object and its version; None: there is none."""
        import obstore

        def ask() -> tuple[bytes, Version] | None:
            try:
                got = obstore.get(self._store, self.key(name))
            except FileNotFoundError as error:
                if Said.of(error).code in _NO_BUCKET:
                    raise
                return None
            return bytes(got.bytes()), Version.of(got.meta)

        return self._done("read", name, ask)

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
            return list(threads.map(ask, names))

    def put(self, name: str, data: bytes) -> None:
        """A small object, over what is there."""
        import obstore

        self._done("uploaded", name, lambda: obstore.put(self._store, self.key(name), data, use_multipart=False))

    def put_file(self, name: str, path: Path, passed: Callable[[int], None]) -> None:
        """A file, in parts where it is large; over what is there.

        Args:
            name: of the object.
            path: of the file.
            passed: called with the bytes of each part before it is sent; may raise `Stopped`.
        """
        import obstore

        size = self._done("uploaded", name, lambda: path.stat().st_size)
        if size <= PART_BYTES:
            passed(size)
            self.put(name, self._done("uploaded", name, path.read_bytes))
            return
        part_bytes = max(PART_BYTES, -(-size // _MOST_PARTS))
        last_sent = 0.0

        def parts() -> Iterator[bytes]:
            nonlocal last_sent
            with path.open("rb") as file:
                while part := file.read(part_bytes):
                    passed(len(part))
                    last_sent = time.monotonic()
                    yield part

        def send() -> None:
            obstore.put(
                self._store,
                self.key(name),
                parts(),
                use_multipart=True,
                chunk_size=part_bytes,
                max_concurrency=_PARTS_AT_ONCE,
            )

        self._done("uploaded", name, send, lambda: last_sent)

    def holds(self, url: str) -> bool:
        """Whether an address is of the same bucket."""
        scheme, _, rest = self.url.partition("://")
        return scheme in _COPYING and url.startswith(f"{scheme}://{rest.partition('/')[0]}/")

    def copy(self, name: str, source: str) -> None:
        """An object of the address `source`, which this bucket `holds`, over what is there; on the server.

        Raises:
            NotFoundError: There is none.
        """
        import obstore

        key = source.partition("://")[2].partition("/")[2]

        def ask() -> None:
            try:
                obstore.copy(self._store, key, self.key(name))
            except FileNotFoundError as error:
                if Said.of(error).code in _NO_BUCKET:
                    raise
                raise NotFoundError(errno.ENOENT, f"{source}: no such object", source) from None

        self._done("copied", name, ask)

    def put_new(self, name: str, data: bytes, replaced: Version | None) -> None:
        """An object where there is none, or in the place of that version.

        An answer may be lost after the object was put: an attempt that finds its own bytes there has succeeded.

        Raises:
            Refused: There is another one.
        """
        import obstore

        mode: Any = "create" if replaced is None else replaced.mode()
        begin, attempts = time.monotonic(), 0
        while True:
            attempts += 1
            refused, problem = False, None
            try:
                obstore.put(self._impatient, self.key(name), data, mode=mode, use_multipart=False)
            except Exception as error:
                refused = _is_refusal(error)
                problem = Problem.of(error)
            if problem is None:
                return
            if refused:
                there = self.get(name) if attempts > 1 else None
                if there is not None and there[0] == data:
                    return
                raise Refused
            if not self._may_pass(problem) or time.monotonic() - begin >= self.storage.deadline:
                self._fail("uploaded", name, problem, attempts, time.monotonic() - begin)
            time.sleep(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempts))

    def ignores_conditions(self, name: str, data: bytes) -> bool:
        """Whether the server puts an object `name`, which is there with these very bytes, though it must not."""
        import obstore

        for mode in ("create", {"e_tag": '"0123456789abcdef0123456789abcdef"'}):
            if mode != "create" and self.url.startswith("gs://"):
                continue  # its condition is a number
            refused, problem = False, None
            try:
                obstore.put(self._store, self.key(name), data, mode=mode, use_multipart=False)  # type: ignore[arg-type]
            except Exception as error:
                refused = _is_refusal(error)
                problem = Problem.of(error)
            if problem is None or (not refused and problem.is_unsupported):
                return True
            if not refused:
                self._fail("uploaded", name, problem, problem.said.attempts, 0.0)
        return False

    def remove(self, names: Iterable[str]) -> None:
        """Objects; of those that are not there nothing is said."""
        import obstore

        keys = [self.key(name) for name in names]

        def ask() -> None:
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
            self._done("removed", "", ask)

    def _done(
        self, what: str, name: str, action: Callable[[], Result], last_passed: Callable[[], float] = lambda: 0.0
    ) -> Result:
        """What `action` returns. obstore has tried its requests again; here the whole is, until the deadline."""
        begin, attempts = time.monotonic(), 0
        while True:
            try:
                return action()
            except (Stopped, Error):
                raise
            except Exception as error:
                problem = Problem.of(error)
            attempts += problem.said.attempts
            passed = time.monotonic() - max(begin, last_passed())
            if not self._may_pass(problem) or passed >= self.storage.deadline:
                self._fail(what, name, problem, attempts, time.monotonic() - begin)
            time.sleep(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(attempts, 10)))

    def _may_pass(self, problem: Problem) -> bool:
        """Whether trying again may help."""
        provider = self._credentials.provider
        return problem.may_pass and not (provider is not None and provider.is_mistaken)

    def _fail(self, what: str, name: str, problem: Problem, attempts: int, seconds: float) -> NoReturn:
        shown = self.address(name)
        status, code = problem.said.status, problem.said.code
        failure = self._credentials.provider.failure if self._credentials.provider else ""
        if problem.local is not None:
            errno_, file, words = problem.local
            raise IoError(errno_, f"{shown}: not {what}: {file}: {words}", file)
        if failure:
            raise IoError(errno.EACCES, f"{shown}: nothing could be signed {self._credentials.words}: {failure}", shown)
        if status in (401, 403):
            raise IoError(errno.EACCES, f"{shown}: not {what} {self._credentials.words}: {problem}", shown)
        if status == 404 and code != "NoSuchUpload":
            bucket = "/".join(self.url.split("/")[:3])
            raise NotFoundError(errno.ENOENT, f"{bucket}: no such bucket ({problem})", bucket)
        region = problem.said.region
        if problem.said.is_of_region or code in _MALFORMED:
            region = region or self._told_region() or ""
        if problem.said.is_of_region or region:
            why = of_region(region)
            raise IoError(errno.EIO, f"{shown}: not {what}: {why} ({problem})", shown)
        tried = f"{attempts} attempt{'' if attempts == 1 else 's'} in {seconds:.1f} s"
        raise IoError(errno.EIO, f"{shown}: not {what} {self._credentials.words}: {tried}, the last: {problem}", shown)

    def _told_region(self) -> str | None:
        scheme, _, rest = self.url.partition("://")
        if scheme != "s3":
            return None
        return _buckets.told_region(rest.partition("/")[0], _buckets.endpoint_of(scheme, self.storage))


def _is_refusal(error: Exception) -> bool:
    from obstore.exceptions import AlreadyExistsError, PreconditionError

    return isinstance(error, AlreadyExistsError | PreconditionError)


def _checked(url: str) -> str:
    """gs:// and az://, as _s3.checked()."""
    scheme, _, rest = url.partition("://")
    bucket, _, key = rest.partition("/")
    if "@" in bucket or not bucket:
        raise InvalidArgumentError(
            f"{scheme}://…: an address of a bucket is {scheme}://BUCKET/KEY, without credentials"
        )
    return f"{scheme.lower()}://{bucket}/{key.rstrip('/')}".rstrip("/")
