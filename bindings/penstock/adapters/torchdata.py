"""A loader as a node of torchdata.nodes."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from typing import Any

from penstock._load.loader import Loader
from penstock.adapters._common import checked, given, missing

try:
    from torchdata.nodes import BaseNode
except ImportError as error:
    raise missing("torchdata", "torchdata", error, "0.11.0") from error

_PATIENCE = 10.0  # seconds that the end of Python waits for a call of next() to end
_nodes: weakref.WeakSet[Node] = weakref.WeakSet()


class Node(BaseNode):  # type: ignore[misc]
    """A loader as the source of a graph of torchdata.nodes, behind Prefetcher, Mapper, PinMemory and others.

    It gives dicts of tensors, or what the loader's `transform` made of a batch. Its state is the loader's. Nodes that
    fetch ahead keep the state of each batch with it, so that what `torchdata.nodes.Loader` saves is the state after the
    batch that it gave last.

    `reset()` without a state begins the pass again that was broken off; after the end of one the next begins: the next
    epoch with `Loader(per_epoch=True)`, else position 0.
    """

    def __init__(self, loader: Loader) -> None:
        """Wraps a loader.

        Raises:
            InvalidArgumentError: no loader, or one of NumPy arrays.
        """
        super().__init__()
        self.loader = checked("torchdata.Node", loader)
        self._begin = self.loader.position  # of the pass
        self._is_over = True
        self._is_fresh = False
        self._in_next = threading.Lock()
        _nodes.add(self)

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        """Goes on at a state, or begins a pass.

        Raises:
            StateMismatchError: a state of another job.
        """
        super().reset(initial_state)
        if initial_state is not None:
            self.loader.load_state_dict(initial_state)
        elif not self._is_over:
            # Nodes behind this one may have fetched ahead: nothing that they threw away is left out.
            self.loader.seek(self._begin)
        self._is_fresh = initial_state is None and self._is_over
        self._is_over = False
        self._begin = self.loader.position
        self.loader._native.begin()  # not iter(), which warns where a pass would be empty: the next one begins again

    def next(self) -> Any:
        """The next batch.

        Raises:
            StopIteration: the pass is over.
        """
        with self._in_next:
            try:
                return given(self._next(), self.loader._arguments.uneven)
            except StopIteration:
                self._is_over = True
                raise

    def get_state(self) -> dict[str, Any]:
        """The loader's state: what was taken from this node."""
        return self.loader.state_dict()

    def _next(self) -> Any:
        is_fresh, self._is_fresh = self._is_fresh, False
        try:
            return next(self.loader)
        except StopIteration:
            # A pass that would be empty: the run was over before it began.
            if not is_fresh or self.loader.position == 0:
                raise
        self.loader.rewind()
        self._begin = 0
        return next(iter(self.loader))


@atexit.register
def _hold_threads() -> None:
    """Lets each call of `next` end, and none begin: torchdata's Prefetcher makes them on a daemon thread.

    When Python ends it unwinds such a thread where it asks for the GIL, and torch's functions, which make the batch's
    tensors, abort the process then.
    """
    end = time.monotonic() + _PATIENCE
    for node in list(_nodes):
        node._in_next.acquire(timeout=max(0.0, end - time.monotonic()))


def _forget_threads() -> None:
    """In a child after a fork, where the threads that were in `next` are not."""
    for node in list(_nodes):
        node._in_next = threading.Lock()
    _nodes.clear()


os.register_at_fork(after_in_child=_forget_threads)
