"""Repositories of the Hugging Face Hub: their addresses, and what its API is asked.

Which parts are huggingface_hub's, and why: docs/decisions.md, "The Hub's session, our requests".
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote, urlsplit

from penstock import _native
from penstock._base.errors import InvalidArgumentError, IoError, NotFoundError
from penstock._base.extras import install
from penstock._places.storage import Storage

T = TypeVar("T")

_KINDS = {"datasets": "dataset", "spaces": "space", "models": "model"}
_REFS = re.compile(r"refs/(?:convert/\w+|pr/\d+)(?=/|$)")  # revisions with slashes that need no %2F
_NEVER = frozenset("@*?[")  # in a repository's name
_SECONDS = 30.0  # without a byte, after which a request has failed
_FIRST_ATTEMPTS = 4  # after which a server that never answered is given up
_MOST_WAIT = 300.0  # the Hub counts requests over five minutes
_LEAST_WAIT, _LONGEST_WAIT = 0.1, 5.0
_RESETS = re.compile(r";\s*t\s*=\s*(\d{1,4})\b")
_UNREACHABLE = ("ConnectError", "ConnectTimeout")
_MISTAKEN = ("UnsupportedProtocol", "InvalidURL", "LocalProtocolError")


def is_hub(address: str) -> bool:
    """True if it is of a repository of the Hub; its buckets are fsspec's."""
    scheme, _, rest = address.partition("://")
    return scheme.lower() == "hf" and rest.partition("/")[0] != "buckets"


@dataclass(frozen=True)
class HubPath:
    """A file or folder of a repository at a revision.

    Attributes:
        kind: "datasets", "models" or "spaces".
        repo: namespace/name.
        revision: a branch, a tag or a commit.
        path: in the repository, without slashes at its ends; empty: all of it.
    """

    kind: str
    repo: str
    revision: str
    path: str

    @classmethod
    def parse(cls, address: str) -> HubPath:
        """The repository of hf://datasets/NAMESPACE/NAME[@REVISION][/PATH]; without datasets/ it is a model's.

        Raises:
            InvalidArgumentError: It is none.
        """
        rest = address[len("hf://") :].strip("/")
        kind, _, after = rest.partition("/")
        if kind in _KINDS:
            rest = after
        else:
            kind = "models"
        namespace, _, rest = rest.partition("/")
        name, at, _ = rest.partition("@")
        if "/" in name or not at:
            name, _, path = rest.partition("/")
            revision = "main"
        else:
            rest = rest[len(name) + 1 :]
            special = _REFS.match(rest)
            revision = special[0] if special else rest.partition("/")[0]
            path = rest[len(revision) + 1 :]
            revision = unquote(revision)
        if not namespace or not name or not revision or _NEVER & set(namespace + name):
            raise InvalidArgumentError(
                f"{_native.shown_address(address)}: hf://datasets/NAMESPACE/NAME/PATH is an address of the Hub, and "
                "NAME@REVISION names a branch, a tag or a commit"
            )
        return cls(kind, f"{namespace}/{name}", revision, path.strip("/"))

    def __str__(self) -> str:
        return f"{self.root}/{self.path}".rstrip("/")

    @property
    def root(self) -> str:
        """The repository's address, with its revision."""
        kind = "" if self.kind == "models" else f"{self.kind}/"
        return f"hf://{kind}{self.repo}@{quote(self.revision, safe='')}"

    @property
    def what(self) -> str:
        """Its kind in messages: dataset, model or space."""
        return _KINDS[self.kind]

    def at(self, path: str) -> HubPath:
        """Another path of the repository."""
        return replace(self, path=path)


class Entry(NamedTuple):
    """A file or folder of a repository.

    Attributes:
        path: in the repository.
        size: bytes; of a folder -1.
        digest: of its content.
    """

    path: str
    size: int
    digest: str


class Unanswered(ConnectionError):
    """A request that failed and may go well later.

    Attributes:
        wait: seconds that the Hub asks to wait; 0 where it does not say.
        is_unreachable: no server took it.
    """

    def __init__(self, words: str, wait: float = 0.0, is_unreachable: bool = False) -> None:
        super().__init__(words)
        self.wait = wait
        self.is_unreachable = is_unreachable


