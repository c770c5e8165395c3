"""Signals, exit, fork, kill and threads: real processes, each with a script of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

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
static void pause_(void) { struct timespec t = {2, 0}; nanosleep(&t, 0); }
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


@pytest.fixture
def slow_reads(tmp_path):
    """An environment in which every read of a file takes two seconds."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")
    (tmp_path / "slow.c").write_text(SLOW_READS)
    library = tmp_path / "slow.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "slow.c", "-ldl"], check=True)
    return {**os.environ, "LD_PRELOAD": str(library)}


def run(script: str, tokens: Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PRELUDE + script, str(tokens)], capture_output=True, text=True, timeout=timeout
    )


@contextmanager
def started(script: str, tokens: Path, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + script, str(tokens)], text=True, env=env,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


# --- signals


def test_ctrl_c_ends_a_wait_for_a_read_at_once(tokens, slow_reads):
    script = """
loader = make(threads=1, prefetch=1, batch_size=2)
print("waits", flush=True)
try:
    next(loader)
except KeyboardInterrupt:
    print("interrupted", loader.state_dict()["position"], flush=True)
"""
    with started(script, tokens, slow_reads) as process:
        assert line(process) == "waits"
        time.sleep(0.5)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert line(process) == "interrupted 0"
        assert time.monotonic() - begun < 1
        _, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (0, "")


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
    with started(script, tokens) as process:
        assert line(process) == "runs"
        time.sleep(0.3)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert line(process) == "ended"
        assert time.monotonic() - begun < 1
        _, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (0, "")


def test_a_handler_of_the_program_runs_on_its_main_thread_while_a_loader_waits(tokens, slow_reads):
    script = """
import signal
on_main = []
signal.signal(signal.SIGUSR1, lambda *_: on_main.append(threading.current_thread() is threading.main_thread()))
loader = make(threads=2, prefetch=1, batch_size=2)
print("waits", flush=True)
batch = next(loader)
print(on_main, batch.position, flush=True)
"""
    with started(script, tokens, slow_reads) as process:
        assert line(process) == "waits"
        time.sleep(0.5)
        process.send_signal(signal.SIGUSR1)
        assert line(process) == "[True] 0"


# --- exit


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("loader = make()\nnext(loader)", 0),
        ("loader = make(framework='torch')\nkept = next(loader).inputs", 0),
        ("loader = make()\nbatches = list(islice(loader, 20))\nloader.me = loader", 0),
        ("loaders = [make() for _ in range(5)]\nfor loader in loaders: next(loader)", 0),
        ("loader = make()\nnext(loader)\nsys.exit(3)", 3),
        ("next(make())", 0),
        ("sys.modules['kept'] = loader = make()\nnext(loader)", 0),
        ("import builtins\nbuiltins.kept = iter(make())\nnext(builtins.kept)", 0),
        ("import atexit\nloader = make()\natexit.register(lambda: next(loader))\nnext(loader)", 0),
        ("import atexit\nloader = make()\natexit.register(loader.close)\nnext(loader)", 0),
        (
            "loader = make()\nthreading.Thread(target=lambda: [*loader], daemon=True).start()\ntime.sleep(1)",
            0,
        ),
        ("loader = make()\nos._exit(4 if next(loader) else 5)", 4),
    ],
)
def test_exit_with_a_running_loader_is_clean(tokens, script, code):
    done = run(script, tokens)
    assert (done.returncode, done.stderr) == (code, "")


def test_an_exception_shows_itself_and_nothing_else(tokens):
    done = run("loader = make()\nnext(loader)\nraise RuntimeError('mine')", tokens)
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


def test_a_forked_childs_loader_refuses_and_the_child_ends_cleanly(tokens):
    script = """
loader = make()
batch = next(loader)
content = batch["token"].copy()
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
assert child(work) == 7
def drop():
    global loader, batch
    del loader, batch
    import gc; gc.collect()
assert child(drop) == 7
assert child(lambda: None) == 7
assert next(loader).position == 16  # the parent's goes on
"""
    done = run(FORK + script, tokens)
    assert (done.returncode, done.stderr) == (0, "")


def test_views_and_datasets_and_new_loaders_work_in_a_forked_child(tokens):
    script = """
loader = make(seed=3)
next(loader)
dataset = penstock.open(sys.argv[1], dtype="u2")
expected = view[5]["token"].tolist()
def work():
    assert view[5]["token"].tolist() == expected
    assert dataset.windows(64, lookahead=1)[5]["token"].tolist() == expected
    assert view.read(range(100))["token"].shape == (100, 65)
    with make(seed=3) as own:
        assert next(own).position == 0
        own.load_state_dict(own.state_dict())
        assert next(own).position == 16
assert child(work) == 7
assert next(loader).position == 16
"""
    done = run(FORK + script, tokens)
    assert (done.returncode, done.stderr) == (0, "")


def test_forked_while_reads_are_under_way(tokens, slow_reads):
    script = """
loader = make(batch_size=2, prefetch=1)
threading.Thread(target=lambda: next(loader), daemon=True).start()
time.sleep(0.5)
def work():
    try:
        next(loader)
    except penstock.InvalidArgumentError as error:
        assert "forked" in str(error)
assert child(work) == 7
print("done", flush=True)
"""
    with started(FORK + script, tokens, slow_reads) as process:
        assert line(process) == "done"
        _, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (0, "")


# --- kill


def test_a_killed_reader_leaves_nothing_behind(tokens, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    script = "loader = make()\nfor step, _ in enumerate(loader):\n    if step == 50: print('runs', flush=True)"
    with started(script, tokens, {**os.environ, "TMPDIR": str(scratch)}) as process:
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
    with started(script, tokens, slow_reads) as process:
        assert line(process) == "free"
        assert line(process) == "done"
        _, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (0, "")


def test_threads_may_take_turns(tokens):
    script = """
from concurrent.futures import ThreadPoolExecutor
loader = make(epochs=1)
with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
    positions = [pool.submit(next, loader).result().position for _ in range(10) for pool in (one, other)]
assert positions == list(range(0, 320, 16)), positions
"""
    done = run(script, tokens)
    assert (done.returncode, done.stderr) == (0, "")


def test_native_threads_are_those_asked_for(tokens):
    script = """
count = lambda: len(os.listdir("/proc/self/task"))
before = count()
loader = make(threads=5)
assert count() == before  # none before the first batch
next(loader)
assert count() == before + 5
loader.close()
assert count() == before
"""
    done = run(script, tokens)
    assert (done.returncode, done.stderr) == (0, "")
