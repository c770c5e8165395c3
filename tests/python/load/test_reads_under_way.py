"""A signal, an exit, a fork or a seek while reads are under way in the ring: real processes, reads that really wait.

A read waits in one of two ways. Held: what penstock opens is a FIFO that nobody writes to, until the test lets it end;
the reads that waited then got nothing and are done again from the file. Slow disk: the device gives so few bytes a
second that a read takes many of them (where a process may limit itself so: root, and cgroups of version 1).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import _c_library
import numpy as np
import penstock
import pytest
from _scripts import Process, assert_ends, end, line, started

# penstock opens its files O_NONBLOCK, Python does not.
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static int real_of[4096];  /* by the FIFO's descriptor; 0: none */
static int held(int fd) { return fd >= 0 && fd < 4096 && real_of[fd] ? real_of[fd] : fd; }
#define NEXT(type, name) ((type)dlsym(RTLD_NEXT, name))
#define OPEN(name) \\
  int name(const char* path, int flags, ...) { \\
    va_list more; \\
    va_start(more, flags); \\
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, int) : 0; \\
    va_end(more); \\
    int fd = NEXT(int (*)(const char*, int, ...), #name)(path, flags, mode); \\
    if (fd < 0 || !(flags & O_NONBLOCK) || strcmp(path, getenv("HELD_FILE")) != 0) return fd; \\
    int fifo = NEXT(int (*)(const char*, int, ...), #name)(getenv("HELD_BY"), O_RDONLY | O_CLOEXEC); \\
    real_of[fifo] = fd; \\
    return fifo; \\
  }
OPEN(open)
OPEN(open64)
#define STAT(arguments) \\
  int arguments { return (int)syscall(SYS_newfstatat, held(fd), "", status, AT_EMPTY_PATH); }
STAT(fstat(int fd, struct stat* status))
STAT(fstat64(int fd, struct stat64* status))
STAT(__fxstat(int version, int fd, struct stat* status))  /* glibc before 2.33 */
STAT(__fxstat64(int version, int fd, struct stat64* status))
#define PREAD(name) \\
  ssize_t name(int fd, void* buffer, size_t count, off_t offset) { \\
    return NEXT(ssize_t (*)(int, void*, size_t, off_t), #name)(held(fd), buffer, count, offset); \\
  }
PREAD(pread)
PREAD(pread64)
int close(int fd) {
  if (held(fd) != fd) {
    NEXT(int (*)(int), "close")(real_of[fd]);
    real_of[fd] = 0;
  }
  return NEXT(int (*)(int), "close")(fd);
}
"""

PRELUDE = """
import os, sys, threading, time
import penstock
def tell(*words):
    print(*words, flush=True)
def threads():
    names = [open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")]
    return len([name for name in names if not name.startswith("iou-")])  # helpers of the kernel come and go
def rings():
    found = 0
    for each in os.scandir("/proc/self/fd"):
        found += os.path.islink(each.path) and "io_uring" in os.readlink(each.path)
    return found
def right(batch):
    return batch["token"].ravel().tolist() == list(range(batch.position * 64, (batch.position + 2) * 64))
view = penstock.open(sys.argv[1], dtype="u2").windows(64)
before = threads()
loader = penstock.Loader(view, 2, reader=sys.argv[2], order="sequential", framework="numpy", threads=1, prefetch=2)
tell("ready")
input()
"""

INTERRUPTED = """
try:
    next(loader)
except KeyboardInterrupt:
    tell("interrupted", loader.state_dict()["position"])
"""


class Stall:
    """Reads of `tokens` by processes that it starts wait until it is released."""

    def __init__(self, tokens: Path, reader: str) -> None:
        self.tokens = tokens
        self.reader = reader

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def begin(self, pid: int) -> None:
        """`pid` has not read anything yet."""

    def release(self) -> None:
        raise NotImplementedError

    @contextlib.contextmanager
    def reading(self, script: str) -> Iterator[Process]:
        """A process that runs the script and has reads in its ring."""
        command = [sys.executable, "-c", PRELUDE + script, str(self.tokens), self.reader]
        with started(command, self.environment()) as process:
            try:
                assert line(process) == "ready"
                self.begin(process.pid)
                go_on(process)
                latest = time.monotonic() + 20
                while reads_in_rings(process.pid) == 0:
                    assert process.poll() is None, process.communicate()
                    assert time.monotonic() < latest, "nothing was read"
                    time.sleep(0.01)
                yield process
            finally:
                end(process)
                self.release()


class Held(Stall):
    def __init__(self, tokens: Path, reader: str, folder: Path) -> None:
        super().__init__(tokens, reader)
        (folder / "held.c").write_text(SHIM)
        self.library, self.fifo = folder / "held.so", folder / "fifo"
        if _c_library.built(self.library, folder / "held.c") is None:
            pytest.skip("needs a C compiler")
        os.mkfifo(self.fifo)
        self.writer: int | None = os.open(self.fifo, os.O_RDWR)

    def environment(self) -> dict[str, str]:
        named = {"HELD_FILE": str(self.tokens), "HELD_BY": str(self.fifo)}
        return {**os.environ, **named, "LD_PRELOAD": str(self.library)}

    def release(self) -> None:
        if self.writer is not None:
            os.close(self.writer)
        self.writer = None


