"""An executor whose workers are those of a Ray cluster: one task for each item, done again if its worker is killed."""

from __future__ import annotations

import os
import platform
import re
import socket
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from penstock._base.errors import InvalidArgumentError
from penstock._base.processes import ONE_THREAD
from penstock._base.words import counted, one_line
from penstock._from.rows.missing import needed
from penstock._make.errors import WorkerError
from penstock._make.pools import InOrder, Pool, Work, answer

_ADDRESS = re.compile(r"auto|local|(ray://)?(\[[0-9a-fA-F:]+\]|[\w.-]+):\d{1,5}/?")
_RETRIES = 5  # after the first attempt at a task
_WAITING_EACH = 2  # tasks for each core: one in work, one waiting
_LISTENS = 10.0  # seconds that a head node has to take a connection
_LOOK = 1.0  # seconds between two looks at whether the caller was interrupted
_PATIENCE = 20.0  # seconds that close() waits for the end of tasks that it cancelled


@dataclass(frozen=True)
class Cluster:
    """Workers of a Ray cluster, for `workers=` of what is made of tasks.

    The nodes need penstock, and everything that the tasks read and write at the same path. A task takes one core. One
    whose worker or node is lost is done again, five times at most.

    Args:
        address: "host:port" of the head node, "ray://host:port", "auto" (the cluster that RAY_ADDRESS names, or that
            this machine belongs to) or "local" (one of this machine alone, for this call). None: what ray.init() was
            called with, else "auto".

    Raises:
        InvalidArgumentError: No address.

    Examples:
        >>> import penstock.ray  # doctest: +SKIP
        >>> cluster = penstock.ray.Cluster("head:6379")  # doctest: +SKIP
        >>> penstock.import_anndata("plates/*.h5ad", "cells", workers=cluster)  # doctest: +SKIP
    """

    address: str | None = None

    def __post_init__(self) -> None:
        if self.address is not None and not _ADDRESS.fullmatch(self.address):
            raise InvalidArgumentError(
                f'{self.address!r:.200}: no address of a Ray cluster: "auto", "local", "host:port" or "ray://host:port"'
            )

    def pool(self, work: Work) -> Pool:
        """Connects, if nothing has."""
        return RayPool(self.address, work)


class RayPool(InOrder):
    """A `Pool` whose items are tasks of Ray. One thread at a time.

    At most two tasks for each core of the cluster are under way, and at most twice as many are not yet taken.
    """

    def __init__(self, address: str | None, work: Work) -> None:
        """Connects.

        Raises:
            ModuleNotFoundError: Ray is not installed.
            WorkerError: There is no cluster at the address.
        """
        super().__init__()
        self._ray: Any = needed()
        self._connected = _connect(self._ray, address)
        self._key = uuid.uuid4().hex
        self._work = [self._ray.put(work)]  # in a list it is handed on as a reference
        self._task = self._ray.remote(max_retries=_RETRIES, num_cpus=1, scheduling_strategy="SPREAD")(_answer)
        self._under_way: dict[Any, int] = {}  # the number of each task
        self._workers: set[tuple[str, int]] = set()
        self._closed = False

    @property
    def started(self) -> int:
        """How many workers have answered."""
        return len(self._workers)

    def has_room(self) -> bool:
        """Whether `submit` may be called now. The cluster may grow and shrink meanwhile."""
        most = _WAITING_EACH * max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        return len(self._under_way) < most and self._sent - self._taken < 2 * most

    def submit(self, item: Any) -> None:
        """Hands the next item to the cluster."""
        self._under_way[self._task.remote(self._key, self._work, item)] = self._sent
        self._sent += 1

    def check(self) -> None:
        """Nothing: Ray looks after its workers."""

    def close(self) -> None:
        """Ends what is under way and lets the cluster go. May be called twice."""
        if self._closed:
            return
        self._closed = True
        with suppress(Exception):  # the cluster may be gone
            for each in self._under_way:
                self._ray.cancel(each, force=True)
            if self._under_way:
                under_way = list(self._under_way)
                self._ray.wait(under_way, num_returns=len(under_way), timeout=_PATIENCE, fetch_local=False)
        self._under_way.clear()
        if self._connected:
            self._ray.shutdown()

    def _receive(self) -> None:
        done: list[Any] = []
        while not done:
            done, _ = self._ray.wait(list(self._under_way), num_returns=1, timeout=_LOOK)
        for each in done:
            sequence = self._under_way.pop(each)
            try:
                worker, self._results[sequence] = self._ray.get(each)
                self._workers.add(worker)
            except self._ray.exceptions.RayError as error:
                self._results[sequence] = WorkerError(_how_it_failed(error))


def _connect(ray: Any, address: str | None) -> bool:
    """Whether the process was not connected before."""
    if ray.is_initialized():
        return False
    import logging

    where = "" if address in (None, "auto") else f" at {address}"
    advice = "`ray start --head` starts one, --ray local takes this machine alone"
    _refuse_silent(address, f"no Ray cluster{where}: {advice}")
    try:
        ray.init(address or "auto", log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
    except (ConnectionError, TimeoutError, RuntimeError, ValueError) as error:
        raise WorkerError(f"no Ray cluster{where}: {advice} ({one_line(error, 300)})") from error
    return True


def _refuse_silent(address: str | None, message: str) -> None:
    """Refuses an address where nothing listens, which Ray would ask again for minutes.

    Raises:
        WorkerError: With `message`.
    """
    host, _, port = (address or "").removeprefix("ray://").rstrip("/").rpartition(":")
    if not host:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _LISTENS).close()
    except (OSError, OverflowError) as error:
        raise WorkerError(f"{message} ({error})") from error


def _how_it_failed(error: Exception) -> str:
    said = " ".join(str(error).split())
    if "No module named 'penstock'" in said:
        return "a node of the cluster has no penstock: install it on each, in the Python that runs Ray"
    kind = type(error).__name__
    if kind in ("WorkerCrashedError", "NodeDiedError", "OutOfMemoryError", "LocalRayletDiedError"):
        attempts = counted(_RETRIES + 1, "attempt")
        return f"{attempts} at a task each lost its worker ({kind}; out of memory? start nodes with fewer --num-cpus)"
    return f"Ray could not do a task: {kind}: {said[:400]}"


_begun: tuple[str, Work, Callable[[Any], Any]] | None = None  # of this worker; another pool's takes its place


def _answer(key: str, work: list[Any], item: Any) -> tuple[tuple[str, int], Any]:
    """What the work of pool `key` says to the item, and which worker says it. Runs on a node of the cluster."""
    global _begun
    import ray

    worker = (str(ray.get_runtime_context().get_node_id()), os.getpid())
    if _begun is None or _begun[0] != key:
        os.environ.update(ONE_THREAD)
        job: Work = ray.get(work[0])
        try:
            _begun = (key, job, job.begin())
        except Exception as error:
            return worker, WorkerError(f"{platform.node()}: {type(error).__name__}: {error}")
    _, job, process = _begun
    return worker, answer(job, process, item)
