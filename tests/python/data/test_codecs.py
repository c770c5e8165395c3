from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _refused import refused
from penstock import codecs


def round_trip(codec: codecs.Codec, value: Any) -> Any:
    again = codecs.from_json(codec.to_json())
    assert again is not None
    return again.decode(memoryview(codec.encode(value)))


@pytest.mark.parametrize("value", [None, 1, "ü\n", [1, {"a": [2.5, True]}], {"b": 1, "a": 2}])
def test_json_and_msgpack_round_trip(value: Any) -> None:
    for name in ("json", "msgpack"):
        codec = codecs.get(name)
        assert codec is not None and round_trip(codec, value) == value


def test_json_keeps_order_and_text_and_raw_gives_bytes() -> None:
    codec = codecs.get("json")
    assert codec is not None and codec.encode({"b": "ü", "a": 1}) == '{"b":"ü","a":1}'.encode()
    codec = codecs.get("raw")
    assert codec is not None and round_trip(codec, b"\x00\xff") == b"\x00\xff"
    with pytest.raises(TypeError):
        codec.encode("text")


@pytest.mark.parametrize("dtype", ["f4", ">i8", "u1", "S3", [("a", "u2"), ("b", "f4", (2, 3))]])
def test_numpy_round_trips_without_a_copy(dtype: Any) -> None:
    codec = codecs.Numpy(dtype)
    value = np.zeros(5, np.dtype(dtype))
    view = memoryview(codec.encode(value))
    again = codecs.from_json(codec.to_json())
    assert again is not None
    decoded = again.decode(view)
    assert decoded.dtype == codec.dtype and np.array_equal(decoded, value.astype(codec.dtype))
    assert np.shares_memory(decoded, np.frombuffer(view, np.uint8))
    assert again.decode(memoryview(b"")).shape == (0,)


def test_numpy_refuses_what_does_not_fit() -> None:
    refused("does not fit u1", codecs.Numpy("u1").encode, [1, 256])
    for dtype in (object, "U4", "M8[s]", ("f4", 3)):
        with pytest.raises(penstock.InvalidArgumentError):
            codecs.Numpy(dtype)


def test_registered_codec_is_known_by_name_when_it_is_used() -> None:
    said = '{"name":"late"}'
    codec = codecs.from_json(said)
    assert codec is not None
    refused(r"register\(\"late\"", codec.decode, memoryview(b"x"))
    codecs.register("late", lambda value: value.encode(), lambda view: bytes(view).decode())
    assert codec.decode(memoryview(b"x")) == "x"


def test_names_of_penstock_cannot_be_taken() -> None:
    for name in ("json", "numpy", "", "a b", "x" * 65):
        with pytest.raises(penstock.InvalidArgumentError):
            codecs.register(name, bytes, bytes)
    refused("there are raw, json, msgpack", codecs.get, "pickle")


def test_missing_msgpack_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "msgpack", None)
    codec = codecs.get("msgpack")
    assert codec is not None
    refused("pip install msgpack", codec.encode, 1)


class Poison:
    """Would make a file when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


def test_no_codec_unpickles(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    poison = pickle.dumps(Poison(marker))
    for name in ("raw", "json", "msgpack"):
        codec = codecs.get(name)
        assert codec is not None
        try:
            codec.decode(memoryview(poison))
        except Exception as error:
            assert not isinstance(error, AttributeError)
    for bad in ({"name": "numpy", "dtype": "|O"}, {"name": "numpy", "dtype": [["a", "|O"]]}, {"name": "numpy"}):
        with pytest.raises(penstock.InvalidArgumentError):
            codecs.from_json(json.dumps(bad))
    assert not marker.exists()
