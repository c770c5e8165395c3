"""Documents that are left out: what is said of each, how many there may be."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock._make.errors import UsageError

if TYPE_CHECKING:
    from penstock._from.text.inputs import Input
    from penstock._from.text.raw import RawDocument
    from penstock._from.text.tasks import Task

_SHARE = re.compile(r"[\d.]{1,40}")  # no exponent, which may stand for a number that takes all memory
_REASON = 400  # characters kept of one
_SHOWN = 3  # entries in a message …
_SHOWN_REASON = 120  # … and characters of their reasons


class Limit(NamedTuple):
    """How many documents may be left out: a number, or a share of all documents that are read.

    Attributes:
        text: As typed.
    """

    text: str
    documents: int | None
    percent: Fraction | None

    def most(self, total: int) -> int:
        """Of so many documents."""
        if self.percent is not None:
            return int(self.percent * total / 100)
        assert self.documents is not None
        return self.documents


def parse_limit(text: str) -> Limit:
    """`100`, `0.5%`.

    Raises:
        UsageError: It is neither a number of documents nor a share.
    """
    given = text.strip().replace(",", "").replace("_", "")
    try:
        if not given.endswith("%"):
            documents = int(given)
            if documents >= 0:
                return Limit(text, documents, None)
        elif _SHARE.fullmatch(given[:-1]):
            percent = Fraction(given[:-1])
            if 0 <= percent <= 100:
                return Limit(text, None, percent)
    except (ValueError, ZeroDivisionError):
        pass
    raise UsageError(f"{text!r}: give a number of documents, as 100, or a share of all of them, as 0.5%")


def names_of(inputs: Iterable[Input]) -> dict[str, str]:
    """What inputs are called in published files, by their names."""
    return {each.name: each.published_name for each in inputs}


class SkippedOfTask:
    """The entries of one task, in the order of its documents.

    Attributes:
        lines: One JSON object each, ended by a newline.
    """

    def __init__(self, number: int, names: Mapping[str, str]) -> None:
        """None yet, of task `number`; `names` as of names_of."""
        self._number = number
        self._names = names
        self.lines: list[bytes] = []

    def add(self, documents: Sequence[RawDocument], skipped: Sequence[tuple[int, str]]) -> int:
        """Those of a batch of documents; how many."""
        for index, reason in skipped:
            document = documents[index]
            entry: dict[str, Any] = {
                "shard": self._number,
                "document": document.number + 1,
                "file": self._names[document.name],
                **document.at(),
                "reason": reason if len(reason) <= _REASON else f"{reason[:_REASON]}…",
            }
            # A half of a surrogate pair becomes the escape that JSON has for it.
            line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "backslashreplace")
            self.lines.append(line + b"\n")
        return len(skipped)

    def said(self, task: Task) -> dict[str, Any] | None:
        """What the description of the finished task says of them; None where there are none."""
        if not self.lines:
            return None
        return {"documents": len(self.lines), "sha256": digest_of(self.data()), "places": task.places}

    def data(self) -> bytes:
        """The lines."""
        return b"".join(self.lines)


def described(task: Task, options: dict[str, Any], said: dict[str, Any] | None) -> dict[str, Any]:
    """The description of a task, with what was left out of it."""
    description = task.description(options)
    return description if said is None else {**description, "skipped": said}


def digest_of(data: bytes) -> str:
    """Of a task's lines."""
    return hashlib.sha256(data).hexdigest()


def is_larger(line: bytes) -> bool:
    """True for an entry that stands for more than one document."""
    entry = json.loads(line)
    return bool(entry.get("rest")) or entry.get("rows", 1) > 1 or not ("line" in entry or "row" in entry)


def first_reasons(lines: Sequence[bytes]) -> str:
    """`a.jsonl line 3: not JSON; b.parquet row 7: …; …`."""
    shown = []
    for line in lines[:_SHOWN]:
        entry = json.loads(line)
        place = next((f" {unit} {entry[unit]:,}" for unit in ("line", "row") if unit in entry), "")
        reason = entry["reason"]
        reason = reason if len(reason) <= _SHOWN_REASON else f"{reason[:_SHOWN_REASON]}…"
        on = " on" if place and is_larger(line) else ""
        shown.append(f"{entry['file']}{place and (' from' if on else '')}{place}{on}: {reason}")
    return "; ".join(shown + (["…"] if len(lines) > _SHOWN else []))
