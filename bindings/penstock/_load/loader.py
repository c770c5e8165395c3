"""Loader: a rank's batches in the job's order, prefetched by native threads; its state is one number."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, NoReturn, cast, get_args

from penstock import _native
from penstock._base.arguments import index, one_of, ranges
from penstock._base.errors import InvalidArgumentError, StateMismatchError
from penstock._base.ranks import Mesh, is_divided, refuse_worker, resolve
from penstock._base.resources import default_max_bytes, default_threads, usable_cores
from penstock._base.words import NoSampler, excerpt, warn_over
from penstock._data.arrays import DtypeChoice
from penstock._data.batch import Batch
from penstock._data.column_specs import Column
from penstock._data.dataset import Dataset, View
from penstock._data.spans import parts_of
from penstock._load.agreement import check_agreement
from penstock._load.growth import check_growable, grown_job, growth, growth_words
from penstock._load.job import batch_sizes, check_view, global_size, is_endless, window_changes
from penstock._load.job_arguments import JobArguments
from penstock._load.locate import LocatedRow, Sources, batch_position, locate
from penstock._load.metrics import Metrics, metrics_of
from penstock._load.mixture import Mixture, SourceOrder
from penstock._load.mixture_arrays import plan_layouts
from penstock._load.options import BatchSize, Framework, LoaderOptions, OnMismatch, Reader, Tail, told_of_options
from penstock._load.parallel import Balance, ContextParallel, check_sliced, in_words, resolve_balance, resolve_slice
from penstock._load.state import checked_state
from penstock._places.stores import far_reader

if TYPE_CHECKING:
    from typing_extensions import Self, TypeVar, Unpack

    Given = TypeVar("Given", default=Batch)
else:
    from typing import TypeVar

    Given = TypeVar("Given")

_DEFAULT_PREFETCH = 4
_MOST_THREADS = 1 << 14  # what no machine has cores for, and no system threads
_MOST_PREFETCH = 1 << 20
_running: weakref.WeakSet[Loader[Any]] = weakref.WeakSet()


@dataclass(frozen=True)
class Resume:
    """Where a loader goes on after `load_state_dict`; its `str` says it in words.

    Attributes:
        epoch: in which it goes on.
        position: observations that the job has consumed.
        step: steps of this loader's schedule from 0 to the position; of other batch sizes, the run took another number.
        message: all of it in words.
    """

    epoch: int
    position: int
    step: int
    message: str

    def __str__(self) -> str:
        """ "resumes at epoch 1, position 4,096, step 32"."""
        return self.message


class Loader(NoSampler, Generic[Given]):
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
    ) -> None:
        """Makes a loader; no file is opened and no thread started before the first batch is asked for.

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
            per_epoch: each `for` is one epoch, whose last batch is padded or dropped.
            tail: what becomes of a last batch that is not full: "pad" or "drop". With "pad" a rank may get padding
                alone, see `tail_rows`: mask losses by `batch.valid` and divide by the count of what is left.
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

        Raises:
            InvalidArgumentError: an argument that cannot be; a batch size that no memory holds; a process that is one
                of several and did not say which; a DataLoader's worker.
        """
        self._is_divided = is_divided()
        self._check_worker()
        check_view(view)
        if transform is not None and not callable(transform):
            raise InvalidArgumentError(f"transform={transform!r}: must be a function of a batch")
        self.rank, self.world_size, of_mesh = resolve(rank, world_size, mesh)
        part = self._part = resolve_slice(context_parallel, of_mesh, view)
        one_of("reader", reader, get_args(Reader))
        one_of("framework", framework, get_args(Framework))
        one_of("on_mismatch", on_mismatch, get_args(OnMismatch))
        torch = _import_torch(framework, pin_memory)
        if (batch_size is None) == (global_batch_size is None):
            raise InvalidArgumentError("give exactly one of batch_size (per rank) and global_batch_size")
        self._unit = self.world_size if global_batch_size is None else 1
        self._view = view
        self._transform = transform
        self._on_mismatch = on_mismatch
        self._endless = is_endless(view, epochs, per_epoch)
        layouts, self._span_functions = plan_layouts(
            view, torch, dtype, columns, max_documents, index("seed", seed), part is not None
        )
        self._layout = layouts[0]
        if part is not None:
            for layout in layouts:
                check_sliced(layout.computed)
        size = batch_size if batch_size is not None else global_batch_size
        sizes = batch_sizes(size, self._unit, window_changes(view), self.world_size)
        datasets = [each.dataset for each in (view.sources.values() if isinstance(view, Mixture) else (view,))]
        self._reader = _remote_reader(datasets, reader)
        self._balance = resolve_balance(balance, view)
        self._arguments = JobArguments(view, sizes, seed, order, epochs, per_epoch, tail, ranges(skip))
        if on_mismatch == "grown":
            check_growable(self._arguments)
        job = self._arguments.native()
        self._sources = Sources(view)
        self._make_native = functools.partial(
            _native.Loader,
            sources=self._sources.native,
            fields=list(self._layout.fields),
            computed=[each.computed.specs for each in layouts],
            made=[list(each.makers) for each in layouts],
            values=list(self._layout.values),
            parts=parts_of(view.first if isinstance(view, Mixture) else view),
            rank=self.rank,
            world_size=self.world_size,
            reader="auto" if self._reader is not None else reader,
            threads=default_threads() if threads is None else index("threads", threads, 1, _MOST_THREADS),
            cores=usable_cores(),
            prefetch=_prefetch(prefetch, datasets, sizes, self.world_size),
            max_bytes=default_max_bytes() if max_bytes is None else index("max_bytes", max_bytes),
            allocate=_pinned_allocator(torch) if pin_memory else None,
            slice=part,
            balance=self._balance,
            far_reader=_far_reader(datasets, reader),
        )
        self._native = self._make_native(job=job)
        self._is_closed = self._has_ended = self._has_warned = False
        self._job = (job.version, job.json)
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
            InvalidArgumentError: a function of `columns` failed, or gave what it must not, for a document of this
                batch, which then comes again; the batches that the caller holds leave no memory; a forked child, a
                DataLoader's worker; closed.
        """
        try:
            native = self._native.next() if not self._is_profiled() else self._profiled_next()
        except InvalidArgumentError:
            self._check_worker()  # which is forked, and gets the better advice
            raise
        if native is None:
            self._has_ended = True
            raise StopIteration
        batch = Batch(native, self._layout, self._job)
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

    def metrics(self) -> Metrics:
        """What this loader has done since it was made, counted by its threads; any thread may ask, at any time.

        While torch.profiler records, each `next` is a range "penstock.next" of its trace.

        Raises:
            InvalidArgumentError: a forked child, which has none of the threads.

        Examples:
            >>> import numpy as np, os, penstock, tempfile
            >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
            >>> np.arange(1000, dtype=np.uint16).tofile(path)
            >>> view = penstock.open(path, dtype="u2").windows(10)
            >>> loader = penstock.Loader(view, batch_size=4, epochs=1)
            >>> metrics = [loader.metrics() for batch in loader][-1]
            >>> metrics.batches, metrics.observations, metrics.bytes_read
            (25, 100, 2000)
        """
        return metrics_of(self._native.metrics())

    def locate(self, step: int | None = None, *, position: int | None = None) -> list[LocatedRow]:
        """Which documents the global batch of any step consists of: past, future, of all ranks.

        Only what tells where documents lie is read: the index, the table of packed rows, and in the ids layout the ids,
        which are in the records. The loader stays where it is.

        Args:
            step: number of the batch in the run, from 0, by this loader's batch sizes; `Resume.step` is one. Or
            position: what a state holds: the batch that comes next there.

        Returns:
            The rows of all ranks' batches, in the order of their positions; padding is not among them.

        Raises:
            InvalidArgumentError: no such step or position.
            CorruptionError, IoError: an index that cannot be read.

        Examples:
            >>> import os, tempfile, penstock
            >>> path = os.path.join(tempfile.mkdtemp(), "corpus")
            >>> with penstock.Writer(path, fields={"token": "u2"}, metadata="json") as writer:
            ...     for number in range(4):
            ...         writer.append(token=range(6), metadata={"number": number})
            >>> view = penstock.open(path).windows(8)
            >>> loader = penstock.Loader(view, batch_size=1, order="sequential", rank=0, world_size=2)
            >>> row = loader.locate(0)[1]
            >>> row.position, row.rank, row.row, row.index, row.first_record
            (1, 1, 0, 1, 8)
            >>> [(span.id.entry, span.start, span.stop, span.offset) for span in row.spans]
            [(1, 0, 4, 2), (2, 4, 8, 0)]
        """
        job = self._native.job
        begin = batch_position(job, step, position)
        return locate(job, self._sources, begin, self._native.row_places(job, begin))

    def check_agreement(self, group: Any = None) -> None:
        """Compares this loader with those of the other processes: each is to give its share of the same batches.

        All processes of the group must call it; all raise the same error. Compared are the job (datasets, views, order,
        seed, skips), the position, the batch sizes, the run's end and `balance=`, and that each rank is there once.

        Args:
            group: a process group of torch.distributed; None: the default one. Where several processes share a rank, as
                those of tensor parallelism do, give one that has each rank once, as `mesh["dp"].get_group()`.

        Raises:
            StateMismatchError: processes differ; the message says which ones, in what.
            InvalidArgumentError: no process group, or one that this process is not in.
        """
        check_agreement(self._native.job, self.position, (self.rank, self.world_size), group, in_words(self._balance))

    # --- the state

    def state_dict(self) -> dict[str, Any]:
        """Where the job is, for a checkpoint: three keys, the same on every rank, O(1).

        It is the state after the batch that `next` gave last. A loop that fetches a batch ahead of the one it trains
        saves `batch.state_dict()` of the batch trained last instead, or a resume leaves out the one fetched ahead.

        Returns:
            {"version": int, "position": int, "job": str}; the position counts what was delivered.
        """
        version, position, job = self._native.state()
        return {"version": version, "position": position, "job": job}

    def load_state_dict(self, state: Mapping[str, Any]) -> Resume:
        """Goes on where a state was taken; O(1), nothing is read. Ranks, batch size and threads may differ.

        With on_mismatch="grown" lengths of epochs change with the state, and so do `len` and `step`; where they do,
        `metrics` counts from here on. Packed rows of the first shards are packed again then.

        Returns:
            Where it goes on; its `str` says so.

        Raises:
            StateMismatchError: the state is of another dataset, seed, order or window, and on_mismatch is "refuse", or
                "grown" and the dataset does not begin with the state's.
            InvalidArgumentError: it is no state.
        """
        version, position, job = checked_state(state)
        if self._on_mismatch == "grown":
            return self._load_grown(version, position, job)
        try:
            return Resume(*self._native.load(version, position, job, self._on_mismatch))
        except StateMismatchError as error:
            raise StateMismatchError(f"{error}{growth(self._view, job)}") from None

    def _load_grown(self, version: int, position: int, text: str) -> Resume:
        before = self._native
        schedule = before.job.batching[0]  # with the sizes that were set
        job = grown_job(replace(self._arguments, schedule=schedule), version, position, text)
        if job.json != before.job.json:
            made = self._make_native(job=job)
            before.seek(position)  # refuses in a forked child, and where another thread is in next()
            before.close()
            self._native, self._job = made, (job.version, job.json)
            if self._is_closed:
                made.close()
        epoch, position, step, message = self._native.load(version, position, job.json, "refuse")
        return Resume(epoch, position, step, message + growth_words(job, position))

    @property
    def position(self) -> int:
        """Observations that the whole job has consumed."""
        return self._native.position

    @property
    def epoch(self) -> int:
        """The epoch of the next observation, from 0; after the last one, the number of epochs. Of a mixture: of its
        whole order, see `Mixture`.
        """
        job: _native.Job = self._native.job
        return job.epoch(self.position)

    @property
    def step(self) -> int:
        """The number of the next batch in the run, from 0, by this loader's batch sizes."""
        job: _native.Job = self._native.job
        return job.steps_before(self.position)

    @property
    def batch_size(self) -> int:
        """Rows of this rank's batches at the position, by the schedule and `set_batch_size`; padding counts."""
        job: _native.Job = self._native.job
        position, (schedule, *_) = self.position, job.batching
        size: int = [size for begin, size in schedule if begin <= position][-1]
        return size // self.world_size

    @property
    def view(self) -> View | Mixture:
        """What is loaded."""
        return self._view

    def seek(self, position: int) -> None:
        """Goes on at `position`."""
        self._native.seek(index("position", position))

    def rewind(self) -> None:
        """Begins again at 0."""
        self._native.seek(0)

    def set_batch_size(self, size: int) -> None:
        """Changes the batch size, in the unit given at construction, from the next undelivered batch on.

        The size belongs to positions from here on, as in a schedule: after `rewind()` those before have theirs.

        Raises:
            InvalidArgumentError: a global size that the number of ranks does not divide; a batch that no memory holds.
        """
        self._native.set_global_batch_size(global_size(size, self._unit))

    @property
    def reader(self) -> str:
        """How files are read here: "pread", "uring", "direct" or "mmap"; what `reader="auto"` found out by a real read.
        "http" or "python" where all of them are elsewhere.

        Raises:
            InvalidArgumentError: the reader that was asked for is refused on this machine.
        """
        return self._native.reader if self._reader is None else self._reader

    @property
    def threads(self) -> int:
        """Threads of the engine."""
        return self._native.threads

    # --- its end

    def close(self) -> None:
        """Stops the threads. Batches that were given out stay valid; what the dataset keeps open stays with it.

        Raises:
            InvalidArgumentError: another thread is in next() of this loader.
        """
        self._native.close()
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


