"""Which folder a path means: the one place that asks whether it is an address of a bucket."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock._base.errors import InvalidArgumentError
from penstock._make.bucket_folder import BucketFolder
from penstock._make.folder import Folder
from penstock._make.local_folder import LocalFolder
from penstock._places.paths import PathLike, local_path
from penstock._places.remote import far_of, is_address
from penstock._places.storage import Storage
from penstock._places.uploads import check_writable


def folder_of(
    path: PathLike,
    storage: Storage | None = None,
    scratch: PathLike | None = None,
    *,
    inputs: Iterable[Any] = (),
    puts_aside: bool = False,
) -> Folder:
    """The folder of a dataset that is to be made; looks at nothing.

    Args:
        path: of this machine, or an address of a bucket.
        storage: how a bucket is reached.
        scratch: where shards of a bucket are until they are uploaded.
        inputs: what is read; if addresses are among it, `storage` may be for them.
        puts_aside: `scratch` is also for what is put aside.

    Raises:
        InvalidArgumentError: an address that is not written to; what is only for buckets is given for a path.
    """
    if is_address(path):
        check_writable(path)
        return BucketFolder(path, storage, scratch)
    refuse_storage(path, None if far_of(inputs) else storage, None if puts_aside else scratch)
    return LocalFolder(local_path(path), None if scratch is None else local_path(scratch))


def refuse_storage(path: Any, storage: Storage | None, scratch: PathLike | None = None) -> None:
    """Refuses what is only for buckets.

    Raises:
        InvalidArgumentError: It is given for a path of this machine.
    """
    for name, value in (("storage", storage), ("scratch", scratch)):
        if value is not None:
            raise InvalidArgumentError(
                f"{name}=…: {str(path)!r:.200} is a path of this machine, no address of a bucket"
            )
