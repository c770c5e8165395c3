"""CollectionLoader's thread and processes: kill, Ctrl-C, fork and exit of real processes: nothing is left."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _scripts import assert_clean, assert_ends, line, started


def open_numbers() -> np.ndarray:
    return np.arange(1000) * 10


def open_million() -> np.ndarray:
    return np.arange(1_000_000)


def fail_at_500(batch: np.ndarray) -> np.ndarray:
    if 5000 in batch:
        raise UnpicklableError("five hundred", batch)
    return batch


class UnpicklableError(Exception):
    def __init__(self, text: str, batch: Any) -> None:
        super().__init__(text)


def end_at_500(batch: np.ndarray) -> np.ndarray:
    if 5000 in batch:
        os._exit(3)
    return batch


def give_a_lambda(batch: np.ndarray) -> Any:
    return lambda: batch


def open_nothing() -> Any:
    if os.environ.get("PENSTOCK_TEST_PARENT") == str(os.getpid()):
        return open_numbers()
    raise FileNotFoundError("no such store")


def open_fewer() -> Any:
    return open_numbers()[: 1000 if os.environ.get("PENSTOCK_TEST_PARENT") == str(os.getpid()) else 900]


def make(collection: Any = open_numbers, **options: Any) -> penstock.CollectionLoader:
    return penstock.CollectionLoader(
        collection,
        **{"batch_size": 10, "order": "sequential", "epochs": 1, "fetch_factor": 3, "processes": 2, **options},
    )


def children(process: int) -> set[int]:
    """Running children of a process and theirs."""
    found = set()
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found |= {child} | children(child)
    return found


def workers(process: int | None = None) -> list[int]:
    """Those children that are workers, not multiprocessing's resource tracker."""
    found = []
    for child in sorted(children(process or os.getpid())):
        try:
            if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text():
                found.append(child)
        except OSError:
            continue
    return found


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition: Any, seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


# --- processes


def test_processes_give_the_batches_in_order_and_go_anywhere():
    options = {"batch_size": 7, "order": "uniform", "epochs": 2}
    with make(threads=0, processes=0, **options) as plain, make(processes=3, **options) as loader:
        for batch, expected in zip(loader, plain, strict=True):
            assert batch.tolist() == expected.tolist()
        state = {**loader.state_dict(), "position": 147}
        loader.load_state_dict(state), plain.load_state_dict(state)
        assert next(loader).tolist() == next(plain).tolist()
        for position in (100, 3, 1993, 0):
            loader.seek(position), plain.seek(position)
            assert next(loader).tolist() == next(plain).tolist()
        assert len(workers()) == 3
    assert workers() == []


def wide(batch: np.ndarray) -> np.ndarray:
    return np.repeat(batch[:, None], 50_000, 1)  # 4 MB: no pipe holds it


def test_batches_larger_than_a_pipe_come_from_anywhere():
    with make(batch_transform=wide, fetch_factor=2) as loader:
        for position in (0, 500, 20, 20, 990, 130):
            loader.seek(position)
            for _ in range(2 if position % 3 else 1):
                begin = loader.position
                assert next(loader)[:, 7].tolist() == list(range(begin * 10, begin * 10 + 100, 10))


def test_an_error_or_end_of_a_process_is_told_at_its_batch_and_the_loader_goes_on():
    for hook, times in ((fail_at_500, 2), (end_at_500, 1)):
        with make(batch_transform=hook) as loader:
            assert len([next(loader) for _ in range(50)]) == 50
            for _ in range(times):
                with pytest.raises(penstock.Error, match=r"at position 500: ") as raised:
                    next(loader)
                assert loader.position == 500
                said, cause = str(raised.value), raised.value.__cause__
                if hook is end_at_500:
                    assert re.search(r"worker process \d+ exited with code 3$", said)
                    assert isinstance(cause, EOFError | ConnectionResetError)
                else:
                    assert "batch_transform(batch) raised" in said and "five hundred" in str(cause)
                    assert cause is not None and "fail_at_500" in str(cause.__cause__)  # the traceback there
            loader.seek(510)
            assert next(loader)[0] == 5100
    assert workers() == []


def test_kill_of_a_process_is_told_at_its_batch_and_the_loader_goes_on():
    with make(batch_transform=wide) as loader:
        next(loader)
        victim = loader._reader._workers[1].process.pid  # it has the second fetch: positions 30 to 59
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda: not is_running(victim))
        assert [next(loader)[0, 0] for _ in range(2)] == [100, 200]
        words = rf"at position 30: worker process {victim} was killed by SIGKILL"
        with pytest.raises(penstock.Error, match=words) as raised:
            next(loader)
        assert isinstance(raised.value.__cause__, EOFError | OSError) and loader.position == 30
        assert [batch[0, 0] for batch in loader] == list(range(300, 10_000, 100))
    assert workers() == []


