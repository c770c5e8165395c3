"""Runs other packages' writers and readers against penstock: `make formats`, or `python tests/formats/run.py --help`.

Each package writes documents with its own writer, in an environment of its own, and `penstock import` must make the
same documents of them. Then penstock exports a dataset, and the package's own reader must give the same documents.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import penstock

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "formats"
sys.path.insert(0, str(HERE.parent / "golden" / "foreign"))

import make  # noqa: E402

DOCUMENTS = make.documents()
REQUIREMENTS = {
    "others": HERE / "requirements.txt",
    "streaming": ROOT / "benchmarks" / "peers" / "requirements" / "mosaic_streaming.txt",  # wants an older numpy
}


@dataclass(frozen=True)
class Peer:
    """A format, the package whose it is, and where that is installed."""

    format: str
    package: str
    environment: str = "others"
    exports: bool = False


PEERS = (
    Peer("megatron", "megatron-core", exports=True),
    Peer("datatrove", "datatrove", exports=True),
    Peer("mds", "mosaicml-streaming", "streaming", exports=True),
    Peer("packed", "mosaicml-streaming", "streaming"),
    Peer("litdata", "litdata"),
    Peer("huggingface", "datasets"),
    Peer("webdataset", "webdataset"),
)
NAMES = {"packed": "MDS, zstd", "mds": "MDS", "huggingface": "save_to_disk", "webdataset": "WebDataset"}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def environment(name: str, build: Path) -> Path:
    """The interpreter of a virtual environment with exactly the pinned packages, made when they change."""
    folder, requirements = build / name, REQUIREMENTS[name]
    stamp = folder / "installed"
    wanted = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    if not (stamp.exists() and stamp.read_text() == wanted):
        say(f"installing {requirements.relative_to(ROOT)} into {folder}")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--no-compile"]
        subprocess.run([*pip, "--disable-pip-version-check", "--no-deps", "-r", str(requirements)], check=True)
        stamp.write_text(wanted)
    return folder / "bin" / "python"


def call(python: Path, *arguments: object) -> Any:
    """What peer.py prints."""
    command = [str(python), str(HERE / "peer.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def imported(peer: Peer, python: Path, folder: Path) -> str:
    """What is wrong with an import of what the package writes; "": nothing."""
    path = call(python, "write", peer.format, folder)
    for workers in (1, 2):
        out = folder / f"imported-{workers}"
        penstock.import_tokens(path, out, workers=workers, shard_size=512)
        if [one["token"].tolist() for one in penstock.open(out).documents()] != DOCUMENTS:
            return "other documents"
        if not penstock.verify(out):
            return "does not verify"
    if penstock.open(folder / "imported-1").fingerprint != penstock.open(folder / "imported-2").fingerprint:
        return "two workers write other bytes"
    return ""


def exported(peer: Peer, python: Path, folder: Path) -> str:
    """What is wrong with what the package reads of an export; "": nothing."""
    for dtype in ("u2", "u4"):
        path = folder / f"corpus-{dtype}"
        with penstock.Writer(path, fields={"token": dtype}, metadata="json") as writer:
            for number, tokens in enumerate(DOCUMENTS):
                writer.append(token=np.array(tokens), metadata={"n": number})
        out = folder / f"exported-{dtype}{'.ds' if peer.format == 'datatrove' else ''}"
        keeps = peer.format == "mds"
        penstock.export(path, out, to=peer.format, drop=[] if keeps else ["metadata"])
        read = call(python, "read", peer.format, out)
        if keeps and read["metadata"] != [{"n": number} for number in range(len(DOCUMENTS))]:
            return "other metadata"
        if (read["documents"] if keeps else read) != DOCUMENTS:
            return f"other documents of {dtype}"
    return ""


def version(python: Path, package: str) -> str:
    script = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"
    return subprocess.run([str(python), "-c", script, package], capture_output=True, text=True).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="formats; may be repeated")
    parser.add_argument("--build", type=Path, default=BUILD, help="where the environments are kept: 3 GB")
    parser.add_argument("--markdown", type=Path, help="file for the table")
    options = parser.parse_args()
    rows = ["| format | package | import of what it writes | it reads an export |", "| --- | --- | --- | --- |"]
    failed = 0
    for peer in PEERS:
        if options.only and peer.format not in options.only:
            continue
        python = environment(peer.environment, options.build.absolute())
        checks: list[Callable[[Peer, Path, Path], str]] = [imported, *([exported] if peer.exports else [])]
        found = []
        for check in checks:
            folder = Path(tempfile.mkdtemp(prefix="penstock-formats-"))
            try:
                found.append(check(peer, python, folder) or "exact")
            except Exception as error:
                found.append(f"{type(error).__name__}: {error}")
            finally:
                shutil.rmtree(folder)
            failed += found[-1] != "exact"
        say(f"{peer.format}: {', '.join(found)}")
        name, number = NAMES.get(peer.format, peer.format), version(python, peer.package)
        rows.append(f"| {name} | {peer.package} {number} | {found[0]} | {found[1] if peer.exports else '–'} |")
    table = "\n".join(rows) + "\n"
    print(table)
    if options.markdown:
        options.markdown.write_text(table, encoding="utf-8")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
