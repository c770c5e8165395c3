"""What servers and this machine refuse of a writer: said at once where no other attempt helps, and by its cause."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _fault_servers import fault_proxy
from _places import ACCESS, SECRET, Place, chain
from penstock import IoError, NotFoundError, Storage
from penstock._places.uploads import Bucket

pytest.importorskip("obstore")


def at(address: str, **given: Any) -> Storage:
    return Storage(endpoint=address, region="us-east-1", **given)


def test_faults_pass_whatever_words_the_address_has(place: Place, s3_server: str) -> None:
    faults = iter(["reset"] * 3)  # of the conditional put of the manifest too, which obstore does not try again

    def fault(method: str, path: str, number: int) -> str | None:
        return next(faults, None) if method == "PUT" and path.endswith("dataset.json") else None

    place.name = "redirects NoSuchBucket without LOCATION, status code: 403"
    place.url = f"s3://data/{place.name}"
    with fault_proxy(s3_server, fault) as proxy:
        for address in (proxy.address, s3_server):
            with place.writer(overwrite=True, storage=at(address)) as writer:
                for number in range(40):
                    writer.append(token=np.arange(300), metadata={"name": number})
            assert next(faults, None) is None and penstock.verify(place.url, storage=at(s3_server))


@pytest.mark.parametrize("fault", ["region", "malformed"])
@pytest.mark.parametrize("methods", [("GET", "HEAD"), ("PUT", "HEAD"), ("POST", "HEAD")], ids=str)
def test_another_region_is_named_at_once(
    place: Place, s3_server: str, tmp_path: Path, fault: str, methods: tuple[str, ...]
) -> None:
    with fault_proxy(s3_server, lambda method, path, number: fault if method in methods else None) as proxy:
        begin = time.monotonic()
        bucket = Bucket(place.url, at(proxy.address, deadline=600))
        (tmp_path / "large").write_bytes(bytes(9 << 20))
        with pytest.raises(IoError, match=r'in the region eu-west-9: give Storage\(region="eu-west-9"\)') as raised:
            if methods[0] == "GET":
                bucket.get("dataset.json")
            elif methods[0] == "PUT":
                bucket.put_new("dataset.json", b"{}", None)
            else:
                bucket.put_file("large", tmp_path / "large", lambda sent: None)
        assert time.monotonic() - begin < 20
        assert len([method for method, _ in proxy.requests if method == methods[0]]) == 1
    for secret in (SECRET, ACCESS, "Signature"):
        assert secret not in chain(raised.value)


def test_a_file_that_is_gone_is_no_fault_of_the_server(place: Place, tmp_path: Path) -> None:
    bucket = Bucket(place.url, at(place.server, deadline=600))
    begin = time.monotonic()

    def lost(sent: int) -> None:
        (tmp_path / "gone").unlink(missing_ok=True)

    (tmp_path / "gone").write_bytes(b"0")
    with pytest.raises(IoError, match=r"not uploaded: .*gone: No such file") as raised:
        bucket.put_file("stream.bin", tmp_path / "gone", lost)
    assert raised.value.filename == str(tmp_path / "gone")
    assert time.monotonic() - begin < 20


def test_a_mistake_of_the_program_is_not_tried_again(place: Place, tmp_path: Path) -> None:
    bucket = Bucket(place.url, at(place.server, deadline=600))
    begin = time.monotonic()
    with pytest.raises(IoError, match=r"1 attempt in .*, the last: TypeError"):
        bucket.put("stream.bin", 5)  # type: ignore[arg-type]

    def mistaken(sent: int) -> None:
        raise TypeError("a mistake")

    (tmp_path / "large").write_bytes(bytes(9 << 20))
    with pytest.raises(IoError, match=r"1 attempt in .*, the last: TypeError"):
        bucket.put_file("stream.bin", tmp_path / "large", mistaken)
    assert time.monotonic() - begin < 20
    assert place.uploads() == []


def test_an_upload_that_somebody_ended_begins_anew(place: Place, s3_server: str, tmp_path: Path) -> None:
    faults = iter(["no upload"])

    def fault(method: str, path: str, number: int) -> str | None:
        return next(faults, None) if method == "PUT" and "partNumber=2" in path else None

    data = np.arange(9 << 18, dtype="u4").tobytes()
    (tmp_path / "large").write_bytes(data)
    with fault_proxy(s3_server, fault) as proxy:
        Bucket(place.url, at(proxy.address)).put_file("large", tmp_path / "large", lambda sent: None)
        assert len([path for method, path in proxy.requests if method == "POST" and "uploads" in path]) == 2
    assert place.files() == {"large": data}


def test_no_such_bucket_is_said_by_its_code_alone(place: Place) -> None:
    assert Bucket(f"{place.url}/NoSuchBucket", place.storage).get("dataset.json") is None
    with pytest.raises(NotFoundError, match=r"^.*s3://nowhere: no such bucket \(404 Not Found \(NoSuchBucket\)\)"):
        Bucket("s3://nowhere/corpus", place.storage).get("dataset.json")
