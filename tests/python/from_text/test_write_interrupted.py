"""Ctrl-C in the middle of an upload into a bucket: it ends soon, in words, and --resume goes on to the same bytes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _fault_servers import fault_proxy
from _places import SHARD_BYTES, Place, plain, tree
from penstock import Storage

pytest.importorskip("obstore")

TOKENS = 500_000  # of a document; a shard of ten, whose ids count as 4 bytes each, is uploaded in two parts


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    tokens = np.random.default_rng(0).integers(0, 60_000, 30 * TOKENS).astype("u2")
    offsets = pyarrow.array(np.arange(31, dtype="i4") * TOKENS)
    table = pyarrow.table({"ids": pyarrow.ListArray.from_arrays(offsets, tokens)})
    parquet.write_table(table, tmp_path / "ids.parquet", row_group_size=2, compression="none")
    return tmp_path / "ids.parquet"


def command(inputs: Path, out: str, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "penstock", "write", str(inputs), "--ids-column", "ids", "--dtype", "u2", "--out", out),
        *("--shard-size", str(10 * 4 * TOKENS), "--workers", "1", "--json", *more),
    ]


def interrupted(command: list[str], begun: threading.Event) -> tuple[str, float]:
    """What a command says that gets SIGINT once something has begun, and how long it took from there to its end."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not begun.wait(0.1):
        assert process.poll() is None, process.communicate()[1]
    time.sleep(0.2)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130, said
    return said, time.monotonic() - begin


def parts_of(shard: str, then: Callable[[], Any]) -> Callable[[str, str, int], None]:
    def fault(method: str, path: str, number: int) -> None:
        if method == "PUT" and f"/{shard}-" in path and "partNumber=" in path:
            then()

    return fault


def check(place: Place, inputs: Path, to_server: tuple[str, ...], tmp_path: Path, kept: int) -> None:
    """Goes on, and asserts that the bucket has the bytes of a local run, and that nothing is left here."""
    resumed = subprocess.run(command(inputs, place.url, *to_server, "--resume"), capture_output=True, text=True)
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["kept_shards"] == kept
    assert list((tmp_path / "scratch").iterdir()) == []
    subprocess.run(command(inputs, str(tmp_path / "local")), check=True, capture_output=True)
    expected = tree(tmp_path / "local")
    assert plain(place.files()) == {name: data for name, data in expected.items() if "/" in name}
    assert penstock.verify(place.url, storage=place.storage)


def test_slow_parts_are_waited_for_and_the_upload_is_aborted(
    place: Place, s3_server: str, inputs: Path, tmp_path: Path
) -> None:
    begun, at_once = threading.Event(), []

    def slow() -> None:
        at_once.append(place.uploads())
        begun.set()
        time.sleep(1)

    options = ("--region", "us-east-1", "--scratch", str(tmp_path / "scratch"))
    with fault_proxy(s3_server, parts_of("00001", slow)) as proxy:
        said, seconds = interrupted(command(inputs, place.url, "--endpoint", proxy.address, *options), begun)
    assert "interrupted: nothing was published; 1 finished shard is kept: go on with --resume" in said
    assert seconds < 20
    assert list((tmp_path / "scratch").iterdir()) == []
    assert at_once[0] and place.uploads() == []
    assert {name.split("-")[0] for name in place.files() if name.endswith("/shard.json")} == {"00000"}
    check(place, inputs, ("--endpoint", s3_server, *options), tmp_path, 1)


def test_a_writer_that_is_interrupted_ends_too(place: Place, s3_server: str) -> None:
    begun, over = threading.Event(), threading.Event()

    def fault(method: str, path: str, number: int) -> None:
        if method == "PUT" and "/00001-" in path:
            begun.set()
            over.wait(100)

    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        assert begun.wait(60)
        signal.pthread_kill(main, signal.SIGINT)

    with fault_proxy(s3_server, fault) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1")
        threading.Thread(target=interrupt, daemon=True).start()

        def write() -> None:
            with place.writer(storage=storage, shard_size=SHARD_BYTES) as writer:
                for _ in range(2000):
                    writer.append(token=np.arange(300), metadata={})

        begin = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            write()
        seconds = time.monotonic() - begin
        over.set()
    assert seconds < 20
    assert "dataset.json" not in place.files()
