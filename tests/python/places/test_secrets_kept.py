"""Secrets are in nothing that is shown, logged, kept or sent on, also where a server tells all that it was told."""

from __future__ import annotations

import dataclasses
import logging
import pickle
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import penstock
import pytest

pytest.importorskip("obstore")
pytest.importorskip("pyarrow")
sys.path.insert(0, str(Path(__file__).parents[2] / "faults"))

from servers import operations, trials
from servers.lies import LIES, told_back
from servers.objects import Objects
from servers.operations import ACCESS, OPERATIONS, PASSWORD, SECRET, TOKEN, At
from servers.server import LyingServer, Tell

HEADER = "Zm9vYmFyLTEyMzQ1Njc4OTA="
QUERY = "qwertyuiop-asdfghjkl"
SECRETS = (SECRET, TOKEN, ACCESS, PASSWORD, HEADER, QUERY, "X-Amz-Signature=", "AWS4-HMAC-SHA256 Credential")


@pytest.fixture
def server() -> Iterator[LyingServer]:
    with LyingServer(Objects(trials.files())).running() as server:
        yield server


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """All that anybody logs."""
    lines: list[str] = []

    class Keeps(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{record.name}: {record.getMessage()} {record.exc_info or ''}")

    root, before = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler := Keeps(level=1))
    root.setLevel(1)
    yield lines
    root.setLevel(before)
    root.removeHandler(handler)


def shown(error: BaseException) -> str:
    """The texts of a report of an error: each error that led to it."""
    return "".join(traceback.format_exception(error)) + repr(error) + repr(error.args) + repr(error.__dict__)


def locals_of(error: BaseException) -> str:
    """Further texts of some reports: the variables of our frames, of each error that led to it."""
    reports, texts = [traceback.TracebackException.from_exception(error, capture_locals=True)], []
    for report in reports:
        reports += [each for each in (report.__cause__, report.__context__) if each is not None]
        ours = [frame for frame in report.stack if "/penstock/" in frame.filename]
        texts += [f"{frame.filename}, {frame.name}: {frame.locals}" for frame in ours]
    assert texts, "no frame of ours is looked at"
    return "\n".join(texts)


def told_in_way(number: int) -> Tell:
    return lambda wire, request, answer: told_back(wire, dataclasses.replace(request, number=number), answer)


def look(text: str, secrets: tuple[str, ...] = SECRETS) -> None:
    for secret in secrets:
        at = text.find(secret)
        assert at < 0, text[max(0, at - 200) : at + 100]


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_error_of_a_server_that_tells_all(
    name: str, server: LyingServer, tmp_path: Path, logged: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    at = At(server.address, 0.4, tmp_path / "of", server.objects)
    at.folder.mkdir()
    ask = OPERATIONS[name].prepare(at)
    for lie in (*map(told_in_way, range(3)), LIES["503"].tell, LIES["403"].tell):
        server.told, server.lie = 0, lambda request, lie=lie: lie
        with pytest.raises(penstock.Error) as raised:
            ask()
        assert server.told
        look(shown(raised.value))
        look(locals_of(raised.value))
    for lie in (*[told_back] * 4, told_in_way(3)):  # each request in another way, and an ETag, which may be no error
        server.told, server.lie = 0, lambda request, lie=lie: lie
        try:
            ask()
        except penstock.Error as error:
            look(shown(error))
            look(locals_of(error), (SECRET, PASSWORD))  # a variable keeps the ETag, and with it what was sent
        assert server.told
        server.requests.append(server.requests[-1])
    look("\n".join(logged))
    look("".join(capfd.readouterr()))
    look_at_files(tmp_path)


def look_at_files(folder: Path) -> None:
    for file in folder.rglob("*"):
        look(str(file))
        if file.is_file():
            look(file.read_bytes().decode("latin-1"))


def with_password(server: LyingServer) -> Any:
    address = server.address.replace("http://", f"http://name:{PASSWORD}@")
    return penstock.open(f"{address}/data/corpus?key={QUERY}", storage=penstock.Storage(deadline=0.4))


def with_headers(server: LyingServer) -> Any:
    storage = penstock.Storage(deadline=0.4, headers={"Authorization": f"Bearer {HEADER}"})
    return penstock.open(f"{server.address}/data/corpus", storage=storage)


@pytest.mark.parametrize("opened", [with_password, with_headers])
def test_an_address_or_a_header(
    opened: Callable[[LyingServer], Any], server: LyingServer, tmp_path: Path, logged: list[str]
) -> None:
    dataset = opened(server)
    view = dataset.windows(64)
    with penstock.Loader(view, 4, seed=1, framework="numpy") as loader:
        next(loader)
        look(repr((dataset, view, loader, dataset.shards, dataset.columns, loader.metrics(), loader.state_dict())))
    with pytest.raises(penstock.Error) as refused:
        pickle.dumps(dataset)
    look(str(refused.value))
    server.lie = lambda request: told_back
    said = []
    for number in range(8):
        with pytest.raises(penstock.Error) as error:
            view[number]
        said.append(str(error.value))
        server.requests.append(server.requests[-1])
    look(" ".join(said))
    assert any("…" in each for each in said), "the server told something"
    look("\n".join(logged))


def test_what_is_kept_and_what_travels(server: LyingServer, tmp_path: Path, logged: list[str]) -> None:
    at = At(server.address, 5.0, tmp_path / "out", server.objects)
    at.folder.mkdir()
    storage = at.bucket()
    dataset = penstock.open("s3://data/corpus", storage=storage, cache=tmp_path / "cache")
    view = dataset.windows(64)
    with penstock.Loader(view, 4, seed=1, framework="numpy") as loader:
        next(loader)
        look(repr((storage, dataset, view, loader, loader.state_dict(), loader.metrics(), dataset.cache_counts)))
        look(pickle.dumps((storage, dataset, view, loader.state_dict())).decode("latin-1"))
    assert operations.writing(at)()
    copy = penstock.Writer(
        "s3://data/left", {"token": "u2"}, metadata="json", storage=storage, scratch=tmp_path, shard=0
    )
    copy.append(token=[1, 2], metadata={"n": 1})
    look(repr((copy, copy.__dict__)))
    copy.commit()
    for name, data in server.objects.files.items():
        look(name + data.decode("latin-1"))
    look_at_files(tmp_path)
    look("\n".join(logged))
