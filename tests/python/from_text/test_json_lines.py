"""JSON lines in native code: each line is refused, or gives what the reader in Python gives, byte for byte."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from penstock import _native
from penstock._from.text.extract import entry_of, ids_of, text_of
from penstock._from.text.raw import Columns, RawDocument
from penstock._make.errors import DocumentError

CODECS = ["json", "msgpack", "raw", ""]
WANTED: list[list[str] | None] = [None, ["a"], ["b", "a", "b"], ["text", "c"]]
GOOD_NUMBERS = """0 -0 1 -1 31 32 127 128 255 256 65535 65536 -32 -33 -128 -129 -32768 -32769 2147483648 -2147483649
4294967295 4294967296 9223372036854775807 9223372036854775808 18446744073709551615 -9223372036854775808 0.0 -0.0 0e0
-0e5 1e5 1E5 1e+5 1e-4 1e-5 1e15 1e16 1e17 123456789012345678 0.1 0.30000000000000004 9999999999999998.0 1e22 1e23
5e-324 2e-324 -1e-400 1.7976931348623157e308 2.2250738585072011e-308 1.0000000000000002
100000000000000000000000000000000000000000.5"""
BAD_NUMBERS = """18446744073709551616 -9223372036854775809 1.7976931348623159e308 1e999 -1e999 NaN Infinity -Infinity
01 1. .5 +1 - 1e 0x1 True nul undefined [1,] {1:2}"""
NUMBERS, NOT_NUMBERS = GOOD_NUMBERS.split(), BAD_NUMBERS.split()
ESCAPES = r"\" \\ \/ \b \f \n \r \t \u0000 \u001f \u007f \u00e9 \u2028 \u2029 \ud83d\ude00 \uD83D\uDE00 \uffff"
PIECES = [*"abcxyz .,", *ESCAPES.split(), "é", "€", "😀", "\x7f", "\u2028", "\ufeff", "\x85", "ed\ud7ff", "x" * 29]
BAD_PIECES = [r"\ud800", r"\udc00", r"\ud800\u0041", r"\ude00\ud83d", r"\x", r"\u12", "\t", "\x00", "\x1f", "\\", '"']
SIZES = [0, 1, 15, 16, 17, 31, 32, 255, 256]


class Generator:
    """Texts of JSON with all that may be read in two ways; one in six has something that may be no JSON."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._is_bad = False

    def line(self) -> bytes:
        self._is_bad = self.happens(1 / 6)
        names = self._random.sample(["a", "b", "c", "d", r"\u0061b", "é", ""], 4)
        names.insert(self._random.randrange(4), self._random.choice(["text", "text", r"te\u0078t"]))
        if self.bad(0.1):
            names[0] = self._random.choice(["text", "a", r"\u0061"])
        texts = ("text", r"te\u0078t")
        values = [self.string() if name in texts and not self.bad(0.1) else self.value(0) for name in names]
        quoted = [f'"{name}"' for name in names]
        line = self.object(list(zip(quoted, values, strict=True))).encode("utf-8", "surrogatepass")
        if self.bad(0.2):
            at = self._random.randrange(len(line))
            other = self._random.choice([b"\xff", b"}", b"\xed\xa0\x80", b"\xc0\x80", b"", b"\x0b"])
            line = line[:at] + other + line[at + 1 :]
        return self._random.choice([b"\xef\xbb\xbf", b" ", b"\x0c"]) + line if self.bad(0.1) else line

    def happens(self, chance: float) -> bool:
        return self._random.random() < chance

    def bad(self, chance: float) -> bool:
        return self._is_bad and self.happens(chance)

    def value(self, depth: int) -> str:
        kind = self._random.random()
        if kind < 0.3:
            return self.number()
        if kind < 0.4:
            return self._random.choice(["true", "false", "null"])
        if kind < 0.75 or depth > 3:
            return self.string()
        size = self._random.choice(SIZES if self.happens(0.05) else [0, 1, 2, 3])
        if kind < 0.87:
            return "[" + self.space() + (self.space() + ",").join(self.item(size, depth) for _ in range(size)) + "]"
        keys = [f'"k{number}"' for number in range(size)]
        if size > 1 and self.bad(0.1):
            keys[-1] = keys[0]
        return self.object([(key, self.item(size, depth)) for key in keys])

    def item(self, size: int, depth: int) -> str:
        return "1" if size > 3 else self.value(depth + 1)

    def object(self, fields: Sequence[tuple[str, str]]) -> str:
        said = (f"{self.space()}{key}{self.space()}:{self.space()}{value}{self.space()}" for key, value in fields)
        return "{" + ",".join(said) + "}"

    def number(self) -> str:
        kind = self._random.random()
        if self.bad(0.1):
            return self._random.choice(NOT_NUMBERS)
        if kind < 0.3:
            return self._random.choice(NUMBERS)
        if kind < 0.5:
            value = struct.unpack("d", self._random.randbytes(8))[0]
            return repr(value) if abs(value) < float("inf") else "1.5"
        if kind < 0.7:
            return f"{self._random.randrange(-(10**17), 10**17)}e{self._random.randrange(-30, 10)}"
        return str(self._random.randrange(-(1 << self._random.randrange(64)), 1 << self._random.randrange(1, 65)))

    def string(self) -> str:
        size = self._random.choice(SIZES if self.happens(0.02) else [0, 1, 2, 3, 5, 9, 30])
        pieces = [self._random.choice(PIECES) for _ in range(size)]
        if size and self.bad(0.1):
            pieces[-1] = self._random.choice(BAD_PIECES)
        return '"' + "".join(pieces) + '"'

    def space(self) -> str:
        return self._random.choice(["", " ", "\t", "\r", "  \t "]) if self.happens(0.1) else ""


