"""Too little memory: a control group whose processes the kernel kills, and RLIMIT_AS, which is said as an error."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from pathlib import Path
from typing import Any

from bench import Bench, NotHereError
from matter import Tried, spread
from verbs import Verb

LIMITS = 16
# Other libraries say it in their own words, or end the worker.
_CAUSES = "[Mm]emory|cannot be started|[Aa]llocate|address space|map segment|SIGKILL|SIGABRT|before it was ready"
_GROUPS = Path("/sys/fs/cgroup")


def _own_group() -> tuple[Path, str]:
    """This process's group with memory, and the name of the file of its limit.

    Raises:
        NotHereError: There is none.
    """
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, kinds, path = line.split(":", 2)
        if "memory" in kinds.split(","):
            return _GROUPS / "memory" / path.lstrip("/"), "memory.limit_in_bytes"
    found = _GROUPS / Path("/proc/self/cgroup").read_text().rpartition("::")[2].strip().lstrip("/")
    if (found / "memory.max").exists():
        return found, "memory.max"
    raise NotHereError("no control group counts memory")


class Group:
    """The limit in KiB of a group below this process's own, so that it adds nothing to what this one may have."""

    name = "memory of a control group"

    def verbs(self, bench: Bench) -> list[Verb]:
        with self._made(1 << 30):
            return bench.verbs

    def trials(self, bench: Bench, verb: Verb, is_short: bool) -> list[Any]:
        limits = list(spread(LIMITS, 512, 512 << 10))
        return limits[3:4] if is_short else limits

    def run(self, bench: Bench, verb: Verb, limit: int) -> Tried:
        with self._made(limit << 10) as members:
            outcome = bench.try_under(verb, bench.root / "memory", lambda: _join(members), _CAUSES, {signal.SIGKILL})
        return Tried(f"{limit:,} KiB", outcome)

    @contextlib.contextmanager
    def _made(self, size: int) -> Any:
        above, name = _own_group()
        group = above / f"penstock-limits-{os.getpid()}"
        try:
            group.mkdir()
            (group / name).write_text(str(size))
        except OSError as error:
            with contextlib.suppress(OSError):
                group.rmdir()
            raise NotHereError(f"no control group can be made: {error.strerror}") from None
        try:
            yield group / "cgroup.procs"
        finally:
            for _ in range(100):  # until its last process is gone
                with contextlib.suppress(OSError):
                    group.rmdir()
                if not group.exists():
                    break
                time.sleep(0.05)


def _join(members: Path) -> None:
    members.write_text(str(os.getpid()))


class AddressSpace:
    """KiB beyond what the process has when it begins."""

    name = "memory of RLIMIT_AS"

    def verbs(self, bench: Bench) -> list[Verb]:
        return bench.verbs

    def trials(self, bench: Bench, verb: Verb, is_short: bool) -> list[Any]:
        limits = list(spread(LIMITS, 512, 2 << 20))
        return limits[2:3] if is_short else limits

    def run(self, bench: Bench, verb: Verb, limit: int) -> Tried:
        outcome = bench.try_under(verb, bench.root / "memory", lambda: _bound(limit << 10), _CAUSES, {signal.SIGKILL})
        return Tried(f"{limit:,} KiB", outcome)


def _bound(more: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
