"""The same with Megatron's sampler for epochs in random order, in its default: a part of the samples for each rank."""

from __future__ import annotations

import job
from megatron_gpt import MegatronGpt


class MegatronCyclic(MegatronGpt):
    name = "Megatron-core GPTDataset, cyclic"
    kind = "cyclic"
    speed = False
    note = 'the sampler is "cyclic" of Megatron-Bridge, with data_sharding'


if __name__ == "__main__":
    job.main(MegatronCyclic)
