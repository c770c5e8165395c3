"""Errors of writing into buckets: whatever fails, none of them leads to what obstore raised, and none has a secret."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _fault_servers import fault_proxy
from _places import ACCESS, SECRET, Place
from penstock import Error, Storage

pytest.importorskip("obstore")

HIDDEN = (SECRET, ACCESS, "Signature", "Authorization", "Error performing", "Debug source", "AWS4-HMAC")


def check(error: BaseException) -> None:
    """Looks at all errors that it leads to, whether a traceback shows them or not."""
    assert isinstance(error, Error)
    found: list[BaseException] = [error]
    for each in found:
        found += [more for more in (each.__cause__, each.__context__) if more is not None and more not in found]
        assert not type(each).__module__.startswith("obstore"), repr(each)
        said = " ".join((str(each), repr(each), repr(each.args), repr(getattr(each, "__notes__", ""))))
        for hidden in HIDDEN:
            assert hidden not in said, said


def write(place: Place, storage: Storage, tokens: int = 1000, documents: int = 40, **options: Any) -> None:
    with place.writer(storage=storage, **options) as writer:
        for number in range(documents):
            writer.append(token=np.zeros(tokens, "u2"), metadata=number)


def replace(place: Place, storage: Storage) -> None:
    write(place, place.storage)
    write(place, storage, overwrite=True)


def commit(place: Place, storage: Storage) -> None:
    write_shard(place, place.storage)
    penstock.commit(place.url, storage=storage, features=["a"])


def remove(place: Place, storage: Storage) -> None:
    write_shard(place, place.storage)
    penstock.remove_shards(place.url, [0], storage=storage)


def look(place: Place, storage: Storage) -> None:
    penstock.finished_shards(place.url, storage=storage)


write_large = partial(write, shard_size=1 << 30, tokens=5_000_000, documents=1)
write_shard = partial(write, shard=0, shard_size=1 << 30)
write_features = partial(write, features=["a", "b"])


#: What is done, and the request that fails: its method and a part of its path.
PLACES: dict[str, tuple[Callable[[Place, Storage], None], str, str]] = {
    "what is there": (look, "GET", "dataset.json"),
    "a listing": (look, "GET", "list-type"),
    "a small file": (write, "PUT", "stream.bin"),
    "the beginning of parts": (write_large, "POST", "?uploads"),
    "a part": (write_large, "PUT", "partNumber=2"),
    "the end of parts": (write_large, "POST", "uploadId="),
    "a shard alone": (write_shard, "PUT", "metadata.index"),
    "the end of a shard": (write_shard, "PUT", "shard.json"),
    "features": (write_features, "PUT", "/features"),
    "what is committed": (commit, "GET", "shard.json"),
    "features of a commit": (commit, "PUT", "/features"),
    "the manifest": (write, "PUT", "dataset.json"),
    "what was replaced": (replace, "POST", "?delete"),
    "what is removed": (remove, "POST", "?delete"),
}
SOME = ("a listing", "a small file", "the manifest")
FAULTS = [*((where, "503") for where in PLACES), *((where, each) for where in SOME for each in ("403", "404", "301"))]
FAULTS += [("a part", "reset"), ("what is committed", "400"), ("features", "403")]


@pytest.mark.parametrize(("where", "fault"), FAULTS)
def test_no_error_of_a_request_leads_to_obstore_or_a_secret(
    place: Place, s3_server: str, where: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    action, failing, part = PLACES[where]

    def fails(method: str, path: str, number: int) -> str | None:
        return fault if method == failing and part in path else None

    with fault_proxy(s3_server, fails) as proxy:
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
    second.append(token=np.arange(100), metadata=1)
    first.commit()
    for wrong in (second.commit, place.writer, lambda: penstock.commit(place.url, storage=place.storage)):
        with pytest.raises(Error) as raised:
            wrong()
        check(raised.value)
    second.abort()
    with pytest.raises(Error) as raised:
        second.commit()
    check(raised.value)
