"""What is done in a trial, with small inputs: what lies there before, the call, and the next one after it failed."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import runpy
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import penstock
from injector import COUNT, FAIL, Injector, bits

Act = Callable[[Path], Any]


class ToldError(Exception):
    """What a command wrote on standard error, and its exit code."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(said)
        self.code = code


def told(*words: object) -> tuple[int, str, str]:
    """A command's exit code, and what it printed and wrote on standard error."""
    out, said = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    given, sys.argv, code = sys.argv, ["penstock", *map(str, words)], 0
    try:
        with redirect_stdout(out), redirect_stderr(said):
            runpy.run_module("penstock", run_name="__main__")
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.argv = given
    printed, written = (each.buffer.getvalue().decode() for each in (out, said))  # type: ignore[attr-defined]
    return code, printed, written


def command(*words: object) -> str:
    """What a command printed; raises ToldError."""
    code, printed, written = told(*words)
    if code != 0:
        raise ToldError(code, written + printed)
    return printed


@dataclass(frozen=True)
class Verb:
    """A call that makes or changes `out` in a trial's folder.

    Attributes:
        put: Makes what lies there before.
        run: The call; what it gives, of verbs that make nothing.
        again: The next run, after one that failed; None: the same call.
        out: Name of what it makes; empty: nothing.
        workers: Threads or processes that do it.
        mark: The file that is there once all of it is; empty: `out` itself, or its dataset.json.
        kept: Name of what may differ: a cache.
    """

    put: Act
    run: Act
    again: Act | None = None
    out: str = "out"
    workers: int = 1
    kept: str = ""
    mark: str = ""


# --- inputs


def put_ids(folder: Path) -> None:
    ids = np.random.default_rng(0).integers(0, 60_000, (48, 100)).tolist()
    (folder / "ids.jsonl").write_text("".join(f'{{"ids": {each}, "n": {len(each)}}}\n' for each in ids))


def put_text(folder: Path) -> None:
    """Beside a tokenizer that only processes share: the others have threads."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = [f"w{number}" for number in range(50)]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    rows = [{"text": " ".join(words[number % 9 : number % 9 + 30])} for number in range(60)]
    (folder / "text.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def put_tokens(folder: Path) -> None:
    """Files in datatrove's layout."""
    rng = np.random.default_rng(1)
    ends = np.cumsum(rng.integers(0, 60, 60)).astype("<u8")
    rng.integers(0, 60_000, int(ends[-1])).astype("<u2").tofile(folder / "a.ds")
    ends.tofile(folder / "a.ds.index")


def put_cells(folder: Path) -> None:
    import anndata
    import pandas
    import scipy.sparse

    counts = scipy.sparse.csr_matrix(np.random.default_rng(8).poisson(0.4, (20, 9)).astype("f4"))
    genes = pandas.DataFrame(index=[f"gene{each}" for each in range(9)])
    cells = pandas.DataFrame({"n": np.arange(20)}, index=[f"cell{each}" for each in range(20)])
    anndata.AnnData(counts, cells, genes).write_h5ad(folder / "cells.h5ad")


def write_dataset(path: Path, documents: int = 30, seed: int = 0, **options: Any) -> None:
    rng = np.random.default_rng(seed)
    more: dict[str, Any] = {"columns": {"score": "f4", "label": "category"}, "shard_size": 900, **options}
    with penstock.Writer(path, {"token": "u2"}, "json", **more) as writer:
        for number in range(documents):
            values = {"score": number / 7, "label": f"l{number % 3}"}
            tokens = rng.integers(0, 50, int(rng.integers(1, 40))).astype("u2")
            writer.append(token=tokens, metadata={"name": "x" * (number % 9), "n": number}, columns=values)


def put_dataset(folder: Path) -> None:
    write_dataset(folder / "in")


def put_old(folder: Path) -> None:
    write_dataset(folder / "out", documents=9, seed=5, features=["a", "b"])


def put_pair(folder: Path) -> None:
    write_dataset(folder / "one", documents=15)
    write_dataset(folder / "two", documents=15, seed=1)


def put_grown(folder: Path) -> None:
    write_dataset(folder / "out", documents=15)
    write_dataset(folder / "more", documents=15, seed=1)


def put_shards(folder: Path, overwrite: bool = False) -> None:
    for shard in range(3):
        write_dataset(folder / "out", 6, shard, shard=shard, shard_size=100_000, overwrite=overwrite)


def put_scores(folder: Path) -> None:
    write_dataset(folder / "out")
    np.save(folder / "scores.npy", np.arange(30, dtype="f4"))


# --- calls


def of(*words: str) -> Act:
    """A command, whose words name what is in the trial's folder by {}/name."""
    return lambda folder: command(*(each.replace("{}", str(folder)) for each in words))


def published(folder: Path) -> bool:
    return (folder / "out" / "dataset.json").exists()


def unless_published(act: Act) -> Act:
    return lambda folder: None if published(folder) else act(folder)


