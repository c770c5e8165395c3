"""CollectionLoader: the orders, ranks and state of a Loader over a collection that penstock did not write."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, get_args

from penstock import _native
from penstock._base.arguments import index, one_of
from penstock._base.errors import InvalidArgumentError, StateMismatchError
from penstock._base.ranks import Mesh
from penstock._base.ranks import resolve as resolve_rank
from penstock._base.words import NoSampler, warn_over
from penstock._load.agreement import check_agreement
from penstock._load.batch_sizes import batch_sizes, given_size
from penstock._load.collections.ahead import Ahead
from penstock._load.collections.fetching import Hooks
from penstock._load.collections.given import Given
from penstock._load.collections.info import BatchInfo
from penstock._load.collections.owner import Owner, check_worker, end_here
from penstock._load.collections.planning import Planner, check_block, check_fetch, is_read_straight
from penstock._load.collections.reading import padded
from penstock._load.job_arguments import job_of
from penstock._load.locate import LocatedRow, batch_position, located, planned
from penstock._load.mismatch import advised
from penstock._load.options import BatchSize, OnMismatch, Tail, Uneven
from penstock._load.orders import Order
from penstock._load.orders import resolve as resolve_order
from penstock._load.resume import Resume, resumed
from penstock._load.state import checked_state

if TYPE_CHECKING:
    pass

_MOST = 1 << 14  # processes, fetches ahead


class CollectionLoader(NoSampler):
    """Batches of one rank from a collection that integers index: AnnData, zarr, h5py, Hugging Face, SciPy, NumPy.

    Orders, ranks, epochs, tails, skips and the state are those of `Loader`. A *fetch* is several batches of the rank,
    read by one call of the collection with ascending indices, each once; batches are then taken from what was fetched.
    How much a fetch is, and who reads it when, changes nothing that comes out.

    By default a fetch is `collection[indices]`, of a mapping, a tuple or `penstock.Collections` that of each part; what
    is backed (AnnData) is brought to memory. A batch is `fetched[places]`, again of each part: of a dict of lists, as
    Hugging Face gives, a dict of lists. How many observations a thing holds is its `shape[0]`, else its `len()`.
    Nothing is made a tensor: that is for `batch_transform`.

    Examples:
        >>> import numpy as np, penstock
        >>> store = np.arange(100) * 10
        >>> loader = penstock.CollectionLoader(store, batch_size=4, seed=0, epochs=1)
        >>> batch = next(loader)
        >>> bool((batch == loader.info.indices * 10).all()), len(loader)
        (True, 25)
        >>> state = loader.state_dict()
        >>> expected = next(loader)
        >>> print(loader.load_state_dict(state))
        resumes at epoch 0, position 4, step 1
        >>> bool((next(loader) == expected).all())
        True
    """

    def __init__(
        self,
        collection: Any,
        batch_size: BatchSize | None = None,
        *,
        global_batch_size: BatchSize | None = None,
        fetch_factor: int | None = None,
        order: str | Order = "uniform",
        seed: int = 0,
        rank: int | str | None = None,
        world_size: int | None = None,
        mesh: Mesh | None = None,
        epochs: int | None = None,
        per_epoch: bool = False,
        tail: Tail = "pad",
        skip: Iterable[tuple[int, int]] = (),
        fetch_callback: Callable[[Any, Any], Any] | None = None,
        fetch_transform: Callable[[Any], Any] | None = None,
        batch_callback: Callable[[Any, Any], Any] | None = None,
        batch_transform: Callable[[Any], Any] | None = None,
        threads: int = 1,
        processes: int = 0,
        prefetch: int = 1,
        fingerprint: str | None = None,
        on_mismatch: OnMismatch = "refuse",
        uneven: Uneven = "refuse",
        hooks_see_padding: bool = False,
    ) -> None:
        """Makes a loader; nothing is read, and no thread or process started, before the first batch is asked for.

        Args:
            collection: anything with a length that an array of integers indexes, or a function that opens it, which
                is called here and in each process.
            batch_size: observations of this rank's batches; or a schedule [(position, size), …] that begins at 0.
            global_batch_size: observations of all ranks' batches together; exactly one of the two is given.
            fetch_factor: batches of this rank that are read by one call; None: as many as the order's own fetch is
                (`orders.Blocks`, "sequential"), else 16. A fetch also ends where one of the order does.
            order: "uniform", "sequential" or one of `penstock.orders`.
            seed: 64 bits; decides the order, with the epoch.
            rank: number of this rank, or "env" for RANK and WORLD_SIZE of the environment.
            world_size: number of ranks.
            mesh: a device mesh instead of rank and world_size: its data-parallel dimensions are folded, ranks along tp
                and pp get the same.
            epochs: how many, at least 1; None is endless.
            per_epoch: each `for` is one epoch, which ends with a batch of its own.
            tail: what becomes of a last batch that is not full: "pad"; "drop"; or "short": on R ranks, where n
                observations are left, each rank has ⌈n/R⌉ rows. Padded rows hold the last observation of the global
                batch, and `info.valid` is false there.
            skip: ranges [begin, end) of positions that are left out.
            fetch_callback: `(collection, indices)` -> fetched, instead of indexing; indices are int64, ascending, each
                once.
            fetch_transform: `(fetched)` -> fetched, once a fetch: sparse to dense, say.
            batch_callback: `(fetched, places)` -> batch, instead of indexing; places are int64, in the batch's order.
            batch_transform: `(batch)` -> batch.
            threads: 1: a background thread reads fetches ahead; loaders that share a collection take turns, and others
                should not use it meanwhile. 0: `next()` reads. Batches are taken in the caller's thread. With
                processes: of each of them.
            processes: that read and take batches, each with a collection of its own; the first two hooks and the
                others run there. The collection, or the function that opens it, and the hooks are pickled; processes
                are spawned, so a script has its `if __name__ == "__main__"`.
            prefetch: fetches that are read ahead, at least 1; never less than there are processes. So many fetches, and
                the one that is consumed, are in memory.
            fingerprint: what tells this collection from others, for the state; None: its length, and the shape, dtype,
                features or names that it says it has. Values are not looked at.
            on_mismatch: what `load_state_dict` does with a state of another job: "refuse", "restart" or
                "keep_position".
            uneven: what becomes of a global batch that the number of ranks does not divide: "refuse", or "pad", see
                `Loader`; losses are weighed by `info.loss_scale`.
            hooks_see_padding: whether hooks get padded rows too. If not, they get the valid ones, and each part of what
                they made is padded by its own last row; a part that is not indexed by row, such as a number, stays as
                it is. A rank without a valid row has the last observation of the global batch, which its hooks get
                once.

        Raises:
            InvalidArgumentError: an argument that cannot be; what is no collection, or does not pickle where processes
                are asked for; blocks of the order larger than a fetch; a batch or a fetch of 2^31 rows or more; a
                DataLoader's worker.
        """
        check_worker()
        hooks = Hooks(fetch_callback, fetch_transform, batch_callback, batch_transform)
        self.rank, self.world_size, context = resolve_rank(rank, world_size, mesh)
        _refuse(context, on_mismatch, fingerprint)
        size, unit = given_size(batch_size, global_batch_size, self.world_size)
        sizes = batch_sizes(size, unit)
        threads, processes = index("threads", threads, 0, 1), index("processes", processes, 0, _MOST)
        prefetch = index("prefetch", prefetch, 1, _MOST)
        factor = None if fetch_factor is None else index("fetch_factor", fetch_factor, 1, 1 << 48)
        given = Given(collection, hooks)
        self._name = type(given.opened).__name__
        native_order = resolve_order(order, given.count, index("seed", seed))
        self._job = job_of(given.identity(fingerprint), native_order, sizes, epochs, per_epoch, tail, skip, uneven)
        self._job_json = self._job.json
        self._job.check_share(self.rank, self.world_size)
        rows = [_native.batch_rows(size, self.world_size) for _, size in sizes]
        check_block(order, factor, min(rows))
        check_fetch(factor, max(rows))
        self._epoch_size = native_order.epoch_size
        self._run_end = None if epochs is None else index("epochs", epochs) * self._epoch_size
        self._per_epoch, self._on_mismatch = bool(per_epoch), on_mismatch
        share = (self.rank, self.world_size)
        hides = hooks.are_given and not hooks_see_padding
        planner = Planner(self._job, native_order, share, factor, self._per_epoch, not is_read_straight(order), hides)
        self._reader = given.reader(threads, processes)
        readers = processes or threads
        self._ahead = Ahead(planner, self._reader, 1 + max(prefetch, readers) if readers else 1)
        self._position = 0
        self._for_end: int | None = None
        self._info: BatchInfo | None = None
        self._has_ended = self._has_warned = False
        self._owner = Owner()
        self._finalizer = weakref.finalize(self, end_here, self._reader.end, self._owner)
        self._begin()

    # --- iteration

    def __iter__(self) -> CollectionLoader:
        """Goes on at the position.

        Where an earlier loop came to the run's end there is nothing: a RuntimeWarning says so, once.
        """
        if self._has_ended and not self._has_warned and self._run_end is not None and self._position >= self._run_end:
            self._has_warned = True
            warn_over()
        with self._owner.alone():
            self._begin()
        return self

    def __next__(self) -> Any:
        """The next batch, as `batch_transform` returns it; `info` tells which observations it holds.

        Raises:
            StopIteration: the run is over, or with per_epoch the epoch; `rewind()` begins again.
            Error: a hook or the collection raised, or a worker process died: the cause says why. The batch counts as
                not delivered, and the loader can be asked again.
            InvalidArgumentError: a hook returned None, the collection gave another count than was asked for, or its
                length changed; a forked child; closed.
        """
        with self._owner.alone():
            before = self._position, self._info
            try:
                if self._is_over():
                    self._has_ended = True
                    raise StopIteration
                return self._next()
            except StopIteration:
                raise
            except BaseException:  # also Ctrl-C: what is half done is forgotten, and this batch comes again
                self._position, self._info = before
                self._ahead.forget()
                raise

    def __len__(self) -> int:
        """Batches of the whole run, or of the present epoch with per_epoch; not what remains.

        Raises:
            TypeError: the loader is endless.
        """
        if self._run_end is None and not self._per_epoch:
            raise TypeError("an endless loader has no len(): give epochs=, and do not wrap a loader in a DataLoader")
        return self._job.length(self._position)

    def __getitem__(self, index: Any) -> NoReturn:
        """Refuses: what asks for items, as a DataLoader does, would have its own order and position."""
        raise TypeError("a loader is iterated itself: do not wrap it in a DataLoader, and index the collection itself")

    def __bool__(self) -> bool:
        """Always true, whatever len() is."""
        return True

    @property
    def info(self) -> BatchInfo:
        """Which observations the last batch holds, and the state after it.

        Raises:
            InvalidArgumentError: there was none since the loader was made or moved.
        """
        if self._info is None:
            raise InvalidArgumentError("info is of the last batch: take one with next() first")
        return self._info

    def locate(self, step: int | None = None, *, position: int | None = None) -> list[LocatedRow]:
        """Which observations the global batch of any step consists of; nothing is read. See `Loader.locate`.

        Returns:
            The rows of all ranks' batches in the order of their positions, without spans, their `first_record` -1.

        Raises:
            InvalidArgumentError: no such step or position.
        """
        begin = batch_position(self._job, step, position)
        positions, picks = planned(self._job, begin)
        places = _native.row_places(self._job, begin, self.world_size, [], None, 0)
        return located(positions, picks, [-1] * len(positions), [[] for _ in positions], places)

    def check_agreement(self, group: Any = None) -> None:
        """Compares this loader with those of the other processes; see `Loader.check_agreement`.

        Args:
            group: a process group of torch.distributed that has each rank once; None: the default one.

        Raises:
            StateMismatchError: processes differ; the message says which ones, in what.
            InvalidArgumentError: no process group, or one that this process is not in.
        """
        check_agreement(self._job, self._position, (self.rank, self.world_size), group)

    # --- the state

    def state_dict(self) -> dict[str, Any]:
        """Where the job is, for a checkpoint: three keys, the same on every rank, O(1); see `Loader.state_dict`.

        It is after the batch that was fetched last. A loop that fetches ahead saves `info.state_dict()` of the batch
        that was trained last.
        """
        return {"version": self._job.version, "position": self._position, "job": self._job_json}

    def load_state_dict(self, state: Mapping[str, Any]) -> Resume:
        """Goes on where a state was taken; O(1), nothing is read. Ranks, batch size, threads and processes may differ.

        Within a fetch, what is left of it is read.

        Returns:
            Where it goes on; its `str` says so.

        Raises:
            StateMismatchError: the state is of another collection, seed or order, and on_mismatch is "refuse".
            InvalidArgumentError: it is no state.
        """
        version, position, job = checked_state(state)
        with self._owner.alone():
            try:
                loaded = self._job.load(version, position, job, self._on_mismatch)
            except StateMismatchError as error:
                raise StateMismatchError(advised(str(error), job, self._job_json)) from None
            resume = resumed(self._job, loaded)
            self._move_to(resume.position)
        return resume

    @property
    def position(self) -> int:
        """Observations that the whole job has consumed."""
        return self._position

    def seek(self, position: int) -> None:
        """Goes on at `position`."""
        wanted = index("position", position, 0, 1 << 63)
        with self._owner.alone():
            self._move_to(wanted)

    def rewind(self) -> None:
        """Begins again at 0."""
        self.seek(0)

    # --- its end

    def close(self) -> None:
        """Ends thread and processes; waits for what the thread is reading, at most 5 s. Batches given out stay."""
        if not self._owner.is_here:
            return
        with self._owner.alone(closed=True):
            if self._owner.closed:
                return
            self._owner.closed = True
            self._ahead.clear()
            self._reader.close()
            self._finalizer.detach()

    def __enter__(self) -> CollectionLoader:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it."""
        self.close()

    def __reduce__(self) -> Any:
        """Refuses to be pickled."""
        raise TypeError("a running loader does not pickle: pickle what makes it, and its state_dict()")

    def __repr__(self) -> str:
        """Collection, rank and where it is."""
        where = self._job.describe(self._position)
        return f"CollectionLoader({self._name}, rank {self.rank} of {self.world_size}, {where})"

    # --- inside

    def _is_over(self) -> bool:
        """True if this `for` has no further batch; else the first fetch is under way."""
        if self._for_end is not None and self._position >= self._for_end:
            return True
        begins = self._ahead.begin(self._position)
        if begins is not None and (self._for_end is None or begins < self._for_end):
            return False
        if self._for_end is not None:  # nothing but skips or a dropped tail was left
            self._position = self._for_end
        return True

    def _next(self) -> Any:
        planned, batch = self._ahead.batch()
        self._position = planned.end
        state = (self._job.version, planned.end, self._job_json)
        rows = (planned.indices, planned.epochs, planned.valid, planned.global_rows)
        self._info = BatchInfo(planned.position, *rows, self.world_size, state)
        self._ahead.advance()
        return padded(batch, planned.given, len(planned.indices))

    def _begin(self) -> None:
        self._for_end = self._run_end
        if self._per_epoch:
            end = (self._position // self._epoch_size + 1) * self._epoch_size
            self._for_end = end if self._run_end is None else min(end, self._run_end)

    def _move_to(self, position: int) -> None:
        self._ahead.forget()
        self._position = position
        self._info = None
        self._begin()


def _refuse(context: tuple[int, int] | None, on_mismatch: str, fingerprint: Any) -> None:
    """Refuses what loaders of views take, and this one has no meaning for; and a fingerprint that is none."""
    if context is not None and context[1] > 1:
        raise InvalidArgumentError(
            "mesh with the dimension cp: rows of a collection have no window that ranks could share: give the part "
            "of the mesh without cp, or rank= and world_size="
        )
    one_of("on_mismatch", on_mismatch, get_args(OnMismatch))
    if on_mismatch == "grown":
        raise InvalidArgumentError(
            "on_mismatch='grown': a collection says its length, and not what it had before: append to a dataset of "
            "penstock, or begin a new run"
        )
    if fingerprint is not None and not isinstance(fingerprint, str):
        raise InvalidArgumentError(f"fingerprint={fingerprint!r:.80}: must be a string")
