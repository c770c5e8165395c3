"""`penstock.verify`: compares a dataset's bytes with its manifest."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._data.open import refuse_foreign
from penstock._make.bucket_look import BucketLook
from penstock._make.folders import refuse_storage
from penstock._places.paths import PathLike, local_path
from penstock._places.remote import far_of, scheme_of
from penstock._places.storage import Storage
from penstock._places.stores import addresses_of, stores_of
from penstock._places.uploads import WRITABLE


def verify(
    path: PathLike, progress: Callable[[int, int], None] | None = None, *, storage: Storage | None = None
) -> _native.Report:
    """Reads all of a dataset and names everything that is not as its manifest says.

    Args:
        path: the dataset's folder, or its address.
        progress: called with (bytes done, bytes in all) now and then; may raise to stop.
        storage: how an address is reached.

    Returns:
        Report: true if nothing is wrong; `problems` has a text for each thing that is, with file and byte.
            `notices` names folders that are no part of the dataset, with what to do; they are no problem.

    Raises:
        NotFoundError: No dataset.
        InvalidArgumentError: Files of another format, which have no check values.
    """
    if far_of([path]):
        return _verify_address(str(path), progress, storage)
    refuse_storage(path, storage)
    text = local_path(path)
    refuse_foreign(
        text,
        "nothing is wrong with it, but it has no checksums to be verified with; `penstock info` checks its size",
    )
    return _native.verify(text, progress)


def _verify_address(url: str, progress: Callable[[int, int], None] | None, storage: Storage | None) -> _native.Report:
    addresses = addresses_of(url, storage)
    if len(addresses) > 1:
        raise InvalidArgumentError(f"{addresses[0].path}, {addresses[1].path}, …: verify one at a time")
    report = _native.verify(addresses[0].path, progress, stores_of(addresses)[0])
    if scheme_of(url) in WRITABLE:
        with suppress(OSError):  # who may read need not be one who may list
            report.notices = BucketLook(url, storage).notices()
    return report
