"""The peers, and how each is asked: a process of its own, in its own environment, one line of JSON back."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import environment
import job

HERE = Path(__file__).parent
#: Each peer's file and the environment it runs in: None is the project's own.
PEERS: dict[str, str | None] = {
    "penstock_loader": None,
    "penstock_mapped": None,
    "bare_gather": None,
    "torch_dataloader": "torch",
    "torchdata_stateful": "torchdata",
    "grain_memmap": "grain",
    "grain_array_record": "grain",
    "hf_map_style": "hf_datasets",
    "hf_iterable": "hf_datasets",
    "litdata_tokens": "litdata",
    "mosaic_streaming": "mosaic_streaming",
    "webdataset_shards": "webdataset",
    "olmo_core_fsl": "olmo_core",
    "megatron_gpt": "megatron_core",
    "megatron_cyclic": "megatron_core",
    "lancedb_streaming": "lancedb",
    "lancedb_default_splits": "lancedb",
    "torchtitan_text": "torchtitan",
    "megatron_energon": "megatron_energon",
    "megatron_energon_wide": "megatron_energon",
    "penstock_uneven": None,
}
PENSTOCK = "penstock_loader"
MAPPED = "penstock_mapped"
PREPARE_SECONDS = 3600
LEAVING_SECONDS = 3


class Failed(Exception):
    """A peer's process did not do its task; the message is its error."""


@dataclass(frozen=True, eq=False)
class Member:
    """One peer that can be asked."""

    key: str
    python: Path
    name: str
    order: str
    dtypes: tuple[str, ...]
    settings: tuple[job.Setting, ...]
    versions: dict[str, str]
    note: str
    speed: bool
    global_batch: int
    tail: str
    own: bool  # runs in the project's environment

    @property
    def uniform(self) -> bool:
        return self.order == "uniform"

    def settings_in(self, background: bool) -> list[job.Setting]:
        return [setting for setting in self.settings if setting.background == background]

    def setup(self, corpora: Path, tokens: int, window: int) -> job.Setup:
        """The whole job, on one rank, at the first setting and with the first dtype."""
        name = f"{tokens}-{window}"
        return job.Setup(
            tokens=corpora / f"counting-{tokens}.bin",
            folder=corpora / self.key / name,
            window=window,
            dtype=self.dtypes[0],
            setting=self.settings[0],
        )

    def start(
        self, task: str, rank: int = 0, world: int = 1, before: Callable[[], None] | None = None, **request: Any
    ) -> Running:
        """Begins one task; `before` runs in the process before its program does."""
        return Running(self.python, self.key, self.own, task, request, rank, world, before)

    def ask(
        self, task: str, timeout: float = 300, before: Callable[[], None] | None = None, **request: Any
    ) -> dict[str, Any]:
        """Runs one task and waits for its answer."""
        return self.start(task, before=before, **request).answer(timeout)

    def ask_ranks(self, task: str, timeout: float, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Runs one task on as many ranks as there are requests, at once."""
        world = len(requests)
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        running = []
        try:
            for rank, request in enumerate(requests):
                setup = replace(request["setup"], rank=rank, world=world)
                running.append(self.start(task, rank, world, **(request | {"setup": setup})))
            return [process.answer(timeout) for process in running]
        finally:
            for process in running:
                process.end()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


class Running:
    """A peer's process, and all that it starts."""

    def __init__(
        self,
        python: Path,
        key: str,
        own: bool,
        task: str,
        request: dict[str, Any],
        rank: int = 0,
        world: int = 1,
        before: Callable[[], None] | None = None,
    ) -> None:
        plain = {name: plainly(value) for name, value in request.items()}
        # Not a pipe, whose end workers may hold open when the process is gone; open for as long as this is.
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [str(python), str(HERE / f"{key}.py"), task, json.dumps(plain | {"started_ns": time.monotonic_ns()})],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=variables(own, rank, world),
            start_new_session=True,
            preexec_fn=before,
        )

    def answer(self, timeout: float) -> dict[str, Any]:
        """The line that the process says; it and its workers are gone then.

        Raises:
            Failed: it said none.
        """
        assert self._process.stdout is not None
        line, gone = "", False
        poll = select.poll()  # select() cannot look at descriptors from 1,024 on
        poll.register(self._process.stdout, select.POLLIN)
        end = time.monotonic() + timeout
        while not line and not gone and time.monotonic() < end:
            gone = self._gone()
            if poll.poll(200):
                line, gone = self._process.stdout.readline(), True
        if line:
            self._leave()
        self.end()
        if not gone:
            raise Failed(f"no answer within {timeout:.0f} s")
        found: dict[str, Any] = json.loads(line) if line.strip() else {"failed": self._last_words()}
        if "failed" in found:
            raise Failed(str(found["failed"]).strip().splitlines()[0][:200])
        return found

    def _leave(self) -> None:
        """Lets the process end by itself, so that it removes what it shared, but not for long."""
        end = time.monotonic() + LEAVING_SECONDS
        while not self._gone() and time.monotonic() < end:
            time.sleep(0.02)

    def end(self) -> None:
        """Ends the process and whatever workers it left."""
        if self._process.returncode is None:
            # Not reaped yet, so the number of the group is still its own.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _gone(self) -> bool:
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors.read().splitlines() if line.strip()]
        return f"ended with code {self._process.returncode}: {lines[-1] if lines else 'no words'}"


def variables(own: bool, rank: int, world: int) -> dict[str, str]:
    """The environment variables of one rank."""
    found = dict(os.environ) if own else environment.outside()
    ranks = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world}
    for name, value in ranks.items():
        found.pop(name, None)
        if world > 1:
            found[name] = str(value)
    # Nothing that is measured here may ask the network.
    return found | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


def plainly(value: Any) -> Any:
    if isinstance(value, job.Setup):
        return value.as_json()
    if isinstance(value, list):
        return [plainly(each) for each in value]
    return str(value) if isinstance(value, Path) else value


def member(key: str, environments: Path) -> Member:
    """Installs a peer where that is still to be done, and asks it what it is.

    Raises:
        NotInstalled, Failed: it cannot run here.
    """
    python = environment.python(PEERS[key], environments)
    own = PEERS[key] is None
    said = Running(python, key, own, "describe", {}).answer(300)
    return Member(
        key=key,
        python=python,
        name=said["name"],
        order=said["order"],
        dtypes=tuple(said["dtypes"]),
        settings=tuple(job.Setting(**setting) for setting in said["settings"]),
        versions=said["versions"],
        note=said["note"],
        speed=said["speed"],
        global_batch=said["global_batch"],
        tail=said["tail"],
        own=own,
    )
