"""What servers refuse of those who read through Python: rights, credentials, regions; and reading without libcurl."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import penstock
import pytest
from _fault_servers import fault_server
from _python_stores import Own
from _servers import moto, permit
from penstock import Storage

obstore = pytest.importorskip("obstore")
pytest.importorskip("boto3")

SECRET = "Pa55word/with+odd=characters0000000000000"


@pytest.fixture(scope="module")
def guarded(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """A server of S3 that looks at signatures and rights, and the keys of one who may read files and list nothing."""
    with moto({"data": root}, tmp_path_factory.mktemp("moto") / "log") as address:
        yield address, permit(address, "reader", ["s3:GetObject"])


def storage_of(address: str, keys: dict[str, str], **given: Any) -> Storage:
    return Storage(endpoint=address, credentials=lambda: keys, **given)


def store_of(address: str, keys: dict[str, str]) -> Any:
    options = {"client_options": {"allow_http": True}, "region": "us-east-1"}
    return obstore.store.S3Store("data", endpoint=address, **options, **keys)


def refused(call: Any, *secrets: str) -> str:
    """What an error says; it ends at once, and neither it nor what led to it holds a secret."""
    with pytest.raises(penstock.IoError) as caught:
        call()
    error = caught.value
    assert error.__cause__ is None and error.__context__ is None
    whole = "".join(traceback.format_exception(error)) + repr(error)
    for secret in (*secrets, "Signature=", "AWS4-HMAC"):
        assert secret not in whole
    return str(error)


def test_a_glob_without_the_right_to_list_says_which_and_what_to_do(root, guarded):
    address, keys = guarded
    secret = keys["secret_access_key"]
    for call in (
        lambda: penstock.open("s3://data/*.npy", storage=storage_of(address, keys, deadline=3600)),
        lambda: penstock.open("*.npy", store=store_of(address, keys), storage=Storage(deadline=3600)),
    ):
        message = refused(call, secret)
        assert "listing is not allowed: it was asked for with " in message
        assert " and needs the right s3:ListBucket on the bucket: 403 Forbidden (AccessDenied)" in message
        assert "name the dataset's folder or each file, without *, ? and [" in message
    message = refused(lambda: penstock.open("*.npy", store=Closed(root)))
    assert "listing is not allowed" in message and "without *, ? and [" in message


class Closed(Own):
    def list(self, prefix: str) -> list[Any]:
        raise PermissionError("no")


def test_what_may_not_be_listed_opens_by_its_names(root, guarded):
    store = store_of(*guarded)
    assert penstock.open("corpus", store=store).fingerprint == penstock.open(root / "corpus").fingerprint
    names = [f"{number}.npy" for number in range(3)]
    there = penstock.open(*names, store=store)
    assert there.fingerprint == penstock.open(*(root / name for name in names)).fingerprint


@pytest.mark.parametrize("wrong", ["secret_access_key", "access_key_id"])
def test_credentials_that_are_refused_are_told_and_not_shown(guarded, wrong):
    address, keys = guarded
    mistaken = {**keys, wrong: SECRET}
    message = refused(lambda: penstock.open("corpus", store=store_of(address, mistaken)), SECRET)
    assert "access is refused: it was asked for with those of store=: 403 Forbidden (" in message
    message = refused(lambda: penstock.open("s3://data/*.npy", storage=storage_of(address, mistaken)), SECRET)
    assert "asked for with credentials of a function" in message


@pytest.mark.parametrize("status", ["401", "403"])
def test_servers_of_http_that_refuse_are_told(root, status):
    with fault_server(root) as server:
        view = penstock.open(f"{server.address}/corpus", storage=Storage(deadline=3600)).windows(64)
        server.fault = lambda path, number: status
        loader = penstock.Loader(view, 4, seed=1, reader="python")
        message = refused(lambda: next(loader), SECRET)
        assert "access is refused: it was asked for without headers: " + status in message


@pytest.mark.parametrize("fault", ["region", "signed for another region"])
def test_another_region_is_named(root, guarded, fault):
    _, keys = guarded
    words = r'in the region eu-west-9: give Storage\(region="eu-west-9"\)'
    with fault_server(root, lambda path, number: fault) as server:
        storage, plain = storage_of(server.address, keys, deadline=3600), Storage(deadline=3600)
        calls = [
            lambda: penstock.open("corpus", store=store_of(server.address, keys), storage=plain),
            lambda: penstock.open("s3://data/*.npy", storage=storage),
        ]
        if fault == "region":
            calls.append(lambda: penstock.open("s3://data/corpus", storage=storage))
        for call in calls:
            with pytest.raises(penstock.IoError, match=words):
                call()


@pytest.fixture(scope="module")
def no_libcurl(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of libraries in which libcurl is none: an LD_LIBRARY_PATH that hides the system's."""
    folder = tmp_path_factory.mktemp("libraries")
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4"):
        (folder / name).touch()
    return str(folder)


