"""A server on loopback that speaks the API of the Hugging Face Hub, and the other host where its files lie."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode

from _fault_servers import _Faulty, _FaultyHandler

TOKEN = "hf_pa55wordOfTheOwner000000000000"
_DIRECT_BYTES = 500  # files below this the Hub answers with itself


@dataclass
class Repository:
    """A dataset.

    Attributes:
        commits: files of each.
        refs: branches and tags.
        is_private: only TOKEN reads it.
        is_gated: only TOKEN reads its files; everybody lists them.
    """

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    is_private: bool = False
    is_gated: bool = False

    def commit(self, files: dict[str, bytes], ref: str = "main") -> str:
        """Moves a branch to a commit of these files; its name."""
        name = hashlib.sha1(repr((sorted(files.items()), len(self.commits))).encode()).hexdigest()
        self.commits[name] = dict(files)
        self.refs[ref] = name
        return name


class FakeHub(_Faulty):
    """The Hub; `requests` is what it was asked: (method, path, headers, their names in lower
    case). `fault(path, number)` as of FaultServer:
    "429", "503", "reset", or None."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, cdn: _Faulty) -> None:
        self.cdn = cdn
        self.repositories: dict[str, Repository] = {}
        self.page = 3  # entries of a listing
        self.fault: Callable[[str, int], str | None] = lambda path, number: None
        super().__init__(_HubHandler)

    def dataset(self, name: str, files: dict[str, bytes], **given: Any) -> Repository:
        found = self.repositories[name] = Repository(**given)
        found.commit(files)
        return found

    def paths(self, part: str) -> list[str]:
        """What it was asked for, of the paths that have this in them."""
        return [path for _, path, _ in self.requests if part in path]


