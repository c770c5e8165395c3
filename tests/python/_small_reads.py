"""Reads into Ray in more tasks than a little dataset would have, for tests/ray/lost_verbs.py."""

from __future__ import annotations

from penstock._from.rows import reading


def read_in_small_tasks() -> None:
    """From now on, in this driver."""
    reading._BATCH_RECORDS = 1 << 17
