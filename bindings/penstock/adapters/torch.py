"""A view as a dataset for PyTorch's DataLoader and torchdata's StatefulDataLoader, whose processes read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from penstock._base.errors import InvalidArgumentError, StateMismatchError
from penstock._base.ranks import Mesh, divided
from penstock._base.resources import default_max_bytes, default_threads
from penstock._load.batch_sizes import batch_sizes
from penstock._load.job import Job
from penstock._load.loader import Loader
from penstock._load.mismatch import advised
from penstock._load.mixture import SourceOrder
from penstock._load.options import BatchSize, OnMismatch, Tail, Uneven
from penstock._load.parallel import Balance, ContextParallel
from penstock._load.resume import Resume, resumed
from penstock._load.state import checked_state
from penstock.adapters._common import missing
from penstock.adapters._torch_share import Share

try:
    from torch.utils.data import IterableDataset, get_worker_info
except ImportError as error:
    raise missing("torch", "torch", error) from error


class BatchDataset(IterableDataset[Any]):
    """A rank's batches, in the loader's order, read by the processes of a DataLoader; give it `batch_size=None`.

    For programs that insist on a DataLoader: a `penstock.Loader` alone reads ahead without processes or copies. Worker
    w of n gives the batches w, w + n, …, so that the DataLoader gives all of them in order, with any number of workers.

    A batch is a dict: the tensors of `penstock.Batch` by their names, `position`, and `state_dict`, the state after
    this batch. Save the one of the last batch trained on, whatever the DataLoader has fetched ahead, and give it to
    `load_state_dict` before the DataLoader is iterated; ranks and workers may differ. torchdata's StatefulDataLoader
    keeps the state itself, for the same number of workers and the same global batch size.

    Each `for` over the DataLoader is the whole run, from where `load_state_dict` left the dataset.

    Examples:
        >>> import numpy as np, os, penstock, tempfile, torch
        >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
        >>> np.arange(1000, dtype=np.uint16).tofile(path)
        >>> view = penstock.open(path, dtype="u2").windows(10, lookahead=1)
        >>> dataset = penstock.adapters.torch.BatchDataset(view, batch_size=4, seed=0, epochs=1)
        >>> batches = list(torch.utils.data.DataLoader(dataset, batch_size=None))
        >>> len(batches), batches[0]["inputs"].shape, batches[1]["state_dict"]["position"]
        (25, torch.Size([4, 10]), 8)
        >>> print(dataset.load_state_dict(batches[1]["state_dict"]))
        resumes at epoch 0, position 8, step 2
        >>> batch = next(iter(torch.utils.data.DataLoader(dataset, batch_size=None)))
        >>> bool((batch["indices"] == batches[2]["indices"]).all())
        True
    """

    def __init__(
        self,
        view: Any,
        batch_size: BatchSize | None = None,
        *,
        global_batch_size: BatchSize | None = None,
        seed: int = 0,
        order: SourceOrder = "uniform",
        rank: int | str | None = None,
        world_size: int | None = None,
        mesh: Mesh | None = None,
        epochs: int | None = None,
        tail: Tail = "pad",
        skip: Iterable[tuple[int, int]] = (),
        transform: Callable[[Any], Any] | None = None,
        on_mismatch: OnMismatch = "refuse",
        context_parallel: ContextParallel | None = None,
        balance: Balance | None = None,
        uneven: Uneven = "refuse",
        threads: int | None = None,
        max_bytes: int | None = None,
        **options: Any,
    ) -> None:
        """Checks the arguments, which are those of `penstock.Loader`; nothing is read before a worker is asked.

        Args:
            view: as for `Loader`.
            batch_size: as for `Loader`.
            global_batch_size: as for `Loader`.
            seed: as for `Loader`.
            order: as for `Loader`.
            rank: of this process, not of its workers.
            world_size: as for `Loader`.
            mesh: as for `Loader`; read here, not in the workers.
            epochs: as for `Loader`.
            tail: as for `Loader`.
            skip: as for `Loader`.
            transform: called in the worker, with a `penstock.Batch`; what it returns must pickle, and has the batch's
                `state_dict()` if it puts it there.
            on_mismatch: as for `Loader`, but for "grown", which it refuses; a StatefulDataLoader with several workers
                refuses a state of another job whatever this says.
            context_parallel: as for `Loader`.
            balance: as for `Loader`.
            uneven: as for `Loader`.
            threads: of each worker; None: its share of the cores.
            max_bytes: of each worker; None: its share of a quarter of the memory.
            **options: `dtype`, `reader`, `prefetch`, `columns` and `max_documents`, as for `Loader`.

        Raises:
            InvalidArgumentError: what `Loader` refuses; `per_epoch`, `pin_memory` or NumPy arrays.
        """
        _refuse(options)
        if on_mismatch == "grown":
            raise InvalidArgumentError(
                "on_mismatch='grown': a DataLoader's workers do not know of states: use a penstock.Loader, which has "
                "threads of its own"
            )
        if getattr(view, "is_steered", False):
            raise InvalidArgumentError(
                "a steered mixture: weights that are set reach no DataLoader's worker: use a penstock.Loader, which "
                "has threads of its own"
            )
        skipped = [(begin, end) for begin, end in skip]
        self._loads: dict[str, Any] = {**options, "threads": threads, "max_bytes": max_bytes, "framework": "torch"}
        self._loads |= {"context_parallel": context_parallel, "balance": balance}
        self._runs: dict[str, Any] = {"seed": seed, "order": order, "epochs": epochs, "tail": tail, "uneven": uneven}
        with (
            divided(),
            Loader(
                view,
                batch_size,
                global_batch_size=global_batch_size,
                rank=rank,
                world_size=world_size,
                mesh=mesh,
                skip=skipped,
                transform=transform,
                on_mismatch=on_mismatch,
                **self._runs,
                **self._loads,
            ) as checked,
        ):
            self.rank, self.world_size = checked.rank, checked.world_size
            self._length = None if checked._endless else len(checked)
            if checked._part is not None:  # as the mesh says, which workers do not have
                self._loads["context_parallel"] = ContextParallel(*checked._part[:3])
        unit, size = (self.world_size, batch_size) if global_batch_size is None else (1, global_batch_size)
        self._view = view
        whole = 1 if uneven == "pad" else self.world_size
        self._sizes = batch_sizes(size, unit, view._window_changes(), whole)
        self._skip = skipped
        self._transform = transform
        self._on_mismatch = on_mismatch
        self.position = 0

    def __iter__(self) -> Iterator[Any]:
        """This worker's batches; all of them where there are no workers."""
        info = get_worker_info()
        return Share(self, 0, 1) if info is None else Share(self, info.id, info.num_workers)

    def __len__(self) -> int:
        """Batches of the whole run.

        Raises:
            TypeError: the run is endless.
        """
        if self._length is None:
            raise TypeError("an endless dataset has no len(): give epochs=")
        return self._length

    def load_state_dict(self, state: Mapping[str, Any]) -> Resume:
        """The next iteration goes on at a state: of a batch, or of a `Loader` of the same job.

        There is no `state_dict` here: this process does not know which batches were trained on, and the batches do.

        Returns:
            Where it goes on.

        Raises:
            StateMismatchError: a state of another job.
        """
        resume = self._resume(self._job(), state)
        self.position = resume.position
        return resume

    def _resume(self, job: Job, state: Mapping[str, Any], on_mismatch: str | None = None) -> Resume:
        version, position, text = checked_state(state)
        try:
            loaded = job._native.load(version, position, text, on_mismatch or self._on_mismatch)
        except StateMismatchError as error:
            raise StateMismatchError(advised(str(error), text, job._native.json)) from None
        return resumed(job._native, loaded)

    def _job(self) -> Job:
        return Job(self._view, global_batch_size=self._sizes, skip=self._skip, **self._runs)

    def _loader(self, sizes: list[tuple[int, int]], skip: list[tuple[int, int]], workers: int) -> Loader:
        """A worker's loader, with its share of cores and memory."""
        loads = dict(self._loads)
        if loads["threads"] is None:
            loads["threads"] = max(1, default_threads() // workers)
        if loads["max_bytes"] is None:
            loads["max_bytes"] = default_max_bytes() // workers
        with divided():
            return Loader(
                self._view,
                global_batch_size=sizes,
                rank=self.rank,
                world_size=self.world_size,
                skip=skip,
                **self._runs,
                **loads,
            )


def _refuse(options: dict[str, Any]) -> None:
    """Refuses what workers cannot have; leaves the rest in `options`."""
    if options.get("per_epoch"):
        raise InvalidArgumentError(
            "per_epoch=True: the processes of a DataLoader are made anew for each for, and begin where the dataset "
            "is: give epochs=, and one for is the whole run"
        )
    if options.get("pin_memory"):
        raise InvalidArgumentError("pin_memory=True: a worker's memory cannot be: give it to the DataLoader")
    if options.get("framework", "auto") not in ("auto", "torch"):
        raise InvalidArgumentError(f"framework={options['framework']!r}: a DataLoader's batches are tensors")
    for name in ("per_epoch", "pin_memory", "framework"):
        options.pop(name, None)
