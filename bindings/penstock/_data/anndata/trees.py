"""Trees: members of uns as they lie in a file, groups and arrays with their attributes, as JSON and back.

Nothing is made of them: an export writes the same groups and arrays again, and anndata makes of these what it made of
the first ones.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from penstock._base.errors import CorruptionError
from penstock._base.words import excerpt
from penstock._data.anndata.arrays import is_array, reading

MOST_BYTES = 32 << 20  # of one member, before it is packed
ROOM = 4 << 20  # of all members, packed; 3 MiB are for genes of raw: the note has at most 8 MiB
_CHUNK = 1 << 20  # of one string: no string of a shard.json has more than 2 MiB
_DEPTH = 24
_ATTRIBUTES = ("encoding-type", "encoding-version", "_index", "column-order", "ordered", "shape")

#: What anndata reads again from these attributes, groups and arrays alone.
_ENCODINGS = {
    "", "null", "dict", "array", "string", "string-array", "numeric-scalar", "bytes", "rec-array", "categorical",
    "csr_matrix", "csc_matrix", "dataframe", "nullable-integer", "nullable-boolean", "nullable-string-array",
}  # fmt: skip

Tree = dict[str, Any]


class NotKept(Exception):
    """A member that no tree holds; the message says why."""


def read_tree(path: str, group: Any, name: str, where: str) -> Tree:
    """The member `name` of a group of a store.

    Raises:
        NotKept: it is too large, or of a kind that is not read.
        CorruptionError: it cannot be read.
    """
    with reading(f"{path}: {where}/{excerpt(name)}"):
        try:
            return _read(group[name], [MOST_BYTES], _DEPTH)
        except NotKept as error:
            why = str(error)
    raise NotKept(why)


def _read(node: Any, room: list[int], depth: int) -> Tree:
    attributes = {name: _plain(node.attrs[name]) for name in _ATTRIBUTES if name in node.attrs}
    if (encoding := str(attributes.get("encoding-type", ""))) not in _ENCODINGS:
        raise NotKept(f"is of encoding {excerpt(encoding)}")
    if is_array(node):
        return {"a": attributes, **_read_array(node, room)}
    if not depth:
        raise NotKept("too deep")
    members = {str(name): _read(node[name], room, depth - 1) for name in node.keys()}  # noqa: SIM118 - groups of zarr
    return {"a": attributes, "g": members}


def _read_array(node: Any, room: list[int]) -> Tree:
    shape, parts = node.whole(room[0]) if hasattr(node, "whole") else _whole(node, room[0])
    if shape is None:
        raise NotKept(str(parts))
    fields = []
    for name, values in parts:
        if isinstance(values, list):
            room[0] -= sum(len(text) + 8 for text in values)
            fields.append([name, "text", values])
        else:
            room[0] -= values.nbytes
            fields.append([name, values.dtype.str, base64.b64encode(values.tobytes()).decode()])
    if room[0] < 0:
        raise NotKept(f"has more than {MOST_BYTES >> 20} MiB")
    return {"s": list(shape), "f": fields}


def _whole(node: Any, most: int) -> tuple[Any, Any]:
    """(shape, [(name of a field or "", values or texts)]) of an array of zarr; (None, why) where it is not taken."""
    if int(np.prod(node.shape, dtype=object)) * max(1, np.dtype(node.dtype).itemsize) > most:
        return None, f"has more than {most >> 20} MiB"
    values = np.asarray(node[...])
    names = values.dtype.names
    try:
        return values.shape, [(name, _values(values[name])) for name in names] if names else [("", _values(values))]
    except TypeError as error:
        return None, str(error)


def _values(values: Any) -> Any:
    kind = values.dtype.kind
    if kind in "OSUT":
        return [each.decode() if isinstance(each, bytes) else str(each) for each in values.reshape(-1).tolist()]
    if kind not in "biufc":
        raise TypeError(f"of type {values.dtype}")
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<"))


def _plain(value: Any) -> Any:
    value = value.tolist() if hasattr(value, "tolist") else value
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def pack(trees: Mapping[str, Tree], room: int | None = None) -> tuple[list[str], list[str]]:
    """(strings that hold as many members as there is room for, the small ones first; names of the others)."""
    sized = sorted((len(zlib.compress(json.dumps(tree).encode())), name) for name, tree in trees.items())
    kept: list[str] = []
    others: list[str] = []
    used = 0
    for size, name in sized:
        used += size * 4 // 3
        (kept if used <= (ROOM if room is None else room) else others).append(name)
    if not kept:
        return [], others
    text = json.dumps({name: trees[name] for name in trees if name in kept})
    packed = base64.b64encode(zlib.compress(text.encode())).decode()
    return [packed[at : at + _CHUNK] for at in range(0, len(packed), _CHUNK)], others


def unpack(packed: list[str], path: str) -> dict[str, Tree]:
    """The members again.

    Raises:
        CorruptionError: they are no such strings; `path` is their dataset's.
    """
    if not packed:
        return {}
    try:
        inflate = zlib.decompressobj()
        text = inflate.decompress(base64.b64decode("".join(packed)), 64 * MOST_BYTES)
        found = json.loads(text)
    except (ValueError, zlib.error) as error:
        raise CorruptionError(f"{path}: what an import kept of uns cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise CorruptionError(f"{path}: what an import kept of uns is no object")
    return found


def write_tree(h5py: Any, group: Any, name: str, tree: Tree) -> None:
    """Writes a member into a group of HDF5."""
    if "g" in tree:
        node = group.create_group(name)
        for member, each in tree["g"].items():
            write_tree(h5py, node, member, each)
    else:
        node = group.create_dataset(name, **_dataset(h5py, tree))
    for attribute, value in tree["a"].items():
        if isinstance(value, list) and all(isinstance(each, str) for each in value) and attribute != "shape":
            node.attrs.create(attribute, np.array(value, dtype=object), dtype=h5py.string_dtype())
        else:
            node.attrs[attribute] = value


def _dataset(h5py: Any, tree: Tree) -> dict[str, Any]:
    shape, text = tuple(tree["s"]), h5py.string_dtype()
    if len(tree["f"]) == 1 and tree["f"][0][0] == "":
        _, dtype, values = tree["f"][0]
        if dtype == "text":
            return {"data": _texts(values, shape), "dtype": text} if shape else {"data": values[0], "dtype": text}
        return {"data": _numbers(dtype, values, shape)}
    types = np.dtype([(name, text if dtype == "text" else np.dtype(dtype)) for name, dtype, _ in tree["f"]])
    records = np.empty(shape, types)
    for name, dtype, values in tree["f"]:
        records[name] = _texts(values, shape) if dtype == "text" else _numbers(dtype, values, shape)
    return {"data": records, "dtype": types}


def _texts(values: list[str], shape: tuple[int, ...]) -> Any:
    return np.array(values, dtype=object).reshape(shape)


def _numbers(dtype: str, values: str, shape: tuple[int, ...]) -> Any:
    return np.frombuffer(base64.b64decode(values), np.dtype(dtype)).reshape(shape)
