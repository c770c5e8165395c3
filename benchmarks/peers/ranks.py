"""An epoch on 4 ranks, a stop near its half, and the rest of it on 4 ranks or others: what never came, what came twice.

All peers have the same global batch, which every number of ranks here divides: the batch of a rank changes with them.
"""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from fleet import Failed, Member
from job import Setup
from measure import Fleet, say

RANKS = 4
AFTER = (4, 2, 3, 5)
TIMEOUT = 900  # seconds
EXACT = "exact"
WORDS = ("refused", "error")  # of a run that did not go on
Steps = list[np.ndarray]  # the observations of each step, of all ranks, sorted


def measured(fleet: Fleet, member: Member, folder: Path) -> dict[str, Any]:
    """What the peer does with each number of observations."""
    found: dict[str, Any] = {"tail": member.tail, "global_batch": member.global_batch}
    for observations in fleet.size.observations:
        say(f"several ranks: {member.name}, {observations:,} observations")
        setup = fleet.small(member, observations)
        try:
            found[str(observations)] = Stopped.of(member, setup, folder).described()
        except Failed as error:
            fleet.failures.append(f"{member.name}, {observations:,} observations on {RANKS} ranks: {error}")
            say(f"failed: {fleet.failures[-1]}")
            found[str(observations)] = {"error": str(error)}
    return found


@dataclass
class Stopped:
    """A run on 4 ranks that saved its states after some steps, and went on to the epoch's end."""

    member: Member
    setup: Setup
    folder: Path
    steps: Steps
    stop: int  # steps before the states
    saved: list[Path]
    state: str  # "saved", or why not

    @classmethod
    def of(cls, member: Member, setup: Setup, folder: Path) -> Stopped:
        saved = [folder / f"{member.key}.share{rank}" for rank in range(RANKS)]
        stop = setup.windows // member.global_batch // 2
        setup = on(member, setup, RANKS)
        asked = [{"setup": setup, "saved": path, "stop": stop} for path in saved]
        said = member.ask_ranks("share", TIMEOUT, asked)
        return cls(member, setup, folder, steps_of(saved), stop, saved, said[0]["state"])

    def described(self) -> dict[str, Any]:
        found: dict[str, Any] = {**self._counted(self.steps), "state": self.state, "stop": self.stop}
        if self.state == "saved":
            found["on"] = {str(ranks): self.resumed(ranks) for ranks in AFTER}
        return found

    def resumed(self, ranks: int) -> dict[str, Any]:
        """The epoch as it came before the stop and, on so many ranks, after it; or why it did not."""
        rest = [self.folder / f"{self.member.key}.rest{rank}" for rank in range(ranks)]
        setup = on(self.member, self.setup, ranks)
        say(f"  on {ranks} ranks")
        try:
            said = self.member.ask_ranks(
                "rest", TIMEOUT, [{"setup": setup, "saved": path, "states": self.saved} for path in rest]
            )
        except Failed as error:
            return {"error": str(error)}
        refused = [one["refused"] for one in said if "refused" in one]
        if refused:
            return {"refused": refused[0], "ranks_that_refused": len(refused)}
        before, wanted, after = self.steps[: self.stop], self.steps[self.stop :], steps_of(rest)
        twice = np.intersect1d(np.concatenate(before), np.concatenate([*after, np.empty(0, np.int64)]))
        # A tail may be another one; the global batches before it may not.
        whole = [step for step in wanted if len(step) == self.member.global_batch]
        same = sum(np.array_equal(one, other) for one, other in zip(whole, after, strict=False))
        return {
            **self._counted([*before, *after]),
            "twice": len(twice),
            "same_steps": same,
            "steps": len(whole),
            "same_to_the_end": len(after) == len(wanted) and all(map(np.array_equal, after, wanted)),
        }

    def _counted(self, steps: Steps) -> dict[str, int]:
        """How many observations of the epoch never came, and how many deliveries there were beyond one of each."""
        given = np.concatenate([*steps, np.empty(0, np.int64)])
        different = len(np.unique(given))
        return {"missed": self.setup.windows - different, "extra": len(given) - different}


def on(member: Member, setup: Setup, ranks: int) -> Setup:
    """The job on so many ranks; where they do not divide the global batch the peer itself has to share it out."""
    return replace(setup, world=ranks, batch=-(-member.global_batch // ranks))


def steps_of(saved: list[Path]) -> Steps:
    """What the ranks delivered in each step; a rank may be at its end before others."""
    ranks = [pickle.loads(path.read_bytes())["batches"] for path in saved]
    nothing = np.empty(0, np.int64)
    return [np.sort(np.concatenate(step)) for step in zip_longest(*ranks, fillvalue=nothing)]


# ---- the table ------------------------------------------------------------------------------------------------------


def rows(members: dict[str, Member], facts: dict[str, dict[str, Any]], sizes: tuple[int, ...]) -> list[list[str]]:
    """A row for each peer, the head first."""
    counts = [f"{size:,} on {RANKS} ranks: missed / extra" for size in sizes]
    table = [["loader", "tail, by design", *counts, *(f"{RANKS} → {ranks}" for ranks in AFTER)]]
    for key, fact in facts.items():
        each = [fact[str(size)] for size in sizes]
        cells = [members[key].name, fact["tail"], *(pair(one) for one in each)]
        for ranks in map(str, AFTER):
            said = [outcome(one, ranks) for one in each]
            first = Counter(said).most_common(1)[0][0]
            others = (f"; {size:,}: {cell}" for size, cell in zip(sizes, said, strict=True) if cell != first)
            cells.append(first + "".join(others))
        table.append(cells)
    return table


def pair(found: dict[str, Any]) -> str:
    return f"{found['missed']:,} / {found['extra']:,}" if "missed" in found else "error"


def outcome(whole: dict[str, Any], ranks: str) -> str:
    """What came of a resume, in a cell."""
    if "on" not in whole:
        return str(whole.get("state", "error"))
    found = whole["on"][ranks]
    for word in WORDS:
        if word in found:
            return word
    if found["same_to_the_end"]:
        return EXACT
    counts = f"{found['missed']:,} / {found['extra']:,} / {found['twice']:,}"
    return f"{EXACT} but for the tail: {counts}" if found["same_steps"] == found["steps"] else counts


def refusals(members: dict[str, Member], facts: dict[str, dict[str, Any]], sizes: tuple[int, ...]) -> list[str]:
    """What was said where a peer did not go on."""
    said: dict[str, dict[str, list[str]]] = {}
    for key, fact in facts.items():
        for whole in (fact[str(size)] for size in sizes):
            for ranks, found in whole.get("on", {}).items():
                for word in WORDS:
                    if word in found:
                        text = f"{word}: {str(found[word]).strip().splitlines()[0][:200]}"
                        numbers = said.setdefault(members[key].name, {}).setdefault(text, [])
                        numbers += [ranks] if ranks not in numbers else []
    return [
        f"{name}, {RANKS} → {', '.join(numbers)}, {text}"
        for name, texts in said.items()
        for text, numbers in texts.items()
    ]
