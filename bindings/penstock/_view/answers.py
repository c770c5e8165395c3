"""What the server of `penstock view` answers, by the name that stands behind api/ in the address."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs

from penstock._base.errors import Error, InvalidArgumentError
from penstock._view import duplicates, matching, rows, samples, search, sees, shares, steps
from penstock._view.exhibit import Exhibit
from penstock._view.rows import Wanted

_LONGEST = 4000  # characters of an argument
_LABELS = {
    "shortest": "fewest records",
    "longest": "most records",
    "batch": "rows of all ranks",
    "rank": "only rank",
}
"""Names of fields of the page, where they are not those of the arguments."""


class Query:
    """The arguments of a request."""

    def __init__(self, text: str) -> None:
        """Of an address, what stands behind `?`."""
        self._values = parse_qs(text, keep_blank_values=True)

    def text(self, name: str, otherwise: str) -> str:
        """The argument's text."""
        found = self._values.get(name, [otherwise])[-1]
        if len(found) > _LONGEST:
            raise InvalidArgumentError(f"{name}: {len(found):,} characters, at most {_LONGEST:,} are taken")
        return found

    def number(self, name: str, otherwise: int) -> int:
        """The argument, a whole number below 2^64."""
        text = self.text(name, str(otherwise)).strip().replace(",", "")
        if not (text.isascii() and text.isdecimal()) or len(text) > 20 or int(text) >= 1 << 64:
            raise InvalidArgumentError(
                f"{_LABELS.get(name, name)} {text!r:.80}: must be a whole number from 0 to 2^64 - 1"
            )
        return int(text)

    def number_or_none(self, name: str) -> int | None:
        """The argument, or None where it is not given or empty."""
        return self.number(name, 0) if self.has(name) and self.text(name, "").strip() else None

    def has(self, name: str) -> bool:
        """Whether the argument is given."""
        return name in self._values


class Shown:
    """The datasets of the page, and the mixture whose sources they are."""

    def __init__(self, exhibits: Sequence[Exhibit], mixture: tuple[str, Any] | None = None) -> None:
        """`mixture`: name of its file, and the mixture."""
        self.exhibits = list(exhibits)
        self.mixture = mixture

    def exhibit(self, query: Query) -> Exhibit:
        """The dataset that a request is of."""
        number = query.number("dataset", 0)
        if number >= len(self.exhibits):
            raise InvalidArgumentError(f"there is no dataset {number}: there are {len(self.exhibits)}")
        return self.exhibits[number]

    def after(self, error: Exception, query: Query) -> str:
        """How to go on after an error of files that were changed since they were opened, which this opens anew.

        Returns:
            Words; empty where it is another error, or they cannot be opened.
        """
        try:
            number = query.number("dataset", 0)
            exhibit = self.exhibit(query)
        except InvalidArgumentError:
            return ""
        if not exhibit.is_stale(error):
            return ""
        if self.mixture is not None:
            return "a source was changed since it was opened: start penstock view again"
        try:
            self.exhibits[number] = exhibit.opened_anew()
        except (Error, OSError):
            return ""
        path = exhibit.facts["path"]
        return f"{path}: was changed since it was opened, and is opened anew now: reload the page"

    @cached_property
    def names(self) -> list[str]:
        """Of the datasets: of a mixture its sources', else their paths."""
        if self.mixture is None:
            return [each.facts["path"] for each in self.exhibits]
        return [
            f"{name}: {each.facts['path']}" for name, each in zip(self.mixture[1].names, self.exhibits, strict=True)
        ]


def _wanted(query: Query) -> Wanted:
    return Wanted(
        query.text("where", ""),
        query.number("shortest", 0),
        query.number_or_none("longest"),
        query.text("sort", "document"),
        query.text("descending", "") == "1",
    )


def _row(shown: Shown, query: Query) -> Any:
    place = next((each for each in ("position", "record") if query.has(each)), "index")
    return shown.exhibit(query).row(
        query.text("kind", "window"),
        query.number("window", 256),
        {place: query.number(place, 0)},
        query.number("seed", 0),
        query.number("part", 0),
        (query.number("mark", 0), query.number("mark_records", 1)) if query.has("mark") else None,
    )