class Hub:
    """The Hub, or the server that HF_ENDPOINT names, by blocking requests. Any thread.

    Requests raise FileNotFoundError, PermissionError and Unanswered with words of no secret and without an address.
    """

    def __init__(self, storage: Storage) -> None:
        """Asks for nothing yet.

        Raises:
            InvalidArgumentError: huggingface_hub is not installed, or too old.
        """
        try:
            from huggingface_hub import constants, get_session
            from huggingface_hub.utils import build_hf_headers
        except ImportError as error:
            missing = isinstance(error, ModuleNotFoundError)
            why = "which is not installed" if missing else "1.0 or newer, and an older one is installed"
            raise InvalidArgumentError(
                f"hf:// is read through huggingface_hub, {why}: {install('hub', least=not missing)}"
            ) from None
        self._session: Callable[[], Any] = get_session
        self.endpoint = (os.environ.get("HF_ENDPOINT") or str(constants.ENDPOINT)).rstrip("/")
        token = False if storage.anonymous else None  # None: whichever it finds
        self._headers = dict(build_hf_headers(token=token, library_name="penstock"))
        self.token = self._headers.get("authorization", "").removeprefix("Bearer ")
        self._moved: dict[str, str] = {}  # where files lie, by their addresses on the Hub; the ends are signatures
        self._seconds = min(_SECONDS, storage.deadline)

    @property
    def credentials(self) -> str:
        """With what it asks, for messages."""
        return "with the token that is set (HF_TOKEN)" if self.token else "without a token (HF_TOKEN)"

    # ---- what there is

    def commit(self, path: HubPath) -> str:
        """The commit that its revision is now."""
        url = f"{self._api(path)}/revision/{quote(path.revision, safe='')}"
        found = self._asked(path, "GET", url).json()["sha"]
        if not isinstance(found, str) or not found:
            raise Unanswered("the Hub names no commit")
        return found

    def listing(self, path: HubPath, recursive: bool) -> Iterator[Entry]:
        """The files of a folder; where it is recursive, below it."""
        url: str | None = f"{self._api(path)}/tree/{quote(path.revision, safe='')}"
        if path.path:
            url = f"{url}/{quote(path.path, safe='')}"
        options: dict[str, Any] = {"params": {"recursive": str(recursive).lower(), "expand": "false"}}
        while url is not None:
            reply = self._asked(path, "GET", url, **options)
            yield from map(_entry, reply.json())
            url, options = reply.links.get("next", {}).get("url"), {}  # which has them already

    def described(self, path: HubPath, paths: list[str]) -> dict[str, Entry]:
        """Those of some paths in its repository that are there."""
        url = f"{self._api(path)}/paths-info/{quote(path.revision, safe='')}"
        found = self._asked(path, "POST", url, data={"paths": paths, "expand": "false"}).json()
        return {each.path: each for each in map(_entry, found)}

    def _api(self, path: HubPath) -> str:
        return f"{self.endpoint}/api/{path.kind}/{path.repo}"

    def _asked(self, path: HubPath, method: str, url: str, **options: Any) -> Any:
        with _in_words():
            reply = self._session().request(
                method, url, headers=self._headers, timeout=self._seconds, follow_redirects=True, **options
            )
        if reply.status_code != 200:
            raise self._refusal(path, reply)
        return reply

    # ---- what is in it

    def read(self, path: HubPath, offset: int, size: int) -> bytearray:
        """A range of a file; where the Hub is asked to wait, it waits."""
        waited = 0.0
        while True:
            try:
                return self._range(path, offset, size)
            except Unanswered as error:
                waited += error.wait
                if not error.wait or waited > _MOST_WAIT:
                    raise
                time.sleep(error.wait)

    def _range(self, path: HubPath, offset: int, size: int) -> bytearray:
        kind = "" if path.kind == "models" else f"{path.kind}/"
        at = f"{self.endpoint}/{kind}{path.repo}/resolve/{quote(path.revision, safe='')}/{quote(path.path)}"
        moved = self._moved.get(at)
        if moved is not None:
            try:
                found = self._received(path, moved, {}, offset, size)
            except Unanswered:
                self._moved.pop(at, None)
                raise
            if found is not None:
                return found
            self._moved.pop(at, None)  # its signature has ended
        found = self._received(path, at, self._headers, offset, size)
        assert found is not None
        return found

    def _received(self, path: HubPath, url: str, headers: dict[str, str], offset: int, size: int) -> bytearray | None:
        """A range; None: of another server's, which refuses.

        A body is judged by its header, and goes where it stays.
        """
        headers = {**headers, "Range": f"bytes={offset}-{offset + size - 1}", "Accept-Encoding": "identity"}
        is_moved = not url.startswith(f"{self.endpoint}/")
        with (
            _in_words(),
            self._session().stream("GET", url, headers=headers, timeout=self._seconds, follow_redirects=True) as reply,
        ):
            if is_moved and reply.status_code in (400, 401, 403, 404, 410):
                return None
            if reply.status_code not in (200, 206):
                raise self._refusal(path, reply)
            last = str(reply.url)
            if self.endpoint.startswith("https://") and not last.startswith("https://"):
                raise PermissionError("the Hub leads from https:// to a server without TLS")
            _check_range(reply, offset, size)
            got = bytearray(size)
            filled = 0
            for piece in reply.iter_raw():
                if filled + len(piece) > size:
                    raise Unanswered("more bytes came than were asked for")
                got[filled : filled + len(piece)] = piece
                filled += len(piece)
        if filled < size:
            raise Unanswered(f"{filled:,} of {size:,} bytes came")
        if not is_moved and urlsplit(last)[:2] != urlsplit(self.endpoint)[:2]:
            self._moved[url] = last
        return got

    # ---- what is wrong

    def _refusal(self, path: HubPath, reply: Any) -> Exception:
        """The error of an answer that is none. Status and code are the Hub's own; its words may hold anything."""
        status, code = reply.status_code, reply.headers.get("X-Error-Code", "")
        if code == "GatedRepo":
            where = (
                f"{_native.shown_address(self.endpoint)}/{'' if path.kind == 'models' else f'{path.kind}/'}{path.repo}"
            )
            whose = "the token's account has no access" if self.token else "no token is set"
            return PermissionError(
                f"the {path.what} is gated, and {whose}: accept its terms at {where} and set HF_TOKEN to a token of "
                "that account"
            )
        if code == "RevisionNotFound":
            return FileNotFoundError(f"the {path.what} has no revision {path.revision!r:.80}")
        if code == "EntryNotFound":
            return FileNotFoundError("there is no such file")
        if status == 404:
            return FileNotFoundError(
                f"there is no such {path.what}, or it is private and "
                + ("the token that is set (HF_TOKEN) may not read it" if self.token else "no token is set: HF_TOKEN")
            )
        if status == 401 and not self.token:
            return PermissionError(
                f"there is no such {path.what}, or it is private or gated and no token is set (401): HF_TOKEN"
            )
        if status == 401:
            return PermissionError("the token that is set (HF_TOKEN) is refused (401): it is wrong or has ended")
        if status == 403:
            return PermissionError(f"access is refused (403) {self.credentials}")
        if status in (408, 429) or status >= 500:
            return Unanswered(f"the Hub answered {status}", _wait_of(reply) if status == 429 else 0.0)
        return PermissionError(f"the Hub answered {status}")


