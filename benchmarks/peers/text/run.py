"""Measures `penstock write` beside its peers: `make bench-peers`, or `python benchmarks/peers/text/run.py --help`.

All make shards of the same JSON lines with the same tokenizer.json, an <|endoftext|> after each document, by two
processes; a run ends with the number of tokens, which has to be the same for all. Each peer is in a virtual environment
of its own.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # benchmarks/
sys.path.append(str(Path(__file__).parents[1]))  # benchmarks/peers/

import environment
from corpus import END, Text
from record import Record
from results import make_folders, ratios
from text_ways import Way, in_turn, line
from text_writing import CACHE, engine_option
from usage import Usage, usage
from workloads import FULL, QUICK

HERE = Path(__file__).parent
BUILD = HERE.parents[2] / "build" / "peers"
WORKERS = 2
AT_LEAST = 10.0
OURS = "penstock write"
#: Their scripts and environments.
PEERS = {
    "Megatron-core, as preprocess_data.py": ("megatron_preprocess.py", "text_megatron"),
    "datatrove DocumentTokenizer": ("datatrove_tokenizer.py", "text_datatrove"),
    "litdata optimize": ("litdata_optimize.py", "text_litdata"),
    "mosaicml-streaming MDSWriter": ("mosaic_mds.py", "mosaic_streaming"),
}
#: Nothing that is measured here may ask the network.
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", choices=[*PEERS, "none"], action="append", help="one peer; may be repeated")
    parser.add_argument("--quick", action="store_true", help="little text, one repeat: whether it runs, not how fast")
    parser.add_argument("--repeats", type=int, help="of all in turn; 3 otherwise")
    parser.add_argument("--environments", type=Path, default=BUILD, help="where virtual environments are kept")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--markdown", type=Path, help="file for the table")
    return parser.parse_args(given)


class Bench:
    """One tokenizer, and the text in a file for each process."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        size = QUICK if options.quick else FULL
        text = Text(folder / "text" if options.quick else CACHE, size.corpus_bytes, small=options.quick)
        self.options = options
        self.out = folder / "out"
        self.tokenizer = text.tokenizer(size.vocabularies[-1])
        self.what = f"{size.vocabularies[-1]:,}"
        self.files = parts(text.jsonl(size.corpus_part_bytes), folder / "parts")
        self.bytes = sum(each.stat().st_size for each in self.files)
        self.tokens: dict[str, int] = {}

    def ways(self) -> tuple[list[Way], list[str]]:
        """Penstock first, and why the others that are missing cannot run here."""
        found = [self.way(f"{OURS}, {engine}", partial(self.penstock, engine)) for engine in ("auto", "tokenizers")]
        missing = []
        for name in self.options.peer or PEERS:
            if name not in PEERS:
                continue
            script, requirements = PEERS[name]
            try:
                python = environment.python(requirements, self.options.environments.absolute())
            except environment.NotInstalled as error:
                missing.append(f"{name} cannot run here: {error}")
                continue
            command = [str(python), str(HERE / script), str(self.tokenizer), str(self.out), str(WORKERS)]
            found.append(self.way(name, partial(self.peer, name, [*command, *map(str, self.files)])))
        return found, missing

    def way(self, name: str, run: Callable[[], Usage]) -> Way:
        return Way(name, self.bytes, run, WORKERS if name.startswith(OURS) else 0)

    def penstock(self, engine: str) -> Usage:
        command = [sys.executable, "-m", "penstock", "write", *map(str, self.files), "--out", str(self.out), "--json"]
        command += ["--tokenizer", str(self.tokenizer), "--append", END, "--workers", str(WORKERS)]
        found = usage([*command, *engine_option(engine)])
        return self.counted(f"{OURS}, {engine}", found, json.loads(found.said)["tokens"])

    def peer(self, name: str, command: list[str]) -> Usage:
        found = usage(command, environment.outside() | OFFLINE)
        return self.counted(name, found, int(found.said.split()[-1]))

    def run(self, ways: list[Way], repeats: int, missing: list[str]) -> list[Way]:
        """Runs each, and all again.

        Returns:
            Those that did their job each time; why the others did not is added to `missing`.
        """
        for _ in range(repeats):
            for way in list(ways):
                try:
                    in_turn([way], 1)
                except RuntimeError as error:
                    if way.what.startswith(OURS):
                        raise
                    shutil.rmtree(self.out, ignore_errors=True)
                    missing.append(f"{way.what}: {error}")
                    ways.remove(way)
        return ways

    def counted(self, name: str, found: Usage, tokens: int) -> Usage:
        shutil.rmtree(self.out)
        self.tokens[name] = tokens
        if len(set(self.tokens.values())) != 1:
            raise RuntimeError(f"the tools found different numbers of tokens: {self.tokens}")
        return found


def parts(file: Path, folder: Path) -> list[Path]:
    """The lines in a file for each process: some tools cannot share one."""
    folder.mkdir(parents=True)
    lines = file.read_bytes().splitlines(keepends=True)
    half = file.stat().st_size // WORKERS
    made = [folder / f"part-{number}.jsonl" for number in range(WORKERS)]
    streams = [each.open("wb") for each in made]
    done = 0
    for each in lines:
        streams[min(done // half, WORKERS - 1)].write(each)
        done += len(each)
    for stream in streams:
        stream.close()
    return made


def main() -> None:
    options = arguments()
    words = ["python", "benchmarks/peers/text/run.py", *(["--quick"] if options.quick else [])]
    words += [word for each in options.peer or () for word in ("--peer", each)]
    make_folders(options.json, options.markdown)
    record = Record(shlex.join(words), options.quick, options.json, options.markdown)
    with tempfile.TemporaryDirectory(prefix="penstock-text-") as folder:
        bench = Bench(options, Path(folder))
        ways, missing = bench.ways()
        ours, _, *others = bench.run(ways, options.repeats or (1 if options.quick else 3), missing)
        for way in ways:
            record.add(way.lines())
        for way in others:
            what = f"{way.what} / {OURS}"
            record.add(
                [
                    line(f"{what}: CPU", "ratio", ratios(way.cpu, ours.cpu), bench.bytes, at_least=AT_LEAST),
                    line(f"{what}: by the clock", "ratio", ratios(way.wall, ours.wall), bench.bytes, at_least=AT_LEAST),
                ]
            )
        print(record.as_markdown())
        print(f"vocabulary of {bench.what}; tokens, all alike: {set(bench.tokens.values())}", *missing, sep="\n")


if __name__ == "__main__":
    main()