def test_a_collection_that_cannot_be_opened_there_says_why(monkeypatch):
    monkeypatch.setenv("PENSTOCK_TEST_PARENT", str(os.getpid()))
    with make(open_nothing) as loader:
        for _ in range(2):
            with pytest.raises(penstock.Error, match="opening the collection in a worker process") as raised:
                next(loader)
            assert isinstance(raised.value.__cause__, FileNotFoundError)
    with make(open_fewer) as loader, pytest.raises(penstock.InvalidArgumentError, match=r"900 .* had 1,000"):
        next(loader)
    assert workers() == []


def test_what_does_not_pickle_is_refused_before_anything_starts(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(10))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    np.memmap(tmp_path / "data", "f4", "w+", shape=(10,))[:] = 1
    sparse = pytest.importorskip("scipy.sparse").csr_matrix(
        (np.memmap(tmp_path / "data", "f4", "r"), np.arange(10), np.arange(11)), shape=(10, 10)
    )
    copied = "a copy of its file: pass a function that opens it"
    with pytest.importorskip("h5py").File(tmp_path / "x.h5", "w") as file:
        file["x"] = np.arange(10)
        for collection, options, words in (
            (file["x"], {}, r"this Dataset does not pickle.*a function that opens it"),
            *((each, {}, copied) for each in (mapped, penstock.Collections(x=mapped), sparse)),
            (lambda: np.arange(10), {}, r"the function .* does not pickle"),
            (open_numbers, {"batch_transform": lambda batch: batch}, "batch_transform does not pickle"),
        ):
            with pytest.raises(penstock.InvalidArgumentError, match=words):
                make(collection, **options)
    words = "pickling the batch, a fun"
    with make(batch_transform=give_a_lambda) as loader, pytest.raises(penstock.Error, match=words):
        next(loader)
    assert workers() == []


class Owner:
    """Whose loader has a hook that is its method."""

    loader: penstock.CollectionLoader

    def seen(self, batch: Any) -> Any:
        return batch


def test_a_loader_that_is_forgotten_ends_its_processes_and_thread():
    loaders = [make(), make(processes=0, threads=1)]
    for loader in loaders:
        next(loader)
    assert len(workers()) == 2 and any(each.name == "penstock-reader" for each in threading.enumerate())
    del loader, loaders
    owner = Owner()
    owner.loader = make(processes=0, threads=1, batch_transform=owner.seen)
    next(owner.loader)
    del owner
    wait_for(lambda: not workers())
    # A cycle, which the thread holds while it reads.
    wait_for(lambda: gc.collect() >= 0 and not any(each.name == "penstock-reader" for each in threading.enumerate()))


def x_and_obs(batch: Any) -> Any:
    return {"x": batch.X, "obs": batch.obs}


def largest(batch: Any) -> Any:
    import torch

    return torch.max(torch.as_tensor(batch), dim=0)


def test_batches_keep_their_types(tmp_path):
    torch, stores = pytest.importorskip("torch"), pytest.importorskip("_stores")
    with make(batch_transform=largest, processes=1) as loader:
        batch = next(loader)
        assert isinstance(batch, torch.return_types.max)
        assert batch.values.tolist() == 90 and not batch.values.is_shared()  # tensors come by value
    store = stores.make("anndata", tmp_path)
    with make(store.open, batch_transform=x_and_obs, batch_size=3, processes=1) as loader:
        batch = next(loader)
        assert type(batch["x"]).__name__ == "csr_matrix" and type(batch["obs"]).__name__ == "DataFrame"
        assert batch["obs"]["number"].tolist() == loader.info.indices.tolist()


# --- scripts

PRELUDE = """
import os, sys, threading, time
import numpy as np
import penstock
from test_collection_processes import open_million, open_numbers, make, slow_read, stuck_read
"""


def slow_read(collection: Any, indices: np.ndarray) -> Any:
    time.sleep(0.3)
    return collection[indices]


def stuck_read(collection: Any, indices: np.ndarray) -> Any:
    if indices[0] > 0:
        time.sleep(600)
    return collection[indices]


def command(script: str) -> list[str]:
    body = "\n".join(f"    {each}" for each in script.strip().splitlines())
    return [sys.executable, "-c", f"{PRELUDE}\nif __name__ == '__main__':\n{body}\n"]


def surroundings() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, Path(__file__).parents[:2]))}


def started_script(script: str) -> Any:
    return started(command(script), surroundings())


KINDS = {"thread": "processes=0, threads=1", "caller": "processes=0, threads=0", "processes": "processes=2"}


def test_exit_with_running_loaders_is_clean_and_quick():
    begun = time.monotonic()
    # Of each kind, of which the thread's hangs in a read.
    assert_clean(
        command("""
loaders = [make(processes=2, epochs=9, fetch_callback=slow_read), make(processes=0, threads=0)]
loaders.append(make(processes=0, threads=1, fetch_callback=stuck_read))
for loader in loaders:
    next(loader)
"""),
        surroundings(),
    )
    assert time.monotonic() - begun < 30