def document_of(line: bytes) -> RawDocument:
    return RawDocument(7, "x.jsonl", 8, "jsonl", line, None)


def in_python(line: bytes, columns: Columns, codec: str) -> tuple[bytes, bytes] | None:
    """The payload's bytes and the entry, empty where there is none; None: the line cannot be used."""
    document = document_of(line)
    try:
        if columns.ids is None:
            payload, known = text_of(document, columns)
        else:
            ids, known = ids_of(document, columns)
            payload = ids.tobytes()
        return payload, b"" if columns.metadata == () else entry_of(known, document, codec)
    except (DocumentError, StopIteration):
        return None


def natively(lines: list[bytes], columns: Columns, codec: str) -> list[tuple[bytes, bytes] | None]:
    """The same of each line; None: it is refused."""
    column, wanted = columns.ids or columns.text, columns.metadata
    reader = _native.JsonLines(column, columns.ids is not None, None if wanted is None else list(wanted), codec)
    sizes = np.array([len(line) for line in lines], np.uint64)
    ends = np.cumsum(sizes, dtype=np.uint64)
    parsed = reader.parse(b"".join(lines), ends - sizes, ends)
    payload_ends = [0, *parsed.ends.tolist()]
    entry_ends = [0, *(parsed.entry_ends.tolist() or [0] * len(lines))]
    refused = set(parsed.refused.tolist())
    assert (payload_ends[-1], entry_ends[-1]) == (len(parsed.payload), len(parsed.entries))
    found: list[tuple[bytes, bytes] | None] = []
    for index in range(len(lines)):
        payload = parsed.payload[payload_ends[index] : payload_ends[index + 1]].tobytes()
        entry = parsed.entries[entry_ends[index] : entry_ends[index + 1]].tobytes()
        assert index not in refused or payload + entry == b""
        found.append(None if index in refused else (payload, entry))
    return found


def columns_of(wanted: list[str] | None, codec: str, ids: str | None = None) -> Columns:
    return Columns("text", ids, () if codec == "" else None if wanted is None else tuple(wanted), "file")


def accepted_share(lines: list[bytes], columns: Columns, codec: str) -> float:
    """Compares each line; returns the share of the lines that Python reads which native code reads too."""
    read = refused = 0
    for line, found in zip(lines, natively(lines, columns, codec), strict=True):
        wanted = in_python(line, columns, codec)
        assert found is None or found == wanted, line
        read += wanted is not None
        refused += wanted is not None and found is None
    assert read > 0
    return 1 - refused / read


