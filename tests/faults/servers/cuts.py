"""Connections that end at every byte of a reply: of a small file that is read, and of each request that writes."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import penstock
from servers import operations, trials
from servers.objects import Answer, Objects, Request
from servers.server import LyingServer, Tell, Wire, wire_bytes

ENDS = ("end", "reset")
DONE = ("view", "opening", "cache", "loader by Python", "writing", "writing in parts")
DEADLINE = 10.0  # nothing needs it: each passes at once


@dataclass(frozen=True)
class Cut:
    """One of them.

    Attributes:
        kind: of the request whose reply is cut, the first of its kind.
        at: byte of the reply, its header among them.
    """

    operation: str
    kind: str
    how: str
    at: int

    def __str__(self) -> str:
        return f"{self.operation} / {self.kind} / {self.how} / byte {self.at}"


def plan(step: int = 1, first: int = 0, done: Sequence[str] = DONE) -> Iterator[Cut]:
    """Each byte; with `step` one in so many."""
    for operation in done:
        for kind, length in sorted(lengths(operation).items()):
            yield from (
                Cut(operation, kind, how, at)
                for number, how in enumerate(ENDS)
                for at in range((first + number) % step, length + 1, step)
            )


def lengths(operation: str) -> dict[str, int]:
    """Bytes of the first reply to each kind of request; of a long one those of its header and a few more."""
    found: dict[str, int] = {}

    def look(wire: Wire, request: Request, answer: Answer) -> None:
        reply = wire_bytes(answer)
        found.setdefault(request.kind, min(len(reply), len(reply) - len(answer.body) + 100))
        wire.reply(answer)

    objects = Objects(trials.files())
    with tempfile.TemporaryDirectory() as folder, LyingServer(objects).running() as server:
        (mine := Path(folder) / "lengths").mkdir()
        ask = operations.OPERATIONS[operation].prepare(operations.At(server.address, 30.0, mine, objects))
        server.lie = lambda request: look
        ask()
    return {kind: length for kind, length in found.items() if kind not in ("abort", "head")}


def run(cut: Cut, root: Path) -> str:
    """The fault that was found; empty: none."""
    expected = trials.honest(cut.operation)
    folder = Path(tempfile.mkdtemp(dir=root))
    objects = Objects(trials.files())
    left, lock = [1], threading.Lock()

    def tell(wire: Wire, request: Request, answer: Answer) -> None:
        wire.write(wire_bytes(answer)[: cut.at])
        wire.reset() if cut.how == "reset" else wire.end()

    def choose(request: Request) -> Tell | None:
        with lock:
            is_mine = request.kind == cut.kind and left[0] > 0
            left[0] -= is_mine
            return tell if is_mine else None

    with LyingServer(objects).running() as server:
        ask = operations.OPERATIONS[cut.operation].prepare(operations.At(server.address, DEADLINE, folder, objects))
        server.lie = choose
        try:
            found = ask()
        except penstock.Error as error:
            return f"{cut}: {error}"
        if not server.told:
            return f"{cut}: no reply was cut"
    return "" if found == expected else f"{cut}: other data"
