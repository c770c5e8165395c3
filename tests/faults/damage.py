"""What happens to files by accident: flipped bits, lost pages, truncation, exchange. A fault changes files in place.

Each returns what it did, and the name of the file that it did it to.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import corpora

PAGE = 4096
Fault = Callable[[random.Random, str, Path, Path], tuple[str, str]]


def files_of(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob("*") if each.is_file())


def _pick(rng: random.Random, folder: Path) -> Path:
    return rng.choice([each for each in files_of(folder) if each.stat().st_size > 0])


def flip(rng: random.Random, name: str, folder: Path, twin: Path) -> tuple[str, str]:
    file = _pick(rng, folder)
    data = bytearray(file.read_bytes())
    bit = rng.randrange(8 * len(data))
    data[bit // 8] ^= 1 << bit % 8
    file.write_bytes(data)
    return f"bit {bit}", file.name


def _page(rng: random.Random, folder: Path) -> tuple[Path, bytearray, slice]:
    file = _pick(rng, folder)
    data = bytearray(file.read_bytes())
    at = PAGE * rng.randrange((len(data) + PAGE - 1) // PAGE)
    return file, data, slice(at, min(at + PAGE, len(data)))


def zero_page(rng: random.Random, name: str, folder: Path, twin: Path) -> tuple[str, str]:
    file, data, page = _page(rng, folder)
    data[page] = bytes(page.stop - page.start)
    file.write_bytes(data)
    return f"zeros from {page.start}", file.name


def other_page(rng: random.Random, name: str, folder: Path, twin: Path) -> tuple[str, str]:
    """A page of another place of the file, or of noise."""
    file, data, page = _page(rng, folder)
    size = page.stop - page.start
    at = rng.randrange(max(1, len(data) - size))
    data[page] = data[at : at + size] if rng.random() < 0.5 else rng.randbytes(size)
    file.write_bytes(data)
    return f"another page at {page.start}", file.name


def truncate(rng: random.Random, name: str, folder: Path, twin: Path) -> tuple[str, str]:
    file = _pick(rng, folder)
    size = rng.choice([0, rng.randrange(file.stat().st_size), file.stat().st_size - 1])
    os.truncate(file, size)
    return f"cut to {size}", file.name


def extend(rng: random.Random, name: str, folder: Path, twin: Path) -> tuple[str, str]:
    file = _pick(rng, folder)
    more = rng.choice([1, 2, 4, 8, 16, PAGE])
    with file.open("ab") as out:
        out.write(rng.randbytes(more) if rng.random() < 0.5 else bytes(more))
    return f"{more} bytes more", file.name


def exchange(rng: random.Random, name: str, folder: Path, twin: Path) -> tuple[str, str]:
    """One file for that of a dataset of equal sizes, or for that of the other shard."""
    file = _pick(rng, folder)
    other = twin / file.relative_to(folder)
    if rng.random() < 0.3:
        same = [each for each in folder.rglob(file.name) if each != file]
        other = rng.choice(same) if same else other
    shutil.copyfile(other, file)
    return f"for {other.parent.name}/{other.name}", file.name


def exchange_shard(rng: random.Random, name: str, folder: Path, twin: Path) -> tuple[str, str]:
    """A folder for another's; of foreign formats, a file."""
    if name in corpora.FOREIGN:
        return exchange(rng, name, folder, twin)
    shard = rng.choice(["00000", "00001"])
    shutil.rmtree(folder / "data" / shard)
    shutil.copytree(twin / "data" / shard, folder / "data" / shard)
    return f"shard {shard} of another dataset", "shard"


def remove(rng: random.Random, name: str, folder: Path, twin: Path) -> tuple[str, str]:
    file = _pick(rng, folder)
    file.unlink()
    return "removed", file.name


def replace(rng: random.Random, name: str, folder: Path, twin: Path) -> tuple[str, str]:
    """By something that is no file of the dataset: a folder, a pipe, a link."""
    file = _pick(rng, folder)
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
    return kind, file.name


def add_strange_names(rng: random.Random, name: str, folder: Path, twin: Path) -> tuple[str, str]:
    """Names that are no text beside those of the dataset; nothing that is read is changed."""
    if name not in corpora.OURS:
        return "nothing", "none"
    for stray in (b".partial-\xff\xfe", b"00002\xff", b"\x1b[2J", b"\xe9t\xe9.tmp", b"00007"):
        (folder / "data" / os.fsdecode(stray)).mkdir()
    return "names that are no UTF-8", "none"


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