class EvalLoader(Loader[Given]):
    """A loader that begins at 0 at every `iter()`; made by `eval_loader`."""

    def __iter__(self) -> Self:
        """Begins again."""
        self._check_worker()
        self.rewind()
        return super().__iter__()


def eval_loader(
    view: View | Mixture,
    batch_size: BatchSize | None = None,
    *,
    transform: Callable[[Batch], Given] | None = None,
    **options: Unpack[LoaderOptions],
) -> EvalLoader[Given]:
    """A loader for evaluation: the same batches at every `for`, as many on every rank.

    Args:
        view: what to load.
        batch_size: as for `Loader`.
        transform: as for `Loader`.
        **options: as for `Loader`; `epochs` is 1 unless it is given. A mixture needs an end.

    Raises:
        InvalidArgumentError: a mixture without end; else as `Loader`.

    Examples:
        >>> import numpy as np, penstock, tempfile, os
        >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
        >>> np.arange(1000, dtype=np.uint16).tofile(path)
        >>> view = penstock.open(path, dtype="u2").windows(100)
        >>> loader = penstock.eval_loader(view, batch_size=4, framework="numpy")
        >>> [batch.indices.tolist() for batch in loader] == [batch.indices.tolist() for batch in loader]
        True
    """
    if isinstance(view, Mixture) and view.run_end is None:
        raise InvalidArgumentError(
            f"eval_loader: {view!r} has no end: give Mixture(…, end=…), or epochs= of each source"
        )
    if not isinstance(view, Mixture):
        options.setdefault("epochs", 1)
    return EvalLoader(view, batch_size, transform=transform, **options)


