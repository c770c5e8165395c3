"""Two nodes of Ray on one machine, and a corpus, for what `make ray` runs."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
# Workers import what the tests define by the tests' names.
PATHS = [str(HERE), str(HERE.parent / "python"), os.environ.get("PYTHONPATH", "")]
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_DEDUP_LOGS="0", PYTHONPATH=":".join(PATHS))
os.environ.update(AWS_ACCESS_KEY_ID="access", AWS_SECRET_ACCESS_KEY="secret", AWS_EC2_METADATA_DISABLED="true")

import ray  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402
from text_corpus import rows, train_tokenizer, write_jsonl  # noqa: E402

HEAD = {"num_cpus": 1, "include_dashboard": False}


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Two nodes of one core each; a test that kills the second adds another."""
    found = Cluster(initialize_head=True, head_node_args=HEAD)
    found.add_node(num_cpus=1)
    yield found
    ray.shutdown()
    found.shutdown()


@pytest.fixture(scope="module")
def connected(cluster: Cluster) -> Iterator[Cluster]:
    """This process is a driver of the cluster."""
    ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    yield cluster
    ray.shutdown()


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """7 MB of text in two files, and a tokenizer."""
    folder = tmp_path_factory.mktemp("corpus")
    content = rows() * 6
    write_jsonl(folder / "a.jsonl", content[: len(content) // 3])
    write_jsonl(folder / "b.jsonl", content[len(content) // 3 :])
    train_tokenizer(folder / "tokenizer.json")
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Killer(threading.Thread):
    """Kills once, as soon as a worker is in the middle of a shard of `out`.

    Unfinished folders say in their names which process writes them, as docs/format.md has it.
    """

    def __init__(
        self,
        out: Path,
        kill: Callable[[int], Any] | None = None,
        workers: int = 1,
        pattern: str = ".partial-0*",
    ) -> None:
        super().__init__(daemon=True)
        self._out = out
        self._pattern = pattern
        self._kill = kill or (lambda pid: os.kill(pid, signal.SIGKILL))
        self._workers = workers
        self._stopped = threading.Event()
        self.killed: str | None = None

    def run(self) -> None:
        seen: set[int] = set()
        while not self._stopped.is_set():
            for each in sorted(self._out.glob(self._pattern)):
                pid = int(each.name.rpartition("@")[2].rpartition(".")[2].partition("-")[0])
                seen.add(pid)
                if len(seen) >= self._workers:
                    time.sleep(0.1)
                    self._kill(pid)
                    self.killed = each.name
                    return
            time.sleep(0.002)

    def __enter__(self) -> Killer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self.join()
