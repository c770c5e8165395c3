"""Trials of lies: each is a lie, an operation and whether it passes, and runs alone at a server of its own."""

from __future__ import annotations

import functools
import gc
import os
import re
import tempfile
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import penstock
from servers import operations
from servers.lies import LIES, Lie
from servers.objects import Objects, Request
from servers.operations import OPERATIONS, At, Operation
from servers.server import LyingServer, Tell

SLACK = 5.0  # seconds beyond the deadline: of a look each second, and of a machine that is busy
REQUEST = 6.0  # … and that a request of obstore under way may take
HIDDEN = (operations.SECRET, operations.TOKEN, operations.ACCESS, operations.PASSWORD, "AWS4-HMAC")
OUTCOMES = ("exact", "error", "not told", "wrong")


@dataclass(frozen=True)
class Trial:
    """One of them.

    Attributes:
        passes: the lie is told to two requests and then no more; False: always.
        skip: requests that are answered honestly before the first lie.
        patience: seconds of the deadline where the lie is always told.
    """

    lie: str
    operation: str
    passes: bool
    skip: int = 0
    patience: float = 1.0

    @property
    def deadline(self) -> float:
        """Seconds; what passes has enough of them, on a busy machine too."""
        if self.passes and LIES[self.lie].is_slow:  # obstore leaves a silent one after 60 s, or 30
            return 200.0 if self.operation == "writing in parts" else 100.0
        if self.passes:
            return 30.0
        return self.patience

    def __str__(self) -> str:
        return f"{self.lie} / {self.operation} / {'twice' if self.passes else 'always'} / {self.skip}"


@dataclass
class Result:
    trial: Trial
    outcome: str
    what: str
    seconds: float


@functools.cache
def files() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        return operations.make_files(Path(folder))


def plan(lies: dict[str, Lie] = LIES, names: dict[str, Operation] = OPERATIONS) -> list[Trial]:
    """All that can meet."""
    found = []
    for operation, each in names.items():
        for name, lie in lies.items():
            if not lie.of & each.kinds or (not lie.is_seen and not each.has_checks):
                continue
            if lie.says_size and not each.knows_sizes:
                continue
            found += [Trial(name, operation, True), Trial(name, operation, False)]
    return found


def run(trial: Trial, root: Path) -> Result:
    """Does it, and looks at all that must be so."""
    folder = Path(tempfile.mkdtemp(dir=root))
    lie, operation = LIES[trial.lie], OPERATIONS[trial.operation]
    expected = honest(trial.operation)
    objects = Objects(files())
    begin = time.monotonic()
    with LyingServer(objects).running() as server:
        at = At(server.address, trial.deadline, folder, objects)
        try:
            ask = operation.prepare(at)
            server.lie = _plan_of(trial, lie)
            asked = time.monotonic()
            try:
                found, error = ask(), None
            except penstock.Error as raised:
                found, error = "", raised
            seconds = time.monotonic() - asked
            told = server.told
            server.lie = lambda request: None
            problem = _look(trial, lie, found, expected, error, seconds, told)
            problem = problem or _look_after(trial, at, ask, expected, error)
            what = str(error)
            error = None
            del ask
            problem = problem or _look_at_connections(server, operation)
        except BaseException:
            problem, what, told, found = f"stray: {traceback.format_exc()[-1500:]}", "", 1, ""
            seconds = time.monotonic() - begin
    outcome = "wrong" if problem else "not told" if not told else "exact" if found else "error"
    return Result(trial, outcome, problem or what, seconds)


def _plan_of(trial: Trial, lie: Lie) -> object:
    left = [2 if trial.passes else 1 << 30]
    honest = [trial.skip]
    lock = threading.Lock()

    def choose(request: Request) -> Tell | None:
        with lock:
            if request.kind not in lie.of or not left[0]:
                return None
            if honest[0]:
                honest[0] -= 1
                return None
            left[0] -= 1
            return lie.tell

    return choose


@functools.cache
def honest(name: str) -> str:
    """The result of an operation at an honest server."""
    objects = Objects(files())
    with tempfile.TemporaryDirectory() as folder, LyingServer(objects).running() as server:
        (at_folder := Path(folder) / "honest").mkdir()
        return OPERATIONS[name].prepare(At(server.address, 30.0, at_folder, objects))()


def _look(trial: Trial, lie: Lie, found: str, expected: str, error: Exception | None, seconds: float, told: int) -> str:
    """The fault that was found; empty: none."""
    operation = OPERATIONS[trial.operation]
    most = trial.deadline + SLACK + (0 if operation.is_native else REQUEST)
    if trial.operation == "writing in parts":  # a part under way may take the whole deadline, and so on docs/remote.md
        most += trial.deadline
    if error is None and found != expected:
        return f"other data, and no error: {found[:8]} and not {expected[:8]}"
    # No lie that is always told and harmless takes long: a request at a time fails at most, and the next one is good.
    if seconds > most and (error is not None or not trial.passes):
        return f"{seconds:.1f} s, and at most {most:.1f} are right: {error or 'the data are right'}"
    if error is None:
        return ""
    if not told:
        return f"an error, and no lie was told: {error}"
    if trial.passes and lie.passes and not (lie.is_another_file and re.search(r"(dataset|shard)\.json", str(error))):
        return f"an error of a fault that passes: {error}"
    if lie.is_harmless and operation.is_native:
        return f"an error of what is right: {error}"
    return _look_at_words(trial, lie, error)


def _look_at_words(trial: Trial, lie: Lie, error: Exception) -> str:
    words, operation = str(error), OPERATIONS[trial.operation]
    if not re.search(r"127\.0\.0\.1:\d+/data|s3://data", words):
        return f"no address in it: {words}"
    if len(words) > 1000:
        return f"too many words: {words[:300]}"
    if lie.words and operation.is_native and not trial.passes and not re.search(lie.words, words):
        return f"not {lie.words!r}: {words}"
    shown = "".join(traceback.format_exception(error)) + repr(error) + repr(error.args)
    for secret in HIDDEN:
        if secret in shown:
            return f"{secret[:6]}… is shown: {words}"
    signature = re.search(r"[0-9a-f]{64}", words)
    return f"a signature is shown: {words}" if signature else ""


def _look_after(trial: Trial, at: At, ask: operations.Ask, expected: str, error: Exception | None) -> str:
    """The server is honest again: what was asked for is there, and nothing that was kept is wrong."""
    if OPERATIONS[trial.operation].writes:
        before = operations.published(at)
        if before not in ("", expected):
            return "what is published is neither nothing nor the whole"
        if before and error is not None and "is published" not in str(error):
            return f"published, and the error does not say so: {error}"
        again = operations.REWRITES[trial.operation](at)
        return "" if again() == expected else "another writer's dataset is another one"
    if error is None and trial.operation != "cache":
        return ""
    at.deadline = 30.0
    fresh = OPERATIONS[trial.operation].prepare(at)
    return "" if fresh() == expected else "what is read afterwards is other data"


def _look_at_connections(server: LyingServer, operation: Operation) -> str:
    """Native reads leave no connection behind."""
    if not operation.is_native:
        return ""
    end = time.monotonic() + 5
    while server.connections and time.monotonic() < end:
        gc.collect()
        time.sleep(0.05)
    return f"{server.connections} connections are left" if server.connections else ""


def environment(folder: Path) -> None:
    """Nobody's credentials."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            del os.environ[name]
    os.environ.update(AWS_CONFIG_FILE=str(folder / "config"), AWS_SHARED_CREDENTIALS_FILE=str(folder / "credentials"))
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
