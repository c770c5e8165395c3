"""The seam that workers stand behind: results in the order of items, errors at their place, dead workers told of."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from penstock._cli.main import main
from penstock._make.errors import InputError, WorkerError
from penstock._make.executors import Here, Processes, Threads, executor_of, is_far
from penstock._make.pools import results_of
from penstock._make.threads import check_stopped


class Square:
    """Waits longest for the first items, so that later ones are done before them."""

    def begin(self) -> Callable[[int], int]:
        def square(item: int) -> int:
            if item == 13:
                raise InputError("thirteen")
            if item == 15:
                raise KeyError(item)
            if item == 14:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(max(0.0, 0.1 - item / 50))
            return item * item

        return square

    def place(self, item: int) -> str:
        return f"item {item}"

    def for_thread(self) -> Square:
        return self


@pytest.fixture(params=[Here(), Processes(3), Threads(3)], ids=repr)  # tests/ray has the same of a cluster
def workers(request: pytest.FixtureRequest) -> Iterator[Any]:
    pool = request.param.pool(Square())
    yield pool
    pool.close()
    pool.close()


class TestExecutor:
    def test_results_come_in_the_order_of_items_and_no_more_are_taken_than_there_is_room_for(
        self, workers: Any
    ) -> None:
        ahead: list[int] = []
        found: list[int] = []

        def items() -> Iterator[int]:
            for item in range(12):
                ahead.append(item - len(found))
                yield item

        for result in results_of(workers, items()):
            found.append(result)
        assert found == [item * item for item in range(12)] and 1 <= workers.started <= 3
        assert max(ahead) <= 12

    def test_an_error_is_raised_at_its_place_after_all_results_before_it(self, workers: Any) -> None:
        found: list[int] = []
        with pytest.raises(InputError, match="thirteen"):
            for each in results_of(workers, [1, 2, 13, 3]):
                found.append(each)
        assert found == [1, 4]

    def test_the_traceback_of_an_error_that_nobody_foresaw_reaches_the_caller(self, workers: Any) -> None:
        with pytest.raises((KeyError, WorkerError)) as caught:  # KeyError: it is this process itself
            list(results_of(workers, [1, 15]))
        told = "".join(traceback.format_exception(caught.value))
        assert "raise KeyError(item)" in told, told
        if caught.type is WorkerError:
            assert str(caught.value) == "KeyError in the task that begins with item 15: 15"


def test_a_killed_process_is_an_error_that_says_so() -> None:
    workers = Processes(2).pool(Square())
    try:
        with pytest.raises(WorkerError, match=r"killed by SIGKILL \(out of memory\? then use fewer --workers\)"):
            list(results_of(workers, [1, 14]))
    finally:
        workers.close()


class Endless:
    """Works until it is stopped."""

    def __init__(self) -> None:
        self.begun, self.ended = threading.Semaphore(0), list[int]()

    def begin(self) -> Callable[[int], int]:
        def work(item: int) -> int:
            self.begun.release()
            try:
                while True:
                    check_stopped()
                    time.sleep(0.001)
            finally:
                self.ended.append(item)

        return work

    def place(self, item: int) -> str:
        return f"item {item}"

    def for_thread(self) -> Endless:
        return self


def test_threads_stop_at_their_next_step() -> None:
    work = Endless()
    pool = Threads(2).pool(work)
    pool.submit(5)
    pool.submit(6)
    assert work.begun.acquire(timeout=20) and work.begun.acquire(timeout=20)
    pool.submit(7)  # waits, and is never begun
    pool.submit(8)
    assert not pool.has_room() and pool.pending() and pool.started == 2
    pool.close()
    assert sorted(work.ended) == [5, 6]
    check_stopped()  # nothing: this thread is of no pool


def test_workers_say_who_works() -> None:
    assert (executor_of(1), executor_of(3)) == (Here(), Processes(3))
    assert not is_far(Here()) and not is_far(Processes(3))
    assert is_far(executor_of(type("Users", (), {"pool": lambda self, work: None})()))  # which may be anywhere


def ran(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=folder)


def test_ray_is_neither_imported_nor_needed_until_it_is_used(tmp_path: Path) -> None:
    program = """
import sys, penstock, penstock._cli.write, penstock._cli.import_
from penstock._cli.main import main
assert 'ray' not in sys.modules
sys.modules['ray'] = None  # where it is installed too: what cannot be imported is not there
assert main(["write", "a.jsonl", "--tokenizer", "t.json", "--out", "out", "--ray"]) == 1
import penstock.ray
"""
    said = ran(program, tmp_path).stderr
    words = "penstock.ray needs ray, which is not installed: pip install 'ray[data]' pyarrow pandas"
    assert f"ModuleNotFoundError: {words}" in said and f"penstock: {words}" in said, said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--ray a.jsonl", "no address of a Ray cluster"),
        ("--ray head:6379x a.jsonl", "no address of a Ray cluster"),
        ("a.jsonl --workers 2 --ray", "give one of them"),
    ],
)
def test_what_is_no_choice_of_workers_is_refused(options: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["write", *options.split(), "--ids-column", "a", "--out", "out"]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"__init__.py": ""}, "ImportError: penstock.ray: ray is installed, but a part is missing: No module named"),
        (
            {"__init__.py": "", "data.py": "import grain_of_sand"},
            "ModuleNotFoundError: penstock.ray: ray is installed and needs grain_of_sand, which is not",
        ),
        ({"session.json": ""}, "ModuleNotFoundError: penstock.ray needs ray, which is not installed: pip install"),
    ],
    ids=["a part", "what it needs", "a folder of temporary files"],
)
def test_what_ray_lacks_is_told_from_ray_that_is_missing(tmp_path: Path, files: dict[str, str], words: str) -> None:
    (tmp_path / "ray").mkdir()
    for name, text in files.items():
        (tmp_path / "ray" / name).write_text(text)
    others = [each for each in sys.path if not (Path(each) / "ray").exists()]  # where Ray is not
    program = f"import sys; sys.path[:] = {[str(tmp_path), *others]!r}; import penstock.ray"
    said = ran(program, tmp_path).stderr
    assert re.sub(r"ray \d[\d.]*", "ray", said.splitlines()[-1]).startswith(words), said


class Silent(Square):
    """Fails as CPython's own calls do that find no memory."""

    def begin(self) -> Callable[[int], int]:
        raise SystemError("<function format_exception at 0x7f> returned NULL without setting an exception")


def test_a_call_that_fails_without_an_exception_found_no_memory() -> None:
    pool = Threads(1).pool(Silent())
    with pytest.raises(WorkerError, match=r"^no memory is left$"):
        list(results_of(pool, [1]))
    pool.close()
