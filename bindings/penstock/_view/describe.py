"""What `penstock info` and the page of `penstock view` say of a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock._base.errors import Error
from penstock._places.remote import shown


def describe(data: tuple[str, ...], dataset: Any) -> dict[str, Any]:
    """What `info` says, as JSON values."""
    return {
        "path": shown(*data),
        "kind": dataset.kind,
        "mode": dataset.mode,
        "layout": dataset.layout,
        "fields": {name: str(dataset.dtype[name]) for name in dataset.dtype.names or ()} if dataset.dtype else {},
        "record_bytes": (dataset.dtype.itemsize if dataset.dtype else 0) + id_bytes(dataset.layout),
        "records": dataset.records,
        "spans": dataset.spans,
        "shards": len(dataset.shards),
        "size_bytes": sum(shard.size_bytes for shard in dataset.shards),
        "columns": {name: _type(column) for name, column in dataset.columns.items()},
        "codec": dataset.codec,
        "tokenizer": dataset.tokenizer,
        **({} if dataset.features is None else {"features": len(dataset.features)}),
        "fingerprint": dataset.fingerprint,
        "notices": _notices(data) if dataset.kind == "penstock" else [],
    }


def _type(column: Any) -> str:
    if column.categories is not None:
        return f"category of {len(column.categories):,}"
    axes = list(column.shape[1:])
    return f"{column.dtype} {axes}" if axes else str(column.dtype)


def _notices(data: tuple[str, ...]) -> list[str]:
    """What lies in the datasets' folders on this machine and is no part of them."""
    from penstock import _native
    from penstock._places.stores.location import location_of

    found: list[str] = []
    for path in (str(path) for each in data for path in location_of(each).on_disk()):
        try:
            found += _native.unnamed(path)
        except Error as error:  # it is open: what else lies there is no part of it
            found.append(f"{path}: what else lies there is not known: {error}")
    return found


def id_bytes(layout: str | None) -> int:
    """Bytes of the hidden field that each record of the ids layout ends with."""
    return 4 if layout == "ids" else 0


def disk_bytes(data: tuple[str, ...], dataset: Any) -> int | None:
    """Bytes of all files of a dataset in one folder here, as `penstock write` counts them; None of others."""
    from penstock._places.stores.location import location_of

    folders = [Path(each) for each in location_of(data[0]).on_disk()] if len(data) == 1 else []
    if dataset.kind != "penstock" or len(folders) != 1:
        return None
    parts = [folders[0], *(folders[0] / shard.name for shard in dataset.shards)]
    return int(sum(path.stat().st_size for part in parts if part.is_dir() for path in part.iterdir() if path.is_file()))
