"""One deadline for all that an operation asks for, however many files and requests that is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _fault_servers import FaultServer, fault_proxy, fault_server
from _places import Place
from _python_stores import Failing
from penstock import Storage

DEADLINE = 2.0
FAILS = 0.55 * DEADLINE  # of each file or range, before it is there: of two the deadline is over
SLACK = 4.0  # of a busy machine; without one deadline for all it is a multiple of it, or nothing is given up


@pytest.fixture
def failing(root: Path) -> Iterator[FaultServer]:
    """Where `is_failing`, what is first asked for is refused after a while; then it is there."""
    with fault_server(root, lambda path, number: held_once(server, number)) as server:
        server.is_failing, server.hold = True, FAILS  # type: ignore[attr-defined]
        yield server


def held_once(server: FaultServer, number: int) -> str | None:
    """The first request for each range of each file fails."""
    asked = [each[:2] for each in server.requests[: number + 1]]
    return "held" if getattr(server, "is_failing", True) and asked.count(asked[-1]) == 1 else None


@pytest.fixture
def silent(root: Path) -> Iterator[FaultServer]:
    """It answers nothing while `is_silent`."""
    with fault_server(root, lambda path, number: "slow" if server.is_silent else None) as server:  # type: ignore[attr-defined]
        server.is_silent = False  # type: ignore[attr-defined]
        yield server


def given_up(ask: Callable[[], Any], words: str = "no answer that will do") -> str:
    begin = time.monotonic()
    with pytest.raises(penstock.IoError, match=words) as error:
        ask()
    took = time.monotonic() - begin
    assert took < DEADLINE + SLACK, took
    return str(error.value)


def test_of_files_that_are_opened_one_after_the_other(failing: FaultServer) -> None:
    names = [f"{failing.address}/{number}.npy" for number in range(3)]
    storage = Storage(deadline=DEADLINE, connections=1)
    assert "attempt" in given_up(lambda: penstock.open(*names, storage=storage))


def test_of_rows_that_wait_for_a_connection(silent: FaultServer) -> None:
    view = penstock.open(f"{silent.address}/corpus", storage=Storage(deadline=DEADLINE, connections=1)).windows(64)
    silent.is_silent = True  # type: ignore[attr-defined]
    assert "stream.bin" in given_up(lambda: view.read(np.arange(0, len(view), 3)))


def test_of_a_batch(silent: FaultServer) -> None:
    storage = Storage(deadline=DEADLINE, connections=2)
    view = penstock.open(f"{silent.address}/corpus", storage=storage).windows(16)
    silent.is_silent = True  # type: ignore[attr-defined]
    with penstock.Loader(view, 16, seed=1, threads=1, framework="numpy") as loader:
        given_up(lambda: next(loader))
        silent.is_silent = False  # type: ignore[attr-defined]
        assert len(next(loader).indices) == 16


def test_of_a_row_that_is_read_in_rounds(failing: FaultServer) -> None:
    failing.is_failing = False  # type: ignore[attr-defined]
    dataset = penstock.open(f"{failing.address}/corpus", storage=Storage(deadline=DEADLINE))
    failing.is_failing = True  # type: ignore[attr-defined]
    given_up(lambda: dataset.documents()[5])


@pytest.mark.parametrize(("shards", "hold"), [(6, FAILS), (44, DEADLINE / 8)], ids=["several", "many"])
def test_of_a_column_of_shards(tmp_path: Path, shards: int, hold: float) -> None:
    """Many fail for a moment each, shorter than the share of the deadline that each keeps for an attempt."""
    with penstock.Writer(tmp_path / "d", {"token": "u2"}, columns={"n": "u4"}, shard_size=2000) as writer:
        for number in range(90 * shards):
            writer.append(token=[number] * 9, columns={"n": number})
    with fault_server(
        tmp_path, lambda path, number: ("columns" in path and held_once(server, number)) or None
    ) as server:
        server.hold = hold
        dataset = penstock.open(f"{server.address}/d", storage=Storage(deadline=DEADLINE))
        assert len(dataset.shards) >= shards - 1
        given_up(lambda: dataset.columns["n"][:])


def test_of_opening_many_files_that_each_fail_for_a_moment(tmp_path: Path) -> None:
    for number in range(40):
        np.save(tmp_path / f"{number}.npy", np.full(100, number, "u2"))
    with fault_server(tmp_path, lambda path, number: held_once(server, number)) as server:
        server.hold = DEADLINE / 8
        names = [f"{server.address}/{number}.npy" for number in range(40)]
        given_up(lambda: penstock.open(*names, storage=Storage(deadline=DEADLINE, connections=1)))


def test_of_a_store_of_ones_own(root: Path) -> None:
    asked: set[str] = set()

    def fault(path: str, number: int) -> None:
        if is_failing and path not in asked:
            asked.add(path)
            time.sleep(FAILS)
            raise OSError("it fails")

    is_failing = False
    dataset = penstock.open("corpus", store=Failing(root, fault), storage=Storage(deadline=DEADLINE))
    is_failing = True
    given_up(lambda: dataset.documents()[5])


# ---- buckets


def fails_first(seconds: float) -> Callable[[str, str, int], str | None]:
    first: dict[tuple[str, str], float] = {}
    lock = threading.Lock()

    def fault(method: str, path: str, number: int) -> str | None:
        with lock:
            begin = first.setdefault((method, path), time.monotonic())
        return "500" if time.monotonic() - begin < seconds else None

    return fault


def test_of_a_look_at_a_bucket(place: Place) -> None:
    with place.writer() as writer:
        writer.append(token=[1], metadata=1)
    with fault_proxy(place.server, fails_first(FAILS)) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1", deadline=DEADLINE)
        given_up(lambda: penstock.finished_shards(place.url, storage=storage), r"attempts? in")


def test_a_list_that_is_silent_once_is_asked_for_again(place: Place) -> None:
    with place.writer() as writer:
        writer.append(token=[1], metadata=1)
    lists: list[int] = []

    def fault(method: str, path: str, number: int) -> str | None:
        if "list-type" not in path:
            return None
        lists.append(number)
        if len(lists) > 1:
            return None
        time.sleep(7)
        return "reset"

    with fault_proxy(place.server, fault) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1", deadline=20)  # of which a request has 5 s
        assert len(penstock.finished_shards(place.url, storage=storage)) == 1
    assert len(lists) == 2


def test_of_a_commit(place: Place) -> None:
    for number in range(3):
        with place.writer(shard=number, shard_size=1 << 30) as writer:
            writer.append(token=[number], metadata=number)
    with fault_proxy(place.server, fails_first(FAILS)) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1", deadline=DEADLINE)
        given_up(lambda: penstock.commit(place.url, storage=storage), r"attempts? in")
    assert "dataset.json" not in place.files()
    penstock.commit(place.url, storage=place.storage)


def test_an_upload_that_is_gone_each_time_is_given_up(place: Place, tmp_path: Path) -> None:
    """Its parts are sent again, which is no progress."""

    def fault(method: str, path: str, number: int) -> str | None:
        return "no upload" if method == "POST" and "uploadId=" in path else None

    with fault_proxy(place.server, fault) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1", deadline=DEADLINE)
        writer = place.writer(storage=storage, shard_size=1 << 30, scratch=tmp_path)
        writer.append(token=np.zeros(5_000_000, "u2"), metadata=0)
        begin = time.monotonic()
        with pytest.raises(penstock.IoError, match="NoSuchUpload"):
            writer.commit()
        assert time.monotonic() - begin < DEADLINE + 5
        writer.abort()


def test_requests_that_fail_now_and_then_spend_nothing_of_it(root: Path) -> None:
    """Many more failures than the deadline has room for, side by side with good answers."""
    with fault_server(root, lambda path, number: "503" if number % 10 == 1 else None) as server:
        view = penstock.open(f"{server.address}/corpus", storage=Storage(deadline=3, connections=8)).windows(16)
        rows = np.arange(0, len(view), 6)
        begin = time.monotonic()
        for _ in range(3):
            found = view.read(rows)["token"]
        took = time.monotonic() - begin
    np.testing.assert_array_equal(found, penstock.open(root / "corpus").windows(16).read(rows)["token"])
    assert took < 60
