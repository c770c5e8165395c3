"""What a loader takes, as dimensions of a few values each, and which values the documentation refuses together.

A case is one value of each. A refusal counts as a case of its own: it must really happen, with a `penstock.Error`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

Case = Mapping[str, str]

DIMENSIONS: dict[str, tuple[str, ...]] = {
    # Rows: ahead and ahead3 have a lookahead, phase begins each epoch elsewhere, packed4 pads pieces to multiples of 4,
    # cut truncates long documents and packs groups of 7, limited cuts them below the row and has three sequences a row
    # and a lookahead, exact and next fill rows, from a buffer and in order, left is padded to a number on the left, by
    # -1. Of streams without documents, columns end and begin name the token that tells them. The last three are forms
    # of cells.
    "view": (
        *("window", "ahead", "ahead3", "phase", "documents", "packed", "packed4", "cut", "limited", "exact", "next"),
        *("padded", "left", "csr", "dense", "ranked"),
    ),
    "data": ("compact", "many", "long", "boundaries", "ids", "tokens", "raw", "npy", "megatron", "opaque", "cells"),
    # Mixtures: alike has two sources of one type, types u4 and u2 of which the first stage has only one,
    # stages three with zero weights and a cap, short one source whose first stage has shorter windows, cuts two,
    # ramp two with a ramp, steered three with a cap, a ramp or none, whose weights are set in each leg, here and ahead,
    # and whose later stages change as a state is loaded, guided two of the same in groups of shorter windows, or packed
    # rows of two lengths, and perhaps a last group that is short.
    "mix": ("none", "alike", "types", "stages", "short", "cuts", "ramp", "steered", "guided"),
    "opened": ("whole", "joined", "selected"),
    "place": ("local", "http", "cached", "python"),
    # Documents that a condition on their columns chooses, before the part is taken; also of a view by itself.
    "where": ("none", "dataset", "view", "twice"),
    "part": ("whole", "slice", "stride", "pick", "mask", "split", "held", "nested"),
    "columns": ("none", "sequences", "bounded", "field", "answers", "within", "quality", "several", "end", "begin"),
    # fim is told the token that ends documents; spm is not, and rearranges all pieces of a mixture's first source.
    # rows is a function of each row, spans T5's.
    "transform": ("none", "fim", "spm", "spans", "rows"),
    "values": ("none", "all"),
    "metadata": ("entries", "spans", "none"),
    "framework": ("numpy", "torch"),
    "types": ("stored", "i4", "u4", "f8"),
    "reader": ("auto", "pread", "uring", "mmap", "direct", "python"),
    "checks": ("index", "all", "none"),
    "context": ("none", "zigzag", "zigzag3", "zigzag5", "contiguous", "documents"),
    "balance": ("none", "attention", "tokens", "given", "micro"),
    "ranks": ("1", "2", "3", "5"),
    # Global batches that divide evenly, that do not, and of fewer rows than there may be ranks.
    "uneven": ("refuse", "pad", "few"),
    "order": (
        *("uniform", "sequential", "mixed", "blocks", "lanes", "bucketed", "weighted", "drawn", "balanced", "classes"),
        *("systematic", "independent", "various", "custom", "asked"),
    ),
    "length": ("one", "two", "each", "endless"),
    "tail": ("pad", "drop", "short"),
    "skip": ("none", "few", "epoch"),
    "batch": ("rank", "global", "schedule", "tokens", "set", "large"),
    "resume": ("same", "ranks", "all", "seek"),
    "travel": ("none", "pickled"),
    "growth": ("none", "once", "twice"),
    "memory": ("default", "least", "deep"),
    "hook": ("none", "transform", "raising"),
}

#: The first value of each, but where the others say something else: what a case is shrunk to.
DEFAULTS: dict[str, str] = {name: values[0] for name, values in DIMENSIONS.items()}

WINDOWS = ("window", "ahead", "ahead3", "phase")
PACKED = ("packed", "packed4", "cut", "limited", "exact", "next")
PADDED = ("padded", "left")
CELLS = ("csr", "dense", "ranked")
OF_DOCUMENTS = ("documents", *PADDED, *CELLS)
NO_SPANS = ("tokens", "raw", "npy")
NO_ENTRIES = (*NO_SPANS, "boundaries", "megatron")
WITH_VALUES = ("many", "long", "opaque", "cells")
FOREIGN = ("raw", "npy", "megatron")
SEQUENCES = ("sequences", "bounded", "several", "end", "begin")
BY_TOKEN = ("end", "begin")
OWN = ("custom", "asked")
TABLES = ("weighted", "drawn", "balanced", "classes", "systematic", "independent")
DRAWS = (*TABLES, *OWN)  # an observation may come more than once an epoch, or never
FUNCTIONS = ("answers", "quality", "several")
CUTS = ("short", "cuts", "guided")
STEERED = ("steered", "guided")


@dataclass(frozen=True)
class Refusal:
    """A rule of the documentation: values of `together` are refused when they meet, but for those of `unless`, which
    is of some of the same dimensions."""

    words: str
    together: Mapping[str, tuple[str, ...]]
    unless: Mapping[str, tuple[str, ...]]

    @cached_property
    def dimensions(self) -> tuple[str, ...]:
        return tuple(self.together)

    def when(self, *values: str) -> bool:
        """Whether it refuses these values of `dimensions`."""
        if not all(value in some for value, some in zip(values, self.together.values(), strict=True)):
            return False
        given = dict(zip(self.dimensions, values, strict=True)) if self.unless else {}
        return not given or not all(given[name] in some for name, some in self.unless.items())


def refusal(
    words: str, *, unless: Mapping[str, tuple[str, ...]] | None = None, **together: str | tuple[str, ...]
) -> Refusal:
    several = {name: (some,) if isinstance(some, str) else some for name, some in together.items()}
    return Refusal(words, several, unless or {})


def but(name: str, *values: str) -> tuple[str, ...]:
    """The other values of a dimension."""
    return tuple(each for each in DIMENSIONS[name] if each not in values)


REFUSALS: tuple[Refusal, ...] = (
    refusal("opaque documents have no records", data="opaque", view=but("view", "documents")),
    refusal("the layout ids has no documents to take", data="ids", view=but("view", *WINDOWS)),
    refusal(
        "a token stream has no documents that no token tells",
        data=NO_SPANS,
        view=but("view", *WINDOWS),
        columns=but("columns", *BY_TOKEN),
    ),
    refusal("cells are records of gene and count", data=but("data", "cells"), view=CELLS),
    refusal("the types of cells are those of their form", view=CELLS, types=but("types", "stored")),
    refusal(
        "columns of records are not of cells", view=CELLS, columns=("field", "answers", "within", "quality", "several")
    ),
    refusal("no tokens", data="cells", columns=BY_TOKEN),
    refusal("no labels", data="cells", columns="within"),
    refusal("no field token", data="cells", types="u4"),
    refusal("a padding of no field", data="cells", view="left"),
    refusal("no such column", data=but("data", *WITH_VALUES), values="all"),
    refusal(
        "no columns to choose documents by",
        data=but("data", *WITH_VALUES),
        where=but("where", "none"),
    ),
    refusal("windows of random phases lie in other documents each time", view="phase", where=but("where", "none")),
    refusal("rows are filled with documents that are chosen before", view=PACKED, where=("view", "twice")),
    refusal("opaque documents have no records for columns", data="opaque", columns=but("columns", "none")),
    refusal("no dtype of fields that are not there", data="opaque", types="u4"),
    refusal("padding -1 and a type without signs", view="left", types="u4"),
    refusal(
        "padded rows are no sequences",
        view=PADDED,
        columns=SEQUENCES,
        data=DIMENSIONS["data"],
        unless={"data": NO_SPANS, "columns": BY_TOKEN},
    ),
    refusal("packed rows know their documents", view=PACKED, columns=BY_TOKEN, data=but("data", *NO_SPANS)),
    refusal("nothing bounds the documents", data=NO_SPANS, columns=("sequences", "bounded", "within", "several")),
    refusal("there are no labels", view=("window", "documents"), columns="within"),
    refusal("no metadata for functions", data=NO_ENTRIES, columns=FUNCTIONS),
    refusal("entries are not read", metadata=but("metadata", "entries"), columns=FUNCTIONS),
    refusal(
        "spans of the layout ids do not say where their document begins", data="ids", columns=("answers", "several")
    ),
    refusal("cells and opaque documents have no tokens", data=("cells", "opaque"), transform=("fim", "spm", "spans")),
    refusal("places in documents, which move", columns=("answers", "several"), transform=("fim", "spm")),
    refusal(
        "nothing tells the documents that are rearranged",
        data=NO_SPANS,
        transform="spm",
        columns=but("columns", *BY_TOKEN),
    ),
    refusal("span corruption makes rows of its own", transform="spans", columns=but("columns", "none")),
    refusal(
        "span corruption is of windows without lookahead and of documents",
        transform="spans",
        view=but("view", "window", "documents"),
    ),
    refusal("whole rows, of which there is a part", transform=("spans", "rows"), context=but("context", "none")),
    refusal("documents have no window to share", view=OF_DOCUMENTS, context=but("context", "none")),
    refusal("zigzag within documents is of rows packed to multiples", view=but("view", "packed4"), context="documents"),
    refusal("the window is no multiple of 2n", context="zigzag5"),
    refusal(
        "a token bounds documents, which only the whole row shows",
        columns=BY_TOKEN,
        context=but("context", "none"),
        view=WINDOWS,
    ),
    refusal("the number of ranks does not divide a batch", ranks="5", uneven="refuse", batch=but("batch", "rank")),
    refusal("no index tells lengths", data=("ids", *NO_SPANS), balance=("attention", "micro"), view=WINDOWS),
    refusal("opaque documents have no lengths", data="opaque", balance=("attention", "tokens", "micro")),
    refusal(
        "a token bounds documents, so no index tells lengths",
        columns=BY_TOKEN,
        balance=("attention", "micro"),
        view=WINDOWS,
    ),
    refusal("a mixture's sources have epochs of their own", mix=but("mix", "none"), length=but("length", "endless")),
    refusal("documents are not cut into shorter windows", mix=CUTS, view=OF_DOCUMENTS),
    refusal("parts of packed rows are of one length", mix=CUTS, view=PACKED, part=but("part", "whole")),
    refusal("arrays of packed rows are of one length", mix=CUTS, view=PACKED, order=(*TABLES, "bucketed", "custom")),
    refusal("costs are of observations that shorter windows cut", mix=CUTS, balance="given"),
    refusal("windows of random phases are not split", view="phase", part=("split", "held", "nested")),
    refusal("documents have no tokens to count a batch by", view=OF_DOCUMENTS, batch="tokens"),
    refusal("mixtures do not grow", mix=but("mix", "none"), growth=but("growth", "none")),
    refusal("files of other formats do not say how they grew", data=FOREIGN, growth=but("growth", "none")),
    refusal(
        "tables of all observations, and orders of one's own, do not grow", order=DRAWS, growth=but("growth", "none")
    ),
    refusal("phases change with the length", view="phase", growth=but("growth", "none")),
    refusal("a selection does not say what it was before", part=("pick", "mask"), growth=but("growth", "none")),
    refusal(
        "ways to read local files, of files elsewhere",
        place=but("place", "local"),
        reader=("pread", "uring", "mmap", "direct"),
    ),
    refusal("files of this machine are not read through Python", place="local", reader="python"),
)


def broken(case: Case, rules: tuple[Refusal, ...] = REFUSALS) -> list[Refusal]:
    """The rules that a case, or the part of it that is there, breaks."""
    return [
        rule
        for rule in rules
        if all(name in case for name in rule.dimensions) and rule.when(*(case[name] for name in rule.dimensions))
    ]
