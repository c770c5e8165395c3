"""Buckets read natively: signed by obstore, from moto and from a server that checks what is signed."""

import pickle
import shutil
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _batches import contents
from _child import HOWS, run_child
from _fault_servers import fault_server
from _servers import moto, without_credentials, write_corpus
from penstock import InvalidArgumentError, NotFoundError, Storage

pytest.importorskip("obstore")
pytest.importorskip("boto3")

ACCESS, SECRET = "AKIDEXAMPLE", "Pa55word/with+odd=characters0000000000000"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a bucket named data holds."""
    folder = tmp_path_factory.mktemp("buckets") / "data"
    rng = np.random.default_rng(0)
    write_corpus(folder, rng, shards=2, documents=100)
    odd = folder / "a b+c=(d)!'é"
    shutil.copytree(folder / "corpus", odd)
    rng.integers(0, 60_000, 10_000).astype("u2").tofile(folder / "a.bin")
    return folder


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody's own credentials."""
    without_credentials(monkeypatch, tmp_path)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


@pytest.fixture
def server(folder: Path) -> Any:
    with fault_server(folder.parent) as server:
        server.keys[ACCESS] = (SECRET, None)
        yield server


@pytest.mark.parametrize("name", ["corpus", "a b+c=(d)!'é"])
@pytest.mark.parametrize("order", ["uniform", penstock.orders.Blocks(4, 32)])
def test_batches_are_those_of_the_local_files(folder, server, keys, name, order):
    storage = Storage(endpoint=server.address)
    here, there = penstock.open(folder / name), penstock.open(f"s3://data/{name}", storage=storage)
    assert there.fingerprint == here.fingerprint
    loaders = [penstock.Loader(each.windows(64), 16, order=order, seed=3, epochs=1) for each in (here, there)]
    assert loaders[1].reader == "http"
    expected, seen = map(contents, loaders)
    assert seen == expected
    assert all("X-Amz-Signature" in path for path, *_ in server.requests)


