"""Runs in another package's environment: writes documents as its format, or reads files with its own reader.

`python peer.py write NAME FOLDER` writes make.documents() and prints where; `python peer.py read NAME PATH` prints what
is read as JSON: documents, or for MDS also their metadata.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "golden" / "foreign"), str(HERE.parents[1] / "benchmarks" / "peers")]

import make  # noqa: E402


def write_megatron(folder: Path) -> Path:
    import numpy as np
    import torch
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    builder = IndexedDatasetBuilder(str(folder / "a.bin"), dtype=np.int32)
    for tokens in make.documents():
        builder.add_item(torch.tensor(tokens))
        builder.end_document()
    builder.finalize(str(folder / "a.idx"))
    return folder / "a"


def read_megatron(path: Path) -> Any:
    from megatron.core.datasets.indexed_dataset import IndexedDataset

    dataset = IndexedDataset(str(path))
    bounds = dataset.document_indices.tolist()
    assert bounds == list(range(len(dataset) + 1))
    return [dataset[number].tolist() for number in range(len(dataset))]


def write_by_make(name: str, place: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        make.HERE = folder
        getattr(make, name)()
        return folder / place

    return write


def read_datatrove(path: Path) -> Any:
    """One window of all tokens, with the places in their documents that its reader takes from the index."""
    from datatrove.utils.dataset import DatatroveFileDataset

    said = Path(f"{path}.metadata").read_text().splitlines()
    size, tokens = int(said[0].rpartition("|")[2]), int(said[1])
    dataset = DatatroveFileDataset(str(path), seq_len=tokens - 1, token_size=size, return_positions=True)
    assert len(dataset) == 1
    window, documents = dataset[0], list[list[int]]()
    for token, place in zip(window["input_ids"].tolist(), window["positions"].tolist(), strict=True):
        if place == 0:
            documents.append([])
        documents[-1].append(token)
    return documents


def read_mds(path: Path) -> Any:
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    clean_stale_shared_memory()
    dataset = StreamingDataset(local=str(path), shuffle=False, batch_size=1)
    samples = [dataset[number] for number in range(len(dataset))]
    return {
        "documents": [each["tokens"].tolist() for each in samples],
        "dtype": str(samples[0]["tokens"].dtype),
        "metadata": [each.get("metadata") for each in samples],
    }


WRITE: dict[str, Callable[[Path], Path]] = {
    "megatron": write_megatron,
    "datatrove": write_by_make("datatrove", "datatrove/loss.ds"),
    "mds": write_by_make("mds", "mds/tokens"),
    "packed": write_by_make("packed", "packed/zstd"),
    "litdata": write_by_make("litdata", "litdata/numpy"),
    "huggingface": write_by_make("huggingface", "huggingface/plain"),
    "webdataset": write_by_make("webdataset", "webdataset/npy.tar"),
}
READ: dict[str, Callable[[Path], Any]] = {"megatron": read_megatron, "datatrove": read_datatrove, "mds": read_mds}


def main() -> None:
    what, name, given = sys.argv[1:]
    if name in ("mds", "packed"):
        import no_pictures  # noqa: F401  (before streaming)
    found = str(WRITE[name](Path(given))) if what == "write" else READ[name](Path(given))
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    main()