def _table(shown: Shown, query: Query) -> Any:
    return rows.page(shown.exhibit(query), _wanted(query), query.number("first", 0), query.number("count", 50))


def _match(shown: Shown, query: Query) -> Any:
    other = query.number("other", 0)
    if other >= len(shown.exhibits):
        raise InvalidArgumentError(f"there is no dataset {other}: there are {len(shown.exhibits)}")
    place = query.text("column", ""), query.number("document", 0)
    return matching.match(shown.exhibit(query), shown.exhibits[other], *place)


def _sees(shown: Shown, query: Query) -> Any:
    middle = None
    if query.text("middle", "").strip():
        words = query.text("middle", "").replace(",", " ").split()
        if len(words) != 3 or not all(each.isascii() and each.isdecimal() and len(each) < 10 for each in words):
            raise InvalidArgumentError("fill-in-the-middle: three ids are wanted, of prefix, middle and suffix")
        middle = (int(words[0]), int(words[1]), int(words[2]))
    form = sees.Form(
        query.text("as", "windows"),
        query.number("window", 256),
        query.text("cross", "1") != "0",
        middle,
        min(query.number("rate", 100), 100),
        query.number("seed", 0),
    )
    document, record = query.number_or_none("document"), query.number("record", 0)
    return sees.sees(shown.exhibit(query), form, query.number("index", 0), document, record)


def _step(shown: Shown, query: Query) -> Any:
    run = steps.Run(
        query.text("as", "windows"),
        query.number("window", 256),
        query.number("batch", 8),
        query.number("ranks", 1),
        query.number("seed", 0),
        query.text("order", "uniform"),
    )
    place = query.number("step", 0), query.number_or_none("rank"), query.number("first", 0)
    if shown.mixture is not None:
        _, mixture = shown.mixture
        sources: dict[str | None, Exhibit] = dict(zip(mixture.names, shown.exhibits, strict=True))
        return steps.step(sources, mixture, run, *place)
    exhibit = shown.exhibit(query)
    return steps.step({None: exhibit}, steps.view_of(exhibit, run), run, *place)


def _shares(shown: Shown, query: Query) -> Any:
    if query.text("by", ""):
        return shares.by_column(shown.exhibit(query), query.text("by", ""), _wanted(query))
    return shares.by_dataset(dict(zip(shown.names, shown.exhibits, strict=True)))


def _mixture(shown: Shown, query: Query) -> Any:
    if shown.mixture is None:
        return {"path": None}
    path, mixture = shown.mixture
    stages = [
        {"begin": str(each.begin), "weights": each.weights, "window": each.window, "implied": each.implied}
        for each in mixture.stages
    ]
    end = None if mixture.run_end is None else str(mixture.run_end)
    return {"path": path, "names": mixture.names, "stages": stages, "end": end}


def _search(shown: Shown, query: Query) -> Generator[dict[str, Any]]:
    return search.search(
        shown.exhibit(query),
        query.text("look", "text"),
        query.text("text", ""),
        any_case=query.text("case", "0") == "1",
        wanted=_wanted(query),
        start=query.number("start", 0),
    )


ANSWERS: dict[str, Callable[[Shown, Query], Any]] = {
    "datasets": lambda shown, query: shown.names,
    "facts": lambda shown, query: shown.exhibit(query).facts,
    "row": _row,
    "table": _table,
    "neighbours": lambda shown, query: rows.neighbours(
        shown.exhibit(query), _wanted(query), query.number("document", 0)
    ),
    "match": _match,
    "sees": _sees,
    "step": _step,
    "shares": _shares,
    "mixture": _mixture,
    "lengths": lambda shown, query: samples.lengths(shown.exhibit(query), _wanted(query)),
    "tokens": lambda shown, query: samples.tokens(shown.exhibit(query)),
    "token": lambda shown, query: samples.token(shown.exhibit(query), query.number("id", 0)),
}
"""Answers as one JSON value."""

STREAMS: dict[str, Callable[[Shown, Query], Generator[dict[str, Any]]]] = {
    "search": _search,
    "duplicates": lambda shown, query: duplicates.duplicates(shown.exhibit(query), _wanted(query)),
}
"""Answers as lines of JSON that come one by one."""
