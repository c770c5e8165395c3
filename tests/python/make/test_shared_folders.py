"""Runs in a folder that others may write to: the umask is kept, and a link of theirs leads no run to another file.

inotify says which names a run made in the folder. One that comes again at another run can be guessed: a link to a file
outside lies there at the next.
"""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import stat
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import _anndata_files
import numpy as np
import penstock
import pytest
from _datasets import with_everything
from _token_files import put_datatrove
from penstock._cli.main import main
from penstock._make.local_folder import LocalFolder
from penstock._make.local_taker import LocalTaker
from penstock._places.scratch import this_boot

IN_CREATE, IN_MOVED_TO, IN_NONBLOCK = 0x100, 0x80, 0o4000
ENTRY = struct.Struct("iIII")


def _written_over(given: Path, out: str) -> None:
    penstock.combine([given / "data"], out)
    penstock.convert(given / "plain", out, "ids", overwrite=True)


def _appended(given: Path, out: str) -> None:
    penstock.combine([given / "data"], out)
    penstock.append(out, [given / "data"])


def _annotated(given: Path, out: str) -> None:
    penstock.combine([given / "plain"], out)
    penstock.annotate(out, {"n": list(range(30))})


def _exported(to: str) -> Callable[[Path, str], object]:
    return lambda given, out: penstock.export(given / "plain", out, to=to, drop=["metadata"])


