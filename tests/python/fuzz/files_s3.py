"""XML of an object store, as it lists what it holds and says why it refuses: served here, and read through obstore."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

#: Of the replies, by the seed; 500 would be asked for again.
_STATUS = (200, 200, 200, 301, 400, 403, 404, 409)
_LAST = b"<ListBucketResult><Name>input.xml</Name><IsTruncated>false</IsTruncated></ListBucketResult>"
_DEADLINE = 1e-6  # seconds: each request has one attempt


def lists() -> list[bytes]:
    """A page of several objects, one of folders alone, one that goes on, an empty one, and refusals."""
    objects = "".join(
        f"<Contents><Key>data/{name}</Key><LastModified>2026-11-26T10:00:00.000Z</LastModified>"
        f"<ETag>&quot;{number:032x}&quot;</ETag><Size>{number * 1000}</Size><StorageClass>STANDARD</StorageClass>"
        "</Contents>"
        for number, name in enumerate(("dataset.json", "00000-d2d6365b/shard.json", "00000-d2d6365b/stream.bin", "a b"))
    )
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    result = f'{head}<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>input.xml</Name>'
    folders = "<CommonPrefixes><Prefix>data/00000/</Prefix></CommonPrefixes>"
    ends = "<IsTruncated>false</IsTruncated></ListBucketResult>"
    more = "<IsTruncated>true</IsTruncated><NextContinuationToken>t1</NextContinuationToken></ListBucketResult>"
    error = f"{head}<Error><Code>AccessDenied</Code><Message>Access Denied</Message><Region>eu-west-9</Region></Error>"
    texts = (result + objects + ends, result + folders + ends, result + objects + more, result + ends, error)
    return [each.encode() for each in texts]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # header and body in one packet
    reply: tuple[int, bytes] = (200, b"")

    def do_GET(self) -> None:
        """The reply; behind its first page there is nothing more."""
        status, body = (200, _LAST) if "continuation-token" in self.path else _Handler.reply
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@functools.cache
def _bucket(name: str) -> Any:
    from penstock import Storage
    from penstock._places.uploads import Bucket

    for each in [each for each in os.environ if each.startswith("AWS_")]:
        del os.environ[each]
    os.environ.update(AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret", AWS_EC2_METADATA_DISABLED="true")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    return Bucket(f"s3://{name}/data", Storage(endpoint=endpoint, region="us-east-1", deadline=_DEADLINE))


def read_list(path: Path, seed: int) -> None:
    """The list below s3://NAME/data, or an object there, answered by the file."""
    _Handler.reply = (_STATUS[seed % len(_STATUS)], path.read_bytes())
    bucket = _bucket(path.name)
    if seed % 16 < len(_STATUS):
        bucket.sizes()
    else:
        bucket.get("dataset.json")
