"""All that lies in a trial's folder, the shards of datasets by their numbers: so two runs can be compared."""

from __future__ import annotations

import json
from pathlib import Path


def state_of(folder: Path) -> dict[str, bytes]:
    """Files by name; folders, whose names end with "/", have no bytes."""
    found: dict[str, bytes] = {}
    for each in sorted(folder.iterdir()):
        if (each / "dataset.json").is_file():
            found |= {f"{each.name}/{name}": data for name, data in dataset_at(each).items()}
        else:
            found |= tree(each, each.name)
    return found


def tree(path: Path, name: str) -> dict[str, bytes]:
    if not path.is_dir():
        return {name: path.read_bytes()}
    found = {f"{name}/": b""}
    for each in sorted(path.iterdir()):
        found |= tree(each, f"{name}/{each.name}")
    return found


def dataset_at(path: Path) -> dict[str, bytes]:
    """A dataset that replaced another one has other names of shards: here they are numbers."""
    manifest = json.loads((path / "dataset.json").read_text())
    manifest.pop("crc32c", None)
    named = {}
    for number, shard in enumerate(manifest["shards"]):
        named[shard.pop("name")] = f"shard {number}"
    if "features" in manifest:
        named[manifest["features"].pop("folder")] = "features"
    found = {"dataset.json": json.dumps(manifest).encode()}
    for each in sorted(path.iterdir()):
        if each.name in named:
            files = tree(each, named[each.name])
            found |= {name: without_names(data) if name.endswith("features/dataset.json") else data
                      for name, data in files.items()}  # fmt: skip
        elif each.name != "dataset.json":
            found |= tree(each, each.name)
    return found


def without_names(manifest: bytes) -> bytes:
    said = json.loads(manifest)
    said.pop("crc32c", None)
    return json.dumps(said).encode()


def differing(one: dict[str, bytes], two: dict[str, bytes]) -> str:
    """Names of what is in one alone or is other bytes, in words."""
    more, less = sorted(one.keys() - two.keys()), sorted(two.keys() - one.keys())
    other = sorted(name for name in one.keys() & two.keys() if one[name] != two[name])
    parts = {"more": more, "missing": less, "other": other}
    return ", ".join(f"{word}: {names[:4]}" for word, names in parts.items() if names)