VERBS: dict[str, Callable[[Path, str], object]] = {
    "write": lambda given, out: penstock.write(
        given / "ids.jsonl", out, ids_column="ids", dtype="u2", workers=3, shard_size=1 << 14
    ),
    "combine": lambda given, out: penstock.combine([given / "data"], out),
    "convert": lambda given, out: penstock.convert(given / "plain", out, "ids"),
    "shuffle": lambda given, out: penstock.shuffle(given / "data", out, seed=3, documents=True, memory=1 << 18),
    "import": lambda given, out: penstock.import_tokens(given / "a.ds", out),
    "import cells": lambda given, out: penstock.import_anndata(given / "cells.h5ad", out),
    "export cells": lambda given, out: main(["export", str(given / "cells"), "--to", "h5ad", "--out", out]),
    "megatron": _exported("megatron"),
    "datatrove": lambda given, out: _exported("datatrove")(given, out + ".ds"),
    "mds": _exported("mds"),
    "append": _appended,
    "annotate": _annotated,
    "overwrite": _written_over,
    "pack": lambda given, out: main(["pack", str(given / "plain"), "--window", "64", "--out", out]),
}
#: Verbs that are given no folder which is there already.
NO_DATASET = ("export cells", "megatron", "datatrove", "mds", "pack")


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs of all verbs."""
    folder = tmp_path_factory.mktemp("given")
    with_everything(folder / "data", 1 << 14)
    put_datatrove(folder)
    ids = np.random.default_rng(0).integers(0, 60_000, (200, 150)).tolist()
    (folder / "ids.jsonl").write_text("".join(f'{{"ids": {each}}}\n' for each in ids))
    with penstock.Writer(folder / "plain", {"token": "u2"}, "json") as writer:
        for number in range(30):
            writer.append(token=[number], metadata=number)
    _anndata_files.write(_anndata_files.as_kind(_anndata_files.make(), "csr"), folder / "cells.h5ad")
    penstock.import_anndata(folder / "cells.h5ad", folder / "cells")
    return folder


def run(verb: str, given: Path, out: Path, umask: int = 0o022) -> int:
    """In a process of its own: others watch it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.umask(umask)
            sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - the process ends
            VERBS[verb](given, str(out))
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def made_in(folder: Path, names: list[str]) -> Iterator[None]:
    """Adds the names that are made in the folder meanwhile, and those that files there are renamed to."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(IN_NONBLOCK)
    try:
        assert libc.inotify_add_watch(watch, os.fsencode(folder), IN_CREATE | IN_MOVED_TO) > 0
        yield
        while True:
            try:
                data = os.read(watch, 1 << 16)
            except BlockingIOError:
                break
            while data:
                size = ENTRY.unpack_from(data)[3]
                names.append(data[ENTRY.size : ENTRY.size + size].rstrip(b"\0").decode())
                data = data[ENTRY.size + size :]
    finally:
        os.close(watch)


def modes(folder: Path) -> dict[str, int]:
    return {str(each): stat.S_IMODE(each.lstat().st_mode) for each in (folder, *sorted(folder.rglob("*")))}


@pytest.mark.parametrize("verb", VERBS)
def test_files_have_the_modes_that_the_umask_leaves(given: Path, tmp_path: Path, verb: str) -> None:
    for umask in (0o027, 0):
        folder = tmp_path / f"{umask:o}"
        folder.mkdir(mode=0o777 & ~umask)
        folder.chmod(0o777 & ~umask)
        for file in (each for each in given.rglob("*") if each.is_file()):
            file.chmod(0o666 & ~umask)  # some files are linked, and have the modes that they had
        assert run(verb, given, folder / "out", umask) == 0
        for name, mode in modes(folder).items():
            assert mode == (0o777 if Path(name).is_dir() else 0o666) & ~umask, name


def names_of(verb: str, given: Path, folders: list[Path], is_inside: bool) -> tuple[set[str], set[str]]:
    """Names that two runs make in these folders, or in the `out` there: those of both, and those of one alone."""
    runs: list[set[str]] = []
    for folder in folders:
        out = folder / "out"
        folder.mkdir()
        if is_inside:
            out.mkdir()
        names: list[str] = []
        with made_in(out if is_inside else folder, names):
            assert run(verb, given, out) == 0
        runs.append(set(names))
    return runs[0] & runs[1], runs[0] ^ runs[1]


@pytest.mark.parametrize(
    ("verb", "is_inside"),
    [(verb, False) for verb in VERBS] + [(verb, True) for verb in VERBS if verb not in NO_DATASET],
)
def test_a_link_that_lies_in_wait_leads_nowhere(given: Path, tmp_path: Path, verb: str, is_inside: bool) -> None:
    folders = [tmp_path / f"shared{number}" for number in range(2)]
    guessed, random = names_of(verb, given, folders, is_inside)
    assert guessed
    for name in random:  # a random part of 64 bits, and made with O_EXCL or mkdir
        assert re.search(r"[0-9a-f]{16}", name), name
    for number, name in enumerate(sorted(guessed)):
        shared, victim = tmp_path / f"trap{number}", tmp_path / f"victim{number}"
        at = shared / "out" / name if is_inside else shared / name
        at.parent.mkdir(parents=True)
        victim.write_bytes(b"not yours")
        at.symlink_to(victim)
        run(verb, given, shared / "out")
        assert victim.read_bytes() == b"not yours", name
        assert stat.S_IMODE(victim.stat().st_mode) == 0o644
        victim.unlink()  # and of a link to nothing, that nothing is made
        if not at.is_symlink():
            continue
        run(verb, given, shared / "out")
        assert not victim.exists(), name


def test_a_note_is_made_anew_whatever_lies_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even by who has guessed its random part; and a process writes the same note as often as it likes."""
    folder = LocalFolder(str(tmp_path))
    for data in (b"one", b"two"):
        folder.write_note("note", data)
        assert [each.name for each in tmp_path.iterdir()] == ["note"]
        assert folder.read_note("note") == data
    monkeypatch.setattr(secrets, "token_hex", lambda count: "0" * 2 * count)
    victim = tmp_path / "victim"
    victim.write_bytes(b"not yours")
    (tmp_path / f".partial-note@{this_boot()}@-@{os.getpid()}-{'0' * 16}").symlink_to(victim)
    with pytest.raises(penstock.IoError, match="note: File exists"):
        folder.write_note("note", b"three")
    assert victim.read_bytes() == b"not yours" and folder.read_note("note") == b"two"


def test_a_shard_that_is_moved_has_a_random_name_on_its_way(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    taker, names = LocalTaker(str(tmp_path / "out"), "run", tmp_path / "scratch"), list[str]()
    try:
        shard = Path(taker.path) / "00000"
        shard.mkdir(parents=True)
        (shard / "stream.bin").write_bytes(b"x")
        with made_in(tmp_path / "out", names):
            taker.begin(0)
    finally:
        taker.close()
    assert names[-1] == "00000" and all(re.search("-[0-9a-f]{16}$", name) for name in names[:-1])
    assert (tmp_path / "out" / "00000" / "stream.bin").read_bytes() == b"x" and len(names) == 2
