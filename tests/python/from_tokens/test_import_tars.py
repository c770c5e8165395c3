"""`penstock.import_tokens` of WebDataset's tars: where tokens are, and tars that are refused."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _token_files import DOCUMENTS, tokens_of
from test_import_packed import metadata_of, npy, put_tar, samples

TARS: dict[str, tuple[list[tuple[str, bytes]], dict[str, Any]]] = {
    "bytes": (samples("bin", lambda each: np.array(each, "<u4").tobytes()), {"dtype": "u4"}),
    "a name of two parts": (samples("ids.npy"), {"column": "ids.npy"}),
    "tokens.npy": (samples("tokens.npy"), {}),
    "packed": (samples("npy.gz", lambda each: gzip.compress(npy(each))), {"column": "npy.gz"}),
    "int64": (samples("npy", lambda each: npy(each, ">i8")), {}),
    "capital letters": ([(name.replace("npy", "NPY"), data) for name, data in samples()], {}),
    "a key of json": (
        [(f"{n}.json", json.dumps({"input_ids": each, "n": n}).encode()) for n, each in enumerate(DOCUMENTS)],
        {},
    ),
}


@pytest.mark.parametrize("what", list(TARS))
def test_members_that_have_tokens(tmp_path: Path, what: str) -> None:
    members, options = TARS[what]
    path = put_tar(tmp_path / "a.tar", *members)
    penstock.import_tokens(path, tmp_path / "d", metadata=["n", "__key__"], **options)
    assert tokens_of(tmp_path / "d") == DOCUMENTS
    entries = metadata_of(tmp_path / "d")
    assert [each["n"] for each in entries] == list(range(len(DOCUMENTS)))
    assert entries[2]["__key__"] == ("2" if what == "a key of json" else "a/000002")


class Unpickled:
    def __reduce__(self) -> Any:
        return pytest.fail, ("unpickled",)


REFUSED: dict[str, tuple[list[tuple[str, bytes]], dict[str, Any], str]] = {
    "a pickle": ([("a.pyd", pickle.dumps(Unpickled()))], {}, "pyd is pickled, and penstock unpickles nothing"),
    "a pickle by name": ([("a.pyd", b"")], {"column": "pyd"}, "pickled, and penstock unpickles nothing"),
    "objects": ([("a.npy", npy([1]).replace(b"'<u2'", b"'|O' "))], {}, "holds Python objects"),
    "no tokens": ([("a.jpg", b"x")], {}, r"which member has the tokens\? There are \.jpg"),
    "no type": ([("a.bin", b"xx")], {}, "bytes do not say their type: give the dtype"),
    "half a token": ([("a.bin", b"xxx")], {"dtype": "u2"}, "3 bytes, a multiple of 2 is wanted"),
    "no .npy": ([("a.npy", b"xxx")], {}, "does not begin as a .npy does"),
    "a cut .npy": ([("a.npy", npy(range(9))[:-3])], {}, "15 bytes of values, its header says 18"),
    "floats": ([("a.npy", npy([1.5], "<f4"))], {}, "integers are wanted"),
    "twice": ([("a.npy", npy([1])), ("a.npy", npy([1]))], {}, "a.npy is there twice"),
    "missing": ([("a.npy", npy([1])), ("b.json", b"{}")], {}, r"b\.npy is missing, which the first sample has"),
    "no list": ([("a.json", b'{"tokens": [1.5]}')], {}, "'tokens' is no list of integers"),
    "no json": ([("a.npy", npy([1])), ("a.json", b"{")], {"metadata": ["n"]}, r"a\.json"),
    "nothing": ([], {}, "no sample is in it"),
    "metadata": ([("a.npy", npy([1]))], {"metadata": ["url"]}, "no 'url' for metadata: there are __key__"),
    "a wide one later": (
        [("a.npy", npy([1])), ("b.npy", npy([2, 70_000], "<u4"))],
        {},
        r"a\.tar: document 1: token 70,000 does not fit u2 \(0 to 65,535\)",
    ),
    "floats later": ([("a.npy", npy([1])), ("b.npy", npy([1.5], "<f4"))], {}, r"b\.npy: tokens of type float32"),
    "a header of no array": ([("a.npy", npy([1, 2, 3]).replace(b"(3,)", b"((3,"))], {}, r"a\.npy"),
    "an archive": ([("a.npz", b"xx")], {"column": "npz", "dtype": "u2"}, r"\.npz holds no bare tokens: \.npy does"),
    "a text": ([("a.json", b"{}")], {"column": "json", "dtype": "u2"}, r"\.json holds no bare tokens"),
    "metadata of bytes": ([("a.npy", npy([1])), ("a.json", b'{"n": 1, "x": NaN}')], {"metadata": "all"}, "{'x': nan}"),
    "no type of NumPy": ([("a.bin", b"xx")], {"dtype": "foo"}, "'foo' is no type that NumPy knows"),
}


@pytest.mark.parametrize("what", list(REFUSED))
def test_tars_that_are_refused(tmp_path: Path, what: str) -> None:
    members, options, message = REFUSED[what]
    path = put_tar(tmp_path / "a.tar", *members)
    with pytest.raises((penstock.InvalidArgumentError, penstock.CorruptionError), match=message):
        penstock.import_tokens(path, tmp_path / "d", **options)


def test_samples_of_several_types_and_an_array_of_fortran_order(tmp_path: Path) -> None:
    members = [("a.npy", npy([1])), ("b.npy", npy([2], ">i8")), ("c.npy", npy([], "<f8")), ("d.npy", npy([3], "u1"))]
    file = io.BytesIO()
    np.save(file, np.asfortranarray(np.arange(6, dtype="u2").reshape(2, 3)))
    penstock.import_tokens(put_tar(tmp_path / "a.tar", *members, ("e.npy", file.getvalue())), tmp_path / "d")
    assert tokens_of(tmp_path / "d") == [[1], [2], [], [3], [0, 1, 2, 3, 4, 5]]


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_a_tar_that_is_not_whole_is_no_shorter_tar(tmp_path: Path) -> None:
    path = put_tar(tmp_path / "a.tar", *samples())
    data = path.read_bytes()
    with tarfile.open(path) as tar:
        at = tar.getmembers()[6].offset
    for damage, message in (
        (data[:at], "after 6 members: it ends without the zeros that every tar ends with: copy the file again"),
        (data[: at + 100], "after 6 members: truncated header"),
        (data[: at + 520], "after 6 members: unexpected end of data"),
        (flipped(data, at + 3), "after 6 members: bad checksum"),
        (data[:at] + bytes(512) + data[at:], "data after the end mark that follows 6 members"),
        (data + data, "tars that were put end to end import each by itself"),
    ):
        path.write_bytes(damage)
        with pytest.raises(penstock.CorruptionError, match=message):
            penstock.import_tokens(path, tmp_path / "d")
        assert not (tmp_path / "d" / "dataset.json").exists()


@pytest.mark.parametrize("size", [1 << 40, (1 << 63) - 1, (1 << 64) - 1])
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_member_that_claims_to_be_huge_ends_with_its_file(tmp_path: Path, size: int, is_packed: bool) -> None:
    """tarfile passes over it by a read of each 16 KiB that it claims, which took for ever."""
    path = put_tar(tmp_path / "a.tar", *samples(), ("z.jpg", b"x"))
    data = bytearray(path.read_bytes())
    with tarfile.open(path) as tar:
        at = tar.getmembers()[-1].offset
    data[at + 124 : at + 136] = b"\x80" + size.to_bytes(11, "big")
    data[at + 148 : at + 156] = b" " * 8
    data[at + 148 : at + 156] = b"%06o\0 " % sum(data[at : at + 512])
    path.write_bytes(gzip.compress(data) if is_packed else data)
    with pytest.raises(penstock.CorruptionError, match=r"a\.tar: no whole tar, .*it ends within a member"):
        penstock.import_tokens(path, tmp_path / "d")


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
def test_a_damaged_packed_tar_is_refused(tmp_path: Path, kind: str) -> None:
    path = put_tar(tmp_path / "a.tar.gz", *samples(), mode=f"w:{kind}")
    data = path.read_bytes()
    penstock.import_tokens(path, tmp_path / "whole")
    assert tokens_of(tmp_path / "whole") == DOCUMENTS
    for damage in (data[:-8], data[: len(data) // 2], flipped(data, len(data) - 6), flipped(data, len(data) // 2)):
        path.write_bytes(damage)
        with pytest.raises(penstock.CorruptionError, match=r"a\.tar\.gz: .*copy the file again"):
            penstock.import_tokens(path, tmp_path / "d")


def test_a_flipped_token_in_a_gzip_that_does_not_pack_is_seen(tmp_path: Path) -> None:
    data = put_tar(tmp_path / "a.tar", *samples()).read_bytes()
    packed = gzip.compress(data, 0)
    path = tmp_path / "a.tar.gz"
    path.write_bytes(flipped(packed, packed.index(np.array(DOCUMENTS[2], "u2").tobytes()) + 7))
    with pytest.raises(penstock.CorruptionError, match="CRC check failed"):
        penstock.import_tokens(path, tmp_path / "d")
