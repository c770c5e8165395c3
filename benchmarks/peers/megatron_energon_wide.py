"""Megatron-Energon with 12 workers in all, which more numbers of ranks divide than 4."""

from __future__ import annotations

from typing import ClassVar

import job
from megatron_energon import MegatronEnergon


class MegatronEnergonWide(MegatronEnergon):
    name = "Megatron-Energon, 12 workers in all"
    note = "the same with 12 workers in all"
    speed = False
    workers_of_all_ranks: ClassVar[int] = 12


if __name__ == "__main__":
    job.main(MegatronEnergonWide)
