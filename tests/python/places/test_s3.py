"""Buckets read natively: signed by obstore, from moto and from a server that checks what is signed."""

import pickle
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import penstock
import pytest
from _batches import contents
from _fault_servers import fault_server
from _places import ACCESS, SECRET, chain
from _python_stores import ODD
from penstock import InvalidArgumentError, NotFoundError, Storage

pytest.importorskip("obstore")


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


@pytest.fixture
def server(root: Path) -> Any:
    """It has the bucket `data`, and checks signatures."""
    with fault_server(root.parent) as server:
        server.keys[ACCESS] = (SECRET, None)
        yield server


def test_signed_batches_are_those_of_the_local_files(root, server, keys):
    here, there = penstock.open(root / ODD), penstock.open(f"s3://data/{ODD}", storage=Storage(endpoint=server.address))
    loaders = [penstock.Loader(each.windows(64), 16, seed=3, epochs=1) for each in (here, there)]
    assert loaders[1].reader == "http"
    assert contents(loaders[0]) == contents(loaders[1])
    assert all("X-Amz-Signature" in path for path, *_ in server.requests)


def test_moto_is_found_by_the_environment_and_says_what_is_missing(bucket, keys, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", bucket)
    assert penstock.open("s3://data/corpus/").spans == 300
    assert penstock.open("s3://data/a.bin", dtype="u2").records == 100_000
    with pytest.raises(NotFoundError, match=r"s3://data/nothing/dataset\.json.*NoSuchKey"):
        penstock.open("s3://data/nothing")
    with pytest.raises(NotFoundError, match=r"s3://dota/corpus/dataset\.json: there is no such bucket .*NoSuchBucket"):
        penstock.open("s3://dota/corpus")


def test_credentials_that_a_function_gives_are_asked_for_again_before_they_end(root, server):
    lifetime = 1.0
    asked: list[float] = []

    def credentials() -> dict[str, Any]:
        for number, then in enumerate(asked):
            if time.monotonic() > then + lifetime:
                server.keys.pop(f"AKID{number + 1}", None)
        asked.append(time.monotonic())
        access, token = f"AKID{len(asked)}", f"token/{len(asked)}=="
        server.keys[access] = (SECRET, token)
        ends = datetime.now(UTC) + timedelta(seconds=lifetime)
        return {"access_key_id": access, "secret_access_key": SECRET, "token": token, "expires_at": ends}

    storage = Storage(endpoint=server.address, credentials=credentials)
    view = penstock.open("s3://data/corpus", storage=storage).windows(64)
    expected = penstock.open(root / "corpus").windows(64)
    begin, number = time.monotonic(), 0
    while time.monotonic() - begin < 2.5 * lifetime:
        number = (number + 7) % len(expected)
        assert view[number]["token"].tolist() == expected[number]["token"].tolist()
        time.sleep(0.02)
    assert len(asked) >= 3


def test_credentials_of_a_profile(server, tmp_path, monkeypatch):
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = other\naws_secret_access_key = other\n"
        f"[corpora]\naws_access_key_id = {ACCESS}\naws_secret_access_key = {SECRET}\n"
    )
    storage = Storage(endpoint=server.address, profile="corpora", region="eu-north-1")
    assert penstock.open("s3://data/corpus", storage=storage).records > 0
    assert "eu-north-1" in server.requests[-1][0]
    monkeypatch.setenv("AWS_PROFILE", "corpora")
    penstock.open("s3://data/corpus", storage=Storage(endpoint=server.address))
    assert ACCESS in server.requests[-1][0]


def test_profiles_that_cannot_be_read_are_told(server, monkeypatch, tmp_path):
    def refused(words: str, **storage: Any) -> None:
        with pytest.raises(InvalidArgumentError, match=words):
            penstock.open("s3://data/corpus", storage=Storage(endpoint=server.address, **storage))

    refused("no credentials: set AWS_ACCESS_KEY_ID")
    refused("profile='none of that name'", profile="none of that name")
    monkeypatch.setenv("AWS_PROFILE", "none of that name")
    refused("none of that name")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "boto3", None)
        refused("profiles are read by boto3, which is not installed", profile="corpora")
        refused("profiles are read by boto3")
    monkeypatch.delenv("AWS_PROFILE")
    (tmp_path / "config").write_text("no section")
    refused("parse config file")


def test_what_is_signed_is_as_the_storage_says(root, server, keys, monkeypatch):
    def asked(**storage: Any) -> str:
        assert penstock.open("s3://data/corpus", storage=Storage(endpoint=server.address, **storage)).records > 0
        return str(server.requests[-1][0])

    assert "x-amz-request-payer=requester" in asked(requester_pays=True)
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.setenv(name, "ap-south-2")
        assert "%2Fap-south-2%2Fs3%2F" in asked()
        assert "%2Feu-north-1%2Fs3%2F" in asked(region="eu-north-1")  # which counts more
        monkeypatch.delenv(name)
    with fault_server(root.parent) as unguarded:
        storage = Storage(endpoint=unguarded.address, anonymous=True)
        assert penstock.open(f"s3://data/{ODD}", storage=storage).windows(64)[3]["token"].size == 64
        assert all("?" not in path for path, *_ in unguarded.requests)


