"""An object store in memory that answers as Amazon's does, and as a plain server of files: what honest answers are."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote
from xml.sax.saxutils import escape

_PAGE = 7  # objects of a page of a listing, so that there are several
XML = {"Content-Type": "application/xml"}


@dataclass
class Request:
    """A client's request.

    Attributes:
        key: bucket/name, decoded.
        target: as the request line has it.
        number: of this server's requests, from 0.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    number: int
    key: str = field(init=False)
    query: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        path, _, query = self.target.partition("?")
        self.key = unquote(path).lstrip("/")
        self.query = {name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()}

    @property
    def kind(self) -> str:
        """Its purpose: "list", "get", "head", "put", "new" (a condition), "copy", "begin", "part", "end", "abort",
        "delete".
        """
        if self.method == "POST":
            return "begin" if "uploads" in self.query else "end" if "uploadId" in self.query else "delete"
        if self.method == "PUT":
            if "x-amz-copy-source" in self.headers:
                return "copy"
            if "partNumber" in self.query:
                return "part"
            return "new" if "if-none-match" in self.headers or "if-match" in self.headers else "put"
        if self.method == "DELETE":
            return "abort" if "uploadId" in self.query else "delete"
        return "list" if "list-type" in self.query else self.method.lower()


@dataclass
class Answer:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def error(status: int, code: str, told: str = "") -> Answer:
    return Answer(status, dict(XML), f"<Error><Code>{code}</Code>{told}</Error>".encode())


def etag_of(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


class Objects:
    """Any thread."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        self.uploads: dict[str, dict[int, bytes]] = {}
        self._lock = threading.Lock()
        self._begun = 0

    def below(self, prefix: str) -> dict[str, bytes]:
        with self._lock:
            return {key.removeprefix(prefix): data for key, data in self.files.items() if key.startswith(prefix)}

    def answer(self, request: Request) -> Answer:
        with self._lock:
            answer = getattr(self, f"_{request.kind}", None)
            made: Answer = answer(request) if answer is not None else error(400, "MethodNotAllowed")
            return made

    def _get(self, request: Request) -> Answer:
        data = self.files.get(request.key)
        if data is None:
            return error(404, "NoSuchKey")
        headers = {"ETag": etag_of(data), "Last-Modified": "Thu, 26 Nov 2026 10:00:00 GMT"}
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("range", ""))
        if asked is None:
            return Answer(200, headers, data)
        begin, end = int(asked[1]), min(int(asked[2]) + 1, len(data))
        if begin >= len(data):
            return Answer(416, {"Content-Range": f"bytes */{len(data)}"})
        return Answer(206, {**headers, "Content-Range": f"bytes {begin}-{end - 1}/{len(data)}"}, data[begin:end])

    _head = _get

    def _list(self, request: Request) -> Answer:
        bucket = request.key.strip("/")
        prefix, after = request.query.get("prefix", ""), request.query.get("start-after", "")
        after = max(after, request.query.get("continuation-token", ""))
        delimiter = request.query.get("delimiter", "")
        found, folders = [], []
        for key in sorted(key.removeprefix(f"{bucket}/") for key in self.files if key.startswith(f"{bucket}/")):
            if not key.startswith(prefix) or key <= after:
                continue
            head, cut, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            if cut:
                folders.append(prefix + head + cut)
            else:
                found.append(key)
        page, more = found[:_PAGE], found[_PAGE:]
        return Answer(200, dict(XML), self.listing(bucket, page, sorted(set(folders)), page[-1] if more else ""))

    def listing(self, bucket: str, keys: list[str], folders: list[str], token: str) -> bytes:
        """A page of a list; `token`: there is more behind it."""
        told = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-11-26T10:00:00.000Z</LastModified>"
            f"<ETag>{escape(etag_of(self.files[f'{bucket}/{key}']))}</ETag>"
            f"<Size>{len(self.files[f'{bucket}/{key}'])}</Size></Contents>"
            for key in keys
        )
        told += "".join(f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in folders)
        told += f"<IsTruncated>{'true' if token else 'false'}</IsTruncated>"
        told += f"<NextContinuationToken>{escape(token)}</NextContinuationToken>" if token else ""
        return f"<ListBucketResult><Name>{bucket}</Name>{told}</ListBucketResult>".encode()

    def _put(self, request: Request) -> Answer:
        self.files[request.key] = request.body
        return Answer(200, {"ETag": etag_of(request.body)})

    def _new(self, request: Request) -> Answer:
        there = self.files.get(request.key)
        wanted = request.headers.get("if-match")
        if (there is not None) if wanted is None else (there is None or etag_of(there) != wanted):
            return error(412, "PreconditionFailed")
        return self._put(request)

    def _copy(self, request: Request) -> Answer:
        data = self.files.get(unquote(request.headers["x-amz-copy-source"]).lstrip("/"))
        if data is None:
            return error(404, "NoSuchKey")
        self.files[request.key] = data
        told = f"<CopyObjectResult><ETag>{escape(etag_of(data))}</ETag></CopyObjectResult>"
        return Answer(200, dict(XML), told.encode())

    def _begin(self, request: Request) -> Answer:
        self._begun += 1
        name = f"upload{self._begun}"
        self.uploads[name] = {}
        told = f"<Bucket>data</Bucket><Key>{escape(request.key)}</Key><UploadId>{name}</UploadId>"
        return Answer(200, dict(XML), f"<InitiateMultipartUploadResult>{told}</InitiateMultipartUploadResult>".encode())

    def _part(self, request: Request) -> Answer:
        parts = self.uploads.get(request.query["uploadId"])
        if parts is None:
            return error(404, "NoSuchUpload")
        parts[int(request.query["partNumber"])] = request.body
        return Answer(200, {"ETag": etag_of(request.body)})

    def _end(self, request: Request) -> Answer:
        parts = self.uploads.pop(request.query["uploadId"], None)
        if parts is None:
            return error(404, "NoSuchUpload")
        asked = [int(each) for each in re.findall(rb"<PartNumber>(\d+)</PartNumber>", request.body)]
        data = self.files[request.key] = b"".join(parts[number] for number in asked)
        told = f"<Key>{escape(request.key)}</Key><ETag>{escape(etag_of(data))}</ETag>"
        return Answer(200, dict(XML), f"<CompleteMultipartUploadResult>{told}</CompleteMultipartUploadResult>".encode())

    def _abort(self, request: Request) -> Answer:
        self.uploads.pop(request.query["uploadId"], None)
        return Answer(204)

    def _delete(self, request: Request) -> Answer:
        if request.method == "DELETE":
            self.files.pop(request.key, None)
            return Answer(204)
        bucket = request.key.strip("/")
        keys = re.findall(r"<Key>(.*?)</Key>", request.body.decode())
        for key in keys:
            self.files.pop(f"{bucket}/{key}", None)
        told = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        return Answer(200, dict(XML), f"<DeleteResult>{told}</DeleteResult>".encode())
