"""Cells a second and memory against the number of cells: ours, annbatch, scDataset, scvi-tools' loader.

    python benchmarks/peers/cells/by_number.py --cells 50000 --cells 200000 --cells 800000      # 18 GB of disk

The cells of benchmarks/cells_at_size.py in one file: 30,000 genes, 900 values each. Each figure is a process of its
own.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # benchmarks/
sys.path.append(str(Path(__file__).parents[1]))  # benchmarks/peers/

import environment
from cells_at_size import POOL, Pool, write_file
from results import Result, machine, number, versions, warm
from run import BUILD, PEERS, Peer, import_penstock, made, run

HERE = Path(__file__).parent
LOADERS = {
    "penstock, imported": ("imported", PEERS["penstock, Csr"]),
    "penstock, .h5ad in place": ("h5ad", PEERS["penstock, Csr, .h5ad in place"]),
    "annbatch (512 × 32)": ("annbatch", PEERS["annbatch (512 × 32)"]),
    "scDataset (16, 256)": ("h5ad", PEERS["scDataset (16, 256)"]),
    "scvi-tools AnnDataLoader": ("h5ad", Peer("scvi_loader.py", "cells_scvi", "h5ad")),
}


@dataclass(frozen=True)
class Files:
    """The cells as each loader reads them, made when they are first asked for."""

    folder: Path
    cells: int
    environments: Path

    def path(self, kind: str) -> Path:
        return made(self.folder / f"{self.cells}.{kind}", getattr(self, f"_{kind}"))

    def _h5ad(self, out: Path) -> None:
        write_file(out, self.cells, Pool(min(POOL, self.cells)), 0)

    def _imported(self, out: Path) -> None:
        import_penstock(self.path("h5ad"), out)

    def _annbatch(self, out: Path) -> None:
        python = environment.python("cells_annbatch", self.environments, "3.12")
        run([str(python), str(HERE / "annbatch_store.py"), str(self.path("h5ad")), str(out)])


def measure(files: Files, rows: int, seconds: float, repeats: int) -> list[Result]:
    """Cells a second and anonymous memory of each loader, in turn."""
    speeds: dict[str, list[float]] = {name: [] for name in LOADERS}
    memory: dict[str, list[float]] = {name: [] for name in LOADERS}
    for _ in range(repeats):
        for name, (kind, peer) in LOADERS.items():
            path = files.path(kind)
            warm([path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()])
            python = environment.python(peer.environment, files.environments, peer.version)
            said = json.loads(
                run([str(python), str(HERE / peer.script), str(path), str(rows), str(seconds), peer.setting])
            )
            speeds[name].append(said["cells"] / said["seconds"])
            memory[name].append(said["anonymous"] / 2**20)
            print(f"{files.cells:,} cells, {name}: {speeds[name][-1]:,.0f} cells/s", file=sys.stderr, flush=True)
    named = f"{files.cells:,} cells"
    return [
        Result("cells-by-number", f"{named}: {name}", "cells/s", tuple(found), "warm") for name, found in speeds.items()
    ] + [Result("cells-by-number", f"{named}: {name}", "MiB", tuple(found), "warm") for name, found in memory.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, action="append", required=True)
    parser.add_argument("--rows", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--environments", type=Path, default=BUILD, help="where virtual environments are kept")
    parser.add_argument("--dir", type=Path, default=BUILD / "corpora" / "by-number")
    given = parser.parse_args()
    print(f"{machine()}. {versions()}.\n\n| figure | median | spread |\n| --- | --- | --- |")
    given.dir.mkdir(parents=True, exist_ok=True)
    for cells in given.cells:
        for each in measure(Files(given.dir, cells, given.environments), given.rows, given.seconds, given.repeats):
            spread = f"{number(min(each.values))} – {number(max(each.values))}"
            print(f"| {each.what} | {number(each.median)} {each.unit} | {spread} |", flush=True)
        for path in given.dir.glob(f"{cells}.*"):  # the next ones need the room
            shutil.rmtree(path) if path.is_dir() else path.unlink()


if __name__ == "__main__":
    main()