@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("codec", CODECS)
def test_each_line_is_refused_or_equal(codec: str, wanted: list[str] | None) -> None:
    generator = Generator(CODECS.index(codec) * 10 + WANTED.index(wanted))
    lines = [generator.line() for _ in range(1500)]
    # What is refused in vain holds an integer beyond 64 bits.
    assert accepted_share(lines, columns_of(wanted, codec), codec) > 0.98


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_ordinary_lines_are_not_refused(codec: str) -> None:
    generator = random.Random(4)
    alphabet = 'abc ABC 0123 .,;:!?"\\/\n\t\r\b\f\x00\x1f\x7féüß€漢字😀\u2028\ufeff'
    lines = []
    for number in range(1000):
        text = "".join(generator.choices(alphabet, k=generator.randrange(200)))
        row = {
            "text": text,
            "id": number,
            "score": generator.uniform(-1e6, 1e6),
            "tags": [text[:9], None, True],
            "at": {},
        }
        row["deep"] = {"a": [{"b": [number - 500, {"c": text[:40]}]}, [], 1e300 * generator.random()]}
        lines.append(json.dumps(row, ensure_ascii=bool(number % 2)).encode())
    columns = columns_of(None, codec)
    assert natively(lines, columns, codec) == [in_python(line, columns, codec) for line in lines]


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_floats_of_all_magnitudes_and_powers_of_two_are_equal(codec: str) -> None:
    generator = random.Random(3)
    values = [struct.unpack("d", generator.randbytes(8))[0] for _ in range(20_000)]
    values += [float(10.0**k) for k in range(-320, 309)] + [2.0**k for k in range(-1074, 1024)]
    values += [generator.randrange(1 << 53) / 10 ** generator.randrange(20) for _ in range(20_000)]
    values += [float(np.nextafter(value, np.inf)) for value in values[-3000:]]
    values = [value for value in values if abs(value) < float("inf")]
    line = b'{"text":"","a":' + json.dumps(values).encode() + b"}"
    columns = columns_of(["a"], codec)
    assert natively([line], columns, codec) == [in_python(line, columns, codec)]


@pytest.mark.parametrize("size", [15, 16, 31, 32, 255, 256, 65535, 65536])
@pytest.mark.parametrize("make", [lambda n: "x" * n, lambda n: [0] * n, lambda n: {str(i): n for i in range(n)}])
def test_sizes_at_the_limits_of_msgpack_are_equal(size: int, make: Callable[[int], Any]) -> None:
    line = json.dumps({"text": "", "a": make(size)}).encode()
    columns = columns_of(None, "msgpack")
    assert natively([line], columns, "msgpack") == [in_python(line, columns, "msgpack")] != [None]


@pytest.mark.parametrize("wanted", [["b", "a"], ["ids"], None])
@pytest.mark.parametrize("codec", ["json", ""])
def test_ids_are_refused_or_equal(codec: str, wanted: list[str] | None) -> None:
    generator = random.Random(6)
    lines = []
    for _ in range(2000):
        items = [str(generator.randrange(1 << generator.randrange(1, 40))) for _ in range(generator.randrange(30))]
        if generator.random() < 0.3:
            items.append(generator.choice([*NUMBERS, *NOT_NUMBERS, "true", "null", '"1"', "[1]", "{}", ""]))
            generator.shuffle(items)
        separator = generator.choice([",", ", ", " ,\t"])
        ids = f'"ids":{generator.choice(["", " "])}[{separator.join(items)}]'
        others = ['"a": 1', '"b": [2]', generator.choice(['"c": "\\"ids\\":[1]"', '"c": {"ids":[7]}', '"\\"ids":[3]'])]
        fields = [ids, *generator.sample(others, generator.randrange(2, 4))]
        if generator.random() < 0.03:
            fields.append(generator.choice([ids, '"\\u0069ds":[1]', '"d":{"x":1,"x":2}']))
        generator.shuffle(fields)
        lines.append(f"{{{', '.join(fields)}}}".encode())
    assert accepted_share(lines, columns_of(wanted, codec, "ids"), codec) > 0.9


def test_lines_are_split_as_python_iterates_a_file() -> None:
    generator = random.Random(8)
    pieces = [
        b"\n",
        b"\r",
        b"\x0b",
        b"\x0c",
        b" ",
        b"\t",
        b"{}",
        b"x",
        b"\xef\xbb\xbf",
        b"\x1c",
        b"\x85",
        b"\xc2\xa0",
        b"\r\n",
    ]
    for _ in range(5000):
        block = b"".join(generator.choices(pieces, k=generator.randrange(12)))
        for is_json, strip_mark in ((True, True), (True, False), (False, False)):
            wanted = []
            lines = block.split(b"\n")[:-1] if block.endswith(b"\n") else block.split(b"\n") if block else []
            for number, line in enumerate(lines):
                payload = line.rstrip() if is_json else line.rstrip(b"\r\n")
                if strip_mark and number == 0:
                    payload = payload.removeprefix(b"\xef\xbb\xbf")
                if payload and not payload.isspace():
                    wanted.append((number, payload))
            begins, ends, numbers, count = _native.split_lines(block, is_json, strip_mark)
            found = [(int(n), block[b:e]) for n, b, e in zip(numbers, begins, ends, strict=True)]
            assert (found, count) == (wanted, len(lines)), block