class SlowDisk(Stall):
    BYTES_A_SECOND = 256  # a direct read of one block takes 16 seconds

    def __init__(self, tokens: Path, reader: str) -> None:
        super().__init__(tokens, reader)
        device = tokens.stat().st_dev
        self.device = f"{os.major(device)}:{os.minor(device)}"
        self.group = Path(f"/sys/fs/cgroup/blkio/penstock-{os.getpid()}-{tokens.parent.parent.name}")
        try:
            self.group.mkdir()
        except OSError as error:
            pytest.skip(f"no cgroup that limits reads can be made here: {error}")
        try:
            self.limit(self.BYTES_A_SECOND)
        except OSError as error:
            self.group.rmdir()
            pytest.skip(f"reads of the device {self.device} cannot be limited here: {error}")

    def limit(self, bytes_a_second: int) -> None:
        (self.group / "blkio.throttle.read_bps_device").write_text(f"{self.device} {bytes_a_second}")

    def begin(self, pid: int) -> None:
        (self.group / "cgroup.procs").write_text(str(pid))

    def release(self) -> None:
        self.limit(0)  # none

    def remove(self) -> None:
        for _ in range(100):  # a process that has just ended is still in it
            with contextlib.suppress(OSError):
                return self.group.rmdir()
            time.sleep(0.05)
        raise AssertionError(f"{self.group} cannot be removed")


def go_on(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")


def reads_in_rings(pid: int) -> int:
    """Reads that the kernel was given and has not ended, as it tells of each ring."""
    found = 0
    for link in Path(f"/proc/{pid}/fd").iterdir():
        if "io_uring" not in str(link.readlink()):
            continue
        told = Path(f"/proc/{pid}/fdinfo/{link.name}").read_text()
        figures = dict(each.split(":", 1) for each in told.splitlines() if ":" in each)
        if "SqHead" not in figures:
            pytest.skip("this kernel does not tell what is in a ring")
        under_way = int(figures["SqHead"], 0) - int(figures["CqTail"], 0)
        found += max(under_way - 1, 0)  # one of them waits for a wake
    return found


@pytest.fixture(params=["held uring", "held direct", "slow disk"])
def stall(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stall]:
    kind = request.param
    reader = "uring" if kind == "held uring" else "direct"
    tokens = tmp_path / "data" / "tokens.bin"
    tokens.parent.mkdir()
    np.arange(30_000, dtype="u2").tofile(tokens)
    os.sync()
    view = penstock.open(tokens, dtype="u2").windows(64)
    try:
        with penstock.Loader(view, 2, reader=reader, framework="numpy", rank=0, world_size=1) as loader:
            assert loader.reader == reader
            next(loader)
    except (penstock.Error, OSError) as error:
        pytest.skip(f"no reads of this kind here: {error}")
    if kind != "slow disk":
        yield Held(tokens, reader, tmp_path)
        return
    disk = SlowDisk(tokens, reader)
    yield disk
    disk.remove()


def interrupt(process: Process) -> None:
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert line(process) == "interrupted 0"
    assert time.monotonic() - begun < 1


def test_ctrl_c_and_a_move_end_the_wait_at_once_and_all_is_read_all_the_same(stall):
    script = """
begun = time.monotonic()
loader.seek(4)
loader.load_state_dict({**loader.state_dict(), "position": 10})
loader.seek(0)
tell("moved", time.monotonic() - begun < 0.5)
batches = [next(loader) for _ in range(20)]
tell([batch.position for batch in batches] == list(range(0, 40, 2)) and all(map(right, batches)))
"""
    with stall.reading(INTERRUPTED + script) as process:
        interrupt(process)
        assert line(process) == "moved True"
        stall.release()
        assert line(process) == "True"
        assert_ends(process)


CLOSED = """
assert (threads() - before, rings()) == (1, 1)
loader.close()
assert (threads() - before, rings()) == (0, 0)
sys.exit(3)
"""


@pytest.mark.parametrize(("script", "code"), [(CLOSED, 3), ("import builtins\nbuiltins.kept = iter(loader)", 0)])
def test_close_and_exit_leave_nothing(stall, script, code):
    with stall.reading(INTERRUPTED + script) as process:
        interrupt(process)
        time.sleep(0.2)  # it is on its way out
        stall.release()
        assert_ends(process, code)


def test_an_interrupt_that_nobody_catches_shows_itself_and_nothing_else(stall):
    with stall.reading("next(loader)") as process:
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        stall.release()
        _, errors = process.communicate(timeout=30)
        assert process.returncode == -signal.SIGINT
        assert errors.strip().endswith("KeyboardInterrupt") and errors.count("Traceback") == 1


@pytest.mark.parametrize("way", ["kill", "leave"])
def test_a_process_that_is_killed_is_gone_at_once(stall, way):
    with stall.reading(INTERRUPTED + "os._exit(9)" if way == "leave" else "next(loader)") as process:
        begun = time.monotonic()
        process.send_signal(signal.SIGKILL if way == "kill" else signal.SIGINT)
        assert process.wait(10) == (-signal.SIGKILL if way == "kill" else 9)
        assert time.monotonic() - begun < 2
        assert list(stall.tokens.parent.iterdir()) == [stall.tokens]


def test_a_forked_child_refuses_and_ends_and_its_parent_reads_on(stall):
    script = """
def ask():
    batch = next(loader)
    tell(batch.position, right(batch))
thread = threading.Thread(target=ask)
thread.start()
input()
pid = os.fork()
if pid == 0:
    try:
        next(loader)
    except penstock.InvalidArgumentError as error:
        sys.exit(7 if "forked" in str(error) else 8)
    sys.exit(9)
tell("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
thread.join()
"""
    with stall.reading(script) as process:
        begun = time.monotonic()
        go_on(process)
        assert line(process) == "child 7"
        assert time.monotonic() - begun < 2
        assert reads_in_rings(process.pid) > 0
        stall.release()
        assert line(process) == "0 True"
        assert_ends(process)
