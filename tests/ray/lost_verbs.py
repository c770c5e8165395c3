"""Penstock on Ray while nodes are killed: commands, the sink of rows, and the reader.

`python lost_verbs.py put FOLDER` makes the inputs, `… rows FOLDER OUT ADDRESS` writes rows, and
`… read FOLDER OUT ADDRESS` reads a dataset's documents and prints a digest of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import penstock

HERE = Path(__file__).resolve()
SHARD = 400_000
BLOCKS = 14  # of rows: as many shards
ROWS = 2_800
PLATES = 8
_READ = 250  # documents at once
_PAUSE = 0.05  # of the reader, after each of them


@dataclass(frozen=True)
class Verb:
    """One of them.

    Attributes:
        line: its arguments, without where it runs; {data} is the folder of the inputs, {out} that of the output.
        resumes: the option by which the next run goes on.
    """

    name: str
    line: str
    resumes: str = "--resume"

    @property
    def is_command(self) -> bool:
        return self.name not in ("rows", "read")

    def command(self, data: Path, out: Path, address: str | None = None, again: bool = False) -> list[str]:
        """A process; without an address it runs without Ray, if that can be."""
        words = [word.format(data=data, out=out) for word in shlex.split(self.line)]
        words += [self.resumes] if again and self.resumes else []
        if self.is_command:
            where = ["--workers", "1"] if address is None else ["--ray", address]
            return [sys.executable, "-m", "penstock", *words, *where]
        return [sys.executable, str(HERE), *words, address or ""]


VERBS = (
    Verb("shuffle", f"shuffle {{data}}/in --documents --seed 5 --memory 2MiB --shard-size {SHARD} --out {{out}}"),
    Verb("import", "import {data}/train.bin --dtype u2 --end-of-document 500 --shard-size 1MB --out {out}"),
    Verb("cells", f"import {' '.join(f'{{data}}/{plate}.h5ad' for plate in range(PLATES))} --out {{out}}"),
    Verb(
        "write",
        "write {data}/a.jsonl {data}/b.jsonl --tokenizer {data}/tokenizer.json --append '<|endoftext|>' "
        f"--metadata url,n --shard-size {SHARD} --out {{out}}",
    ),
    Verb("rows", "rows {data} {out}", "--overwrite"),
    Verb("read", "read {data}/in {out}", ""),
)
NAMED = {verb.name: verb for verb in VERBS}


def put(data: Path) -> None:
    """The inputs of all."""
    import anndata
    import scipy.sparse
    from text_corpus import rows, train_tokenizer, write_jsonl

    rng = np.random.default_rng(0)
    with penstock.Writer(data / "in", {"token": "u2"}, "json", shard_size=900_000) as writer:
        for number in range(20_000):
            tokens = rng.integers(0, 60_000, int(rng.integers(0, 600))).astype("u2")
            writer.append(token=tokens, metadata={"number": number})
    tokens = rng.integers(0, 500, 8_000_000).astype("u2")
    tokens[96::97] = 500
    tokens[-1] = 500
    tokens.tofile(data / "train.bin")
    for plate in range(PLATES):
        counts = scipy.sparse.random(2_500, 600, 0.2, "csr", random_state=np.random.default_rng(plate))
        counts.data = np.ceil(counts.data * 9)
        anndata.AnnData(counts).write_h5ad(data / f"{plate}.h5ad")
    content = rows() * 6
    write_jsonl(data / "a.jsonl", content[: len(content) // 3])
    write_jsonl(data / "b.jsonl", content[len(content) // 3 :])
    train_tokenizer(data / "tokenizer.json")


def document(row: dict[str, Any]) -> dict[str, Any]:
    number = int(row["id"])
    time.sleep(0.002)
    return {"token": [(number * 7 + each) % 60_000 for each in range(number % 700)], "url": f"page-{number}"}


def write_rows(out: Path, address: str, overwrite: bool) -> None:
    import penstock.ray

    rows = connected(address).data.range(ROWS, override_num_blocks=BLOCKS).map(document)
    sink = penstock.ray.Datasink(out, fields={"token": "u2"}, metadata="json", overwrite=overwrite)
    rows.write_datasink(sink)


def rows_fingerprint(out: Path) -> str:
    """The digest of the rows, written without Ray."""
    each = ROWS // BLOCKS
    for shard in range(BLOCKS):
        with penstock.Writer(out, {"token": "u2"}, "json", shard=shard) as writer:
            for number in range(shard * each, (shard + 1) * each):
                row = document({"id": number})
                writer.append(token=row.pop("token"), metadata=row)
    return penstock.commit(out, shards=BLOCKS)


def read(path: Path, out: Path, address: str) -> str:
    """The digest of what Ray Data gives; a line in `out` for each batch that came."""
    import penstock.ray
    from _small_reads import read_in_small_tasks

    connected(address)
    read_in_small_tasks()
    batches = penstock.ray.read(path).iter_batches(batch_size=_READ, batch_format="pyarrow", prefetch_batches=1)
    with out.open("w", buffering=1) as progress:

        def rows() -> Iterable[tuple[Any, Any]]:
            for batch in batches:
                yield from zip(batch["token"].to_pylist(), batch["number"].to_pylist(), strict=True)
                progress.write("batch\n")
                time.sleep(_PAUSE)

        return digest(rows())


def read_digest(path: Path) -> str:
    """The same without Ray."""
    view = penstock.open(path).documents()
    return digest((each["token"].tolist(), each.metadata["number"]) for each in view)


def digest(rows: Iterable[tuple[Any, Any]]) -> str:
    found = hashlib.sha256()
    for row in rows:
        found.update(json.dumps(row).encode())
    return found.hexdigest()


def connected(address: str) -> Any:
    import ray

    ray.init(address, log_to_driver=False, logging_level="ERROR")
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    return ray


def main(verb: str, data: str, out: str = "", *more: str) -> None:
    sys.path.insert(0, str(HERE.parents[1] / "python"))
    address, overwrite = (more or ("",))[-1], "--overwrite" in more
    if verb == "put":
        Path(data).mkdir(parents=True)
        put(Path(data))
    elif verb == "rows":
        write_rows(Path(out), address, overwrite)
    else:
        print(read(Path(data), Path(out), address))


if __name__ == "__main__":
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    main(*sys.argv[1:])
