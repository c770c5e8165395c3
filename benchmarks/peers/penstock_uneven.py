"""penstock with a global batch that not all numbers of ranks divide: rows of some ranks are padding, marked as such."""

from __future__ import annotations

from typing import Any

import job
from penstock_loader import Penstock


class PenstockUneven(Penstock):
    name = 'penstock, uneven="pad", global batch 64'
    speed = False
    global_batch = 64

    def _size(self) -> dict[str, Any]:
        return {"global_batch_size": self.global_batch, "uneven": "pad"}


if __name__ == "__main__":
    job.main(PenstockUneven)
