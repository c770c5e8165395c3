"""Megatron-Energon over tar shards that its own tool prepares, a window a sample, a shuffle buffer as its page says.

On several ranks the workers of all of them are 4, so that its own tool can share a checkpoint out among 2 ranks.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import job
import torch
from megatron.energon import (
    Cooker,
    DefaultTaskEncoder,
    Sample,
    WorkerConfig,
    basic_sample_keys,
    edataclass,
    get_savable_loader,
    get_train_dataset,
    stateless,
)
from webdataset import ShardWriter

WINDOWS_A_SHARD = 10_000  # as in its page on making a data set
BUFFER = 100  # samples; this and the length of a run of neighbours are those of its first page


@edataclass
class Window(Sample):
    token: torch.Tensor


@stateless
def window(sample: dict[str, Any]) -> Window:
    """A sample of the bytes in a shard."""
    return Window(**basic_sample_keys(sample), token=torch.frombuffer(bytearray(sample["bin"]), dtype=torch.int32))


class Windows(DefaultTaskEncoder):
    decoder = None  # bytes stay as they are
    cookers: ClassVar = [Cooker(window)]

    @stateless
    def batch(self, samples: list[Window]) -> torch.Tensor:
        return torch.stack([sample.token for sample in samples])


class MegatronEnergon(job.Peer):
    name = "Megatron-Energon"
    packages = ("megatron-energon", "webdataset", "torch", "numpy")
    order = "local: runs of 100 windows, and a buffer of 100"
    dtypes = ("int32",)
    tail = "none: ranks may have other numbers of samples"
    note = (
        "a buffer of 100 and runs of 100, as on its first page; on several ranks less, where a worker has few samples, "
        "repeat=False, so that an epoch ends, 4 workers in all, whose micro-batches stay whole, and states shared out "
        "by `energon checkpoint redist`"
    )
    workers_of_all_ranks: ClassVar[int] = 4

    @classmethod
    def prepare(cls, setup: job.Setup) -> None:
        pattern = str(setup.folder / "windows-%06d.tar")
        with ShardWriter(pattern, maxcount=WINDOWS_A_SHARD, maxsize=1 << 40, verbose=0) as writer:
            for number, row in enumerate(setup.matrix()):
                writer.write({"__key__": f"{number:09}", "bin": row.astype("<i4").tobytes()})
        options = {"--split-ratio": "1,0,0", "--sample-type": "CrudeWebdataset", "--num-workers": 2}
        energon("prepare", "--non-interactive", *(word for pair in options.items() for word in pair), setup.folder)

    def __init__(self, setup: job.Setup) -> None:
        super().__init__(setup)
        self._micro = setup.batch if setup.world == 1 else job.GLOBAL_BATCH // self.workers_of_all_ranks
        # A state taken when the buffer holds all that is left of an epoch begins the epoch again: it stays smaller.
        share = setup.windows // (self.workers_of_all_ranks if setup.world > 1 else 1)
        self._buffer = min(BUFFER, share // 4)
        self._loader = self._make(repeat=False)

    def _make(self, repeat: bool) -> Any:
        setup = self.setup
        workers = setup.setting.workers if setup.world == 1 else max(1, self.workers_of_all_ranks // setup.world)
        config = WorkerConfig(rank=setup.rank, world_size=setup.world, num_workers=workers, seed_offset=setup.seed)
        return get_savable_loader(
            get_train_dataset(
                setup.folder,
                batch_size=self._micro,
                shuffle_buffer_size=self._buffer,
                max_samples_per_sequence=self._buffer,
                task_encoder=Windows(),
                worker_config=config,
                repeat=repeat,
            )
        )

    def epoch(self, number: int) -> Iterator[Any]:
        batches = iter(self._loader)
        while parts := list(islice(batches, max(1, self.setup.batch // self._micro))):
            yield parts[0] if len(parts) == 1 else torch.cat(parts)

    def forever(self) -> Iterator[Any]:
        yield from self._make(repeat=True)

    def state(self) -> Any:
        return self._loader.save_state_rank()

    def load(self, state: Any) -> None:
        self._loader.restore_state_rank(state)

    @classmethod
    def handed(cls, states: list[Any], rank: int, world: int) -> Any:
        if len(states) == world:
            return states[rank]
        with tempfile.TemporaryDirectory() as folder:
            saved = [Path(folder) / f"state{number}.pt" for number in range(len(states))]
            for path, state in zip(saved, states, strict=True):
                torch.save(state, path)
            shared = Path(folder) / "shared"
            shared.mkdir()
            energon("checkpoint", "redist", "--new-world-size", world, *saved, shared)
            return torch.load(shared / f"state{rank}.pt", weights_only=False)


def energon(*words: Any) -> None:
    """Runs its command line.

    Raises:
        RuntimeError: it failed, with its last words.
    """
    command = [str(Path(sys.executable).with_name("energon")), *map(str, words)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip() or done.stdout.strip()).splitlines()[-1])


if __name__ == "__main__":
    job.main(MegatronEnergon)
