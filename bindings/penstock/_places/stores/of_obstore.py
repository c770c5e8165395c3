"""Stores of obstore, by its blocking calls."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Any

from penstock._places import buckets as _buckets
from penstock._places.stores.adapter import RANGES_A_CALL, Changed

_LISTING_RIGHTS = {
    "S3Store": "s3:ListBucket on the bucket",
    "GCSStore": "storage.objects.list on the bucket",
    "AzureStore": "to list the container's blobs",
}


class OfObstore:
    """A store of obstore's, by its blocking calls: its asynchronous ones end the process badly where Python ends."""

    has_whole = True

    def __init__(
        self, store: Any, words: str, provider: _buckets.Watched | None = None, *, check_etag: bool = True
    ) -> None:
        _buckets.obstore_for("s3")  # refuses a child after a fork
        import obstore

        self._obstore = obstore
        self._store = store
        self._provider = provider
        # Several ranges a call are answered without ETags.
        self.ranges_a_call = 1 if check_etag else RANGES_A_CALL
        self._check_etag = check_etag
        self._etags: dict[str, str] = {}
        self.credentials = words
        self.listing_right = _LISTING_RIGHTS.get(type(store).__name__, "to list")

    def secrets(self) -> Sequence[str]:
        """Those of the credentials that its provider gave last."""
        return () if self._provider is None else self._provider.secrets

    def refusal(self) -> str:
        """Of the function that it asks for credentials."""
        return "" if self._provider is None else self._provider.failure

    def size(self, key: str) -> int:
        """Bytes of the file."""
        return int(self._obstore.head(self._store, key)["size"])

    def read(self, key: str, offsets: list[int], sizes: list[int]) -> Sequence[Any]:
        """A buffer of each range. Raises Changed for a file whose ETag is not the one that was told first."""
        if self._check_etag:
            return [self._range(key, start, size) for start, size in zip(offsets, sizes, strict=True)]
        if len(offsets) == 1:
            return [self._obstore.get_range(self._store, key, start=offsets[0], length=sizes[0])]
        # What is near was joined before; obstore would join what lies up to 1 MiB apart.
        return self._obstore.get_ranges(self._store, key, starts=offsets, lengths=sizes, coalesce=0)

    def _range(self, key: str, start: int, size: int) -> Any:
        got = self._obstore.get(self._store, key, options={"range": (start, start + size)})
        etag = got.meta["e_tag"]
        if etag and (before := self._etags.setdefault(key, etag)) != etag:
            raise Changed(f"the file is another one than before: its ETag was {before:.80} and is {etag:.80}")
        return got.bytes()

    def etags(self) -> dict[str, str]:
        """Of files of which ranges were read."""
        return dict(self._etags)

    def whole(self, key: str) -> Any:
        """All of a file."""
        return self._obstore.get(self._store, key).bytes()

    def region(self, key: str) -> str | None:
        """Where a bucket of S3 lies, as its server says."""
        config = getattr(self._store, "config", None) or {}
        if type(self._store).__name__ != "S3Store" or not config.get("bucket"):
            return None
        return _buckets.told_region(str(config["bucket"]), config.get("endpoint"))

    def folder(self, key: str) -> tuple[dict[str, int], list[str]]:
        """Bytes of each file in it, and the names of folders."""
        found = self._obstore.list_with_delimiter(self._store, prefix=key or None)
        files = {posixpath.basename(each["path"]): int(each["size"]) for each in found["objects"]}
        return files, [posixpath.basename(each.rstrip("/")) for each in found["common_prefixes"]]