def _entry(said: Any) -> Entry:
    is_file = said["type"] == "file"
    return Entry(str(said["path"]), int(said["size"]) if is_file else -1, str(said.get("oid", "")))


def _check_range(reply: Any, offset: int, size: int) -> None:
    """Refuses a body that is not the range."""
    if reply.headers.get("Content-Encoding", "identity") != "identity":
        raise Unanswered("the range came encoded")
    if reply.status_code == 200:
        if offset or reply.headers.get("Content-Length") != str(size):
            raise Unanswered("the server gives no ranges")
    elif not reply.headers.get("Content-Range", "").startswith(f"bytes {offset}-{offset + size - 1}/"):
        raise Unanswered("another range came than was asked for")


def _wait_of(reply: Any) -> float:
    """Seconds until the Hub takes requests again, as it says."""
    told = _RESETS.search(reply.headers.get("RateLimit", ""))
    said = told[1] if told else reply.headers.get("Retry-After", "")
    return min(float(said) + 1, _MOST_WAIT) if said.isdigit() else 0.0


@contextmanager
def _in_words() -> Iterator[None]:
    """Errors of the session in words of ours: its own hold addresses, which may be signed."""
    try:
        yield
    except (Unanswered, FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # of whatever HTTP library huggingface_hub has
        name = type(error).__name__
        if name == "OfflineModeIsEnabled":
            raise InvalidArgumentError("HF_HUB_OFFLINE is set: unset it to read from the Hub") from None
        if name in _MISTAKEN:
            raise InvalidArgumentError(f"HF_ENDPOINT is no address of a server ({name})") from None
        raise Unanswered(name, is_unreachable=name in _UNREACHABLE) from None


def patiently(address: str, deadline: float, call: Callable[[], T]) -> T:
    """The answer to a call of the Hub, made again until the deadline where another attempt may go well.

    Raises:
        NotFoundError, IoError, InvalidArgumentError: It fails; the message names the address.
    """
    begin, wait, attempts = time.monotonic(), _LEAST_WAIT, 0
    limited = 0.0
    while True:
        attempts += 1
        try:
            return call()
        except FileNotFoundError as error:
            raise NotFoundError(errno.ENOENT, f"{address}: {error}", address) from None
        except PermissionError as error:
            raise IoError(errno.EACCES, f"{address}: {error}", address) from None
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{address}: {error}") from None
        except Unanswered as error:
            if error.is_unreachable and attempts >= _FIRST_ATTEMPTS:
                raise IoError(
                    errno.EHOSTUNREACH,
                    f"{address}: the Hub cannot be reached ({error}): is this machine offline, is HF_ENDPOINT right?",
                    address,
                ) from None
            pause = error.wait or wait
            limited += error.wait
            if limited > _MOST_WAIT or time.monotonic() + pause - begin - limited > deadline:
                took = time.monotonic() - begin
                raise IoError(
                    errno.EIO, f"{address}: {error}, and {attempts:,} attempts in {took:,.0f} s failed", address
                ) from None
            time.sleep(pause)
            wait = min(_LONGEST_WAIT, 2 * wait)
