"""Stores that Python reads, all with the same files: of obstore, of fsspec, and of a user's own."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _servers import files_of, write_corpus

ODD = "a b+c=(d)!'é"  # a name that addresses write otherwise


def write_root(folder: Path) -> None:
    """A dataset of three shards, the first of them again by an odd name, one of cells, and token files."""
    rng = np.random.default_rng(0)
    write_corpus(folder, rng, shards=3, documents=100)
    shutil.copytree(folder / "part0", folder / ODD)
    for number in range(3):
        np.save(folder / f"{number}.npy", rng.integers(0, 60_000, 20_000).astype("u2"))
    rng.integers(0, 60_000, 100_000).astype("u2").tofile(folder / "a.bin")
    genes = {"names": ["CD4", "CD8A", "GNLY"], "length": [458, 235, 145]}
    fields = {"gene": "u2", "count": "u1"}
    with penstock.Writer(folder / "cells", fields, features=genes, columns={"n": "u4"}) as writer:
        for number in range(50):
            writer.append(gene=[0, 2], count=[3, 1], columns={"n": number})


class Own:
    """A store of a user's: files of a folder, told by what is done with them."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)

    def size(self, path: str) -> int:
        return (Path(self.root) / path).stat().st_size

    def list(self, prefix: str) -> list[Any]:
        found = (str(each.relative_to(self.root)) for each in Path(self.root).rglob("*") if each.is_file())
        return [each for each in found if each.startswith(prefix)]

    def read(self, path: str, offsets: list[int], sizes: list[int]) -> list[Any]:
        with (Path(self.root) / path).open("rb") as file:
            return [os.pread(file.fileno(), size, offset) for offset, size in zip(offsets, sizes, strict=True)]


class Failing(Own):
    """Its own files, but for what `fault(path, number of the call)` raises or returns instead."""

    def __init__(self, root: Path, fault: Any) -> None:
        super().__init__(root)
        self.fault, self.calls, self.lock = fault, 0, threading.Lock()

    def read(self, path: str, offsets: list[int], sizes: list[int]) -> list[Any]:
        with self.lock:
            self.calls += 1
            number = self.calls
        found = self.fault(path, number)
        return super().read(path, offsets, sizes) if found is None else found


def memory_store(root: Path) -> Any:
    obstore = pytest.importorskip("obstore")
    store = obstore.store.MemoryStore()
    for key, content in files_of(root).items():
        obstore.put(store, key, content)
    return store


def memory_filesystem(root: Path) -> Any:
    filesystem = pytest.importorskip("fsspec").filesystem("memory")
    for key, content in files_of(root).items():
        filesystem.pipe_file(f"/{root.name}/{key}", content)
    return filesystem