def _never() -> bool:
    return False


def _import_torch(framework: str, pin_memory: bool) -> Any:
    if framework == "auto":
        framework = "torch" if importlib.util.find_spec("torch") is not None else "numpy"
    if framework == "numpy":
        if pin_memory:
            raise InvalidArgumentError("pin_memory=True needs framework='torch': torch owns pinned memory")
        return None
    try:
        import torch
    except (ImportError, OSError) as error:  # OSError: a library that it loads
        if importlib.util.find_spec("torch") is None:
            raise InvalidArgumentError("framework='torch', but torch is not installed") from None
        raise InvalidArgumentError(
            f"torch is installed, but cannot be imported: {excerpt(error)}: mend it, or give framework='numpy'"
        ) from error
    return torch


def _remote_reader(datasets: Sequence[Dataset], reader: str) -> str | None:
    """How datasets are read of which no file is on this machine; None: some are.

    Raises:
        InvalidArgumentError: a way to read local files was asked for.
    """
    if not all(each._native.is_remote for each in datasets):
        if reader in ("http", "python"):
            raise InvalidArgumentError(f"reader={reader!r}: these files are on this machine, or some of them")
        return None
    if reader == "python":
        return reader
    names = {name for each in datasets for name, _ in each._native.stores}
    if reader == "http" and reader not in names:
        raise InvalidArgumentError(f"reader='http': {datasets[0].path} is read through Python")
    if reader != "auto" and reader not in names:
        raise InvalidArgumentError(
            f"reader={reader!r}: it reads files of this machine, and {datasets[0].path} is elsewhere"
        )
    return names.pop() if len(names) == 1 else ", ".join(sorted(names))


