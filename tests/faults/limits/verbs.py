"""What penstock does to a folder: commands and loaders with their inputs, each as one line.

`python verbs.py read READER FOLDER` prints a digest of all that a loader of this reader gives, and
`python verbs.py put FOLDER` makes the inputs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import penstock

TESTS = Path(__file__).resolve().parents[2]
SHARD = 100_000
_DEADLINE_S = 5
_WRITE = f"write {{data}}/ids.jsonl --ids-column ids --dtype u2 --metadata n --shard-size {SHARD} --out {{out}}"
_TEXT = f"write {{data}}/text.jsonl --tokenizer {{data}}/tokenizer.json --metadata n --shard-size {SHARD} --out {{out}}"
_SHUFFLE = f"shuffle {{data}}/a --documents --seed 3 --memory 262144 --shard-size {SHARD} --out {{out}}"


@dataclass(frozen=True)
class Verb:
    """A command, or a loader.

    Attributes:
        line: the arguments; {data} is the folder of the inputs, {out} that of the output, {address} a server of {data}.
        before: the input that lies at {out} when it begins; "": nothing does.
        again: what the next run is told beside, when this one did not end.
        makes: "dataset" at {out}, "files" whose names begin with {out}, or "": it reads.
    """

    name: str
    line: str
    before: str = ""
    again: str = "--resume"
    makes: str = "dataset"

    def next(self, data: Path, out: Path) -> list[str]:
        """The run after one that did not end."""
        return self.arguments(data, out, again="--overwrite" not in self.line)

    def over(self, data: Path, out: Path) -> list[str]:
        """A run on the dataset that the last one made, which makes the same again."""
        words = self.arguments(data, out)
        if words[0] == "annotate":  # it replaces columns
            return words
        if words[0] == "append":
            return [*words, "--resume"]
        return [*(each for each in words if each not in ("--resume", "--overwrite")), "--overwrite"]

    def arguments(self, data: Path, out: Path, again: bool = False) -> list[str]:
        words = self.line.format(data=data, out=out, address=os.environ.get("LIMITS_ADDRESS", "")).split()
        return [*words, *(self.again.split() if again else [])]

    def command(self, data: Path, out: Path, again: bool = False) -> list[str]:
        """As a process of its own."""
        words = self.arguments(data, out, again)
        program = [__file__] if words[0] == "read" else ["-m", "penstock"]
        return [sys.executable, *program, *words]

    @property
    def changes(self) -> bool:
        """True where the dataset that was there before is there until the new one is."""
        return bool(self.makes and self.before and self.name != "resume")


def reading(reader: str) -> Verb:
    return Verb(f"loader, {reader}", f"read {reader} {{out}}", "a", "", "")


VERBS = (
    Verb("write, 1 worker", f"{_WRITE} --workers 1"),
    Verb("write, 3 processes", f"{_TEXT} --tokenizer-engine tokenizers --workers 3"),
    Verb("resume", f"{_WRITE} --workers 1 --resume", "half", ""),
    Verb("overwrite", f"{_WRITE} --workers 1 --overwrite", "a"),
    Verb("append", "append {out} {data}/b", "a"),
    Verb("combine", "combine {data}/a {data}/b --out {out}"),
    Verb("shuffle", _SHUFFLE),
    Verb("shuffle, 2 processes", f"{_SHUFFLE} --workers 2"),
    Verb("import", f"import {{data}}/a.ds --shard-size {SHARD} --workers 1 --out {{out}}"),
    Verb("import, 2 workers", f"import {{data}}/a.ds --shard-size {SHARD} --workers 2 --out {{out}}"),
    Verb("import of cells", "import {data}/cells.h5ad --workers 1 --out {out}"),
    Verb("convert", "convert {data}/a --without 3 --out {out}"),
    Verb("annotate", "annotate {out} more={data}/more.npy", "a", ""),
    Verb("pack", "pack {data}/a --window 64 --out {out}", again="", makes="files"),
    Verb(
        "export",
        "export {data}/a --to megatron --out {out} --drop metadata,columns,features",
        again="",
        makes="files",
    ),
    Verb("verify", "verify {out}", "a", "", ""),
    *(reading(reader) for reader in ("auto", "pread", "uring", "direct", "mmap")),
    Verb("loader, cache", "read cache {out}", again="", makes=""),
)
NAMED = {verb.name: verb for verb in VERBS}


def put_inputs(folder: Path) -> None:
    """All that the lines name, but for what only packages make that are not there."""
    sys.path.insert(0, str(TESTS / "python"))
    from _datasets import with_everything

    rng = np.random.default_rng(0)
    documents = [rng.integers(0, 60_000, int(rng.integers(0, 400))).tolist() for _ in range(700)]
    (folder / "ids.jsonl").write_text("".join(f'{{"ids": {ids}, "n": {n}}}\n' for n, ids in enumerate(documents)))
    with_everything(folder / "a", SHARD // 3)
    with_everything(folder / "b", SHARD // 2)
    np.save(folder / "more.npy", np.arange(300, dtype="f4"))

    def stop(done: int, total: int, written: Any) -> None:
        if written.shards > 1:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        options: dict[str, Any] = {"ids_column": "ids", "dtype": "u2", "metadata": ["n"], "shard_size": SHARD}
        penstock.write(folder / "ids.jsonl", folder / "half", workers=1, progress=stop, **options)
    assert penstock.finished_shards(folder / "half"), "nothing to resume"
    for put in (_put_text, _put_tokens, _put_cells):
        with contextlib.suppress(ImportError):
            put(folder)


def _put_text(folder: Path) -> None:
    from text_corpus import rows, train_tokenizer

    text = [{"text": each["text"], "n": number} for number, each in enumerate(rows()[:300])]
    (folder / "text.jsonl").write_text("".join(json.dumps(each) + "\n" for each in text))
    train_tokenizer(folder / "tokenizer.json")


def _put_tokens(folder: Path) -> None:
    from _token_files import put_datatrove

    put_datatrove(folder)


def _put_cells(folder: Path) -> None:
    import _anndata_files

    _anndata_files.write(_anndata_files.as_kind(_anndata_files.make(), "csr"), folder / "cells.h5ad")


def read(reader: str, path: str) -> str:
    """A digest of all batches of a loader, and of their entries; "cache" fills one at `path` from the server."""
    digest = hashlib.sha256()
    options: dict[str, Any] = {"seed": 1, "epochs": 2, "framework": "numpy"}
    if reader == "cache":
        storage = penstock.Storage(deadline=_DEADLINE_S)
        dataset = penstock.open(f"{os.environ['LIMITS_ADDRESS']}/a", cache=path, storage=storage)
    else:
        dataset = penstock.open(path)
        options["reader"] = reader
    with penstock.Loader(dataset.windows(64), 8, **options) as loader:
        for batch in loader:
            digest.update(batch["token"].tobytes())
            for span in batch.spans:
                digest.update(span.raw)
    return digest.hexdigest()


def run(arguments: list[str]) -> int:
    """The exit code of a line, as the command gives it; prints what it prints."""
    if arguments[0] == "put":
        put_inputs(Path(arguments[1]))
        return 0
    if arguments[0] != "read":
        (command,) = entry_points(group="console_scripts", name="penstock")
        return int(command.load()(arguments))
    try:
        print(read(arguments[1], arguments[2]))
        return 0
    except (penstock.Error, OSError, MemoryError) as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