def test_exit_while_a_real_file_is_read_is_clean(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=np.zeros((20_000, 64), "f4"), chunks=(8, 64), compression="gzip")
    for _ in range(2):
        assert_clean(
            command(f"""
import h5py
loader = penstock.CollectionLoader(lambda: h5py.File({str(tmp_path / "x.h5")!r})["x"], 16, fetch_factor=64)
for _ in range(5):
    next(loader)
"""),
            surroundings(),
        )


@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_ends_a_wait_at_once_and_the_loader_goes_on(kind):
    script = f"""
loader = make({KINDS[kind]}, fetch_callback=stuck_read, fetch_factor=1)
next(loader)
print("waits", flush=True)
try:
    next(loader)
except KeyboardInterrupt:
    print("interrupted", loader.position, flush=True)
    loader.seek(0)
    if {kind != "thread"}:  # whose read still hangs
        print(next(loader)[1], flush=True)
"""
    with started_script(script) as process:
        assert line(process) == "waits"
        time.sleep(0.5)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert line(process) == "interrupted 10"
        assert time.monotonic() - begun < 2
        if kind != "thread":
            assert line(process) == "10"
        assert_ends(process)


def test_ctrl_c_of_the_whole_group_leaves_the_processes_to_their_parent():
    script = """
loader = make(epochs=None)
try:
    for step, _ in enumerate(loader):
        if step == 5:
            print("runs", flush=True)
except KeyboardInterrupt:
    before = loader.position
    assert next(loader)[0] == before % 1000 * 10, before
    print("interrupted", flush=True)
"""
    with started_script(script) as process:
        assert line(process) == "runs"
        found = workers(process.pid)
        assert len(found) == 2
        os.killpg(process.pid, signal.SIGINT)
        assert line(process) == "interrupted"
        assert process.communicate(timeout=30)[1] == ""
        wait_for(lambda: not any(map(is_running, found)))


def test_ctrl_c_while_a_message_is_sent_leaves_no_half_of_it():
    script = """
import signal
loader = penstock.CollectionLoader(  # a fetch's message of 800 kB: no pipe holds it
    open_million, 100_000, order="sequential", fetch_factor=1, processes=1, epochs=None
)
next(loader)
stopped = loader._reader._workers[0].process.pid
for _ in range(2):
    os.kill(stopped, signal.SIGSTOP)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    loader.seek(300_000)
    try:
        next(loader)
    except KeyboardInterrupt:
        timer.join()
    else:
        print("not interrupted")
    assert loader.position == 300_000
    assert next(loader)[0] == 300_000
    stopped = loader._reader._workers[0].process.pid
print("went on")
"""
    assert_clean(command(script), surroundings(), output="went on\n")


@pytest.mark.parametrize("how", ["busy", "waiting", "forked"])
def test_kill_of_the_parent_leaves_nothing_behind(how):
    # The fork has the parent's end of the pipe: that the pipe closes is not what ends the workers then.
    script = f"""
loader = make(epochs=None, fetch_factor=1{", fetch_callback=stuck_read" if how == "waiting" else ""})
next(loader)
if {how == "forked"} and os.fork() == 0:
    time.sleep(60)
print("runs", flush=True)
while True:
    if {how == "busy"}:
        next(loader)
    else:
        time.sleep(1)
"""
    with started_script(script) as process:
        assert line(process) == "runs"
        all_of_them = children(process.pid)
        found = workers(process.pid)
        assert len(found) == 2
        process.kill()
        wait_for(lambda: not any(map(is_running, found)))
        for left in all_of_them - set(found):
            if how == "forked" and is_running(left):
                os.kill(left, signal.SIGKILL)
        wait_for(lambda: not any(map(is_running, all_of_them)))


def test_a_forked_child_or_another_thread_is_refused_and_harms_nobody():
    script = """
def refused(words, *actions):
    for action in actions:
        try:
            action()
        except penstock.InvalidArgumentError as error:
            assert words in str(error), error
        else:
            os._exit(5)
store = open_numbers()
for loader in (make(), make(store, processes=0, threads=1, fetch_callback=slow_read, fetch_factor=1)):
    next(loader)
    time.sleep(0.1)  # the next fetch is being read
    pid = os.fork()
    if pid == 0:
        load = lambda: loader.load_state_dict(loader.state_dict())
        refused("forked child", loader.__next__, lambda: loader.seek(0), load)
        loader.close()
        next(penstock.CollectionLoader(store, 10, threads=0))
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert next(loader)[0] == 100
    loader.close()
loader = make(processes=0, threads=0, fetch_callback=slow_read)
threading.Thread(target=loader.__next__).start()
time.sleep(0.1)
refused("another thread is in next()", loader.__next__)
"""
    assert_clean(command(script), surroundings())


def test_a_script_without_a_guard_is_told_about_it(tmp_path):
    (tmp_path / "script.py").write_text(
        "import penstock\nfrom test_collection_processes import make\nwith make() as loader:\n    next(loader)\n"
    )
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py"], env=surroundings(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert 'needs if __name__ == "__main__"' in done.stderr.splitlines()[-1]
