"""Errors of writing into buckets: whatever fails, none of them leads to what obstore raised, and none has a secret."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _fault_servers import fault_proxy
from _places import ACCESS, SECRET, Place
from penstock import Error, Storage

pytest.importorskip("obstore")

Fault = Callable[[str, str, int], str | None]
HIDDEN = (SECRET, ACCESS, "Signature", "Authorization", "Error performing", "Debug source", "AWS4-HMAC")


def every(error: BaseException) -> list[BaseException]:
    """All errors that one leads to, by __cause__ and __context__, whether a traceback shows them or not."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and each not in found:
            found.append(each)
            waiting += [each.__cause__, each.__context__]
    return found


def check(error: BaseException) -> None:
    assert isinstance(error, Error)
    for each in every(error):
        assert not type(each).__module__.startswith("obstore"), repr(each)
        said = " ".join((str(each), repr(each), repr(each.args), repr(getattr(each, "__notes__", ""))))
        for hidden in HIDDEN:
            assert hidden not in said, said


def write(place: Place, storage: Storage, **options: Any) -> None:
    with place.writer(storage=storage, **options) as writer:
        for number in range(40):
            writer.append(token=np.arange(1000), metadata=number)


def write_large(place: Place, storage: Storage) -> None:
    with penstock.Writer(place.url, fields={"token": "u2"}, storage=storage) as writer:
        writer.append(token=np.zeros(10_000_000, "u2"))


def write_shard(place: Place, storage: Storage) -> None:
    write(place, storage, shard=0, shard_size=1 << 30, scratch=None)


def write_features(place: Place, storage: Storage) -> None:
    write(place, storage, features=["a", "b"])


def replace(place: Place, storage: Storage) -> None:
    write(place, place.storage)
    write(place, storage, overwrite=True)


def commit(place: Place, storage: Storage) -> None:
    write(place, place.storage, shard=0, shard_size=1 << 30)
    penstock.commit(place.url, storage=storage, features=["a"])


def remove(place: Place, storage: Storage) -> None:
    write(place, place.storage, shard=0, shard_size=1 << 30)
    penstock.remove_shards(place.url, [0], storage=storage)


def look(place: Place, storage: Storage) -> None:
    penstock.finished_shards(place.url, storage=storage)


def on(method: str, part: str) -> Callable[[str, str], bool]:
    return lambda asked, path: asked == method and part in path


PLACES = {
    "what is there": (look, on("GET", "dataset.json")),
    "a listing": (look, on("GET", "list-type")),
    "a small file": (write, on("PUT", "stream.bin")),
    "the beginning of parts": (write_large, on("POST", "?uploads")),
    "a part": (write_large, on("PUT", "partNumber=2")),
    "the end of parts": (write_large, on("POST", "uploadId=")),
    "a shard alone": (write_shard, on("PUT", "metadata.index")),
    "the end of a shard": (write_shard, on("PUT", "shard.json")),
    "features": (write_features, on("PUT", "/features")),
    "what is committed": (commit, on("GET", "shard.json")),
    "features of a commit": (commit, on("PUT", "/features")),
    "the manifest": (write, on("PUT", "dataset.json")),
    "what was replaced": (replace, on("POST", "?delete")),
    "what is removed": (remove, on("POST", "?delete")),
}


MOST = [(where, fault) for where in PLACES for fault in ("503", "403", "reset")]
OTHERS = [(where, fault) for where in ("a listing", "a small file", "the manifest") for fault in ("404", "301", "400")]


@pytest.mark.parametrize(("where", "fault"), [*MOST, *OTHERS])
def test_no_error_of_a_request_leads_to_obstore_or_a_secret(
    place: Place, s3_server: str, where: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    action, is_asked = PLACES[where]
    with fault_proxy(s3_server, lambda method, path, number: fault if is_asked(method, path) else None) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1", deadline=0.3)
        with pytest.raises(Error) as raised:
            action(place, storage)
    check(raised.value)


def failing() -> Any:
    raise RuntimeError(SECRET)


@pytest.mark.parametrize(
    "storage",
    [
        Storage(endpoint="http://127.0.0.1:9", region="us-east-1", deadline=0.2),
        Storage(region="us-east-1", deadline=0.2, credentials=failing),
        Storage(region="us-east-1", deadline=0.2, credentials=lambda: SECRET),
        Storage(region="us-east-1", profile="nobody"),
    ],
    ids=["no server", "credentials that raise", "credentials of another type", "no such profile"],
)
def test_no_error_of_reaching_a_bucket_leads_to_obstore_or_a_secret(place: Place, storage: Storage) -> None:
    with pytest.raises(Error) as raised:
        place.writer(storage=storage)
    check(raised.value)


def test_no_refusal_leads_to_obstore_or_a_secret(place: Place, s3_server: str) -> None:
    with fault_proxy(s3_server, lambda method, path, number: "blind") as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1")
        with pytest.raises(Error, match="ignores If-None-Match") as raised:
            write(place, storage)
    check(raised.value)
    first, second = place.writer(overwrite=True), place.writer(overwrite=True)
    for number, writer in enumerate((first, second)):
        writer.append(token=np.arange(100), metadata=number)
    first.commit()
    for wrong in (second.commit, place.writer, lambda: penstock.commit(place.url, storage=place.storage)):
        with pytest.raises(Error) as raised:
            wrong()
        check(raised.value)
    second.abort()
    with pytest.raises(Error) as raised:
        second.commit()
    check(raised.value)
