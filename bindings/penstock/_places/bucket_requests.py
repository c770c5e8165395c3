"""Requests to a bucket that are made again until the deadline, and the errors of those that are given up."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import NoReturn, TypeVar

from penstock._base.errors import Error, IoError, NotFoundError
from penstock._places import buckets as _buckets
from penstock._places import s3 as _s3
from penstock._places.attempts import Attempts
from penstock._places.obstore_errors import of_region
from penstock._places.remote import scheme_of
from penstock._places.storage import Storage
from penstock._places.upload_problem import Problem

_MALFORMED = ("AuthorizationHeaderMalformed", "AuthorizationQueryParametersError")  # of another region, or no key
Result = TypeVar("Result")


class Stopped(Exception):
    """An upload that was told to end."""


class BucketRequests:
    """The address of a prefix, its credentials, and how requests to it fail. Any thread; not in a forked child.

    obstore's errors hold addresses and headers: they are not kept, and ours say the status and the server's code.
    """

    def __init__(self, url: str, storage: Storage | None) -> None:
        """Asks for nothing yet.

        Raises:
            InvalidArgumentError: Not an address of a bucket; no credentials.
        """
        self.storage = storage or Storage()
        self.url = _s3.checked(url) if scheme_of(url) == "s3" else _buckets.checked(url)
        self._credentials = _buckets.credentials_of(scheme_of(url), self.storage)

    def address(self, name: str) -> str:
        """The address of an object, as it is shown."""
        return f"{self.url}/{name}" if name else self.url

    def done(self, what: str, name: str, action: Callable[[Attempts], Result]) -> Result:
        """The result of `action`, which is tried again until the deadline."""
        attempts = Attempts(self.storage.deadline)
        while True:
            try:
                result = action(attempts)
            except (Stopped, Error):
                raise
            except Exception as error:
                problem = Problem.of(error)
            else:
                attempts.answered()
                return result
            self.look(what, name, problem, attempts)

    def look(self, what: str, name: str, problem: Problem, attempts: Attempts) -> None:
        """Waits for the next attempt, or raises that there is none."""
        if attempts.failed(problem.said.attempts) and self._may_pass(problem):
            return attempts.pause()
        try:
            self._fail(what, name, problem, attempts.count, attempts.seconds)
        except IoError as error:
            if self._may_pass(problem):
                attempts.give_up(error.errno or errno.EIO, str(error), self.address(name))
            raise

    def refuse_list(self, why: str) -> NoReturn:
        raise IoError(errno.EIO, f"{self.address('')}: not listed {self._credentials.words}: {why}", self.address(""))

    def _may_pass(self, problem: Problem) -> bool:
        """True if trying again may help."""
        provider = self._credentials.provider
        return problem.may_pass and not (provider is not None and provider.is_mistaken)

    def _fail(self, what: str, name: str, problem: Problem, attempts: int, seconds: float) -> NoReturn:
        shown, provider = self.address(name), self._credentials.provider
        problem = problem.without(provider.secrets if provider else ())
        status, code = problem.said.status, problem.said.code
        failure = provider.failure if provider else ""
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
