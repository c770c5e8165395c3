"""penstock: a checkpointable stream-with-metadata token data loader.

Write sharded datasets (`Writer`), open them or other people's token files (`open`), load them shuffled in multi-node
jobs (`Loader`) and resume exactly: the state is one number.

Examples:
    >>> import os, tempfile, penstock
    >>> path = os.path.join(tempfile.mkdtemp(), "corpus")
    >>> with penstock.Writer(path, fields={"token": "u2"}, metadata="json") as writer:
    ...     for number in range(10):
    ...         writer.append(token=range(number, number + 5), metadata={"number": number})
    >>> dataset = penstock.open(path)
    >>> view = dataset.windows(8)
    >>> len(view), view[0]["token"].tolist()
    (6, [0, 1, 2, 3, 4, 1, 2, 3])
    >>> [span.metadata["number"] for span in view[0].spans]
    [0, 1]
"""

from penstock._base import start as _start  # noqa: F401 - before all that takes time

# isort: split
import importlib
from typing import Any

from penstock import adapters, cells, chat, codecs, columns, orders
from penstock._base.errors import (
    CorruptionError,
    Error,
    InvalidArgumentError,
    IoError,
    NotFoundError,
    StateMismatchError,
)
from penstock._data.batch import Batch
from penstock._data.chosen_documents import ChosenDocuments
from penstock._data.concatenate import concatenate
from penstock._data.dataset import Dataset
from penstock._data.duplicates import duplicates
from penstock._data.features import Features
from penstock._data.open import open
from penstock._data.spans import Span
from penstock._data.view import View
from penstock._from.cells.importing import import_anndata
from penstock._from.cells.recipe import Imported
from penstock._from.text.looking_back import verify_ids
from penstock._from.text.summary import WrittenText
from penstock._from.text.verified import VerifiedIds
from penstock._from.text.writing import write
from penstock._from.tokens.exporting import Exported, export
from penstock._from.tokens.importing import import_tokens
from penstock._from.tokens.recipe import ImportedTokens
from penstock._load.collections.collection import Collection
from penstock._load.collections.collections import Collections
from penstock._load.collections.info import BatchInfo
from penstock._load.collections.loader import CollectionLoader
from penstock._load.collections.suggest import Suggestion, suggest
from penstock._load.evaluation import eval_loader
from penstock._load.job import Job
from penstock._load.loader import Loader
from penstock._load.locate import LocatedRow, LocatedSpan
from penstock._load.metrics import Metrics
from penstock._load.mixture import Mixture
from penstock._load.mixture_stages import MixtureRun, MixtureStage, Positions, Stage, Tokens
from penstock._load.parallel import Balance, ContextParallel
from penstock._load.resume import Resume
from penstock._make.annotate import annotate
from penstock._make.append import append
from penstock._make.combining import combine, convert
from penstock._make.place import Made
from penstock._make.publishing import commit, finished_shards, remove_shards
from penstock._make.recipe import Recipe
from penstock._make.run import Written
from penstock._make.shuffle import shuffle
from penstock._make.verifying import verify
from penstock._make.writer import Writer
from penstock._native import Permutation
from penstock._places.storage import Storage

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Imports `penstock.ray`, which needs Ray, when it is first asked for."""
    if name != "ray":
        raise AttributeError(f"module 'penstock' has no attribute {name[:80]!r}")
    return importlib.import_module("penstock.ray")


__all__ = [
    "Balance",
    "Batch",
    "BatchInfo",
    "ChosenDocuments",
    "Collection",
    "CollectionLoader",
    "Collections",
    "ContextParallel",
    "CorruptionError",
    "Dataset",
    "Error",
    "Exported",
    "Features",
    "Imported",
    "ImportedTokens",
    "InvalidArgumentError",
    "IoError",
    "Job",
    "Loader",
    "LocatedRow",
    "LocatedSpan",
    "Made",
    "Metrics",
    "Mixture",
    "MixtureRun",
    "MixtureStage",
    "NotFoundError",
    "Permutation",
    "Positions",
    "Recipe",
    "Resume",
    "Span",
    "Stage",
    "StateMismatchError",
    "Storage",
    "Suggestion",
    "Tokens",
    "VerifiedIds",
    "View",
    "Writer",
    "Written",
    "WrittenText",
    "adapters",
    "annotate",
    "append",
    "cells",
    "chat",
    "codecs",
    "columns",
    "combine",
    "commit",
    "concatenate",
    "convert",
    "duplicates",
    "eval_loader",
    "export",
    "finished_shards",
    "import_anndata",
    "import_tokens",
    "open",
    "orders",
    "remove_shards",
    "shuffle",
    "suggest",
    "verify",
    "verify_ids",
    "write",
]
