"""One Writer used by several Python threads at once: each append is whole, and what is published verifies."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import penstock
import pytest

THREADS = 4
DOCUMENTS = 300


@pytest.mark.parametrize("layout", ["compact", "ids"])
def test_threads_may_share_a_writer(tmp_path: Path, layout: str) -> None:
    errors: list[BaseException] = []
    options = {"fields": {"token": "u4"}, "metadata": "raw", "layout": layout, "shard_size": 1 << 14}
    with penstock.Writer(tmp_path / "data", **options) as writer:

        def work(thread: int) -> None:
            try:
                for number in range(DOCUMENTS):
                    value = thread * DOCUMENTS + number
                    tokens = np.full(1 + value % 50, value, "u4")
                    if number % 3:
                        writer.append(token=tokens, metadata=b"%06d" % value)
                    else:
                        writer.append_batch([len(tokens)], encoded=[b"%06d" % value], token=tokens)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors
    assert penstock.verify(tmp_path / "data").ok
    path = tmp_path / "data"
    if layout == "ids":
        penstock.convert(path, tmp_path / "compact", "compact")
        path = tmp_path / "compact"
    found = {}
    for document in penstock.open(path, checks="all").documents():
        value = int(document.spans[0].raw)
        assert document["token"].tolist() == [value] * (1 + value % 50)
        found[value] = found.get(value, 0) + 1
    assert found == dict.fromkeys(range(THREADS * DOCUMENTS), 1)


def test_a_commit_beside_appends_ends_whole_or_refuses(tmp_path: Path) -> None:
    for attempt in range(5):
        path = tmp_path / str(attempt)
        writer = penstock.Writer(path, fields={"token": "u4"}, metadata="raw")
        started = threading.Event()
        refused: list[str] = []

        def work(
            writer: penstock.Writer = writer, started: threading.Event = started, said: list[str] = refused
        ) -> None:
            try:
                for _ in range(100_000):
                    writer.append(token=[1, 2, 3], metadata=b"x")
                    started.set()
            except penstock.InvalidArgumentError as error:
                said.append(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        started.wait()
        writer.commit()
        thread.join()
        assert "closed" in refused[0]
        assert penstock.verify(path).ok
        assert len(penstock.open(path).documents()) > 0
