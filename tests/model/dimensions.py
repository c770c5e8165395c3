"""What a loader takes, as dimensions of a few values each, and which values the documentation refuses together.

A case is one value of each. A refusal counts as a case of its own: it must really happen, with a `penstock.Error`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Case = Mapping[str, str]

DIMENSIONS: dict[str, tuple[str, ...]] = {
    # Rows: ahead and ahead3 have a lookahead, phase begins each epoch elsewhere, packed4 pads pieces to multiples of 4,
    # cut truncates long documents and packs groups of 7, left is padded to a number on the left, by -1. Of streams
    # without documents, columns end and begin name the token that tells them. The last three are forms of cells.
    "view": (
        *("window", "ahead", "ahead3", "phase", "documents", "packed", "packed4", "cut", "padded", "left"),
        *("csr", "dense", "ranked"),
    ),
    "data": ("compact", "many", "long", "boundaries", "ids", "tokens", "raw", "npy", "megatron", "opaque", "cells"),
    # Mixtures: alike has two sources of one type, types u4 and u2 of which the first stage has only one,
    # stages three with zero weights and a cap, short one source whose first stage has shorter windows, cuts two.
    "mix": ("none", "alike", "types", "stages", "short", "cuts"),
    "opened": ("whole", "joined", "selected"),
    "place": ("local", "http", "cached", "python"),
    "part": ("whole", "slice", "stride", "pick", "mask", "split", "held", "nested"),
    "columns": ("none", "sequences", "bounded", "field", "answers", "within", "quality", "several", "end", "begin"),
    "values": ("none", "all"),
    "metadata": ("entries", "spans", "none"),
    "framework": ("numpy", "torch"),
    "types": ("stored", "i4", "u4", "f8"),
    "reader": ("auto", "pread", "uring", "mmap", "direct", "python"),
    "checks": ("index", "all", "none"),
    "context": ("none", "zigzag", "zigzag3", "zigzag5", "contiguous", "documents"),
    "balance": ("none", "attention", "tokens", "given", "micro"),
    "ranks": ("1", "2", "3"),
    "order": (
        "uniform",
        "sequential",
        "mixed",
        "blocks",
        "lanes",
        "bucketed",
        "weighted",
        "drawn",
        "balanced",
        "classes",
        "systematic",
        "various",
    ),
    "length": ("one", "two", "each", "endless"),
    "tail": ("pad", "drop"),
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
PACKED = ("packed", "packed4", "cut")
PADDED = ("padded", "left")
CELLS = ("csr", "dense", "ranked")
OF_DOCUMENTS = ("documents", *PADDED, *CELLS)
NO_SPANS = ("tokens", "raw", "npy")
NO_ENTRIES = (*NO_SPANS, "boundaries", "megatron")
WITH_VALUES = ("many", "long", "opaque", "cells")
FOREIGN = ("raw", "npy", "megatron")
SEQUENCES = ("sequences", "bounded", "several", "end", "begin")
BY_TOKEN = ("end", "begin")
DRAWS = ("weighted", "drawn", "balanced", "classes", "systematic")
FUNCTIONS = ("answers", "quality", "several")
CUTS = ("short", "cuts")


@dataclass(frozen=True)
class Refusal:
    """A rule of the documentation; `when` gets the values of `dimensions`."""

    words: str
    dimensions: tuple[str, ...]
    when: Callable[..., bool]


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "opaque documents have no records",
        ("data", "view"),
        lambda data, view: data == "opaque" and view != "documents",
    ),
    Refusal(
        "the layout ids has no documents to take",
        ("data", "view"),
        lambda data, view: data == "ids" and view not in WINDOWS,
    ),
    Refusal(
        "a token stream has no documents that no token tells",
        ("data", "view", "columns"),
        lambda data, view, columns: data in NO_SPANS and view not in WINDOWS and columns not in BY_TOKEN,
    ),
    Refusal(
        "cells are records of gene and count",
        ("data", "view"),
        lambda data, view: view in CELLS and data != "cells",
    ),
    Refusal(
        "the types of cells are those of their form",
        ("view", "types"),
        lambda view, types: view in CELLS and types != "stored",
    ),
    Refusal(
        "columns of records are not of cells",
        ("view", "columns"),
        lambda view, columns: view in CELLS and columns in ("field", "answers", "within", "quality", "several"),
    ),
    Refusal("no tokens", ("data", "columns"), lambda data, columns: data == "cells" and columns in BY_TOKEN),
    Refusal("no labels", ("data", "columns"), lambda data, columns: data == "cells" and columns == "within"),
    Refusal("no field token", ("data", "types"), lambda data, types: data == "cells" and types == "u4"),
    Refusal("a padding of no field", ("data", "view"), lambda data, view: data == "cells" and view == "left"),
    Refusal("no such column", ("data", "values"), lambda data, values: values == "all" and data not in WITH_VALUES),
    Refusal(
        "opaque documents have no records for columns",
        ("data", "columns"),
        lambda data, columns: data == "opaque" and columns != "none",
    ),
    Refusal(
        "no dtype of fields that are not there",
        ("data", "types"),
        lambda data, types: data == "opaque" and types == "u4",
    ),
    Refusal(
        "padding -1 and a type without signs",
        ("view", "types"),
        lambda view, types: view == "left" and types == "u4",
    ),
    Refusal(
        "padded rows are no sequences",
        ("view", "columns", "data"),
        lambda view, columns, data: (
            view in PADDED and columns in SEQUENCES and not (data in NO_SPANS and columns in BY_TOKEN)
        ),
    ),
    Refusal(
        "packed rows know their documents",
        ("view", "columns", "data"),
        lambda view, columns, data: view in PACKED and columns in BY_TOKEN and data not in NO_SPANS,
    ),
    Refusal(
        "nothing bounds the documents",
        ("data", "columns"),
        lambda data, columns: data in NO_SPANS and columns in ("sequences", "bounded", "within", "several"),
    ),
    Refusal(
        "there are no labels",
        ("view", "columns"),
        lambda view, columns: view in ("window", "documents") and columns == "within",
    ),
    Refusal(
        "no metadata for functions",
        ("data", "columns"),
        lambda data, columns: data in NO_ENTRIES and columns in FUNCTIONS,
    ),
    Refusal(
        "entries are not read",
        ("metadata", "columns"),
        lambda metadata, columns: metadata != "entries" and columns in FUNCTIONS,
    ),
    Refusal(
        "spans of the layout ids do not say where their document begins",
        ("data", "columns"),
        lambda data, columns: data == "ids" and columns in ("answers", "several"),
    ),
    Refusal(
        "documents have no window to share",
        ("view", "context"),
        lambda view, context: view in OF_DOCUMENTS and context != "none",
    ),
    Refusal(
        "zigzag within documents is of rows packed to multiples",
        ("view", "context"),
        lambda view, context: view != "packed4" and context == "documents",
    ),
    Refusal(
        "the window is no multiple of 2n",
        ("context",),
        lambda context: context == "zigzag5",
    ),
    Refusal(
        "a token bounds documents, which only the whole row shows",
        ("columns", "context", "view"),
        lambda columns, context, view: columns in BY_TOKEN and context != "none" and view in WINDOWS,
    ),
    Refusal(
        "no index tells lengths",
        ("data", "balance", "view"),
        lambda data, balance, view: (
            balance in ("attention", "micro") and data in ("ids", *NO_SPANS) and view in WINDOWS
        ),
    ),
    Refusal(
        "opaque documents have no lengths",
        ("data", "balance"),
        lambda data, balance: data == "opaque" and balance in ("attention", "tokens", "micro"),
    ),
    Refusal(
        "a token bounds documents, so no index tells lengths",
        ("columns", "balance", "view"),
        lambda columns, balance, view: columns in BY_TOKEN and balance in ("attention", "micro") and view in WINDOWS,
    ),
    Refusal(
        "a mixture's sources have epochs of their own",
        ("mix", "length"),
        lambda mix, length: mix != "none" and length != "endless",
    ),
    Refusal(
        "documents and packed rows are not cut into shorter windows",
        ("mix", "view"),
        lambda mix, view: mix in CUTS and view not in WINDOWS,
    ),
    Refusal(
        "costs are of observations that shorter windows cut",
        ("mix", "balance"),
        lambda mix, balance: mix in CUTS and balance == "given",
    ),
    Refusal(
        "windows of random phases are not split",
        ("view", "part"),
        lambda view, part: view == "phase" and part in ("split", "held", "nested"),
    ),
    Refusal(
        "documents have no tokens to count a batch by",
        ("view", "batch"),
        lambda view, batch: view in OF_DOCUMENTS and batch == "tokens",
    ),
    Refusal("mixtures do not grow", ("mix", "growth"), lambda mix, growth: mix != "none" and growth != "none"),
    Refusal(
        "files of other formats do not say how they grew",
        ("data", "growth"),
        lambda data, growth: data in FOREIGN and growth != "none",
    ),
    Refusal(
        "tables of all observations do not grow",
        ("order", "growth"),
        lambda order, growth: order in DRAWS and growth != "none",
    ),
    Refusal(
        "phases change with the length", ("view", "growth"), lambda view, growth: view == "phase" and growth != "none"
    ),
    Refusal(
        "a selection does not say what it was before",
        ("part", "growth"),
        lambda part, growth: part in ("pick", "mask") and growth != "none",
    ),
    Refusal(
        "ways to read local files, of files elsewhere",
        ("place", "reader"),
        lambda place, reader: place != "local" and reader in ("pread", "uring", "mmap", "direct"),
    ),
    Refusal(
        "files of this machine are not read through Python",
        ("place", "reader"),
        lambda place, reader: place == "local" and reader == "python",
    ),
)


def broken(case: Case, rules: tuple[Refusal, ...] = REFUSALS) -> list[Refusal]:
    """The rules that a case, or the part of it that is there, breaks."""
    return [
        rule
        for rule in rules
        if all(name in case for name in rule.dimensions) and rule.when(*(case[name] for name in rule.dimensions))
    ]
