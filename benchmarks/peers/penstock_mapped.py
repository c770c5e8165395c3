"""penstock with reader="mmap": the same, its files mapped."""

from __future__ import annotations

from typing import Any

import job
import penstock
from penstock_loader import Penstock


class PenstockMapped(Penstock):
    name = 'penstock, reader="mmap"'
    note = "an option: an error of the device ends the process; mapped pages count as resident"

    def _make(self, **options: Any) -> penstock.Loader:
        return super()._make(**options, reader="mmap")


if __name__ == "__main__":
    job.main(PenstockMapped)
