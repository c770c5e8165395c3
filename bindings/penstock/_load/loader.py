"""Loader: a rank's batches in the job's order, prefetched by native threads; its state is one number."""

from __future__ import annotations

import atexit
import functools
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, cast, get_args

from penstock import _native
from penstock._base.arguments import index, one_of, ranges
from penstock._base.errors import InvalidArgumentError, IoError
from penstock._base.ranks import Mesh, is_divided, refuse_worker, resolve
from penstock._base.words import NoSampler, warn_over
from penstock._data.batch import Batch
from penstock._data.column_kinds import Column
from penstock._data.fields import DtypeChoice
from penstock._data.job_text import JobText
from penstock._data.view import View
from penstock._load.batch_sizes import batch_sizes, given_size
from penstock._load.frameworks import import_torch, pinned_allocator
from penstock._load.growth import check_growable
from penstock._load.inspected import Inspected
from penstock._load.job import check_view, is_endless
from penstock._load.job_arguments import JobArguments
from penstock._load.locate import Sources
from penstock._load.mixture import Mixture, SourceOrder
from penstock._load.mixture_arrays import native_columns, plan_layouts
from penstock._load.options import BatchSize, Framework, OnMismatch, Reader, Tail, Uneven, told_of_options
from penstock._load.parallel import Balance, ContextParallel, resolve_balance, resolve_slice
from penstock._load.positioned import Positioned
from penstock._load.readers import native_reading
from penstock._load.row_functions import RowThreads, source_rows
from penstock._load.steered import Steered
from penstock._load.unseen_ends import unseen_end

if TYPE_CHECKING:
    from typing_extensions import Self, TypeVar

    Given = TypeVar("Given", default=Batch)
else:
    from typing import TypeVar

    Given = TypeVar("Given")

_running: weakref.WeakSet[Loader[Any]] = weakref.WeakSet()


