"""Signals, exit, fork, kill and threads: real processes, each with a script of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import _c_library
import numpy as np
import penstock
import pytest
from _scripts import assert_clean, assert_ends, assert_interrupted, line, started

PRELUDE = """
import os, sys, threading, time
from itertools import islice
import penstock
view = penstock.open(sys.argv[1], dtype="u2").windows(64, lookahead=1)
def make(**options):
    return penstock.Loader(view, **{"batch_size": 16, "framework": "numpy", "threads": 2, "prefetch": 8, **options})
"""

# Reads that take their time, as those of a disk that hangs do.
SLOW_READS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
static void pause_(void) { struct timespec t = {1, 0}; nanosleep(&t, 0); }
#define SLOW(name, ...) \\
  ssize_t name(int fd, __VA_ARGS__) { pause_(); return ((ssize_t(*)(int, __VA_ARGS__))dlsym(RTLD_NEXT, #name))CALL; }
#define CALL (fd, buffer, count, offset)
SLOW(pread, void* buffer, size_t count, off_t offset)
SLOW(pread64, void* buffer, size_t count, off_t offset)
#undef CALL
#define CALL (fd, vector, count, offset)
SLOW(preadv, const struct iovec* vector, int count, off_t offset)
SLOW(preadv64, const struct iovec* vector, int count, off_t offset)
#undef CALL
#define CALL (fd, vector, count, offset, flags)
SLOW(preadv2, const struct iovec* vector, int count, off_t offset, int flags)
SLOW(preadv64v2, const struct iovec* vector, int count, off_t offset, int flags)
"""


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "data" / "tokens.bin"
    path.parent.mkdir()
    np.arange(60_000, dtype="u2").tofile(path)
    return path


@pytest.fixture(scope="module")
def slow_reads(tmp_path_factory):
    """An environment in which every read of a file takes a second."""
    folder = tmp_path_factory.mktemp("slow")
    (folder / "slow.c").write_text(SLOW_READS)
    library = _c_library.built(folder / "slow.so", folder / "slow.c")
    if library is None:
        pytest.skip("needs a C compiler")
    return {**os.environ, "LD_PRELOAD": str(library)}


def command(script: str, tokens: Path) -> list[str]:
    return [sys.executable, "-c", PRELUDE + script, str(tokens)]


# --- signals


def test_signals_are_handled_at_once_while_a_read_is_waited_for(tokens, slow_reads):
    script = """
import signal
on_main = []
signal.signal(signal.SIGUSR1, lambda *_: on_main.append(threading.current_thread() is threading.main_thread()))
loader = make(threads=1, prefetch=1, batch_size=2)
print("waits", flush=True)
try:
    next(loader)
except KeyboardInterrupt:
    print("interrupted", on_main, loader.state_dict()["position"], flush=True)
"""
    with started(command(script, tokens), slow_reads) as process:
        assert line(process) == "waits"
        time.sleep(0.3)
        process.send_signal(signal.SIGUSR1)
        time.sleep(0.1)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert line(process) == "interrupted [True] 0"
        assert time.monotonic() - begun < 1
        assert_ends(process)


def test_ctrl_c_in_a_busy_loop_is_seen_and_the_loader_goes_on(tokens):
    script = """
loader, seen = make(), []
print("runs", flush=True)
try:
    for batch in loader:
        seen.append(batch.position)
except KeyboardInterrupt:
    pass
position = loader.state_dict()["position"]
assert seen[-1] in (position - 16, position - 32), (seen[-1], position)  # one may be lost between next() and append()
assert [batch.position for batch in islice(loader, 3)] == [position, position + 16, position + 32]
print("ended", flush=True)
"""
    with started(command(script, tokens)) as process:
        assert_interrupted(process, "runs", "ended")


# --- exit


REACHABLE = """
import builtins
loader, kept = make(), next(make(framework='torch')).inputs
batches = list(islice(loader, 20))
loader.me = loader
sys.modules['kept'] = other = make()
builtins.kept = iter(make())
next(make()), next(other), next(builtins.kept)
threading.Thread(target=lambda: [*make()], daemon=True).start()
time.sleep(0.2)
"""
AT_EXIT = """
import atexit
loader, other = make(), make()
atexit.register(lambda: next(loader))
atexit.register(other.close)
next(loader), next(other)
sys.exit(3)
"""


@pytest.mark.parametrize(
    ("script", "code"),
    [(REACHABLE, 0), (AT_EXIT, 3), ("loader = make()\nos._exit(4 if next(loader) else 5)", 4)],
    ids=["reachable", "at exit", "_exit"],
)
def test_exit_with_a_running_loader_is_clean(tokens, script, code):
    assert_clean(command(script, tokens), code=code)