def put_unfinished(folder: Path) -> None:
    """What a run leaves whose third shard could not be renamed."""
    put_ids(folder)
    injector, run, names = Injector(), of(*WRITE_ONE), bits("name")
    with injector.armed(COUNT, kinds=names, root=folder):
        run(folder)
    renames = [k for k, line in enumerate(injector.log, 1) if line.startswith("rename")]
    for _ in range(100):  # a shard is renamed behind the next one's folder, or before it
        shutil.rmtree(folder / "out")
        with contextlib.suppress(ToldError), injector.armed(FAIL, renames[2], errno.EIO, names, folder):
            run(folder)
        if not published(folder) and len(list((folder / "out").glob("0*"))) == 2:
            return
    raise AssertionError("no run left two shards")


def unless_there(name: str, *words: str) -> Act:
    return lambda folder: None if (folder / name).exists() else of(*words)(folder)


def after(*acts: Act) -> Act:
    return lambda folder: [act(folder) for act in acts][-1]


def resumed(put: Act, *words: str, workers: int = 1) -> Verb:
    """A verb with --resume."""
    return Verb(put, of(*words), of(*words, "--resume"), workers=workers)


WRITE = ("write", "{}/ids.jsonl", "--ids-column", "ids", "--dtype", "u2", "--metadata", "n", "--shard-size", "10000")
TO = ("--out", "{}/out")
WRITE_TEXT = (
    "write", "{}/text.jsonl", "--tokenizer", "{}/tokenizer.json", "--tokenizer-engine", "tokenizers", "--shard-size",
    "2500", *TO, "--workers", "3",
)  # fmt: skip
WRITE_ONE = (*WRITE, *TO, "--workers", "1")
SHUFFLE = ("shuffle", "{}/in", *TO, "--seed", "3", "--shard-size", "900", "--memory", "262144")
COMBINE = ("combine", "{}/one", "{}/two", *TO)
IMPORT_CELLS = ("import", "{}/cells.h5ad", *TO, "--workers", "1")
EXPORT = ("export", "{}/in", *TO, "--drop", "metadata,columns", "--to")
IMPORT = ("import", "{}/a.ds", *TO, "--shard-size", "2000")


def write_features(folder: Path) -> None:
    write_dataset(folder / "out", features=["a", "b"])


def replace_features(folder: Path) -> None:
    write_dataset(folder / "out", features=["a", "b"], overwrite=True)


MAKING: dict[str, Verb] = {
    "write": resumed(put_ids, *WRITE_ONE),
    "write, 3 threads": resumed(put_ids, *WRITE, *TO, "--workers", "3", workers=3),
    "write, 3 processes": resumed(put_text, *WRITE_TEXT, workers=3),
    "write --resume": Verb(put_unfinished, of(*WRITE_ONE, "--resume")),
    "write --overwrite": Verb(after(put_old, put_ids), of(*WRITE_ONE, "--overwrite")),
    "Writer": Verb(lambda folder: None, write_features, unless_published(replace_features)),
    "Writer, overwrite": Verb(put_old, replace_features),
    "commit": Verb(put_shards, of("commit", "{}/out", "--shards", "3"), unless_published(of("commit", "{}/out"))),
    "append": Verb(put_grown, of("append", "{}/out", "{}/more"), of("append", "{}/out", "{}/more", "--resume")),
    "combine": Verb(put_pair, of(*COMBINE), unless_published(of(*COMBINE, "--resume"))),
    "shuffle": resumed(put_dataset, *SHUFFLE, "--documents"),
    "shuffle, windows": resumed(put_dataset, *SHUFFLE, "--window", "40"),
    "import": resumed(put_tokens, *IMPORT),
    "import, 3 threads": resumed(put_tokens, *IMPORT, "--workers", "3", workers=3),
    "convert": resumed(put_dataset, "convert", "{}/in", "--layout", "ids", *TO),
    "annotate": Verb(put_scores, of("annotate", "{}/out", "other={}/scores.npy")),
    "annotate, of metadata": Verb(put_scores, of("annotate", "{}/out", "--from-metadata", "n:i4")),
    "pack": Verb(
        put_dataset,
        of("pack", "{}/in", "--window", "64", "--out", "{}/out"),
        unless_there("out", "pack", "{}/in", "--window", "64", *TO),
    ),
    "import of cells": resumed(put_cells, *IMPORT_CELLS),
    "export to Megatron": Verb(
        put_dataset, of(*EXPORT, "megatron"), unless_there("out.idx", *EXPORT, "megatron"), mark="out.idx"
    ),
    "export to MDS": Verb(put_dataset, of(*EXPORT, "mds"), unless_there("out", *EXPORT, "mds"), mark="out/index.json"),
    "info": Verb(put_dataset, of("info", "{}/in"), out=""),
    "show": Verb(put_dataset, of("show", "{}/in", "--documents", "--json"), out=""),
    "verify": Verb(put_dataset, of("verify", "{}/in"), out=""),
}
