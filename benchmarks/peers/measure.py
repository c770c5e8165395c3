"""What is measured of the peers, each repeat beside penstock's: steady, cold, resume."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import job
import numpy as np
from coldness import memory_bound
from fleet import MAPPED, PENSTOCK, PREPARE_SECONDS, Failed, Member
from footprint import MIB
from results import warm

DTYPES = ("int64", "int32", "uint32")
SLACK_MIB = 128  # for what a process needs beside its anonymous memory: code, shared memory, page tables


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    tokens: int
    window: int
    small_window: int  # of the corpora of the runs on several ranks
    observations: tuple[int, ...]  # in each of them
    repeats: int
    warm_up: float  # seconds
    seconds: float
    choose_seconds: float  # of the one run by which the better of a peer's settings is chosen
    resumes: int


FULL = Size(1 << 28, 4096, 64, (10_007, 10_000), 5, 0.5, 2.0, 1.0, 3)
QUICK = Size(1 << 20, 512, 8, (1_007, 1_000), 1, 0.1, 0.2, 0.1, 1)


@dataclass(frozen=True)
class Variant:
    """A peer, what it gives, and where it loads."""

    member: Member
    dtype: str
    setting: job.Setting

    def setup(self, base: job.Setup) -> job.Setup:
        return replace(base, dtype=self.dtype, setting=self.setting)


@dataclass
class Block:
    """Variants that are compared with each other: of one dtype, in one place; each round begins with penstock."""

    dtype: str
    background: bool | None  # None: wherever a peer is fastest
    penstock: Variant
    others: list[Variant] = field(default_factory=list)
    one_core: bool = False  # all threads and processes of a variant share one
    runs: dict[Variant, list[dict[str, Any]]] = field(default_factory=dict)

    def order(self, number: int) -> list[Variant]:
        """Penstock, then the others, each round beginning with another one."""
        turn = number % max(1, len(self.others))
        return [self.penstock, *self.others[turn:], *self.others[:turn]]

    @property
    def mapped(self) -> Variant | None:
        """Penstock with mapped files, where that runs."""
        return next((variant for variant in self.others if variant.member.key == MAPPED), None)

    def whole(self, variant: Variant, repeats: int) -> bool:
        return len(self.runs.get(variant, ())) == repeats


class Fleet:
    """The members, their corpora, and what went wrong."""

    def __init__(self, members: list[Member], corpora: Path, size: Size, settings: Sequence[str] = ()) -> None:
        self.settings = settings  # names of those that are measured; all where there are none
        self.members = {member.key: member for member in members}
        self.corpora = corpora
        self.size = size
        self.failures: list[str] = []
        self.bounded = False  # whether the page cache could be, in the cold runs
        self._bounds: dict[Variant, float] = {}

    # ---- corpora ----

    def prepare(self, large: bool, small: bool) -> None:
        """Writes the corpora that are asked for, and each peer's own files, where they are not there yet."""
        window = self.size.small_window
        shapes = [(count * window, window) for count in self.size.observations] if small else []
        shapes += [(self.size.tokens, self.size.window)] if large else []
        for tokens, _ in shapes:
            self._count(tokens)
        for member in list(self.members.values()):
            for tokens, window in shapes:
                if tokens == self.size.tokens and not member.speed:
                    continue
                setup = member.setup(self.corpora, tokens, window)
                stamp = setup.folder.with_name(setup.folder.name + ".prepared")
                if stamp.exists():
                    continue
                say(f"preparing: {member.name}, {tokens:,} tokens")
                if (
                    self.tried(f"{member.name}, prepare", member, "prepare", timeout=PREPARE_SECONDS, setup=setup)
                    is None
                ):
                    del self.members[member.key]
                    break
                stamp.touch()

    def _count(self, tokens: int) -> None:
        """A file of u32 tokens 0, 1, 2, …: each window tells which it is."""
        path = self.corpora / f"counting-{tokens}.bin"
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        with partial.open("wb") as file:
            for begin in range(0, tokens, 1 << 22):
                file.write(np.arange(begin, min(tokens, begin + (1 << 22)), dtype="<u4").tobytes())
        partial.rename(path)

    def base(self, member: Member) -> job.Setup:
        return member.setup(self.corpora, self.size.tokens, self.size.window)

    def small(self, member: Member, observations: int) -> job.Setup:
        return member.setup(self.corpora, observations * self.size.small_window, self.size.small_window)

    def tried(self, what: str, member: Member, task: str, **request: Any) -> dict[str, Any] | None:
        """A task's answer, or None where it failed, which is recorded."""
        try:
            return member.ask(task, **request)
        except Failed as error:
            self.failures.append(f"{what}: {error}")
            say(f"failed: {self.failures[-1]}")
            return None

    # ---- speed ----

    def steady(self) -> list[Block]:
        """Throughput from the page cache, start-up and memory."""
        blocks = []
        for background in (False, True):
            for dtype in DTYPES:
                block = Block(dtype, background, self._penstock(dtype))
                for choices in self.choices(dtype, background):
                    block.others += self._best(choices, self._steady_once) if len(choices) > 1 else choices
                if block.others:
                    blocks.append(block)
        self._rounds("steady", blocks, self._steady)
        return blocks

    def one_core(self) -> list[Block]:
        """The same where a peer loads in the training thread, with all of its threads, and penstock's, on one core."""
        blocks = []
        for dtype in DTYPES:
            others = [choices[0] for choices in self.choices(dtype, background=False) if choices]
            if others:
                blocks.append(Block(dtype, False, self._penstock(dtype), others, one_core=True))
        self._rounds("one core", blocks, self._steady_on_one_core)
        return blocks

    def choices(self, dtype: str, background: bool) -> list[list[Variant]]:
        """The settings of each peer in one place."""
        found = []
        for member in self._peers(dtype):
            # Penstock's own work is done by its threads in any case.
            settings = member.settings if member.key == MAPPED else member.settings_in(background)
            if self.settings and member.key != MAPPED:
                settings = [setting for setting in settings if setting.name in self.settings]
            found.append([Variant(member, dtype, setting) for setting in settings])
        return found

    def cold(self) -> list[Block]:
        """Throughput from files that the page cache does not hold, under a bound where one can be set."""
        blocks = {dtype: Block(dtype, None, self._penstock(dtype)) for dtype in DTYPES}
        for block in blocks.values():
            self._cold_once(block.penstock)
        for member in self.members.values():
            if member.key != PENSTOCK and member.speed:
                dtype = member.dtypes[0]
                choices = [Variant(member, dtype, setting) for setting in member.settings]
                blocks[dtype].others += self._best(choices, self._cold_once)
        found = [block for block in blocks.values() if block.others]
        self._rounds("cold", found, self._cold)
        return found

    def _penstock(self, dtype: str) -> Variant:
        member = self.members[PENSTOCK]
        return Variant(member, dtype, member.settings[0])

    def _peers(self, dtype: str) -> list[Member]:
        others = (member for member in self.members.values() if member.key != PENSTOCK and member.speed)
        return [member for member in others if dtype in member.dtypes]

    def _best(self, choices: list[Variant], once: Callable[[Variant], dict[str, Any] | None]) -> list[Variant]:
        """The fastest by one run each, or none where none runs."""
        found = [(run["batches_per_s"], variant) for variant in choices if (run := once(variant)) is not None]
        return [max(found, key=lambda one: one[0])[1]] if found else []

    def _rounds(self, what: str, blocks: list[Block], run: Callable[[Variant], dict[str, Any] | None]) -> None:
        for number in range(self.size.repeats):
            say(f"{what}: round {number + 1} of {self.size.repeats}")
            for block in blocks:
                for variant in block.order(number):
                    if (found := run(variant)) is not None:
                        block.runs.setdefault(variant, []).append(found)

    def _ask(self, what: str, variant: Variant, **request: Any) -> dict[str, Any] | None:
        where = f"{variant.member.name}, {what}, {variant.dtype}, {variant.setting.name}"
        setup = variant.setup(self.base(variant.member))
        return self.tried(where, variant.member, what, setup=setup, **request)

    def _steady(self, variant: Variant, seconds: float | None = None, **start: Any) -> dict[str, Any] | None:
        # Each time: all peers' files together may be more than the page cache holds.
        warm(job.corpus_files(self.base(variant.member)))
        seconds = self.size.seconds if seconds is None else seconds
        return self._ask("steady", variant, warm_up=self.size.warm_up, seconds=seconds, **start)

    def _steady_once(self, variant: Variant) -> dict[str, Any] | None:
        return self._steady(variant, self.size.choose_seconds)

    def _steady_on_one_core(self, variant: Variant) -> dict[str, Any] | None:
        return self._steady(variant, before=stay_on_one_core)

    def _cold_once(self, variant: Variant) -> dict[str, Any] | None:
        """Unbounded: by it the setting is chosen, and what the process itself takes is seen."""
        found = self._ask("cold", variant, seconds=self.size.choose_seconds)
        if found is not None:
            self._bounds[variant] = found["anonymous_mib"] + SLACK_MIB + self.cache_mib
        return found

    @property
    def cache_mib(self) -> float:
        """What a bounded process may keep in the page cache: a quarter of the corpus."""
        return self.size.tokens * 4 / 4 / MIB

    def _cold(self, variant: Variant) -> dict[str, Any] | None:
        if variant not in self._bounds:
            return None
        with memory_bound(int(self._bounds[variant] * MIB)) as (members, words):
            self.bounded = members is not None
            if members is None:
                say(words)
                return self._ask("cold", variant, seconds=self.size.seconds)
            found = self._ask("cold", variant, seconds=self.size.seconds, before=lambda: enter(members))
            emptied(members)
        return found

    # ---- correctness ----

    def resume(self, member: Member, folder: Path) -> dict[str, Any]:
        """At half an epoch: the size of the state, how long a fresh process needs to go on, whether it does right."""
        saved = folder / f"{member.key}.half"
        setup = self.base(member)
        found = self.tried(f"{member.name}, half", member, "half", setup=setup, saved=saved)
        if found is None or found["state"] != "saved":
            return found or {"state": "failed"}
        ask = {"setup": setup, "saved": saved}
        runs = [self.tried(f"{member.name}, resume", member, "resume", **ask) for _ in range(self.size.resumes)]
        done = [run for run in runs if run is not None]
        found["resume_ms"] = [run["resume_ms"] for run in done]
        found["equal_batches"] = min((run["equal_batches"] for run in done), default=0)
        return found


def stay_on_one_core() -> None:
    """Binds the calling process, and whatever it starts, to one of its cores: between fork and exec."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def enter(members: Path) -> None:
    """Bounds the calling process: between fork and exec."""
    members.write_text(str(os.getpid()))


def emptied(members: Path) -> None:
    """Waits until the last worker that was ended has left the group, which could not be removed before."""
    while members.read_text():
        time.sleep(0.01)


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
