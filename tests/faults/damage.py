"""What happens to files by accident: flipped bits, lost pages, truncation, exchange. A fault changes files in place.

Each is given a file of the dataset in `folder`, and the same dataset with other content, `twin`; it says what it did.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import corpora

PAGE = 4096
Fault = Callable[[random.Random, Path, Path, Path], str]


def flip(rng: random.Random, file: Path, folder: Path, twin: Path) -> str:
    data = bytearray(file.read_bytes())
    bit = rng.randrange(8 * len(data))
    data[bit // 8] ^= 1 << bit % 8
    file.write_bytes(data)
    return f"bit {bit}"


def zero_page(rng: random.Random, file: Path, folder: Path, twin: Path) -> str:
    return _write_page(rng, file, lambda data, size: bytes(size))


def other_page(rng: random.Random, file: Path, folder: Path, twin: Path) -> str:
    """A page of another place of the file, or of noise."""

    def other(data: bytearray, size: int) -> bytes:
        at = rng.randrange(max(1, len(data) - size))
        return bytes(data[at : at + size]) if rng.random() < 0.5 else rng.randbytes(size)

    return _write_page(rng, file, other)


def _write_page(rng: random.Random, file: Path, content: Callable[[bytearray, int], bytes]) -> str:
    data = bytearray(file.read_bytes())
    at = PAGE * rng.randrange((len(data) + PAGE - 1) // PAGE)
    data[at : at + PAGE] = content(data, len(data[at : at + PAGE]))
    file.write_bytes(data)
    return f"another page at {at}"


def truncate(rng: random.Random, file: Path, folder: Path, twin: Path) -> str:
    size = rng.choice([0, rng.randrange(file.stat().st_size), file.stat().st_size - 1])
    os.truncate(file, size)
    return f"cut to {size}"


def extend(rng: random.Random, file: Path, folder: Path, twin: Path) -> str:
    more = rng.choice([1, 2, 4, 8, 16, PAGE])
    with file.open("ab") as out:
        out.write(rng.randbytes(more) if rng.random() < 0.5 else bytes(more))
    return f"{more} bytes more"


def exchange(rng: random.Random, file: Path, folder: Path, twin: Path) -> str:
    """One file for that of a dataset of equal sizes, or for that of the other shard."""
    other = twin / file.relative_to(folder)
    if rng.random() < 0.3:
        same = [each for each in folder.rglob(file.name) if each != file]
        other = rng.choice(same) if same else other
    shutil.copyfile(other, file)
    return f"for {other.parent.name}/{other.name}"


def exchange_shard(rng: random.Random, file: Path, folder: Path, twin: Path) -> str:
    """A folder for another's."""
    shard = rng.choice(["00000", "00001"])
    shutil.rmtree(folder / "data" / shard)
    shutil.copytree(twin / "data" / shard, folder / "data" / shard)
    return f"{shard} of another dataset"


def remove(rng: random.Random, file: Path, folder: Path, twin: Path) -> str:
    file.unlink()
    return "removed"


def replace(rng: random.Random, file: Path, folder: Path, twin: Path) -> str:
    """By something that is no file of the dataset: a folder, a pipe, a link."""
    file.unlink()
    kind = rng.choice(["folder", "pipe", "link out", "link to nothing", "link to itself", "link to /dev/zero"])
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "link out":
        file.symlink_to(twin / file.relative_to(folder))
    else:
        file.symlink_to({"link to nothing": "nothing", "link to itself": file.name}.get(kind, "/dev/zero"))
    return kind


def add_strange_names(rng: random.Random, file: Path, folder: Path, twin: Path) -> str:
    """Names that are no text beside those of the dataset; nothing that is read is changed."""
    if not (folder / "data").is_dir():
        return "nothing"
    for stray in (b".partial-\xff\xfe", b"00002\xff", b"\x1b[2J", b"\xe9t\xe9.tmp", b"00007"):
        (folder / "data" / os.fsdecode(stray)).mkdir()
    return "names that are no UTF-8"


KINDS: dict[str, Fault] = {
    "flipped bit": flip,
    "zeroed page": zero_page,
    "misplaced page": other_page,
    "truncated": truncate,
    "extended": extend,
    "exchanged file": exchange,
    "exchanged shard": exchange_shard,
    "removed": remove,
    "replaced by no file": replace,
    "strange names beside": add_strange_names,
}
NOT_OF_A_FILE = {"exchanged shard": "shard", "strange names beside": "none"}


def do(kind: str, rng: random.Random, name: str, folder: Path, twin: Path) -> tuple[str, str]:
    """What was done, and the name of the file that it was done to."""
    if kind == "exchanged shard" and name in corpora.FOREIGN:  # which has no folders of shards
        kind = "exchanged file"
    file = rng.choice([each for each in sorted(folder.rglob("*")) if each.is_file() and each.stat().st_size > 0])
    return KINDS[kind](rng, file, folder, twin), NOT_OF_A_FILE.get(kind, file.name)


def promises(kind: str, name: str, checks: str, file: str) -> bool:
    """Whether docs/reliability.md promises that other data is told (or that nothing differs)."""
    if name in corpora.FOREIGN or checks == "none":
        # What size, manifest and headers say is checked all the same.
        return name in corpora.OURS and (
            file in ("dataset.json", "none") or kind in ("truncated", "extended", "removed")
        )
    if checks == "all":
        return True
    if kind in ("exchanged file", "exchanged shard"):
        return True
    return file not in ("stream.bin", "metadata.bin")
