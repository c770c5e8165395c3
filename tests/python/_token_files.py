"""Token files of others: the golden ones, what is in them, and a pair of files in OLMo's layout, written here."""

from __future__ import annotations

import csv
import gzip
import hashlib
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock

GOLDEN = Path(__file__).parents[1] / "golden" / "foreign"
MEGATRON = Path(__file__).parents[1] / "golden" / "megatron"
sys.path.insert(0, str(GOLDEN))

import make  # noqa: E402

DOCUMENTS = make.documents()
STREAM = [token for document in DOCUMENTS for token in document]


def files_of(folder: Path) -> dict[str, str]:
    """What a dataset's files hold, by name."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def tokens_of(path: Any) -> list[list[int]]:
    return [one["token"].tolist() for one in penstock.open(path).documents()]


def put_olmo(folder: Path, rows: Any = None) -> Path:
    np.array(STREAM, "<u2").tofile(folder / "part.npy")
    ends = np.cumsum([len(each) for each in DOCUMENTS]).tolist()
    if rows is None:
        rows = [
            (start, end, f"id {number}", 'a "quoted"\nline,', number)
            for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False))
        ]
    with gzip.open(folder / "part.csv.gz", "wt", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder / "part.npy"


def put_datatrove(folder: Path, documents: int = 400) -> Path:
    """Files in datatrove's layout: 200 tokens a document on average, some empty."""
    rng = np.random.default_rng(1)
    ends = np.cumsum(rng.integers(0, 400, documents)).astype("<u8")
    rng.integers(0, 60_000, int(ends[-1])).astype("<u2").tofile(folder / "a.ds")
    ends.tofile(folder / "a.ds.index")
    return folder / "a.ds"


def copied(folder: Path, name: str = "datatrove/plain.ds") -> Path:
    """A golden file and its index files, where they may be changed."""
    for path in (GOLDEN / name).parent.glob(f"{Path(name).name}*"):
        shutil.copy(path, folder)
    return folder / Path(name).name


def put_bin(path: Path, tokens: Any, dtype: str = "<u2") -> Path:
    np.asarray(tokens, dtype).tofile(path)
    return path