def test_an_exception_shows_itself_and_nothing_else(tokens):
    script = "loader = make()\nnext(loader)\nraise RuntimeError('mine')"
    done = subprocess.run(command(script, tokens), capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("RuntimeError: mine") and done.stderr.count("Traceback") == 1


# --- fork


FORK = """
def child(work):
    pid = os.fork()
    if pid == 0:
        work()
        sys.exit(7)  # the whole way out: atexit, destructors
    for _ in range(200):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.1)
    os.kill(pid, 9)
    return "hangs"
"""


def test_a_forked_childs_loader_refuses_and_its_views_and_new_loaders_work(tokens):
    script = """
loader = make(seed=3)
batch = next(loader)
content, expected = batch["token"].copy(), view[5]["token"].tolist()
dataset = penstock.open(sys.argv[1], dtype="u2")
def work():
    for attempt in (lambda: next(loader), lambda: loader.seek(0), lambda: loader.load_state_dict(loader.state_dict()),
                    lambda: loader.set_batch_size(3)):
        try:
            attempt()
        except penstock.InvalidArgumentError as error:
            assert "forked" in str(error) and "spawn" in str(error), error
        else:
            raise SystemExit("not refused")
    assert (batch["token"] == content).all()
    loader.close()
    for each in (view, dataset.windows(64, lookahead=1)):
        assert each[5]["token"].tolist() == expected
    assert view.read(range(100))["token"].shape == (100, 65)
    with make(seed=3) as own:
        assert next(own).position == 0
        own.load_state_dict(own.state_dict())
        assert next(own).position == 16
assert child(work) == 7
def drop():
    global loader, batch
    del loader, batch
    import gc; gc.collect()
assert child(drop) == 7
assert child(lambda: None) == 7
assert next(loader).position == 16  # the parent's goes on
"""
    assert_clean(command(FORK + script, tokens))


# --- kill


def test_a_killed_reader_leaves_nothing_behind(tokens, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    script = "loader = make()\nfor step, _ in enumerate(loader):\n    if step == 50: print('runs', flush=True)"
    with started(command(script, tokens), {**os.environ, "TMPDIR": str(scratch)}) as process:
        assert line(process) == "runs"
        open_files = [str(link.readlink()) for link in Path(f"/proc/{process.pid}/fd").iterdir()]
        mapped = Path(f"/proc/{process.pid}/maps").read_text()
        locks = [entry.split()[4] for entry in Path("/proc/locks").read_text().splitlines()]
        process.kill()
        process.wait(10)
    assert str(tokens) in open_files
    assert not [name for name in open_files if "shm" in name or "(deleted)" in name]
    assert "/dev/shm" not in mapped and "(deleted)" not in mapped
    assert str(process.pid) not in locks
    assert list(scratch.iterdir()) == [] and list(tokens.parent.iterdir()) == [tokens]


# --- threads


def test_two_threads_in_next_are_refused_and_the_gil_is_free_meanwhile(tokens, slow_reads):
    script = """
loader = make(batch_size=2, prefetch=1)
found = []
thread = threading.Thread(target=lambda: found.append(next(loader).position))
thread.start()
time.sleep(0.5)
begun = time.monotonic()
for attempt in (lambda: next(loader), lambda: loader.seek(0), loader.close, lambda: iter(loader)):
    try:
        attempt()
    except penstock.InvalidArgumentError as error:
        assert "another thread" in str(error), error
    else:
        raise SystemExit("not refused")
assert loader.state_dict()["position"] == 0
assert time.monotonic() - begun < 0.5
print("free", flush=True)
thread.join()
assert found == [0] and next(loader).position == 2
print("done", flush=True)
"""
    with started(command(script, tokens), slow_reads) as process:
        assert line(process) == "free"
        assert line(process) == "done"
        assert_ends(process)


def test_threads_may_take_turns_and_native_ones_are_those_asked_for(tokens):
    def count() -> int:
        return len([*Path("/proc/self/task").iterdir()])

    view = penstock.open(tokens, dtype="u2").windows(64)
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        assert [pool.submit(count).result() > 0 for pool in (one, other)] == [True, True]
        before = count()
        with penstock.Loader(view, 16, epochs=1, framework="numpy", threads=5) as loader:
            assert count() == before  # none before the first batch
            positions = [pool.submit(next, loader).result().position for _ in range(10) for pool in (one, other)]
            assert positions == list(range(0, 320, 16))
            assert count() == before + 5
        assert count() == before