@pytest.fixture(scope="module")
def bucket(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with moto({"data": folder}, tmp_path_factory.mktemp("moto") / "log") as address:
        yield address


def test_a_bucket_of_moto_gives_the_same_batches(folder, bucket, keys, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", bucket)
    loaders = [penstock.Loader(penstock.open(path).documents(), 16, seed=3, epochs=1)
               for path in (folder / "corpus", "s3://data/corpus/")]  # fmt: skip
    assert contents(loaders[0]) == contents(loaders[1])
    assert penstock.open("s3://data/a.bin", dtype="u2").records == 10_000
    with pytest.raises(NotFoundError, match=r"s3://data/nothing/dataset\.json.*NoSuchKey"):
        penstock.open("s3://data/nothing")
    with pytest.raises(NotFoundError, match=r"s3://dota/corpus/dataset\.json: there is no such bucket .*NoSuchBucket"):
        penstock.open("s3://dota/corpus")


def test_credentials_that_a_function_gives_are_asked_for_again_before_they_end(folder, server):
    lifetime = 3.0
    asked: list[float] = []

    def credentials() -> dict[str, Any]:
        for number, then in enumerate(asked):
            if time.monotonic() > then + lifetime:
                server.keys.pop(f"AKID{number + 1}", None)
        asked.append(time.monotonic())
        access = f"AKID{len(asked)}"
        token = f"token/{len(asked)}=="
        server.keys[access] = (SECRET, token)
        return {
            "access_key_id": access,
            "secret_access_key": SECRET,
            "token": token,
            "expires_at": datetime.now(UTC) + timedelta(seconds=lifetime),
        }

    storage = Storage(endpoint=server.address, credentials=credentials)
    view = penstock.open("s3://data/corpus", storage=storage).windows(64)
    expected = penstock.open(folder / "corpus").windows(64)
    begin = time.monotonic()
    number = 0
    while time.monotonic() - begin < 3 * lifetime:
        number = (number + 7) % len(expected)
        assert view[number]["token"].tolist() == expected[number]["token"].tolist()
        time.sleep(0.02)
    assert len(asked) >= 3


def test_credentials_of_a_profile(folder, server, tmp_path):
    (tmp_path / "credentials").write_text(
        f"[corpora]\naws_access_key_id = {ACCESS}\naws_secret_access_key = {SECRET}\n"
    )
    storage = Storage(endpoint=server.address, profile="corpora", region="eu-north-1")
    assert penstock.open("s3://data/corpus", storage=storage).records > 0
    assert "eu-north-1" in server.requests[-1][0]
    with pytest.raises(InvalidArgumentError, match="profile='none of that name'"):
        penstock.open("s3://data/corpus", storage=Storage(endpoint=server.address, profile="none of that name"))


def test_anonymous_signs_nothing(folder):
    with fault_server(folder.parent) as server:
        storage = Storage(endpoint=server.address, anonymous=True)
        assert penstock.open("s3://data/a b+c=(d)!'é", storage=storage).windows(64)[3]["token"].size == 64
        assert all("?" not in path for path, *_ in server.requests)


def test_requester_pays_is_signed(server, keys):
    storage = Storage(endpoint=server.address, requester_pays=True)
    assert penstock.open("s3://data/corpus", storage=storage).records > 0
    assert "x-amz-request-payer=requester" in server.requests[-1][0]


def test_a_signature_that_is_refused_is_made_again_once(folder, keys):
    with fault_server(folder.parent, lambda path, number: "403" if number == 0 else None) as server:
        server.keys[ACCESS] = (SECRET, None)
        assert penstock.open("s3://data/corpus", storage=Storage(endpoint=server.address)).records > 0
    with fault_server(folder.parent, lambda path, number: "403") as server:
        with pytest.raises(
            penstock.IoError, match=r"status 403: it was asked for with credentials of boto3's chain"
        ) as error:
            penstock.open("s3://data/corpus", storage=Storage(endpoint=server.address))
        assert len(server.requests) == 2
        for secret in (SECRET, "X-Amz", "Signature="):
            assert secret not in f"{error.value!r} {error.value.__cause__!r}"


def test_another_region_is_named(folder, keys):
    words = r"in the region eu-west-9: give Storage\(region=\"eu-west-9\"\)"
    refused = pytest.raises(penstock.IoError, match=words)
    with fault_server(folder.parent, lambda path, number: "region") as server, refused:
        penstock.open("s3://data/corpus", storage=Storage(endpoint=server.address))


def test_no_credentials_are_told(monkeypatch):
    with pytest.raises(InvalidArgumentError, match="no credentials: set AWS_ACCESS_KEY_ID"):
        penstock.open("s3://data/corpus")


def _broken() -> dict[str, Any]:
    raise RuntimeError(f"cannot use {SECRET}")


def test_a_function_of_credentials_that_fails_is_told_without_what_it_says(server):
    with pytest.raises(
        penstock.IoError, match="nothing could be signed with credentials of a function: RuntimeError"
    ) as error:
        penstock.open("s3://data/corpus", storage=Storage(endpoint=server.address, credentials=_broken))
    assert SECRET not in f"{error.value!r} {error.value.__cause__!r}"


def _given() -> dict[str, Any]:
    return {"access_key_id": ACCESS, "secret_access_key": SECRET, "expires_at": None}


def test_a_dataset_travels_with_the_name_of_its_function(server):
    dataset = penstock.open("s3://data/corpus", storage=Storage(endpoint=server.address, credentials=_given))
    pickled = pickle.dumps(dataset)
    assert SECRET.encode() not in pickled
    assert pickle.loads(pickled).fingerprint == dataset.fingerprint
    unnamed = penstock.open("s3://data/corpus", storage=Storage(endpoint=server.address, credentials=lambda: _given()))
    with pytest.raises(InvalidArgumentError, match="a function that a module has by its name"):
        pickle.dumps(unnamed)


@pytest.mark.parametrize(
    ("url", "storage", "words"),
    [
        ("s3:///key", None, "no bucket"),
        ("s3://key:secret@bucket/corpus", None, "holds no credentials"),
        ("s3://data/corpus", Storage(headers={"X": "1"}), "http:// and https://"),
    ],
)
def test_addresses_that_cannot_be_are_refused(keys, url, storage, words):
    with pytest.raises(InvalidArgumentError, match=words) as error:
        penstock.open(url, storage=storage)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"])
def test_an_endpoint_of_the_environment_holds_no_password(keys, monkeypatch, name):
    monkeypatch.setenv(name, "http://user:secret@minio:9000")
    with pytest.raises(InvalidArgumentError, match=f"{name}: ") as error:
        penstock.open("s3://data/corpus")
    assert "secret" not in str(error.value)


def test_an_endpoint_that_is_given_counts_before_the_environment_s(folder, server, keys, monkeypatch):
    with fault_server(folder.parent) as other:
        server.keys.clear()  # which are of signatures in addresses alone
        for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
            monkeypatch.setenv(name, other.address)
        for options in ({}, {"reader": "python"}):
            view = penstock.open("s3://data/corpus", storage=Storage(endpoint=server.address)).windows(64)
            next(penstock.Loader(view, 4, seed=1, **options))
        with pytest.raises(penstock.Error):  # it takes no writing
            penstock.Writer("s3://data/new", {"token": "u2"}, storage=Storage(endpoint=server.address)).commit()
        assert server.requests and not other.requests


def test_a_profile_wants_boto3(monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(InvalidArgumentError, match="profiles are read by boto3, which is not installed"):
        penstock.open("s3://data/corpus", storage=Storage(profile="corpora"))
    monkeypatch.setenv("AWS_PROFILE", "corpora")
    with pytest.raises(InvalidArgumentError, match="profiles are read by boto3"):
        penstock.open("s3://data/corpus")


def test_what_boto3_cannot_read_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_PROFILE", "none of that name")
    with pytest.raises(InvalidArgumentError, match="none of that name"):
        penstock.open("s3://data/corpus")
    monkeypatch.delenv("AWS_PROFILE")
    (tmp_path / "config").write_text("no section")
    with pytest.raises(InvalidArgumentError, match="parse config file"):
        penstock.open("s3://data/corpus")


def signers() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if each.name == "penstock-signer"}


def test_no_signer_is_left_where_a_store_cannot_be_made(keys, monkeypatch):
    def no_libcurl(**options: Any) -> None:
        raise InvalidArgumentError("no libcurl")

    monkeypatch.setattr(penstock._native, "HttpStore", no_libcurl)
    before = signers()  # those of other tests end
    with pytest.raises(InvalidArgumentError, match="no libcurl"):
        penstock.open("s3://data/corpus")
    assert not signers() - before


@pytest.mark.parametrize("how", HOWS)
def test_a_process_ends_with_requests_under_way(server, keys, how):
    run_child(how, "s3", server.address)