def test_digested_is_as_of_raw_documents() -> None:
    payloads = [b"", b"x" * 9, b"y" * 10, b"z" * 100_000]
    known: list[dict[str, Any]] = [{}, {"a": "é"}, {"b": [1, 2.5]}, {"c": "x" * 1000}]
    said = [json.dumps(each, sort_keys=True).encode() for each in known]
    ends = np.cumsum([len(each) for each in payloads], dtype=np.uint64)
    begins = ends - np.array([len(each) for each in payloads], np.uint64)
    known_ends = np.cumsum([len(each) for each in said], dtype=np.uint64)
    block = memoryview(b"".join(payloads))
    alone = [RawDocument(0, "", 1, "text", payload, None).digested() for payload in payloads]
    both = [RawDocument(0, "", 1, "text", *each).digested() for each in zip(payloads, known, strict=True)]
    assert bytes(_native.digested(block, begins, ends, None)) == b"".join(alone)
    assert bytes(_native.digested(block, begins, ends, (b"".join(said), known_ends))) == b"".join(both)


def test_ids_are_wrapped_from_both_kinds_of_ends() -> None:
    ids = np.arange(20, dtype=np.uint32)
    offsets = np.array([3, 3, 10, 20], np.int64)
    wanted = [9, 8, 7, 9, 8, *range(3, 10), 7, 9, 8, *range(10, 20), 7]
    for given in (ids, ids.astype(np.int64)):
        lengths, found, wrong = _native.wrap_ids(given, offsets, [9, 8], [7], 2, 19)
        assert (lengths.tolist(), found.tolist(), wrong, found.itemsize) == ([3, 10, 13], wanted, -1, 2)
        lengths, found, wrong = _native.wrap_ids(given[3:], offsets[1:].astype(np.uint64) - 3, [], [], 1, 18)
        assert (lengths.tolist(), found.tolist(), wrong) == ([0, 7, 10], list(range(3, 20)), 16)
    with pytest.raises(TypeError, match="ids"):
        _native.wrap_ids(ids[::2], offsets, [], [], 2, 19)
    with pytest.raises(TypeError, match="ends"):
        _native.wrap_ids(ids, offsets.astype(np.int32), [], [], 2, 19)


def test_a_name_that_is_no_text_is_that_of_no_column() -> None:
    line = b'{"text":"a","b":1}'
    for column, wanted in (("\udcff", ["b"]), ("text", ["\udcff"])):
        columns = Columns(column, None, tuple(wanted), "file")
        assert natively([line], columns, "json") == [None] == [in_python(line, columns, "json")]


def test_arrays_outlive_the_parser_and_the_block() -> None:
    reader = _native.JsonLines("text", False, ["a"], "json")
    block = bytearray(b'{"text": "abc", "a": 1}')
    parsed = reader.parse(block, np.array([0], np.uint64), np.array([len(block)], np.uint64))
    payload, entries = parsed.payload, parsed.entries
    block.clear()
    del reader, parsed, block
    assert (payload.tobytes(), entries.tobytes()) == (b"abc", b'{"a":1}')


@pytest.mark.parametrize("name", [":", ",", ":1,", " : "])
def test_ids_of_a_column_that_is_called_like_what_stands_between_strings(name: str) -> None:
    fields = {f"{end}{mark}": f":[{number}]" for number, end in enumerate("ab") for mark in (",", ", ")}
    rows: list[Any] = [{"a,": ":[1, 2]", "x": 1, name: [3]}, {**fields, name: [4]}, {"k": ["x,", ":[1]"], name: [5]}]
    lines = [json.dumps(row, separators=separators).encode() for row in rows for separators in [None, (",", ":")]]
    lines += [b'{"a,":1,":[5]":2,"%b":[6]}' % name.encode(), b'{"a," : ":[5]","%b":[6]}' % name.encode()]
    assert accepted_share(lines, columns_of(None, "json", name), "json") == 1
