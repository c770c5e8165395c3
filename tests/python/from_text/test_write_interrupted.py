"""Ctrl-C in the middle of an upload into a bucket: it ends soon, and nothing of the upload is left there."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pyarrow
import pyarrow.parquet
import pytest
from _fault_servers import fault_proxy
from _places import Place
from penstock import Storage

pytest.importorskip("obstore")

TOKENS = 5_000_000  # of a document: a shard, which is uploaded in two parts


@pytest.mark.parametrize("what", ["slow parts of a run", "a writer's requests that hang"])
def test_an_upload_is_waited_for_and_aborted_but_not_for_ever(
    place: Place, s3_server: str, tmp_path: Path, what: str
) -> None:
    is_run = what == "slow parts of a run"
    offsets = pyarrow.array(np.arange(3, dtype="i4") * TOKENS)
    ids = pyarrow.ListArray.from_arrays(offsets, np.zeros(2 * TOKENS, "u2"))
    pyarrow.parquet.write_table(pyarrow.table({"ids": ids}), tmp_path / "ids.parquet", row_group_size=1)
    begun, over, at_once, at = threading.Event(), threading.Event(), [], []
    main = threading.main_thread().ident
    assert main is not None

    def slow(method: str, path: str, number: int) -> None:
        if method == "PUT" and "/00001-" in path and ("partNumber=" in path or not is_run):
            at_once.append(place.uploads())
            begun.set()
            over.wait(1 if is_run else 100)

    def interrupt() -> None:
        assert begun.wait(60)
        at.append(time.monotonic())
        signal.pthread_kill(main, signal.SIGINT)

    options: dict[str, Any] = {"ids_column": "ids", "dtype": "u2", "shard_size": 4 * TOKENS}

    def make(storage: Storage) -> None:
        if is_run:
            scratch = tmp_path / "scratch"
            penstock.write(tmp_path / "ids.parquet", place.url, storage=storage, scratch=scratch, **options)
        with place.writer(storage=storage) as writer:
            for _ in range(2000):
                writer.append(token=np.arange(300), metadata={})

    threading.Thread(target=interrupt, daemon=True).start()
    with fault_proxy(s3_server, slow) as proxy:
        with pytest.raises(KeyboardInterrupt, match="1 finished shard is kept: go on with" if is_run else None):
            make(Storage(endpoint=proxy.address, region="us-east-1"))
        assert time.monotonic() - at[0] < 20
        over.set()
    assert "dataset.json" not in place.files()
    if is_run:
        assert list((tmp_path / "scratch").iterdir()) == []
        assert at_once[0] and place.uploads() == []
        done = penstock.write(tmp_path / "ids.parquet", place.url, **options, storage=place.storage, resume=True)
        assert done.kept_shards == 1 and penstock.verify(place.url, storage=place.storage)
