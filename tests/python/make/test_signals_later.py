"""Ctrl-C and SIGTERM around the start of a worker: none is lost, in whatever moment it comes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
from penstock._base import processes

BOTH = (signal.SIGINT, signal.SIGTERM)


class Handlers:
    """The user's two handlers, and the calls of them."""

    def __init__(self) -> None:
        self.raises = False
        self.calls: list[tuple[int, FrameType | None]] = []

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.calls.append((number, frame))
        if self.raises:
            raise KeyboardInterrupt(number)

    @property
    def numbers(self) -> list[int]:
        return [number for number, _ in self.calls]


@pytest.fixture
def theirs() -> Iterator[Handlers]:
    before = {number: signal.getsignal(number) for number in BOTH}
    handlers = Handlers()
    for number in BOTH:
        signal.signal(number, handlers)
    yield handlers
    for number, handler in before.items():
        signal.signal(number, handler)


def after_each_set(then: Callable[[int, Any], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls `then` behind each handler that is set, as if another thread had taken a signal then."""
    set_one = signal.signal

    def hooked(number: int, handler: Any) -> Any:
        before = set_one(number, handler)
        then(number, handler)
        return before

    monkeypatch.setattr(processes.signal, "signal", hooked)


def test_all_that_came_is_done_afterwards_in_its_order_and_with_its_frame(theirs: Handlers) -> None:
    with processes._signals_later():
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            signal.raise_signal(number)
        assert theirs.calls == []
    assert theirs.numbers == [signal.SIGTERM, signal.SIGINT]
    assert all(frame is not None for _, frame in theirs.calls)


def test_a_handler_that_raises_keeps_no_other_signal_from_its_own(theirs: Handlers) -> None:
    theirs.raises = True
    with pytest.raises(KeyboardInterrupt), processes._signals_later():
        for number in BOTH:
            signal.raise_signal(number)
    assert theirs.numbers == [*BOTH]
    assert [signal.getsignal(number) for number in BOTH] == [theirs, theirs]


@pytest.mark.parametrize("at", BOTH)
@pytest.mark.parametrize("by", BOTH)
@pytest.mark.parametrize("is_entry", [True, False])
def test_a_signal_while_handlers_are_changed_leaves_none_of_ours(
    theirs: Handlers, monkeypatch: pytest.MonkeyPatch, at: int, by: int, is_entry: bool
) -> None:
    theirs.raises = True

    def then(number: int, handler: Any) -> None:
        if number == at and (handler is not theirs) == is_entry and not theirs.calls:
            signal.raise_signal(by)

    after_each_set(then, monkeypatch)
    with pytest.raises(KeyboardInterrupt), processes._signals_later():
        pass
    monkeypatch.undo()
    assert theirs.numbers == [by]
    assert [signal.getsignal(number) for number in BOTH] == [theirs, theirs]


def test_a_handler_that_could_not_be_set_back_hands_on(theirs: Handlers, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal between the look for signals in signal.signal and the call: nothing is set."""
    set_one, refused = signal.signal, []

    def hooked(number: int, handler: Any) -> Any:
        if handler is theirs:
            refused.append(number)
            raise KeyboardInterrupt
        return set_one(number, handler)

    monkeypatch.setattr(processes.signal, "signal", hooked)
    with pytest.raises(KeyboardInterrupt), processes._signals_later():
        pass
    monkeypatch.undo()
    assert sorted(refused) == [*BOTH]
    for number in BOTH:
        signal.raise_signal(number)
    assert theirs.numbers == [*BOTH]


@pytest.mark.parametrize("by", BOTH)
def test_a_signal_inside_leaves_no_setting_of_workers(
    theirs: Handlers, monkeypatch: pytest.MonkeyPatch, by: int
) -> None:
    theirs.raises = True
    for name in processes.ONE_THREAD:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(KeyboardInterrupt), processes.surroundings_of_workers():
        os.kill(os.getpid(), by)
    assert theirs.numbers == [by]
    assert not {*processes.ONE_THREAD} & {*os.environ}
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
