"""Measures cells beside their peers: `make bench-cells`, or `python benchmarks/peers/cells/run.py --help`.

50,000 generated cells of 62,710 genes, one .h5ad file (CSR, float32, not compressed), what `penstock import` and
annbatch make of it. Each figure is a process of its own, ours and the peer's in turn. Each peer is in a virtual
environment of its own; annbatch wants Python 3.12, and is skipped where there is none.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # benchmarks/
sys.path.append(str(Path(__file__).parents[1]))  # benchmarks/peers/

import coldness
import environment
import numpy as np
from record import QUICK_RUN, replace_file
from results import Result, alternate, machine, number, ratios, versions, warm
from workloads import FULL, QUICK, Corpora

HERE = Path(__file__).parent
BUILD = HERE.parents[2] / "build" / "peers"
CELLS_COLD = 200_000  # an epoch of 12 fetches of 16,384: the first one has nothing to be read beside


@dataclass(frozen=True)
class Peer:
    """A script, its environment, and which of the corpora it reads."""

    script: str
    environment: str | None
    corpus: str
    setting: str = ""
    version: str | None = None  # of Python, where it wants another one


PEERS = {
    "penstock, Csr": Peer("penstock_cells.py", None, "imported", "csr"),
    "penstock, Csr, Blocks(16, 16384)": Peer("penstock_cells.py", None, "imported", "csr,16,16384"),
    "penstock, Dense of all genes": Peer("penstock_cells.py", None, "imported", "dense"),
    "penstock, Ranked(2048)": Peer("penstock_cells.py", None, "imported", "ranked"),
    "penstock, Csr, three columns": Peer("penstock_cells.py", None, "annotated", "csr"),
    "penstock, Csr, without columns": Peer("penstock_cells.py", None, "annotated", "csr,bare"),
    "penstock, Csr, .h5ad in place": Peer("penstock_cells.py", None, "h5ad", "csr"),
    "penstock, Csr, of {u2, u2}": Peer("penstock_cells.py", None, "penstock", "csr"),
    "compiled gather, 1 thread": Peer("numba_gather.py", "cells_gather", "penstock"),
    "scDataset (16, 256)": Peer("scdataset_blocks.py", "cells_scdataset", "h5ad", "16,256"),
    "scDataset (64, 64)": Peer("scdataset_blocks.py", "cells_scdataset", "h5ad", "64,64"),
    "annbatch (512 × 32), made dense": Peer("annbatch_chunks.py", "cells_annbatch", "annbatch", "512,32,dense", "3.12"),
    "CollectionLoader (16, 256)": Peer("collection_loader.py", None, "h5ad", "16,256,0"),
    "CollectionLoader (16, 4)": Peer("collection_loader.py", None, "h5ad", "16,4,0"),
    "scDataset (16, 4)": Peer("scdataset_blocks.py", "cells_scdataset", "h5ad", "16,4"),
    "CollectionLoader (16, 16) beside a step, threads=1": Peer("collection_loader.py", None, "h5ad", "16,16,1,beside"),
    "CollectionLoader (16, 16) beside a step, threads=0": Peer("collection_loader.py", None, "h5ad", "16,16,0,beside"),
    "annbatch (512 × 32)": Peer("annbatch_chunks.py", "cells_annbatch", "annbatch", "512,32", "3.12"),
    "SLAF, geneformer tokens": Peer("slaf_tokens.py", "cells_slaf", "slaf"),
}
# What is compared warm: (batch, ours, theirs, at least).
WARM = [
    (64, "penstock, Csr, of {u2, u2}", "compiled gather, 1 thread", 0.9),
    (4096, "penstock, Csr, of {u2, u2}", "compiled gather, 1 thread", 0.9),
    (64, "penstock, Csr", "annbatch (512 × 32)", 3.5),
    (4096, "penstock, Csr", "annbatch (512 × 32)", 3.0),
    (64, "penstock, Csr", "scDataset (16, 256)", 5.0),
    (64, "penstock, Csr, three columns", "penstock, Csr, without columns", 0.9),
    (4096, "penstock, Csr, three columns", "penstock, Csr, without columns", 0.9),
    (64, "penstock, Dense of all genes", "annbatch (512 × 32)", 1.5),
    (64, "penstock, Dense of all genes", "annbatch (512 × 32), made dense", 1.5),
    (64, "penstock, Ranked(2048)", "SLAF, geneformer tokens", 20.0),
    *(
        (rows, "penstock, Csr, .h5ad in place", theirs, least)
        for rows in (64, 4096)
        for theirs, least in (("annbatch (512 × 32)", 1.0), ("scDataset (16, 256)", 2.0), ("scDataset (64, 64)", 2.0))
    ),
]
# The same file by the same hook, blocks and fetches; and what one thread hides of a store beside a step as slow as it.
COLLECTIONS = [
    (64, "CollectionLoader (16, 256)", "scDataset (16, 256)", 0.95),
    (4096, "CollectionLoader (16, 4)", "scDataset (16, 4)", 0.95),
    *(
        (
            rows,
            "CollectionLoader (16, 16) beside a step, threads=1",
            "CollectionLoader (16, 16) beside a step, threads=0",
            1.4,
        )
        for rows in (64, 4096)
    ),
]
COLD = [
    (4096, "penstock, Csr", "annbatch (512 × 32)", 1.0),
    (4096, "penstock, Csr, Blocks(16, 16384)", "annbatch (512 × 32)", 2.5),
]
MEMORY_AT_MOST = 0.2
CONVERSION_AT_LEAST = 1.5


class Bench:
    """The corpora, the environments, and runs of peers."""

    def __init__(self, options: argparse.Namespace, cells: int | None = None) -> None:
        self.options = options
        size = QUICK if options.quick else FULL
        self.corpora = Corpora(options.dir, size if cells is None or options.quick else replace(size, cells=cells))
        self.skipped: dict[str, str] = {}
        self._paths: dict[str, Path] = {}

    def python(self, peer: Peer) -> Path:
        return environment.python(peer.environment, self.options.environments, peer.version)

    def has(self, name: str) -> bool:
        """Whether the peer is there; else why not is noted."""
        if name in self.skipped:
            return False
        try:
            self.python(PEERS[name])
            self.path(PEERS[name])
        except environment.NotInstalled as error:
            self.skipped[name] = str(error)
        return name not in self.skipped

    def path(self, peer: Peer) -> Path:
        """What the peer reads; made when it is first asked for."""
        if peer.corpus not in self._paths:
            self._paths[peer.corpus] = getattr(self, f"_{peer.corpus}")(peer)
        return self._paths[peer.corpus]

    def _penstock(self, peer: Peer) -> Path:
        return self.corpora.cells()

    def _imported(self, peer: Peer) -> Path:
        source = self._h5ad(peer)
        return made(source.with_suffix(".imported"), lambda to: import_penstock(source, to))

    def _annotated(self, peer: Peer) -> Path:
        """The same cells with a category, a float and an integer of each."""
        source = self.corpora.cells()
        cells = self.corpora.size.cells

        def make(to: Path) -> None:
            import penstock

            shutil.copytree(source, to, copy_function=os.link)
            plates = [f"plate {cell * 14 // cells}" for cell in range(cells)]
            penstock.annotate(
                to, {"plate": plates, "score": np.linspace(0, 1, cells, dtype="f4"), "n": np.arange(cells)}
            )

        return made(source.with_suffix(".annotated"), make)

    def _h5ad(self, peer: Peer) -> Path:
        source = self.corpora.cells()
        out = source.with_suffix(".h5ad")
        return made(out, lambda to: run([sys.executable, str(HERE / "to_h5ad.py"), str(source), str(to)]))

    def _annbatch(self, peer: Peer) -> Path:
        out = self.corpora.cells().with_suffix(".annbatch")
        return made(out, self.convert_annbatch)

    def _slaf(self, peer: Peer) -> Path:
        out = self.corpora.cells().with_suffix(".slaf")
        command = [str(self.python(peer)), str(HERE / "slaf_store.py"), str(self._h5ad(peer))]
        return made(out, lambda to: run([*command, str(to)]))

    def convert_annbatch(self, out: Path) -> float:
        """Seconds."""
        peer = PEERS["annbatch (512 × 32)"]
        h5ad = self._h5ad(peer)
        shutil.rmtree(out, ignore_errors=True)
        begin = time.perf_counter()
        run([str(self.python(peer)), str(HERE / "annbatch_store.py"), str(h5ad), str(out)])
        return time.perf_counter() - begin

    def convert_penstock(self, out: Path) -> float:
        """Seconds."""
        h5ad = self._h5ad(PEERS["penstock, Csr"])
        shutil.rmtree(out, ignore_errors=True)
        begin = time.perf_counter()
        import_penstock(h5ad, out)
        return time.perf_counter() - begin

    def load(self, name: str, rows: int, seconds: float, limit: int | None = None) -> dict[str, float]:
        """What the peer's script says."""
        peer = PEERS[name]
        command = [str(self.python(peer)), str(HERE / peer.script), str(self.path(peer)), str(rows), str(seconds)]
        said = run([*command, peer.setting, *([str(limit)] if limit is not None else [])])
        found: dict[str, float] = json.loads(said.splitlines()[-1])
        return found

    def files(self, name: str) -> list[Path]:
        path = self.path(PEERS[name])
        return [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]

    def warm_speed(self, name: str, rows: int) -> float:
        said = self.load(name, rows, self.options.seconds)
        return said["cells"] / said["seconds"]

    def cold_speed(self, name: str, rows: int) -> float:
        coldness.drop(self.files(name))
        said = self.load(name, rows, 0, self.corpora.size.cells // rows * rows)
        return said["cells"] / said["seconds"]


def import_penstock(source: Path, out: Path) -> None:
    run([sys.executable, "-m", "penstock", "import", str(source), "--out", str(out), "--workers", "2"])


def made(out: Path, make: Callable[[Path], object]) -> Path:
    """What `make` writes, under this name once it is whole."""
    if not out.exists():
        partial_out = out.with_stem(f"partial-{out.stem}")
        shutil.rmtree(partial_out, ignore_errors=True)
        make(partial_out)
        partial_out.rename(out)
    return out


def run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment.outside())
    if done.returncode != 0:
        raise environment.NotInstalled(f"{Path(command[1]).name}: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


def compare(
    bench: Bench, pairs: list[tuple[int, str, str, float]], how: Callable[[str, int], float], state: str
) -> list[Result]:
    """Ours and theirs in turn, and the ratio."""
    results: list[Result] = []
    for rows, ours, theirs, least in pairs:
        if not (bench.has(ours) and bench.has(theirs)):
            continue
        found = alternate(bench.options.repeats, [partial(how, ours, rows), partial(how, theirs, rows)])
        for name, values in zip((ours, theirs), found, strict=True):
            results.append(Result("cells", f"m = {rows:,}: {name}", "cells/s", values, state))
        what = f"m = {rows:,}: {ours} / {theirs}"
        results.append(Result("cells", what, "ratio", ratios(*found), state, at_least=least))
        print(f"{results[-1].what}: {number(results[-1].median)}", file=sys.stderr, flush=True)
    return results


def memory(bench: Bench) -> list[Result]:
    """Anonymous memory that loading takes, beside what the process had before."""
    names = ["penstock, Csr", "annbatch (512 × 32)"]
    if not all(map(bench.has, names)):
        return []
    found = alternate(
        bench.options.repeats,
        [lambda name=name: bench.load(name, 64, bench.options.seconds)["anonymous"] / 2**20 for name in names],
    )
    results = [
        Result("cells", f"m = 64: anonymous memory, {name}", "MiB", values, "warm")
        for name, values in zip(names, found, strict=True)
    ]
    return [
        *results,
        Result(
            "cells",
            "m = 64: anonymous memory, ours / annbatch",
            "ratio",
            ratios(*found),
            "warm",
            at_most=MEMORY_AT_MOST,
        ),
    ]


def conversion(bench: Bench) -> list[Result]:
    """From .h5ad to what each loads from."""
    if not bench.has("annbatch (512 × 32)"):
        return []
    out = bench.corpora.folder / "converted"
    repeats = min(3, bench.options.repeats)
    theirs, ours = alternate(repeats, [partial(bench.convert_annbatch, out), partial(bench.convert_penstock, out)])
    shutil.rmtree(out, ignore_errors=True)
    return [
        Result("cells", "conversion: penstock import", "s", ours, "warm"),
        Result("cells", "conversion: annbatch", "s", theirs, "warm"),
        Result(
            "cells",
            "conversion: annbatch / penstock import",
            "ratio",
            ratios(theirs, ours),
            "warm",
            at_least=CONVERSION_AT_LEAST,
        ),
    ]


def warm_cells(bench: Bench) -> list[Result]:
    """Files in the page cache."""
    for name in PEERS:
        if bench.has(name):
            warm(bench.files(name))
    return compare(bench, WARM, bench.warm_speed, "warm")


def collections(bench: Bench) -> list[Result]:
    """Stores of others behind `CollectionLoader`."""
    for name in {each for _, *names, _ in COLLECTIONS for each in names if bench.has(each)}:
        warm(bench.files(name))
    return compare(bench, COLLECTIONS, bench.warm_speed, "warm")


def cold_cells(bench: Bench) -> list[Result]:
    """Files out of the page cache, an epoch."""
    cold = Bench(bench.options, CELLS_COLD)
    return compare(cold, COLD, cold.cold_speed, f"cold, one epoch of {cold.corpora.size.cells:,}")


MEASUREMENTS = {
    "warm": warm_cells,
    "collections": collections,
    "memory": memory,
    "cold": cold_cells,
    "conversion": conversion,
}


def table(results: list[Result], skipped: dict[str, str]) -> str:
    """Markdown."""
    lines = [f"{machine()}. {versions()}.", "", "| figure | median | spread | target |", "| --- | --: | --: | --: |"]
    for each in results:
        spread = f"{number(min(each.values))} – {number(max(each.values))}"
        mark = "" if each.reached is None else " (yes)" if each.reached else " (no)"
        lines.append(
            f"| {each.what}, {each.cache} | {number(each.median)} {each.unit} | {spread} | {each.target}{mark} |"
        )
    lines += [f"\nSkipped: {name}: {why}" for name, why in skipped.items()]
    return "\n".join([*lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=MEASUREMENTS, action="append")
    parser.add_argument("--quick", action="store_true", help="few cells: whether it runs, not how fast")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each warm run")
    parser.add_argument("--environments", type=Path, default=BUILD, help="where virtual environments are kept")
    parser.add_argument("--dir", type=Path, default=BUILD / "corpora", help="where corpora are kept: 3 GB")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    bench = Bench(options)
    results: list[Result] = []
    for name in options.only or MEASUREMENTS:
        results += MEASUREMENTS[name](bench)
        write(bench, results)
    print(write(bench, results))
    return 0


def write(bench: Bench, results: list[Result]) -> str:
    """Writes both files as of now, so that a run that is killed keeps what was measured; gives the table."""
    options = bench.options
    text = (f"**{QUICK_RUN}**\n\n" if options.quick else "") + table(results, bench.skipped)
    replace_file(options.markdown, text)
    replace_file(options.json, json.dumps([vars(each) | {"quick": options.quick} for each in results], indent=1))
    return text


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    sys.exit(main())
