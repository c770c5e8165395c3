"""Runs that are recorded and replayed: calls and commands that write, and what a user does after a crash.

All paths are relative: a run is recorded in one folder, and gone on with in others.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import penstock

OUT = "new/out"
SHARDS = 3
DOCUMENTS = 12


@dataclass(frozen=True)
class Scenario:
    """A run.

    Attributes:
        prepare: makes what is there before, in the working directory.
        act: the run.
        again: what a user does next, whatever state is there; then the result is there.
        kind: "dataset", a file ("table"), files ("files") or a cache.
        is_long: it is left out of the short form.
        refuse: "link": files cannot be linked.
        unsynced: folders of inputs that nobody synced, as after `cp`.
    """

    prepare: Callable[[], None]
    act: Callable[[], None]
    again: Callable[[], None]
    kind: str = "dataset"
    is_long: bool = False
    refuse: str = ""
    unsynced: tuple[str, ...] = ()


# ---- words of the recorder; without it they do nothing


def _recorder() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if "CRASH_RECORD" in os.environ else None


def note(text: str) -> None:
    """Notes in the record what is promised from now on."""
    recorder = _recorder()
    if recorder is not None:
        recorder.record_note(text.encode())


def killed(action: Callable[[], None], entries: int) -> None:
    """Does it in a child that is killed at that call; a child that comes to its end is an error."""
    child = os.fork()
    if child == 0:
        recorder = _recorder()
        assert recorder is not None
        recorder.record_kill(ctypes.c_long(entries))
        action()
        os.kill(os.getpid(), signal.SIGABRT)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 77


# ---- the command line


@functools.cache
def _main() -> Callable[[list[str]], int]:
    main: Callable[[list[str]], int] = next(iter(entry_points(group="console_scripts", name="penstock"))).load()
    return main


def run(*arguments: str) -> tuple[int, str, str]:
    """The exit code of a command in this process, what it printed, and its errors."""
    printed, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
        code = _main()(list(arguments))
    return code, printed.getvalue(), errors.getvalue()


def command(*arguments: str) -> None:
    code, _, errors = run(*arguments)
    assert code == 0, errors


# ---- what is there before


def write_lines(wrong: bool = False) -> None:
    rng = np.random.default_rng(5)
    lines = []
    for number in range(DOCUMENTS):
        ids = rng.integers(0, 60_000, int(rng.integers(1, 90))).tolist()
        lines.append(json.dumps({"ids": ids, "n": number}))
    if wrong:
        lines[3] = "no JSON"
    Path("lines.jsonl").write_text("\n".join(lines) + "\n")


def write_dataset(path: str, seed: int, *, shards: int = 2, layout: str = "compact", columns: bool = False) -> None:
    rng = np.random.default_rng(seed)
    more = {"columns": {"score": "f4"}} if columns else {}
    for shard in range(shards):
        with penstock.Writer(path, {"token": "u2"}, "json", layout=layout, shard=shard, **more) as writer:
            for number in range(4):
                told = {"columns": {"score": number}} if columns else {}
                tokens = rng.integers(0, 60_000, int(rng.integers(1, 400)))
                writer.append(token=tokens, metadata={"seed": seed, "n": number}, **told)
    penstock.commit(path, shards=shards)


def old() -> None:
    write_dataset(OUT, 1)


def both(*steps: Callable[[], None]) -> Callable[[], None]:
    def all_of_them() -> None:
        for step in steps:
            step()

    return all_of_them


def inputs() -> None:
    write_dataset("a", 2)
    write_dataset("b", 3, shards=1)


# ---- write


def write(workers: int = 1, **options: object) -> Callable[[], None]:
    def act() -> None:
        given = {"ids_column": "ids", "dtype": "u2", "metadata": ["n"], "shard_size": 1200, "workers": workers}
        penstock.write("lines.jsonl", OUT, **given, **options)

    return act


def write_command(*options: str) -> Callable[[], None]:
    given = ("--ids-column", "ids", "--dtype", "u2", "--metadata", "n", "--shard-size", "1200")
    return lambda: command("write", "lines.jsonl", *given, "--out", OUT, *options)


# ---- Writer and commit


def writer_whole(overwrite: bool = False) -> None:
    options = {"shard_size": 500, "overwrite": overwrite, "features": ["CD4", "GNLY"]}
    with penstock.Writer(OUT, {"token": "u4"}, "json", **options) as writer:
        for number in range(6):
            writer.append(token=range(number, 41 * number), metadata={"n": number})


def writer_shards(overwrite: bool = False) -> None:
    """Goes on with whatever is there, until the new dataset is in the place of the old one."""
    done = []
    if Path(OUT).exists():
        if not overwrite and Path(OUT, "dataset.json").exists():
            return
        done = [each.number for each in penstock.finished_shards(OUT, overwrite=overwrite)]
    for shard in range(SHARDS):
        if shard not in done:
            with penstock.Writer(OUT, {"token": "u4"}, "json", shard=shard, overwrite=overwrite) as writer:
                for number in range(3):
                    writer.append(token=range(shard, shard + 70 * number), metadata={"shard": shard, "n": number})
        note(f"shards {shard + 1}")
    penstock.commit(OUT, shards=SHARDS, overwrite=overwrite, features=["CD4", "GNLY"])


# ---- what is made of datasets


def append(**options: object) -> Callable[[], None]:
    return lambda: penstock.append(OUT, ["a", "b"], **options) and None


def combine(**options: object) -> Callable[[], None]:
    return lambda: penstock.combine(["a", "b"], OUT, **options) and None


def convert(**options: object) -> Callable[[], None]:
    return lambda: penstock.convert("a", OUT, "ids", **options) and None


def shuffle(**options: object) -> Callable[[], None]:
    given = {"seed": 3, "documents": True, "memory": 1 << 16, "shard_size": 3000}
    return lambda: penstock.shuffle("a", OUT, **given, **options) and None


def annotate() -> None:
    penstock.annotate(OUT, {"part": ["x", "y"] * 4, "weight": np.arange(8.0)})


# ---- tokens, cells, packs, files of other formats


def token_files() -> None:
    rng = np.random.default_rng(7)
    for number in range(3):
        np.save(f"{number}.npy", rng.integers(0, 60_000, 700 + number).astype("u2"))


def import_tokens(**options: object) -> Callable[[], None]:
    return lambda: penstock.import_tokens("*.npy", OUT, shard_size=1500, **options) and None


def cell_files() -> None:
    import anndata
    import pandas
    import scipy.sparse

    rng = np.random.default_rng(8)
    for number in range(2):
        counts = scipy.sparse.csr_matrix(rng.poisson(0.4, (20, 9)).astype("f4"))
        genes = pandas.DataFrame(index=[f"gene{each}" for each in range(9)])
        cells = pandas.DataFrame({"n": np.arange(20)}, index=[f"{number}-{each}" for each in range(20)])
        anndata.AnnData(counts, cells, genes).write_h5ad(f"{number}.h5ad")


def import_cells(**options: object) -> Callable[[], None]:
    return lambda: penstock.import_anndata("*.h5ad", OUT, **options) and None


def pack_again() -> None:
    if not Path("table.pack").exists():
        pack()


def pack() -> None:
    command("pack", "a", "--window", "256", "--out", "table.pack")


def export(to: str, out: str) -> Callable[[], None]:
    def act() -> None:
        penstock.export("a", out, to, drop=["metadata"])

    return act


def export_again(to: str, *outs: str) -> Callable[[], None]:
    """A user removes names that a crash left without the others."""

    def act() -> None:
        if all(Path(each).exists() for each in outs):
            return
        for each in outs:
            Path(each).unlink(missing_ok=True)
        penstock.export("a", "exported", to, drop=["metadata"])

    return act


# ---- a cache


class Files:
    """A store of the files below a folder, as Python reads them."""

    def size(self, path: str) -> int:
        return Path(path).stat().st_size

    def list(self, prefix: str) -> list[str]:
        return [str(each) for each in Path("a").rglob("*") if each.is_file() and str(each).startswith(prefix)]

    def read(self, path: str, offsets: list[int], sizes: list[int]) -> list[bytes]:
        with Path(path).open("rb") as file:
            return [os.pread(file.fileno(), size, offset) for offset, size in zip(offsets, sizes, strict=True)]


def cached(most: int | None = None) -> penstock.Dataset:
    more = {} if most is None else {"cache_bytes": most}
    return penstock.open("a", store=Files(), cache="cache", **more)


def fill_cache(most: int | None = None) -> None:
    view = cached(most).windows(64)
    for window in range(0, len(view), 7):
        view[window]


def fill_and_shrink() -> None:
    fill_cache()
    fill_cache(most=9000)


_AT_ONCE = 3  # the dataset's folder is made, and its name not synced
_RESUMED = 60  # a call in the middle of the run

SCENARIOS: dict[str, Scenario] = {
    "write": Scenario(write_lines, write(), write(resume=True)),
    "write, 3 workers": Scenario(write_lines, write_command("--workers", "3"), write(resume=True), is_long=True),
    "write --resume": Scenario(
        write_lines, lambda: both(lambda: killed(write(), _RESUMED), write(resume=True))(), write(resume=True)
    ),
    "write --resume, killed at once": Scenario(
        write_lines, lambda: both(lambda: killed(write(), _AT_ONCE), write(resume=True))(), write(resume=True)
    ),
    "write --overwrite": Scenario(both(write_lines, old), write(overwrite=True), write(resume=True, overwrite=True)),
    "write --resume --overwrite": Scenario(
        both(write_lines, old),
        lambda: both(lambda: killed(write(overwrite=True), _RESUMED), write(resume=True, overwrite=True))(),
        write(resume=True, overwrite=True),
    ),
    "write --on-error skip": Scenario(
        lambda: write_lines(wrong=True), write(on_error="skip"), write(on_error="skip", resume=True)
    ),
    "Writer": Scenario(lambda: None, writer_whole, lambda: writer_whole(overwrite=True)),
    "Writer, overwrite": Scenario(old, lambda: writer_whole(overwrite=True), lambda: writer_whole(overwrite=True)),
    "commit": Scenario(lambda: None, writer_shards, writer_shards),
    "commit, overwrite": Scenario(old, lambda: writer_shards(True), lambda: writer_shards(True)),
    "append": Scenario(both(inputs, old), append(), append(resume=True)),
    "append, copied": Scenario(both(inputs, old), append(), append(resume=True), refuse="link", is_long=True),
    "combine": Scenario(inputs, combine(), combine(resume=True)),
    "combine, copied": Scenario(inputs, combine(), combine(resume=True), refuse="link"),
    "combine --overwrite": Scenario(both(inputs, old), combine(overwrite=True), combine(overwrite=True), is_long=True),
    "combine of copies": Scenario(inputs, combine(), combine(overwrite=True), unsynced=("a", "b")),
    "combine, 2 workers": Scenario(
        inputs,
        lambda: command("combine", "a", "b", "--workers", "2", "--out", OUT),
        combine(resume=True),
        is_long=True,
    ),
    "shuffle": Scenario(lambda: write_dataset("a", 2, shards=4), shuffle(), shuffle(resume=True)),
    "shuffle, 2 workers": Scenario(
        lambda: write_dataset("a", 2, shards=4),
        lambda: command(
            *("shuffle", "a", "--seed", "3", "--documents", "--shard-size", "3000", "--workers", "2", "--out", OUT)
        ),
        shuffle(resume=True),
        is_long=True,
    ),
    "import": Scenario(token_files, import_tokens(), import_tokens(resume=True)),
    "import --overwrite": Scenario(
        both(token_files, old), import_tokens(overwrite=True), import_tokens(resume=True, overwrite=True)
    ),
    "import of cells": Scenario(cell_files, import_cells(), import_cells(resume=True), is_long=True),
    "convert": Scenario(lambda: write_dataset("a", 2, columns=True), convert(), convert(overwrite=True)),
    "convert, 2 workers": Scenario(
        lambda: write_dataset("a", 2),
        lambda: command("convert", "a", "--layout", "ids", "--workers", "2", "--out", OUT),
        convert(resume=True),
        is_long=True,
    ),
    "annotate": Scenario(old, annotate, annotate),
    "annotate, 2 workers": Scenario(
        old,
        lambda: command("annotate", OUT, "--from-metadata", "n", "--workers", "2"),
        lambda: penstock.annotate(OUT, from_metadata=["n"]) and None,
        is_long=True,
    ),
    "pack": Scenario(lambda: write_dataset("a", 2), pack, pack_again, "table"),
    "export to Megatron": Scenario(
        lambda: write_dataset("a", 2),
        export("megatron", "exported"),
        export_again("megatron", "exported.bin", "exported.idx"),
        "files",
    ),
    "export to MDS": Scenario(
        lambda: write_dataset("a", 2), export("mds", "exported"), export_again("mds", "exported"), "files"
    ),
    "cache": Scenario(lambda: write_dataset("a", 2), fill_cache, lambda: None, "cache"),
    "cache, smaller": Scenario(lambda: write_dataset("a", 2), fill_and_shrink, lambda: None, "cache", is_long=True),
}
