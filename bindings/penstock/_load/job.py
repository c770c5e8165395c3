"""Job: which observations a position consists of, without reading any; what loaders and adapters stand on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.arguments import index, ranges
from penstock._base.errors import InvalidArgumentError
from penstock._base.resources import memory_bytes
from penstock._data.loadable import Loadable
from penstock._load.batch_sizes import batch_sizes
from penstock._load.growth import check_growable, grown_job
from penstock._load.job_arguments import JobArguments
from penstock._load.locate import LocatedRow, Sources, batch_position, locate
from penstock._load.mixture import SourceOrder
from penstock._load.options import BatchSize, Tail, Uneven
from penstock._load.parallel import Balance, resolve_balance
from penstock._load.state import checked_state


class Plan(NamedTuple):
    """One rank's part of one global batch.

    Attributes:
        position: the job's position before the batch.
        next_position: the position after it.
        picks: structured [rows] with the fields `source`, `epoch` and `index` of `Job.picks`; −1 in rows that are
            padding.
        valid: bool [rows], false where padded.
        global_rows: valid rows of all ranks together.
    """

    position: int
    next_position: int
    picks: npt.NDArray[Any]
    valid: npt.NDArray[np.bool_]
    global_rows: int


class Job:
    """All that decides what stands at a position: view, order, seed, epochs, tail, skips.

    It reads no records; of documents, `picks` and `locate` look up where they lie. A `Loader` with the same arguments
    gives these batches. Immutable; any thread.

    Examples:
        >>> import numpy as np, os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
        >>> np.arange(1000, dtype=np.uint16).tofile(path)
        >>> view = penstock.open(path, dtype="u2").windows(10)
        >>> job = penstock.Job(view, global_batch_size=8, seed=0, epochs=1)
        >>> plan = job.plan(0, rank=1, world_size=2)
        >>> plan.next_position, plan.picks["index"].shape, len(job)
        (8, (4,), 13)
        >>> loader = penstock.Loader(view, global_batch_size=8, seed=0, epochs=1, rank=1, world_size=2)
        >>> next(loader).indices.tolist() == plan.picks["index"].tolist()
        True
    """

    def __init__(
        self,
        view: Any,
        *,
        global_batch_size: BatchSize,
        seed: int = 0,
        order: SourceOrder = "uniform",
        epochs: int | None = None,
        per_epoch: bool = False,
        tail: Tail = "pad",
        skip: Iterable[tuple[int, int]] = (),
        uneven: Uneven = "refuse",
    ) -> None:
        """Makes a job; no file is opened.

        Args:
            view: `dataset.windows(…)`, `dataset.documents()` or a `Mixture`.
            global_batch_size: observations of all ranks' batches together, or `Tokens`; or a schedule [(position,
                size), …].
            seed: 64 bits.
            order: "uniform", "sequential" or one of `penstock.orders`; of a mixture's sources also {name: order}.
            epochs: how many, at least 1; None is endless.
            per_epoch: whether the tail rule applies at each epoch's end.
            tail: what becomes of a last batch that is not full: "pad", "drop" or "short".
            skip: ranges [begin, end) of positions that are left out.
            uneven: what becomes of a global batch that the number of ranks does not divide: "refuse" or "pad".

        Raises:
            InvalidArgumentError: an argument that cannot be.
        """
        check_view(view)
        self._endless = is_endless(view, epochs, per_epoch)
        self._view = view
        self._sources = Sources(view)
        sizes = batch_sizes(global_batch_size, 1, view._window_changes())
        self._arguments = JobArguments(view, sizes, seed, order, epochs, per_epoch, tail, ranges(skip), uneven)
        self._native = self._arguments.native()

    def plan(self, position: int, rank: int, world_size: int) -> Plan | None:
        """A rank's part of the batch that begins at `position`; None at the end of the run.

        Args:
            position: observations consumed before it; 0 for the first batch, then each plan's `next_position`.
            rank: which rank, below `world_size`.
            world_size: number of ranks; it must divide the global batch size, but for uneven="pad".

        Raises:
            InvalidArgumentError: a rank or a number of ranks that cannot be, a position beyond 2^63.
        """
        found = self._native.plan(index("position", position), index("rank", rank), index("world_size", world_size, 1))
        if found is None:
            return None
        begin, end, picks, valid, of_all = found
        self._sources.number(picks["source"])
        return Plan(begin, end, picks, np.arange(len(picks)) < valid, of_all)

    def picks(self, first: int, count: int) -> npt.NDArray[Any]:
        """Observations at the positions [first, first + count), skipped ones too.

        Returns:
            A structured array [count] with the fields `source` (number of the source), `epoch` (of that source),
            `index` (the observation) and `first_record` (where it begins in its dataset's stream, -1 for packed rows
            and opaque documents), int64 each. First records of documents are read from their index. Later versions may
            add fields.

        Raises:
            InvalidArgumentError: positions beyond 2^63.
        """
        return self._sources.picks(self._native, index("first", first), index("count", count))

    def locate(
        self,
        step: int | None = None,
        *,
        position: int | None = None,
        world_size: int = 1,
        balance: Balance | None = None,
    ) -> list[LocatedRow]:
        """Which documents the global batch of a step consists of; only indices are read, see `Loader.locate`.

        Args:
            step: number of the batch in the run, from 0; or
            position: what a state holds: the batch that comes next there.
            world_size: number of ranks, which the rows' ranks are of; it must divide the global batch size, but for
                uneven="pad".
            balance: by what the ranks' loaders share out rows; None: every `world_size`-th.

        Returns:
            The rows of all ranks, in the order of their positions.

        Raises:
            InvalidArgumentError: no such step or position; what `Loader` refuses of `balance`.
        """
        ranks = index("world_size", world_size, 1)
        rules = resolve_balance(balance, self._view)
        begin = batch_position(self._native, step, position)
        places = _native.row_places(self._native, begin, ranks, self._sources.native, rules, memory_bytes())
        return locate(self._native, self._sources, begin, places)

    def state_dict(self, position: int) -> dict[str, Any]:
        """The state of a loader of this job at `position`: what its `load_state_dict` takes.

        Returns:
            {"version": int, "position": int, "job": str}; the same on every rank.
        """
        return {"version": _native.Job.version, "position": index("position", position), "job": self._native.json}

    def steered(self, state: Mapping[str, Any]) -> Job:
        """The job of a steered mixture with the weights that were set in a state's run, as a loader that loads it has.

        Raises:
            StateMismatchError: the state is of another job.
            InvalidArgumentError: it is no state; a job that is not steered.
        """
        if not self._native.is_steered:
            raise InvalidArgumentError("this job is not steered: give a mixture that is, Mixture(…, steered=True)")
        made = object.__new__(Job)
        made.__dict__.update(self.__dict__)
        made._native = self._native.resumed(*checked_state(state))
        made._endless = made._native.batching[1] is None
        return made

    def grown(self, state: Mapping[str, Any]) -> Job:
        """The job that goes on from a state of the dataset's first shards, as a loader with on_mismatch="grown" does.

        Returns:
            A job whose positions are those of the state's run: its epochs over the first shards, up to the end of the
            one that the state is in, then epochs over all of them. This job, if the state is of it.

        Raises:
            StateMismatchError: the state is not of the first shards, or of another seed, order, window or view.
            InvalidArgumentError: it is no state; a view or an order that has no meaning over a longer dataset.
        """
        check_growable(self._arguments)
        version, position, text = checked_state(state)
        grown = object.__new__(Job)
        grown.__dict__.update(self.__dict__)
        grown._native = grown_job(self._arguments, version, position, text)
        return grown

    def __len__(self) -> int:
        """Global batches of the run; with per_epoch of its first epoch.

        Raises:
            TypeError: the job is endless.
        """
        if self._endless:
            raise TypeError("an endless job has no len(): give epochs=")
        return self._native.length(0)

    def __bool__(self) -> bool:
        """Always true, whatever len() is."""
        return True

    def __reduce__(self) -> Any:
        """Refuses to be pickled."""
        raise TypeError("a job does not pickle: pickle its view and the arguments, and make it again")

    def __repr__(self) -> str:
        """Its order and batches, as JSON."""
        return f"Job({self._native.json})"


def check_view(view: Any) -> None:
    """Refuses what is no view, and a view of nothing.

    Raises:
        InvalidArgumentError: it is none, or has no observations.
        CorruptionError: a file that is read in place changed since it was opened.
    """
    if not isinstance(view, Loadable):
        raise InvalidArgumentError(
            f"a {type(view).__name__} is no view: give dataset.windows(window, lookahead=1), "
            "dataset.documents(), dataset.cells(), or a penstock.Mixture of views"
        )
    for each in view._views().values():
        if len(each) == 0:
            raise InvalidArgumentError(each._emptiness())
        each.dataset.check_in_place()


def is_endless(view: Loadable, epochs: int | None, per_epoch: bool) -> bool:
    """Whether a job of these arguments never ends."""
    ends, ends_each = view._ends(epochs, per_epoch)
    return ends is None and not ends_each
