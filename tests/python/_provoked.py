"""The messages of docs/errors.md, each provoked here: what the code says now."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import penstock

LAUNCHERS = ("RANK", "WORLD_SIZE", "SLURM_", "OMPI_", "PMI_", "LOCAL_")


@contextmanager
def launched(**variables: str) -> Iterator[None]:
    """As a launcher's process: with these variables alone of those that launchers set."""
    before = dict(os.environ)
    for name in [name for name in before if name.startswith(LAUNCHERS)]:
        del os.environ[name]
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def tokens(name: str, count: int = 10_000) -> penstock.Dataset:
    np.arange(count, dtype="u2").tofile(name)
    return penstock.open(name, dtype="u2")


def view(name: str = "tokens.bin", window: int = 64, count: int = 10_000) -> penstock.View:
    return tokens(name, count).windows(window, lookahead=1)


def loader(**options: Any) -> penstock.Loader[penstock.Batch]:
    return penstock.Loader(view(), **{"batch_size": 8, "seed": 0, "framework": "numpy", **options})


def write(path: str, values: Any, documents: int = 1) -> None:
    with penstock.Writer(path, fields={"token": "u2"}, metadata="json") as writer:
        for number in range(documents):
            writer.append(token=values, metadata={"number": number})


def state(of: penstock.View) -> Mapping[str, Any]:
    return next(penstock.Loader(of, 16, seed=0, framework="numpy")).state_dict()


def one_of_four() -> None:
    with launched(RANK="0", WORLD_SIZE="4"):
        loader()


def under_slurm() -> None:
    with launched(SLURM_PROCID="0", SLURM_NTASKS="4"):
        loader(rank="env")


def uneven() -> None:
    penstock.Loader(view(), global_batch_size=48, rank=0, world_size=5)


def no_size() -> None:
    penstock.Loader(view())


def long_window() -> None:
    penstock.Loader(tokens("tokens.bin").windows(100_000), batch_size=8)


def another_seed() -> None:
    loader(seed=1).load_state_dict(state(view()))


def another_dataset() -> None:
    saved = state(view())
    penstock.Loader(view("other.bin", count=9_000), 8, seed=0).load_state_dict(saved)


def grown() -> None:
    write("corpus", range(2000))
    write("more", range(400))
    saved = state(penstock.open("corpus").windows(16))
    penstock.append("corpus", "more")
    penstock.Loader(penstock.open("corpus").windows(16), 8, seed=0).load_state_dict(saved)


def no_state() -> None:
    loader().load_state_dict({"position": 3})


def no_file() -> None:
    penstock.open("missing")


def no_dtype() -> None:
    tokens("tokens.bin")
    penstock.open("tokens.bin")


def cut_off() -> None:
    write("cut", range(1000))
    with Path("cut/00000/stream.bin").open("r+b") as file:
        file.truncate(100)
    penstock.open("cut").windows(64)[10]


def flipped() -> None:
    write("flip", range(10_000))
    with Path("flip/00000/stream.bin").open("r+b") as file:
        file.seek(5000)
        file.write(b"\xff\xff")
    penstock.open("flip", checks="all").windows(64)[39]


def no_documents() -> None:
    tokens("tokens.bin").documents()


def other_side() -> None:
    np.array([9, 1, 2, 9, 3], "u2").tofile("fineweb.bin")
    penstock.open("fineweb.bin", dtype="u2").documents(end_of_document=9)


def no_lookahead() -> None:
    _ = next(penstock.Loader(tokens("tokens.bin").windows(64), 8)).inputs


def held() -> None:
    tight, batches = loader(prefetch=2, max_bytes=0, framework="auto"), []
    while True:
        batches.append(next(tight))


def no_length() -> None:
    len(loader())


def ended() -> None:
    short = loader(epochs=1)
    list(short)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(short)


def many_documents() -> None:
    write("documents", range(40), documents=50)
    windows = penstock.open("documents").windows(64, lookahead=1)
    next(penstock.Loader(windows, 8, order="sequential", columns=["cu_seqlens"], max_documents=3))


def forked() -> None:
    """Raises what the child was told."""
    running = loader()
    next(running)
    read, write_end = os.pipe()
    if (child := os.fork()) == 0:
        try:
            next(running)
        except penstock.Error as error:
            os.write(write_end, str(error).encode())
        os._exit(0)
    os.close(write_end)
    os.waitpid(child, 0)
    with os.fdopen(read) as said:
        raise RuntimeError(said.read())


def pickled() -> None:
    pickle.dumps(loader())


def no_fit() -> None:
    write("narrow", [70_000])


def published() -> None:
    write("corpus", range(10))
    penstock.Writer("corpus", fields={"token": "u2"})


PROVOKED: list[Callable[[], None]] = [
    one_of_four, under_slurm, uneven, no_size, long_window, another_seed, another_dataset, grown, no_state, no_file,
    no_dtype, cut_off, flipped, no_documents, other_side, no_lookahead, held, no_length, ended, many_documents, forked,
    pickled, no_fit, published,
]  # fmt: skip


def message(provoke: Callable[[], None], folder: Path) -> str:
    """What is raised in an empty folder, without the words of the class."""
    before = Path.cwd()
    place = folder / provoke.__name__
    place.mkdir()
    os.chdir(place)
    try:
        with launched() if provoke not in (one_of_four, under_slurm) else warnings.catch_warnings():
            provoke()
    except (Exception, Warning) as error:
        return str(error)
    finally:
        os.chdir(before)
    raise AssertionError(f"{provoke.__name__}: nothing was raised")