class Loader(Steered, Positioned, Inspected, NoSampler, Generic[Given]):
    """Batches of one rank, read ahead by native threads; iterate over it.

    To a type checker a `Loader` is of what `next` gives: `Batch`, or what `transform` returns.

    The state holds the position: how many observations the whole job has consumed. It is the same on every rank and
    does not depend on ranks, batch size, threads or prefetching, so a run resumes exactly on any number of ranks.

    Examples:
        >>> import numpy as np, penstock, tempfile, os
        >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
        >>> np.arange(1000, dtype=np.uint16).tofile(path)
        >>> view = penstock.open(path, dtype="u2").windows(10)
        >>> loader = penstock.Loader(view, batch_size=4, seed=0, epochs=1, framework="numpy")
        >>> batch = next(loader)
        >>> batch["token"].shape
        (4, 10)
        >>> state = loader.state_dict()
        >>> expected = next(loader)["token"]
        >>> print(loader.load_state_dict(state))
        resumes at epoch 0, position 4, step 1
        >>> bool((next(loader)["token"] == expected).all())
        True
    """

    @told_of_options
    def __init__(
        self,
        view: View | Mixture,
        batch_size: BatchSize | None = None,
        *,
        global_batch_size: BatchSize | None = None,
        seed: int = 0,
        order: SourceOrder = "uniform",
        rank: int | str | None = None,
        world_size: int | None = None,
        mesh: Mesh | None = None,
        epochs: int | None = None,
        per_epoch: bool = False,
        tail: Tail = "pad",
        skip: Iterable[tuple[int, int]] = (),
        dtype: DtypeChoice = None,
        pin_memory: bool = False,
        reader: Reader = "auto",
        threads: int | None = None,
        prefetch: int | None = None,
        max_bytes: int | None = None,
        transform: Callable[[Batch], Given] | None = None,
        on_mismatch: OnMismatch = "refuse",
        framework: Framework = "auto",
        columns: Iterable[str | Column] = (),
        max_documents: int | None = None,
        context_parallel: ContextParallel | None = None,
        balance: Balance | None = None,
        uneven: Uneven = "refuse",
    ) -> None:
        """Makes a loader; no file is opened and no thread started before the first batch is asked for, but for one that
        calls a function of `orders.Custom`.

        Args:
            view: what to load: `dataset.windows(…)`, `dataset.documents()` or a `Mixture` of such views.
            batch_size: observations of this rank's batches, or `Tokens`, which keep a batch's tokens where a mixture's
                windows change; or a schedule [(position, size), …] that begins at 0.
            global_batch_size: the same of all ranks' batches together; exactly one of the two is given.
            seed: 64 bits; decides the order, with the epoch.
            order: "uniform", "sequential" or one of `penstock.orders`; of a mixture's sources also {name: order}.
            rank: number of this rank, or "env" for RANK and WORLD_SIZE of the environment.
            world_size: number of ranks.
            mesh: a device mesh, whole or a part of it, instead of rank and world_size: its data-parallel dimensions are
                folded, ranks along `cp` share rows (see `context_parallel`), those along `tp` and `pp` get the same.
            epochs: how many, at least 1; None is endless. A mixture says itself where it ends.
            per_epoch: each `for` is one epoch, which ends with a batch of its own.
            tail: what becomes of a last batch that is not full: "pad"; "drop"; or "short": on R ranks, where n
                observations are left, each rank has ⌈n/R⌉ rows. With "pad" a rank may get padding alone, with "short"
                where n < R, see `tail_rows`: mask losses by `batch.valid`, and weigh their mean by `batch.loss_scale`.
            skip: ranges [begin, end) of positions that are left out.
            dtype: types of integer fields, one or a mapping from names, instead of int64 (torch) or what is stored
                (NumPy). `inputs` and `labels` are always signed: of the type chosen for their field if that is a signed
                integer, else int64.
            pin_memory: whether batches lie in pinned memory, for asynchronous copies to a device; needs torch.
            reader: how local files are read. "auto" is "uring" (io_uring) where the kernel and the container allow it,
                else "pread"; "direct" is io_uring past the page cache, for corpora much larger than memory; "mmap" maps
                them, which is fastest for corpora that stay in memory, but an error of the device ends the process
                (SIGBUS), and a file that is cut short meanwhile does, too, or reads as zeros to the end of a page.
                Of datasets elsewhere "auto" is how they were opened; "python" reads all of them by threads of Python.
            threads: of the engine, at least 1; None is this process's share of the cores (affinity, quota of its
                control group, processes on the node), at most 8.
            prefetch: batches that are read ahead, at least 1; None is 4, or of datasets elsewhere as many as keep
                `Storage.connections` requests under way. Where rows share fetches (`orders.Blocks`, "sequential"), a
                fetch is read whole, whatever this is.
            max_bytes: bound of all batches' memory, held ones included, of fetches, and of what is kept of the
                metadata's files (a quarter of it, at most 256 MiB), but never less than prefetch + 2 batches need; None
                is a quarter of this process's memory.
            transform: called with each batch in the caller's thread; what it returns is given out. Where it raises, the
                batch counts as not delivered and comes again.
            on_mismatch: what `load_state_dict` does with a state of another job: "refuse"; "restart" at 0;
                "keep_position", which goes on after as many observations, or with windows of another size after as many
                records (rounded down), and refuses where documents are to become windows; or "grown", which takes a
                state of the dataset's first shards, ends its epoch over them, takes all shards from the next epoch on,
                and refuses every other job.
            framework: "torch", "numpy", or "auto": torch where it is installed.
            columns: arrays that the threads compute of documents: "cu_seqlens", "position_ids", "document_ids", or
                objects of `penstock.columns`.
            max_documents: of a batch, so that `cu_seqlens` always has max_documents + 1 values, and `max_seqlen` is the
                window; None: as many as the batch has, and one.
            context_parallel: which part of each row this process gets, where several share the rows of one rank.
            balance: which rows a rank gets, by what they cost; None: every `world_size`-th.
            uneven: what becomes of a global batch that the number of ranks does not divide. "refuse", or "pad": all
                ranks' batches have as many rows as the largest share (a multiple of `Balance.micro_batches`), those
                that a rank has less are padding, and losses are weighed by `batch.loss_scale`. It is no part of the
                state.

        Raises:
            InvalidArgumentError: an argument that cannot be; a batch size that no memory holds; a process that is one
                of several and did not say which; a DataLoader's worker.
        """
        self._is_divided = is_divided()
        self._check_worker()
        check_view(view)
        _check_words(transform, reader, framework, on_mismatch)
        self.rank, self.world_size, of_mesh = resolve(rank, world_size, mesh)
        self._part = resolve_slice(context_parallel, of_mesh, view)
        torch = import_torch(framework, pin_memory)
        size, self._unit = given_size(batch_size, global_batch_size, self.world_size)
        self._view: View | Mixture = view
        self._transform, self._on_mismatch = transform, on_mismatch
        self._endless = is_endless(view, epochs, per_epoch)
        is_sliced = self._part is not None
        number = index("seed", seed)
        planned = plan_layouts(view, torch, dtype, columns, max_documents, number, is_sliced)
        self._layout, self._span_functions = planned.layouts[0], planned.spans
        self._unseen_end = unseen_end(columns, planned.layouts)
        rows = planned.rows
        self._rows = None if rows is None else RowThreads(rows, source_rows(view, number), self._layout)
        self._balance = resolve_balance(balance, view)
        micro = 1 if self._balance is None else self._balance[1]
        equal = (1, 1) if uneven == "pad" else (self.world_size, micro)
        sizes = batch_sizes(size, self._unit, view._window_changes(), *equal)
        self._arguments = JobArguments(view, sizes, seed, order, epochs, per_epoch, tail, ranges(skip), uneven)
        if on_mismatch == "grown":
            check_growable(self._arguments)
        job = self._arguments.native()
        share = (self.rank, self.world_size)
        reading, self._reader = native_reading(
            view, share, sizes, reader=reader, threads=threads, prefetch=prefetch, max_bytes=max_bytes
        )
        self._sources = Sources(view)
        self._make_native = functools.partial(
            _native.Loader,
            sources=self._sources.native,
            allocate=pinned_allocator(torch) if pin_memory else None,
            slice=self._part,
            balance=self._balance,
            takers=0 if rows is None else rows.workers,
            **native_columns(planned.layouts, view),
            **reading,
        )
        self._native = self._make_native(job=job)
        self._is_closed = self._has_ended = self._has_warned = False
        self._job = JobText(job)
        self._is_profiled: Callable[[], bool] = _never if torch is None else torch.autograd._profiler_enabled
        _running.add(self)

    # --- iteration

    def __iter__(self) -> Self:
        """Goes on at the position.

        Where an earlier loop came to the run's end there is nothing: a RuntimeWarning says so, once.
        """
        self._check_worker()
        if self._has_ended and not self._has_warned:
            end = self._native.job.batching[1]
            self._has_warned = end is not None and self._native.position >= end
            if self._has_warned:
                warn_over()
        self._native.begin()
        return self

    def __next__(self) -> Given:
        """The next batch, as `transform` returns it.

        Raises:
            StopIteration: the run is over, or with per_epoch the epoch; `rewind()` begins again.
            CorruptionError, IoError: a read for this batch failed. The loader can be asked again.
            InvalidArgumentError: a function of `columns` or of the order failed, or gave what it must not, for this
                batch, which then comes again; the batches that the caller holds leave no memory; a forked child, a
                DataLoader's worker; closed.
        """
        if self._rows is not None:
            self._rows.serve(self._native.hand_over)
        try:
            native = self._native.next() if not self._is_profiled() else self._profiled_next()
        except (InvalidArgumentError, IoError) as error:
            self._check_worker()  # which is forked, and gets the better advice
            cause = None if self._rows is None else self._rows.cause_of(error)
            if cause is not None:
                raise error from cause
            raise
        if native is None:
            self._has_ended = True
            if self._unseen_end is not None:
                self._unseen_end.say()
                self._unseen_end = None
            raise StopIteration
        batch = Batch(native, self._layout, self._job)
        if self._unseen_end is not None:
            self._unseen_end = self._unseen_end.look(batch)
        if self._transform is None and self._span_functions is None:
            return cast("Given", batch)
        try:
            if self._span_functions is not None:
                self._span_functions.fill(batch)
            return cast("Given", batch) if self._transform is None else self._transform(batch)
        except BaseException:
            self._native.seek(batch.position)  # it was not delivered: it comes again
            raise

    def __len__(self) -> int:
        """Batches of the whole run, or of the present epoch with per_epoch; not what remains.

        Raises:
            TypeError: the loader is endless.
        """
        if self._endless:
            raise TypeError("an endless loader has no len(): give epochs=, and do not wrap a loader in a DataLoader")
        return self._native.length()

    @property
    def tail_rows(self) -> int | None:
        """Rows of this rank's last batch that are observations: of the run, or of the present epoch with per_epoch.

        0: it is padding alone here, where a mean over valid rows is NaN. None: an endless run, or one without a batch.
        """
        return None if self._endless else self._native.tail_rows()

    def __getitem__(self, index: Any) -> NoReturn:
        """Refuses: what asks for items, as a DataLoader does, would have its own order and position."""
        raise TypeError("a loader is iterated itself: do not wrap it in a DataLoader, and read single rows of the view")

    def __bool__(self) -> bool:
        """Always true, whatever len() is."""
        return True

    def _check_worker(self) -> None:
        if not self._is_divided:
            refuse_worker(
                "a Loader",
                "Give the DataLoader penstock.adapters.torch.BatchDataset(view, …), which divides them among workers, "
                "or iterate the Loader itself, without a DataLoader: its threads read ahead",
            )

    def _profiled_next(self) -> Any:
        with self._layout.torch.profiler.record_function("penstock.next"):
            return self._native.next()

    # --- what it is

    @property
    def view(self) -> View | Mixture:
        """The view or mixture that is loaded."""
        return self._view

    # --- its end

    def close(self) -> None:
        """Stops the threads. Batches that were given out stay valid; what the dataset keeps open stays with it.

        Raises:
            InvalidArgumentError: another thread is in next() of this loader.
        """
        self._native.close()
        if self._rows is not None:
            self._rows.close()
        self._is_closed = True

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it."""
        self.close()

    def __reduce__(self) -> Any:
        """Refuses to be pickled."""
        raise TypeError("a running loader does not pickle: pickle its view and its state_dict()")

    def __repr__(self) -> str:
        """View, rank and where it is."""
        return (
            f"{type(self).__name__}({self._view!r}, rank {self.rank} of {self.world_size}, {self._native.describe()})"
        )


def _check_words(transform: Any, reader: str, framework: str, on_mismatch: str) -> None:
    if transform is not None and not callable(transform):
        raise InvalidArgumentError(f"transform={transform!r}: must be a function of a batch")
    one_of("reader", reader, get_args(Reader))
    one_of("framework", framework, get_args(Framework))
    one_of("on_mismatch", on_mismatch, get_args(OnMismatch))


def _never() -> bool:
    return False


@atexit.register
def _close_running() -> None:
    # Native threads would read on while the interpreter is taken down, and Python's own end in what they call.
    _native.begin_exit()
    for loader in list(_running):
        loader._native.close_at_exit()
