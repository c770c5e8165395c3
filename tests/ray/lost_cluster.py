"""A cluster of Ray on this machine whose nodes are killed: a head without cores, and nodes of one core each."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ray.cluster_utils import Cluster

NODES = 2
_STORE = 80 << 20  # bytes of each object store
_ATTEMPTS = 5  # at a node: on a busy machine Ray gives up one that has not begun after half a minute
_PATIENCE = 60.0
_IDLE = ("IDLE", "Agent")  # "ray::DashboardAgent" is none that does tasks
#: Ways to kill a node: all its processes are killed; its raylet alone, whose workers notice a moment later; the
#: raylet, while its workers are stopped until the run has ended; every node, and others come later.
HOWS = ("node", "raylet", "asleep", "all")


def children(pid: int) -> list[int]:
    """Those of a process."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.scandir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                found += map(int, Path(thread.path, "children").read_text().split())
    return found


def processes_below(pid: int) -> list[int]:
    """Children of a process, and theirs."""
    return [below for each in children(pid) for below in (each, *processes_below(each))]


def title(pid: int) -> str:
    """The name that a process gives itself: a worker of Ray `ray::` and its task, or `ray::IDLE`."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
    except OSError:
        return ""


def send(pids: list[int], sent: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sent)


def is_there(pid: int) -> bool:
    """True of no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def patiently(action: Callable[[], Any]) -> Any:
    for attempt in range(_ATTEMPTS):
        before = {*children(os.getpid())}
        try:
            return action()
        except Exception as error:
            if attempt == _ATTEMPTS - 1:
                raise
            print(f"again, since {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            for each in {*children(os.getpid())} - before:
                send([each, *processes_below(each)], signal.SIGKILL)
    return None


class Nodes:
    """The cluster."""

    def __init__(self) -> None:
        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": _STORE}
        self._cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
        self.address = str(self._cluster.address)
        self._stopped: list[int] = []
        self._killed: list[int] = []
        self.fill()

    def fill(self) -> None:
        """Adds nodes until all are there. On a busy machine Ray may have given up one that was not killed."""
        for node in list(self._cluster.worker_nodes):
            if not is_there(self._raylet(node)):
                self._forget(node)
        while len(self._cluster.worker_nodes) < NODES:
            patiently(lambda: self._cluster.add_node(num_cpus=1, object_store_memory=_STORE))
        self._cluster.wait_for_nodes(timeout=_PATIENCE)

    def close(self) -> None:
        self._cluster.shutdown()

    def busy(self) -> Iterator[tuple[Any, int]]:
        """Nodes that work on a task now, and the worker that does."""
        for node in list(self._cluster.worker_nodes):
            for pid in processes_below(self._raylet(node)):
                if title(pid).startswith("ray::") and not title(pid).endswith(_IDLE):
                    yield node, pid

    def any_node(self) -> Any:
        return next(iter(self._cluster.worker_nodes))

    @staticmethod
    def _raylet(node: Any) -> int:
        return int(node.all_processes["raylet"][0].process.pid)

    def kill(self, node: Any, how: str, worker: int | None = None) -> None:
        """One of HOWS; `worker` is one of its that works."""
        if how == "all":
            for each in list(self._cluster.worker_nodes):
                self.kill(each, "node")
            return
        raylet = self._raylet(node)
        below = sorted({*processes_below(raylet), *([] if worker is None else [worker])})
        self._killed += [raylet, *below]
        if how == "asleep":
            self._stopped = [
                pid for pid in below if title(pid).startswith("ray::") and not title(pid).endswith("Agent")
            ]
            send(self._stopped, signal.SIGSTOP)
        send([raylet, *(below if how == "node" else [])], signal.SIGKILL)
        node.all_processes["raylet"][0].process.wait()
        if how != "asleep":
            self._forget(node)
        else:
            self._cluster.worker_nodes.discard(node)

    def _forget(self, node: Any) -> None:
        with contextlib.suppress(Exception):  # Ray's own words about a node that is dead already
            self._cluster.remove_node(node, allow_graceful=False)
        self._cluster.worker_nodes.discard(node)

    def wake(self) -> int:
        """Lets workers that were stopped go on, and waits until all of the killed nodes has ended; how many woke."""
        woken = [pid for pid in self._stopped if is_there(pid)]
        send(self._stopped, signal.SIGCONT)
        deadline = time.monotonic() + _PATIENCE
        while any(map(is_there, self._killed)) and time.monotonic() < deadline:
            time.sleep(0.05)
        left = [(pid, title(pid)) for pid in self._killed if is_there(pid)]
        send(self._killed, signal.SIGKILL)
        self._stopped, self._killed = [], []
        if left:
            raise AssertionError(f"processes of a killed node that did not end by themselves: {left}")
        return len(woken)