WITHOUT = """
import sys, penstock
assert "libcurl" in penstock._native.curl_refusal()
from _batches import contents
http, guarded, root = sys.argv[1:]
here = penstock.open(root + "/corpus")
for url, given in ((http, {}), ("s3://data", {"storage": penstock.Storage(endpoint=guarded, deadline=3600)})):
    there = penstock.open(url + "/corpus", **given)
    assert there.fingerprint == here.fingerprint
    loaders = [penstock.Loader(each.windows(64, lookahead=1), 16, seed=3, epochs=1) for each in (here, there)]
    assert loaders[1].reader == "python", loaders[1].reader
    assert contents(loaders[0], most=6) == contents(loaders[1], most=6)
    files = [url + f"/{number}.npy" for number in range(3)]
    assert penstock.open(*files, **given).fingerprint == penstock.open(root + "/*.npy").fingerprint
assert penstock.verify("s3://data/corpus", **given).ok  # which may not be listed
for address, words in ((http + "/*.npy", "lists no files"), (http + "/corpus?key=Pa55word", "needs libcurl")):
    try:
        penstock.open(address)
    except penstock.InvalidArgumentError as error:
        assert words in str(error) and "Pa55word" not in str(error), error
    else:
        raise AssertionError(address)
"""

NEITHER = """
import sys, penstock
sys.modules["obstore"] = None
for address in (sys.argv[1] + "/corpus", "s3://data/corpus"):
    try:
        penstock.open(address)
    except penstock.InvalidArgumentError as error:
        print(error)
"""


def test_without_libcurl_obstore_reads_and_without_both_it_is_said_what_to_install(root, guarded, no_libcurl):
    address, keys = guarded
    environment = {**os.environ, "LD_LIBRARY_PATH": no_libcurl, "PYTHONPATH": str(Path(__file__).parents[1])}
    environment |= {f"AWS_{name.upper()}": value for name, value in keys.items()}
    with fault_server(root) as server:
        given, options = [server.address, address, str(root)], {"capture_output": True, "text": True, "timeout": 250}
        done = subprocess.run([sys.executable, "-c", WITHOUT, *given], env=environment, **options)
        assert (done.returncode, done.stderr) == (0, "")
        done = subprocess.run([sys.executable, "-c", NEITHER, *given], env=environment, **options)
    http, s3 = done.stdout.splitlines()
    assert "libcurl4" in http and "pip install obstore boto3" in http and "pip install obstore boto3" in s3


def test_what_lies_apart_is_not_joined(root):
    with fault_server(root) as server:
        view = penstock.open(f"{server.address}/a.bin", dtype="u2").windows(64)[::200]  # 25,600 bytes apart
        server.requests.clear()
        with penstock.Loader(view, len(view), seed=1, epochs=1, reader="python") as loader:
            wanted = sum(batch["token"].nbytes for batch in loader)
        bounds = [each.removeprefix("bytes=").split("-") for _, each, _ in server.requests if each]
        assert sum(int(last) + 1 - int(first) for first, last in bounds) <= 2 * wanted
