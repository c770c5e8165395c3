"""One trial: a verb whose k-th call fails, and all that must hold then. Runs in a process of its own."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import penstock
from injector import ALL, COUNT, TURN, Injector
from reading import READING
from states import differing, state_of
from verbs import MAKING, ToldError, Verb, told

VERBS: dict[str, Verb] = {**MAKING, **READING}


@dataclass
class Answer:
    """What a trial found.

    Attributes:
        outcome: error: said, and right; harmless: done all the same; not reached: the run had fewer calls; bad.
        call: that failed first, its error (-1: it was short) and its path in the folder.
        said: by the run that failed.
        problems: none, if all is as it must be.
        left: by the run that failed, until the next one.
    """

    outcome: str = ""
    call: str = ""
    error: int = 0
    path: str = ""
    said: str = ""
    problems: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


@dataclass
class Whole:
    """An undisturbed run: how many calls it made, and what it leaves and gives."""

    calls: int
    log: list[str]
    before: dict[str, bytes]
    after: dict[str, bytes]
    value: Any
    kept_open: int  # files, by the process's cache of descriptors


def seen(folder: Path, verb: Verb) -> dict[str, bytes]:
    kept = f"{verb.kept}/"
    return {name: data for name, data in state_of(folder).items() if not verb.kept or not name.startswith(kept)}


def prepare(name: str, folder: Path) -> Whole:
    """Puts what the verb begins with beside `folder`, for copies, and runs it once undisturbed."""
    verb, injector = VERBS[name], Injector()
    fresh(folder)
    verb.put(folder)
    shutil.rmtree(template(folder, name), ignore_errors=True)
    folder.rename(template(folder, name))
    lay(name, folder)
    before, open_before = seen(folder, verb), len(descriptors())
    with injector.armed(COUNT, root=folder):
        value = verb.run(folder)
    assert not is_error(value), value
    log, kept_open = injector.log, len(descriptors()) - open_before
    return Whole(injector.count, log, before, seen(folder, verb), value, kept_open)


def template(folder: Path, name: str) -> Path:
    return folder.with_name("before " + re.sub(r"\W+", "-", name))


def fresh(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def lay(name: str, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template(folder, name), folder, symlinks=True)


def is_error(value: Any) -> bool:
    return isinstance(value, tuple) and isinstance(value[1], BaseException)


def descriptors() -> list[str]:
    names = []
    for each in list(Path("/proc/self/fd").iterdir()):
        with contextlib.suppress(OSError):
            names.append(str(each.readlink()))
    return sorted(name for name in names if name.startswith("/") and "/proc/" not in name)


def run(name: str, folder: Path, whole: Whole, k: int, turn: int) -> Answer:
    verb, injector, answer = VERBS[name], Injector(), Answer()
    lay(name, folder)
    open_before = descriptors()
    error: BaseException | None = None
    value: Any = None
    with injector.armed(TURN, k, turn, ALL, folder):
        try:
            value = verb.run(folder)
        except BaseException as raised:
            error = raised
    if injector.what is None:
        answer.outcome = "not reached"
        return answer
    answer.call, answer.error, answer.path = injector.what
    if is_error(value):
        error = value[1]
    checks = Checks(verb, folder, whole, answer)
    if error is not None:
        answer.said = f"{type(error).__name__}: {error}"
        checks.error(error)
    checks.value(value)
    checks.disk(error is not None)
    del error, value
    gc.collect()
    still_open = descriptors()
    if verb.workers == 1 and len(still_open) > len(open_before) + whole.kept_open:
        answer.problems.append(f"descriptors stay open: {set(still_open) - set(open_before)}")
    checks.next_run()
    answer.outcome = "bad" if answer.problems else "error" if answer.said else "harmless"
    return answer


_PUBLISHED = ("the new dataset is published", " was written")


class Checks:
    """Of one run that met a fault."""

    def __init__(self, verb: Verb, folder: Path, whole: Whole, answer: Answer) -> None:
        self.verb, self.folder, self.whole, self.answer = verb, folder, whole, answer

    def bad(self, what: str) -> None:
        self.answer.problems.append(what)

    def error(self, error: BaseException) -> None:
        """It is one that is expected, and names cause and place."""
        said, answer = str(error), self.answer
        if isinstance(error, ToldError):
            if error.code != 1:
                self.bad(f"exit code {error.code}")
        elif not isinstance(error, (penstock.Error, OSError)):
            self.bad(f"an unexpected {type(error).__name__}")
        if "unexpected " in said or "Traceback" in said:
            self.bad("an error that nobody expected")
        if answer.error > 0 and os.strerror(answer.error) not in said:
            self.bad(f"the cause is not named: {os.strerror(answer.error)}")
        if answer.path != "io_uring" and str(self.folder) not in said:
            self.bad("no place is named")

    def value(self, value: Any) -> None:
        """What was read is right."""
        got, wanted = (each[0] if isinstance(each, tuple) else each for each in (value, self.whole.value))
        if not self.verb.out and got is not None and got != wanted:
            self.bad("other data were read")

    def disk(self, failed: bool) -> None:
        """There is what was there, or what was to be made; the rest is named."""
        verb, before, after = self.verb, self.whole.before, self.whole.after
        now = seen(self.folder, verb)
        if not failed and now != after:
            extra = {name for name in now if name not in after}
            if any(now.get(name) != data for name, data in after.items()):
                self.bad(f"nothing was said, and what is there differs: {differing(now, after)}")
            self._named(extra, "")
        if not failed:
            return
        if not verb.out:
            if now != before:
                self.bad(f"reading changed the disk: {differing(now, before)}")
            return
        mark = verb.mark or (verb.out if verb.out in after else f"{verb.out}/dataset.json")
        is_new = mark in now and now[mark] == after.get(mark) and before.get(mark) != after.get(mark)
        wanted = after if is_new else before
        if is_new and not any(words in self.answer.said for words in _PUBLISHED):
            self.bad("the new one is published, and the message does not say so")
        if mark in now and now[mark] not in (before.get(mark), after.get(mark)):
            self.bad("another dataset is published")
        if mark in now and mark.endswith("/dataset.json") and not penstock.verify(self.folder / verb.out).ok:
            self.bad("what is published does not verify")
        wrong = [name for name, data in wanted.items() if now.get(name) != data and (is_new or mark in now)]
        if wrong:
            self.bad(f"what is published is not whole: {wrong[:5]}")
        self._named({name for name in now if name not in wanted}, self.answer.said)

    def _named(self, extra: set[str], said: str) -> None:
        """Files that are left are named by the message; in a dataset's folder by `info` or `verify` too."""
        self.answer.left = sorted({"/".join(name.split("/")[:2]) for name in extra})
        if not extra:
            return
        for ask in ("info", "verify"):
            said += "".join(told(ask, self.folder / (self.verb.out or "in"))[1:])
        for name in self.answer.left:
            top = name.split("/")[0]
            beside = top != self.verb.out and str(self.folder / top) in self.answer.said
            if not beside and not is_named(self.verb.out, name, said):
                self.bad(f"left and not named: {name}")

    def next_run(self) -> None:
        """Without a fault gives what an undisturbed run does, and leaves nothing else."""
        verb = self.verb
        try:
            value = (verb.again or verb.run)(self.folder)
        except BaseException as error:
            self.bad(f"the next run fails: {type(error).__name__}: {error}")
            return
        if is_error(value):
            self.bad(f"the next run fails: {value[1]}")
        self.value(value)
        now = seen(self.folder, verb)
        if now != self.whole.after:
            self.bad(f"after the next run what is there differs: {differing(now, self.whole.after)}")


def is_named(out: str, left: str, said: str) -> bool:
    """True if messages name this entry of the folder `out`, or count it among finished shards or unfinished ones."""
    folder, _, name = left.rstrip("/").partition("/")
    if folder != out:
        return False
    if name in said:  # the folder itself too
        return True
    if name.startswith(".partial-"):
        return re.search(r"[1-9][\d,]* unfinished", said) is not None
    of_shards = re.fullmatch(r"\d{5}(\.\d+)?", name) is not None or name in _NOTES
    return of_shards and re.search(r"[1-9][\d,]* finished shard", said) is not None


_NOTES = (".import-inputs",)  # which a run that goes on with finished shards reads


def as_json(answer: Answer) -> str:
    return json.dumps(asdict(answer))