def _far_reader(datasets: Sequence[Dataset], reader: str) -> _native.Store | None:
    names = {name for each in datasets for name, _ in each._native.stores}
    return far_reader(datasets) if reader == "python" and names != {"python"} else None


def _prefetch(given: int | None, datasets: Sequence[Dataset], sizes: Sequence[tuple[int, int]], ranks: int) -> int:
    if given is not None:
        return index("prefetch", given, 1, _MOST_PREFETCH)
    in_flight = max((wanted for each in datasets for _, wanted in each._native.stores), default=0)
    rows = max(sizes[0][1] // ranks, 1)
    return min(max(_DEFAULT_PREFETCH, -(-in_flight // rows)), _MOST_PREFETCH)


def _pinned_allocator(torch: Any) -> Callable[[int], tuple[Any, int]]:
    """Lends torch's pinned memory, so that its allocator keeps it until every copy from it has finished."""
    if not torch.accelerator.is_available():
        raise InvalidArgumentError("pin_memory=True needs an accelerator: use pin_memory=torch.cuda.is_available()")

    def allocate(size_bytes: int) -> tuple[Any, int]:
        tensor = torch.empty(size_bytes, dtype=torch.uint8, pin_memory=True)
        return tensor, tensor.data_ptr()

    return allocate


@atexit.register
def _close_running() -> None:
    # Native threads would read on while the interpreter is taken down, and Python's own end in what they call.
    _native.begin_exit()
    for loader in list(_running):
        loader._native.close_at_exit()