class Cdn(_Faulty):
    """Where files lie; `requests` is what it was asked: (path, Range, headers). `fault(path, number)` as of
    FaultServer: "cut", "long", "whole", "range", "gzip", "reset", a status ("403": the signature has ended), or None.
    It may wait."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.fault: Callable[[str, int], str | None] = lambda path, number: None
        super().__init__(_CdnHandler)


@contextlib.contextmanager
def fake_hub() -> Iterator[FakeHub]:
    with Cdn().running() as cdn, FakeHub(cdn).running() as hub:
        yield hub


class _Handler(_FaultyHandler):
    def error(self, status: int, code: str = "", message: str = "", headers: dict[str, str] | None = None) -> None:
        named = {"X-Error-Code": code} if code else {}
        said = {"X-Error-Message": message} if message else {}
        self.send(status, {**named, **said, **(headers or {})}, json.dumps({"error": message}).encode())

    def send_range(self, data: bytes, headers: dict[str, str], fault: str | None = None) -> None:
        asked = self.headers.get("Range")
        begin, end = 0, len(data)
        if asked:
            first, last = re.fullmatch(r"bytes=(\d+)-(\d*)", asked).groups()  # type: ignore[union-attr]
            begin, end = int(first), min(int(last) + 1 if last else end, end)
            if begin >= len(data):
                self.error(416)
                return
            headers = {**headers, "Content-Range": f"bytes {begin}-{end - 1}/{len(data)}"}
        body = data[begin:end]
        if fault == "whole":
            self.send(200, {}, data)
        elif fault == "range":
            self.send(206, {**headers, "Content-Range": f"bytes 0-{len(body) - 1}/{len(data)}"}, data[: len(body)])
        elif fault == "gzip":
            self.send(206, {**headers, "Content-Encoding": "gzip"}, body)
        elif fault == "long":
            self.send(206, headers, body + b"more", length=None)
            self.close_connection = True
        elif fault == "cut":
            self.send(206 if asked else 200, headers, body[: len(body) // 2], length=len(body))
            self.close_connection = True
        else:
            self.send(206 if asked else 200, headers, body)


class _CdnHandler(_Handler):
    server: Cdn

    def do_GET(self) -> None:
        number = self.server.count((self.path, self.headers.get("Range"), lower(self.headers)))
        fault = self.server.fault(self.path, number)
        if fault == "reset":
            self.reset()
        elif fault is not None and fault.isdigit():
            self.send(int(fault), {}, b"<Error><Code>AccessDenied</Code></Error>")
        else:
            name, _, query = self.path.partition("?")
            assert "X-Signature=s1gnature" in query
            self.send_range(self.server.files[name.lstrip("/")], {"ETag": f'"{name}"'}, fault)

    do_HEAD = do_GET


class _HubHandler(_Handler):
    server: FakeHub

    def do_GET(self) -> None:
        self.answer()

    do_HEAD = do_GET
    do_POST = do_GET

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        number = self.server.count((self.command, self.path, lower(self.headers)))
        fault = self.server.fault(self.path, number)
        path, _, query = self.path.partition("?")
        if fault == "reset":
            return self.reset()
        if fault == "429":
            return self.error(429, headers={"RateLimit": '"api";r=0;t=1'})
        if fault is not None:
            return self.error(int(fault))
        found = re.fullmatch(r"(/api)?/datasets/([^/]+/[^/]+)(?:/([\w-]+)/([^/]+)(?:/(.*))?)?", path)
        if found is None:
            return self.error(404)
        name, what, revision, rest = found[2], found[3] or "revision", unquote(found[4] or "main"), found[5] or ""
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if given not in ("", TOKEN, "hf_another"):
            return self.error(401, "", "Invalid credentials in Authorization header")
        repository = self.server.repositories.get(name)
        if repository is None or (repository.is_private and given != TOKEN):
            if given:
                return self.error(404, "RepoNotFound", "Repository not found")
            return self.error(401, "", "Invalid username or password.")
        commit = repository.refs.get(revision, revision)
        files = repository.commits.get(commit)
        if files is None:
            return self.error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        if what == "revision":
            said = {"id": name, "sha": commit, "private": repository.is_private, "gated": repository.is_gated}
            return self.say({**said, "siblings": [{"rfilename": each} for each in sorted(files)], "tags": []})
        if what == "tree":
            return self.tree(files, unquote(rest), dict(parse_qsl(query)), path)
        if what == "paths-info":
            entries = {each["path"]: each for each in entries_of(files, "", recursive=True)}
            return self.say([entries[each] for each in parse_qs(body.decode()).get("paths", []) if each in entries])
        if what == "resolve":
            if repository.is_gated and given != TOKEN:
                return self.error(403 if given else 401, "GatedRepo", "Access to dataset is restricted.")
            return self.resolve(files, unquote(rest), commit)
        return self.error(404)

    def say(self, said: Any, headers: dict[str, str] | None = None) -> None:
        self.send(200, {"Content-Type": "application/json", **(headers or {})}, json.dumps(said).encode())

    def tree(self, files: dict[str, bytes], folder: str, options: dict[str, str], path: str) -> None:
        entries = entries_of(files, folder, options.get("recursive", "false").lower() == "true")
        if not entries and folder:
            return self.error(404, "EntryNotFound", f"{folder} does not exist")
        begin = int(options.get("cursor", 0))
        page = entries[begin : begin + self.server.page]
        links = {}
        if begin + len(page) < len(entries):
            query = urlencode({**options, "cursor": str(begin + len(page))})
            links["Link"] = f'<{self.server.address}{path}?{query}>; rel="next"'
        self.say(page, links)
        return None

    def resolve(self, files: dict[str, bytes], name: str, commit: str) -> None:
        data = files.get(name)
        if data is None:
            return self.error(404, "EntryNotFound", "Entry not found")
        digest = hashlib.sha256(data).hexdigest()
        headers = {"X-Repo-Commit": commit, "ETag": f'"{digest}"'}
        if len(data) < _DIRECT_BYTES:
            self.send_range(data, headers)
            return None
        cdn = self.server.cdn
        assert isinstance(cdn, Cdn)
        cdn.files[digest] = data
        headers |= {"X-Linked-Size": str(len(data)), "X-Linked-ETag": f'"{digest}"'}
        self.send(
            302, {**headers, "Location": f"{cdn.address}/{digest}?X-Signature=s1gnature&n={len(cdn.requests)}"}, b""
        )
        return None


def lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def entries_of(files: dict[str, bytes], folder: str, recursive: bool) -> list[dict[str, Any]]:
    """As the API lists a folder: files and folders, sorted."""
    prefix = f"{folder}/" if folder else ""
    found: dict[str, dict[str, Any]] = {}
    for path, data in files.items():
        if not path.startswith(prefix):
            continue
        parts = path.removeprefix(prefix).split("/")
        for depth in range(1, len(parts)):
            above = prefix + "/".join(parts[:depth])
            found[above] = {"type": "directory", "oid": "0" * 40, "size": 0, "path": above}
            if not recursive:
                break
        if recursive or len(parts) == 1:
            entry = {"type": "file", "oid": hashlib.sha1(data).hexdigest(), "size": len(data), "path": path}
            if len(data) >= _DIRECT_BYTES:
                digest = hashlib.sha256(data).hexdigest()
                entry["lfs"] = {"oid": digest, "size": len(data), "pointerSize": 134}
            found[path] = entry
    return [found[path] for path in sorted(found)]
