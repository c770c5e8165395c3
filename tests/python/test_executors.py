"""The seam that workers stand behind: results in the order of items, errors at their place, dead workers told of."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from penstock._text.errors import InputError, WorkerError
from penstock._workers import Processes, results_of


class Square:
    """Waits longest for the first items, so that later ones are done before them."""

    def begin(self) -> Callable[[int], int]:
        def square(item: int) -> int:
            if item == 13:
                raise InputError("thirteen")
            if item == 14:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(max(0.0, 0.1 - item / 50))
            return item * item

        return square

    def place(self, item: int) -> str:
        return f"item {item}"


def pool() -> Any:
    return Processes(3).pool(Square())


def test_results_come_in_the_order_of_items_and_no_more_items_are_taken_than_there_is_room_for() -> None:
    workers, ahead = pool(), []
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for taken in range(1, 13):
            ahead.append(taken - done)
            yield taken - 1

    done, found = 0, []
    try:
        for result in results_of(workers, items()):
            done += 1
            found.append(result)
        assert 1 <= workers.started <= 3
    finally:
        workers.close()
    assert found == [item * item for item in range(12)]
    assert max(ahead) <= 12 + 1


def test_an_error_is_raised_at_its_place_after_all_results_before_it() -> None:
    workers = pool()
    found: list[int] = []
    try:
        with pytest.raises(InputError, match="thirteen"):
            for each in results_of(workers, [1, 2, 13, 3]):
                found.append(each)
    finally:
        workers.close()
    assert found == [1, 4]


def test_a_killed_process_is_an_error_that_says_so() -> None:
    workers = pool()
    try:
        with pytest.raises(WorkerError, match=r"killed by SIGKILL \(out of memory\? then use fewer --workers\)"):
            list(results_of(workers, [1, 14]))
    finally:
        workers.close()
        workers.close()