def test_a_signature_that_is_refused_is_made_again_once(root, keys):
    with fault_server(root.parent, lambda path, number: "403") as server:
        with pytest.raises(
            penstock.IoError, match=r"status 403: it was asked for with credentials of boto3's chain"
        ) as error:
            penstock.open("s3://data/corpus", storage=Storage(endpoint=server.address))
        assert len(server.requests) == 2
        for secret in (SECRET, "X-Amz", "Signature="):
            assert secret not in f"{error.value!r} {error.value.__cause__!r}"


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


def test_an_endpoint_that_is_given_counts_before_the_environment_s(root, server, keys, monkeypatch):
    with fault_server(root.parent) as other:
        server.keys.clear()  # which are of signatures in addresses alone
        for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
            monkeypatch.setenv(name, other.address)
        for options in ({}, {"reader": "python"}):
            view = penstock.open("s3://data/corpus", storage=Storage(endpoint=server.address)).windows(64)
            next(penstock.Loader(view, 4, seed=1, **options))
        with pytest.raises(penstock.Error):  # it takes no writing
            penstock.Writer("s3://data/new", {"token": "u2"}, storage=Storage(endpoint=server.address)).commit()
        assert server.requests and not other.requests


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


# ---- functions and processes that give credentials wrongly


def read(storage: Storage) -> None:
    penstock.open("s3://data/corpus", storage=storage)


def read_through_python(storage: Storage) -> None:
    penstock.open("s3://data/*.npy", storage=storage)


def write(storage: Storage) -> None:
    penstock.Writer("s3://data/new", fields={"token": "u2"}, storage=storage)


ways = pytest.mark.parametrize("way", [read, read_through_python, write])


def ends(at: Any) -> dict[str, Any]:
    return {**_given(), "expires_at": at}


@ways
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (ends(datetime(2040, 1, 1)), "expires_at is a datetime without time zone: a datetime with time"),
        (ends("2040-01-01T00:00:00Z"), r"expires_at is of type str: .* as datetime\.now\(timezone\.utc\)"),
        (ends(2_000_000_000), "expires_at is of type int: .*, or None for credentials that do not end"),
        ({**_given(), "token": b"token"}, "token is of type bytes: a str is wanted, or None"),
        ({"aws_access_key_id": ACCESS, "aws_secret_access_key": SECRET}, "access_key_id is missing: a str is wanted"),
        ({"access_key_id": ACCESS, "secret_access_key": None}, "secret_access_key is None: a str is wanted"),
        ((ACCESS, SECRET), r"it returned tuple, not a dict \{access_key_id: …, secret_access_key: …, expires"),
    ],
)
def test_what_a_function_returns_wrongly_is_said_at_once(server, way, given, words):
    begin = time.monotonic()
    with pytest.raises(penstock.Error, match=words) as raised:
        way(Storage(endpoint=server.address, region="us-east-1", credentials=lambda: given, deadline=600))
    assert time.monotonic() - begin < 20
    for secret in (ACCESS, SECRET):
        assert secret not in chain(raised.value)


def test_a_function_that_fails_is_told_without_what_it_says(server):
    def broken() -> Any:
        raise RuntimeError(f"cannot use {SECRET}")

    storage = Storage(endpoint=server.address, credentials=broken, deadline=2)
    for way, words in ((read, "nothing could be signed with credentials of a function: RuntimeError"),
                       (read_through_python, "")):  # fmt: skip
        with pytest.raises(penstock.IoError, match=words) as error:
            way(storage)
        assert SECRET not in chain(error.value)


@ways
@pytest.mark.parametrize("asked", ["by boto3's profile", "by a function"])
def test_what_a_process_of_credentials_says_is_not_shown(server, tmp_path, way, asked):
    boto3 = pytest.importorskip("boto3")
    (tmp_path / "config").write_text(
        "[profile corpora]\ncredential_process = sh -c \"echo 'the password hunter2 is wrong' >&2; exit 1\"\n"
    )
    given: dict[str, Any] = {"profile": "corpora"}
    if asked == "by a function":
        given = {"credentials": lambda: boto3.Session(profile_name="corpora").get_credentials(), "deadline": 1}
    with pytest.raises(penstock.Error, match="CredentialRetrievalError of custom-process, whose own") as raised:
        way(Storage(endpoint=server.address, region="us-east-1", **given))
    assert "hunter2" not in chain(raised.value)
