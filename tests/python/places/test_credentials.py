"""Where credentials of buckets come from, and what is said of those that cannot be used: never what they hold."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _fault_servers import FaultServer, fault_server
from _places import ACCESS, SECRET, chain
from _servers import without_credentials, write_corpus
from penstock import Error, InvalidArgumentError, Storage

pytest.importorskip("obstore")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("buckets")
    write_corpus(folder / "data", np.random.default_rng(0), shards=1, documents=20)
    return folder


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody's own credentials."""
    without_credentials(monkeypatch, tmp_path)


@pytest.fixture
def server(root: Path) -> Any:
    with fault_server(root) as server:
        server.keys[ACCESS] = (SECRET, None)
        yield server


def read(storage: Storage) -> None:
    penstock.open("s3://data/corpus", storage=storage)


def read_through_python(storage: Storage) -> None:
    penstock.open("s3://data/*.npy", storage=storage)


def write(storage: Storage) -> None:
    penstock.Writer("s3://data/new", fields={"token": "u2"}, storage=storage)


ways = pytest.mark.parametrize("way", [read, read_through_python, write])


def keys(**more: Any) -> dict[str, Any]:
    return {"access_key_id": ACCESS, "secret_access_key": SECRET, **more}


@ways
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (keys(expires_at=datetime(2040, 1, 1)), "expires_at is a datetime without time zone: a datetime with time"),
        (keys(expires_at="2040-01-01T00:00:00Z"), r"expires_at is of type str: .* as datetime\.now\(timezone\.utc\)"),
        (keys(expires_at=2_000_000_000), "expires_at is of type int: .*, or None for credentials that do not end"),
        (keys(token=b"token"), "token is of type bytes: a str is wanted, or None"),
        ({"aws_access_key_id": ACCESS, "aws_secret_access_key": SECRET}, "access_key_id is missing: a str is wanted"),
        ({"access_key_id": ACCESS, "secret_access_key": None}, "secret_access_key is None: a str is wanted"),
        ((ACCESS, SECRET), r"it returned tuple, not a dict \{access_key_id: …, secret_access_key: …, expires"),
    ],
)
def test_what_a_function_returns_wrongly_is_said_at_once(
    server: FaultServer, way: Callable[[Storage], None], given: Any, words: str
) -> None:
    begin = time.monotonic()
    with pytest.raises(Error, match=words) as raised:
        way(Storage(endpoint=server.address, region="us-east-1", credentials=lambda: given, deadline=600))
    assert time.monotonic() - begin < 20
    for secret in (ACCESS, SECRET):
        assert secret not in chain(raised.value)


def test_a_time_with_zone_and_none_are_right(server: FaultServer) -> None:
    for ends in (None, datetime.now(UTC) + timedelta(hours=1)):
        read(Storage(endpoint=server.address, credentials=lambda ends=ends: keys(expires_at=ends)))


@ways
def test_what_a_process_of_credentials_says_is_not_shown(
    server: FaultServer, tmp_path: Path, way: Callable[[Storage], None]
) -> None:
    pytest.importorskip("boto3")
    (tmp_path / "refusing.py").write_text("import sys; sys.exit('the password hunter2 is wrong')")
    (tmp_path / "config").write_text(
        f"[profile corpora]\ncredential_process = {sys.executable} {tmp_path / 'refusing.py'}\n"
    )
    with pytest.raises(InvalidArgumentError, match="CredentialRetrievalError of custom-process, whose own") as raised:
        way(Storage(endpoint=server.address, profile="corpora"))
    assert "hunter2" not in chain(raised.value)


@ways
def test_what_a_process_says_later_is_not_shown(
    server: FaultServer, tmp_path: Path, way: Callable[[Storage], None]
) -> None:
    boto3 = pytest.importorskip("boto3")
    (tmp_path / "refusing.py").write_text("import sys; sys.exit('the password hunter2 is wrong')")
    (tmp_path / "config").write_text(
        f"[profile corpora]\ncredential_process = {sys.executable} {tmp_path / 'refusing.py'}\n"
    )

    def credentials() -> Any:
        return boto3.Session(profile_name="corpora").get_credentials()

    storage = Storage(endpoint=server.address, region="us-east-1", credentials=credentials, deadline=1)
    with pytest.raises(Error, match="CredentialRetrievalError of custom-process, whose own") as raised:
        way(storage)
    assert "hunter2" not in chain(raised.value)


def test_a_profile_of_the_environment_is_used(
    server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("boto3")
    (tmp_path / "credentials").write_text(
        f"[default]\naws_access_key_id = other\naws_secret_access_key = other\n"
        f"[corpora]\naws_access_key_id = {ACCESS}\naws_secret_access_key = {SECRET}\n"
    )
    monkeypatch.setenv("AWS_PROFILE", "corpora")
    read(Storage(endpoint=server.address))
    assert ACCESS in server.requests[-1][0]


@pytest.mark.parametrize("name", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_the_region_of_the_environment_is_signed(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv(name, "ap-south-2")
    read(Storage(endpoint=server.address))
    assert "%2Fap-south-2%2Fs3%2F" in server.requests[-1][0]
    read(Storage(endpoint=server.address, region="eu-north-1"))  # which counts more
    assert "%2Feu-north-1%2Fs3%2F" in server.requests[-1][0]
