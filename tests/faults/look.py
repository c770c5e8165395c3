"""What a user does with a dataset: opens it, reads windows and documents with their metadata, runs the tools on it.

Whatever is wrong with the files, each step gives data or a penstock.Error.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import random
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import corpora
import numpy as np
import penstock

WINDOW = 256
MAX_BYTES = 64 << 20
_ALL = 500  # observations: of larger views a few are read


@dataclass
class Seen:
    """What the steps gave."""

    digests: dict[str, str] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)  # of penstock
    strays: list[str] = field(default_factory=list)  # of anything else

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[Any]:
        digest = hashlib.blake2b(digest_size=12)
        try:
            yield digest
        except penstock.Error as error:
            text = f"{type(error).__name__}: {error}"
            if len(text) > _MOST_WORDS:
                self.strays.append(f"{name}: a message of {len(text):,} characters: {text[:300]}")
            self.errors.append(text[:_MOST_WORDS])
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.strays.append(f"{name}: {type(error).__name__}: {error!s:.300} ({where.filename}:{where.lineno})")
        else:
            self.digests[name] = digest.hexdigest()


_MOST_WORDS = 2000


def read(name: str, folder: Path, checks: str) -> Seen:
    """Opens and reads, at random and by a loader."""
    seen = Seen()
    dataset: Any = None
    with seen.step("open") as digest:
        dataset = corpora.opened(name, folder, checks)
        digest.update(repr((dataset.dtype, dataset.codec, dataset.tokenizer, len(dataset))).encode())
        repr((dataset, dataset.shards))
    if dataset is None:
        return seen
    if dataset.mode != "opaque":
        with seen.step("windows") as digest:
            _read_view(dataset.windows(WINDOW, lookahead=1), digest)
        with seen.step("windows, loaded") as digest:
            _load(dataset.windows(WINDOW), digest)
    if name in ("compact", "numpy", "opaque", "megatron"):
        with seen.step("documents") as digest:
            _read_view(dataset.documents(), digest)
        with seen.step("documents, loaded") as digest:
            _load(dataset.documents(), digest)
    return seen


def _read_view(view: Any, digest: Any) -> None:
    """One observation, then all of them: by default the blocks that are read first are checked, later ones are not."""
    _look_at(view.read([0]), digest)
    count = len(view)
    indices = (
        range(count) if count <= _ALL else [0, count - 1, count // 2, *random.Random(count).sample(range(count), 3)]
    )
    _look_at(view.read(list(indices)), digest)


def _load(view: Any, digest: Any) -> None:
    with penstock.Loader(
        view, 16, order="sequential", epochs=1, framework="numpy", max_bytes=MAX_BYTES, threads=2, prefetch=2
    ) as loader:
        for number, batch in enumerate(loader):
            _look_at(batch, digest)
            if number * 16 > _ALL:
                break


def _look_at(batch: Any, digest: Any) -> None:
    for name in batch:
        digest.update(np.ascontiguousarray(batch[name]).tobytes())
    for span in batch.spans:
        place = (span.row, span.start, span.stop, span.begins, span.ends, span.offset, span.id)
        digest.update(repr(place).encode())
        value = span.metadata
        digest.update(
            value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode("utf-8", "surrogatepass")
        )


def use_tools(name: str, folder: Path, scratch: Path, all_of_it: bool) -> Seen:
    """The commands, and what writers read of a dataset; without those that read `all_of_it`, or copy it."""
    seen = Seen()
    data = _argument(name, folder)
    for words in (["info"], ["info", "--json"], ["show"], ["show", "--documents", "--json"]):
        _run(seen, [*words, *data])
    if name in corpora.FOREIGN or not all_of_it:
        return seen
    path = data[0]
    calls: dict[str, Callable[[], Any]] = {
        "verify": lambda: [str(each) for each in (*penstock.verify(path).problems, *penstock.verify(path).notices)],
        "combine": lambda: penstock.combine([path, path], scratch / "combined"),
        "convert": lambda: penstock.convert(path, scratch / "converted", layout="ids" if name != "ids" else "compact"),
        "shuffle": lambda: penstock.shuffle(path, scratch / "s1", seed=1, documents=True, memory=4 << 20),
        "shuffle, windows": lambda: penstock.shuffle(path, scratch / "s2", seed=1, window=WINDOW, memory=4 << 20),
        "finished_shards": lambda: penstock.finished_shards(path),
        "finished_shards, overwritten": lambda: penstock.finished_shards(path, overwrite=True),
        "concatenate": lambda: penstock.open(path, path).windows(WINDOW)[0],
    }
    for step, call in calls.items():
        with seen.step(step) as digest:
            digest.update(repr(call()).encode() if step == "verify" else b"")
    _run(seen, ["verify", *data])
    _run(seen, ["combine", *data, *data, "--out", str(scratch / "c2")])
    with seen.step("write over it"), penstock.Writer(path, {"token": "u2"}, overwrite=True) as writer:
        writer.append(token=[1, 2, 3])
    return seen


def _argument(name: str, folder: Path) -> list[str]:
    if name == "megatron":
        return [str(folder / "tokens")]
    if name in corpora.FOREIGN:
        return [*sorted(map(str, folder.iterdir())), *(["--dtype", "u2"] if name == "raw" else [])]
    return [str(folder / "data")]


def _run(seen: Seen, words: list[str]) -> None:
    """`python -m penstock` in this process; what it does not expect it raises (PENSTOCK_TRACEBACK)."""
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with seen.step(words[0]), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        given, sys.argv = sys.argv, ["penstock", *words]
        try:
            runpy.run_module("penstock", run_name="__main__")
        except SystemExit:
            pass
        finally:
            sys.argv = given
