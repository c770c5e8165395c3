"""
The native half of penstock; use the names that the package `penstock` exports.
"""

from __future__ import annotations

import collections.abc
import typing

import numpy
import numpy.typing
import typing_extensions

__all__: list[str] = [
    "INDEX_PART",
    "MOST_PACKED_AT_OPENING",
    "AskedOrder",
    "BalancedOrder",
    "Batch",
    "BlocksOrder",
    "BucketedOrder",
    "CachedStore",
    "CellSpec",
    "Choosing",
    "ChoosingWindows",
    "Chosen",
    "ColumnMaker",
    "Dataset",
    "DatasetPacker",
    "DatasetWriter",
    "DocumentBounds",
    "EntryNumbers",
    "FieldSpec",
    "FillInTheMiddleSpec",
    "FinishedShard",
    "GrownOrder",
    "HandOver",
    "HttpStore",
    "IndependentOrder",
    "Job",
    "JsonLines",
    "ListedOrder",
    "Loader",
    "MixtureOrder",
    "MixturePlan",
    "Operation",
    "Order",
    "OrderBlocks",
    "OrderCall",
    "PackHeader",
    "PackTable",
    "PackTableWriter",
    "PackingRule",
    "PaddedField",
    "Padding",
    "ParsedLines",
    "PerSpanSpec",
    "Permutation",
    "PythonStore",
    "Report",
    "RetryBudget",
    "Run",
    "SentenceSpec",
    "SequenceSpec",
    "SequentialOrder",
    "ShuffleWork",
    "SignedAddresses",
    "Source",
    "SourceIdentity",
    "SpanList",
    "Store",
    "StoreCall",
    "StoreCalls",
    "TakenRows",
    "TargetSpec",
    "TokenDocuments",
    "UniformOrder",
    "Unseen",
    "WeightedOrder",
    "annotate",
    "append",
    "batch_rows",
    "begin_exit",
    "can_stream",
    "check_columns",
    "check_features",
    "choice_json",
    "chosen_of_part",
    "clean",
    "combine",
    "commit",
    "concatenate",
    "convert",
    "curl_refusal",
    "describe_shard",
    "digest_of_parts",
    "digested",
    "document_lengths",
    "fill",
    "finished_shards",
    "format_names",
    "joined_tokenizer",
    "locate_rows",
    "make_binned",
    "make_csr",
    "make_dense",
    "make_documents",
    "make_given",
    "make_packed",
    "make_padded",
    "make_parts",
    "make_ranked",
    "make_selection",
    "make_slice",
    "make_span_corruption",
    "make_split",
    "make_values",
    "make_where",
    "make_windows",
    "opaque_texts",
    "open_as",
    "open_features",
    "open_field_arrays",
    "parse_address",
    "plan_shuffle",
    "ranks_that_suit",
    "read_rows",
    "recognise_format",
    "remove_shards",
    "row_places",
    "rows_json",
    "select_shards",
    "shown_address",
    "shuffle",
    "spawn_bound",
    "split_lines",
    "stored_manifest",
    "summarize_indices",
    "unique_run",
    "unnamed",
    "usable_cores",
    "verify",
    "wrap_ids",
    "write_features",
]

class Permutation:
    """
    The bijection of [0, n) that (seed, epoch) chooses.

    Constant time and memory for any n from 1 to 2^52; the same on every machine. Immutable, picklable, safe to share
    between threads; calls on arrays run without the GIL.

    Args:
        n: Number of elements, 1 to 2**52.
        seed: 0 to 2**64 - 1.
        epoch: 0 to 2**64 - 1; each gives an order of its own, and never another seed's.

    Raises:
        ValueError: For a number outside these ranges.

    Examples:
        >>> import numpy, penstock
        >>> p = penstock.Permutation(1000, seed=7)
        >>> images = p(numpy.arange(1000, dtype=numpy.uint64))
        >>> bool((numpy.sort(images) == numpy.arange(1000)).all())
        True
        >>> int(p.inverse(images)[3]), p[3] == int(images[3]), len(p)
        (3, True, 1000)
    """

    algorithm: typing.ClassVar[int] = 1
    def __call__(self, indices: typing.Any) -> numpy.typing.NDArray[numpy.uint64]:
        """
        Images of many indices.

        Args:
            indices: Array of integers of any shape, each in [0, n).

        Returns:
            New uint64 array of the same shape.

        Raises:
            TypeError: If the array is not of integers.
            ValueError: If an index is outside [0, n).
        """
    def __eq__(self, arg0: Permutation) -> bool: ...
    def __getitem__(self, index: typing.Any) -> int:
        """
        Image of one index, negative ones from the end; IndexError beyond.
        """
    def __getstate__(self) -> tuple[int, int, int]: ...
    def __hash__(self) -> int: ...
    def __init__(self, n: typing.Any, seed: typing.Any, epoch: typing.Any = 0) -> None: ...
    def __len__(self) -> int: ...
    def __repr__(self) -> str: ...
    def __setstate__(self, arg0: tuple) -> None: ...
    def inverse(self, values: typing.Any) -> numpy.typing.NDArray[numpy.uint64]:
        """
        The indices whose images are `values`: ``p.inverse(p(i)) == i``.

        Args:
            values: Array of integers of any shape, each in [0, n).

        Returns:
            New uint64 array of the same shape.

        Raises:
            TypeError: If the array is not of integers.
            ValueError: If a value is outside [0, n).
        """
    @property
    def epoch(self) -> int:
        """
        The epoch.
        """
    @property
    def n(self) -> int:
        """
        Number of elements.
        """
    @property
    def seed(self) -> int:
        """
        The seed.
        """

class Order:
    """
    A pure function from positions to observations.
    """
    def end(self, position: typing.Any) -> int:
        """
        First position after `position` that no batch may cross; 2**64 - 1: none.
        """
    def fetch_end(self, position: typing.Any) -> int:
        """
        First position after `position` where no fetch that was met goes on.
        """
    def identity(self, position: typing.Any) -> str:
        """
        Canonical JSON of all that decides the positions before `position`.
        """
    def pick(self, first: typing.Any, stride: typing.Any, count: typing.SupportsInt | typing.SupportsIndex) -> tuple:
        """
        What stands at first, first + stride, …: (index uint64, source uint32, epoch uint32) arrays of [count].
        """
    @property
    def epoch_size(self) -> int:
        """
        Observations in one epoch.
        """

class UniformOrder(Order):
    def __init__(self, n: typing.Any, seed: typing.Any) -> None: ...

class SequentialOrder(Order):
    @typing.overload
    def __init__(self, n: typing.Any) -> None: ...
    @typing.overload
    def __init__(self, n: typing.Any, seed: typing.Any, fetch: typing.Any) -> None: ...

class BlocksOrder(Order):
    def __init__(
        self, n: typing.Any, seed: typing.Any, block: typing.Any, fetch: typing.Any, lanes: typing.Any = 1
    ) -> None: ...

class WeightedOrder(Order):
    def __init__(
        self,
        weights: typing.Annotated[numpy.typing.ArrayLike, numpy.float64],
        mixed: Order,
        seed: typing.Any,
        replace: bool,
        systematic: bool,
        name: str,
    ) -> None: ...

class IndependentOrder(Order):
    def __init__(
        self,
        weights: typing.Annotated[numpy.typing.ArrayLike, numpy.float64],
        seed: typing.Any,
        size: typing.Any,
        fetch: typing.Any,
        lanes: typing.Any,
        name: str,
    ) -> None: ...

class BalancedOrder(Order):
    def __init__(
        self,
        labels: typing.Annotated[numpy.typing.ArrayLike, numpy.int32],
        classes: typing.SupportsInt | typing.SupportsIndex,
        seed: typing.Any,
        size: typing.Any,
        fetch: typing.Any,
        lanes: typing.Any,
    ) -> None: ...

class BucketedOrder(Order):
    def __init__(
        self,
        lengths: typing.Annotated[numpy.typing.ArrayLike, numpy.uint32],
        seed: typing.Any,
        pool: typing.Any,
        bucket: typing.Any,
    ) -> None: ...

class GrownOrder(Order):
    def __init__(
        self, parts: collections.abc.Sequence[tuple[typing.SupportsInt | typing.SupportsIndex, Order, str]]
    ) -> None: ...

class ListedOrder(Order):
    def __init__(
        self,
        indices: numpy.ndarray[typing.Any, numpy.dtype[typing.Any]],
        digest: str,
        fetch: typing.Any,
        lanes: typing.Any,
        fd: typing.SupportsInt | typing.SupportsIndex | None = None,
        path: str = "",
    ) -> None: ...

class OrderCall:
    """
    Positions that a thread is to ask a function of, and its answer.
    """
    def fail(self, what: str, raised: typing.Any) -> None:
        """
        The exception, or None.
        """
    def give(self, indices: typing.Annotated[numpy.typing.ArrayLike, numpy.uint64]) -> None:
        """
        Of each position: uint64.
        """
    @property
    def count(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def first(self) -> int: ...

class OrderBlocks:
    """
    See bindings/asked_blocks.h.
    """
    @staticmethod
    def of_c(
        words: str,
        length: typing.Any,
        observations: typing.Any,
        address: typing.SupportsInt | typing.SupportsIndex,
        keeps: typing.Any,
    ) -> OrderBlocks:
        """
        Of a C function at an address, which lives as long as `keeps`.
        """
    def __init__(self, words: str, length: typing.Any, observations: typing.Any) -> None: ...
    def take(self) -> OrderCall:
        """
        What to ask next; None: the thread is to end.
        """

class AskedOrder(Order):
    block: typing.ClassVar[int] = 65536
    def __init__(
        self,
        blocks: OrderBlocks,
        name: str,
        version: str,
        length: typing.Any,
        fetch: typing.Any,
        lanes: typing.Any,
        waits: bool,
    ) -> None: ...

class MixturePlan:
    """
    What stages make of sources.
    """
    def __init__(
        self,
        *,
        names: collections.abc.Sequence[str],
        stages: collections.abc.Sequence[
            tuple[
                tuple[typing.SupportsInt | typing.SupportsIndex, bool],
                typing.SupportsInt | typing.SupportsIndex,
                collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
                tuple[typing.SupportsInt | typing.SupportsIndex, bool] | None,
            ]
        ],
        caps: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex | None],
        window: typing.SupportsInt | typing.SupportsIndex,
        group: typing.SupportsInt | typing.SupportsIndex,
        end: tuple[typing.SupportsInt | typing.SupportsIndex, bool] | None,
        are_packed: bool,
        of_each_length: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    def count(self, position: typing.SupportsInt | typing.SupportsIndex) -> list[int]:
        """
        Observations of each source before `position`.
        """
    def position_of(self, value: typing.SupportsInt | typing.SupportsIndex, in_tokens: bool) -> int:
        """
        The position at which the run has given at least so much.
        """
    def stage_at(self, position: typing.SupportsInt | typing.SupportsIndex) -> int: ...
    def stages(self) -> list:
        """
        (begin, begin_tokens, window, [(source, weight), …], implied, ramp) of each.
        """
    def tokens_before(self, position: typing.SupportsInt | typing.SupportsIndex) -> int:
        """
        Tokens that the run has given before `position`.
        """
    @property
    def end(self) -> int | None:
        """
        Where the run ends; None: nowhere.
        """
    @property
    def list_begins(self) -> list[int]:
        """
        Positions at which the stages of the list begin.
        """
    @property
    def windows(self) -> list[int]:
        """
        That stages have, the view's first.
        """

class MixtureOrder(Order):
    @staticmethod
    def source_seed(seed: typing.SupportsInt | typing.SupportsIndex, name: str) -> int: ...
    def __init__(
        self, plan: MixturePlan, orders: collections.abc.Sequence[Order], seed: typing.Any, steered: bool = False
    ) -> None: ...

class RetryBudget:
    """
    How long one operation may go on failing, over all its requests.
    """
    @staticmethod
    def present() -> RetryBudget:
        """
        The budget of the operation that this thread is in, for as long as it is.
        """
    def __init__(self) -> None: ...
    def answered(self, began: typing.SupportsFloat | typing.SupportsIndex, has_failed: bool) -> None:
        """
        A request that began then has a good answer.
        """
    def check(self) -> None:
        """
        Raises the error of the request that was given up.
        """
    def give_up(self, number: typing.SupportsInt | typing.SupportsIndex, message: str, path: str) -> None:
        """
        A request was given up.
        """
    def is_spent(self, deadline: typing.SupportsFloat | typing.SupportsIndex) -> bool:
        """
        True once nothing is left: what fails now is not tried again.
        """
    def left(self, deadline: typing.SupportsFloat | typing.SupportsIndex) -> float:
        """
        Seconds for a request that begins now.
        """

class Operation:
    """
    Requests of the thread inside are of one operation.
    """
    def __enter__(self) -> None: ...
    def __exit__(self, arg0: typing.Any, arg1: typing.Any, arg2: typing.Any) -> None: ...
    def __init__(self, budget: RetryBudget | None = None, *, is_apart: bool = False) -> None: ...

class Store:
    """
    Where files lie that are not this machine's.
    """
    def list(self, path: str) -> list[str]:
        """
        Names in the folder, folders with a slash.
        """
    def read(
        self,
        path: str,
        offset: typing.SupportsInt | typing.SupportsIndex,
        size: typing.SupportsInt | typing.SupportsIndex,
    ) -> bytes:
        """
        So many bytes of the file. Raises CorruptionError if it ends before.
        """
    def size(self, path: str) -> int:
        """
        Bytes of the file.
        """

class SignedAddresses:
    """
    See its header.
    """
    def __init__(self, *, credentials: str) -> None: ...
    def give(
        self,
        addresses: collections.abc.Sequence[tuple[str, str]],
        lifetime: typing.SupportsFloat | typing.SupportsIndex,
    ) -> None:
        """
        (path, address) of each, good for some seconds.
        """
    def refuse(self, paths: collections.abc.Sequence[str], message: str) -> None:
        """
        They cannot be signed.
        """
    def stop(self) -> None: ...
    def take(
        self, most: typing.SupportsInt | typing.SupportsIndex, patience: typing.SupportsFloat | typing.SupportsIndex
    ) -> list[str]:
        """
        Paths that are to be signed.
        """
    @property
    def is_stopped(self) -> bool: ...

class HttpStore(Store):
    """
    Files of a server of HTTP.
    """
    def __init__(
        self,
        *,
        server: str,
        headers: collections.abc.Sequence[str],
        ca_file: str,
        connections: typing.SupportsInt | typing.SupportsIndex,
        deadline: typing.SupportsFloat | typing.SupportsIndex,
        check_etag: bool,
        hidden: collections.abc.Sequence[tuple[str, str, str]],
        signed_addresses: SignedAddresses | None,
    ) -> None:
        """
        server: an address of it, whose requests this process counts together with those of other stores
        hidden: (address as it is shown, userinfo, query) where no SignedAddresses are given
        """

class StoreCall:
    """
    What a thread is to fetch, and its answer: one, once.
    """
    def again(self, reason: str, is_unreachable: bool) -> None:
        """
        It failed in a way that may pass.
        """
    def compare_size(self, bytes: typing.SupportsInt | typing.SupportsIndex) -> None:
        """
        The file has so many.
        """
    def give(self, buffers: collections.abc.Sequence) -> None:
        """
        Of each range, or the one of the whole file.
        """
    def give_names(self, names: collections.abc.Sequence[str]) -> None: ...
    def give_size(self, bytes: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    def is_short(self, buffers: collections.abc.Sequence) -> bool:
        """
        Whether some range has not the bytes asked for.
        """
    def refuse(self, kind: str, what: str) -> None:
        """
        kind: missing, changed, or another
        """
    @property
    def kind(self) -> str:
        """
        ranges, whole, size or names
        """
    @property
    def offsets(self) -> list[int]: ...
    @property
    def path(self) -> str: ...
    @property
    def sizes(self) -> list[int]: ...
    @property
    def wants_thread(self) -> bool:
        """
        Another thread is to begin.
        """

class StoreCalls:
    """
    See bindings/python_calls.h.
    """
    def __init__(
        self,
        *,
        connections: typing.SupportsInt | typing.SupportsIndex,
        ranges_a_call: typing.SupportsInt | typing.SupportsIndex,
        deadline: typing.SupportsFloat | typing.SupportsIndex,
    ) -> None: ...
    def has_no_thread(self) -> None:
        """
        The one that was wanted could not begin.
        """
    def stop(self) -> None: ...
    def take(self) -> StoreCall:
        """
        What to do next; None: the thread is to end.
        """

class PythonStore(Store):
    """
    Files that threads of Python fetch.
    """
    def __init__(self, *, calls: StoreCalls, has_whole: bool) -> None: ...

class Dataset:
    """
    An opened dataset; see penstock.Dataset.
    """
    def categories(self, column: str) -> list[str]:
        """
        Names that the codes of a column stand for; none where it is no category.
        """
    def data_path(self, shard: typing.SupportsInt | typing.SupportsIndex) -> str:
        """
        Where the entries of a shard lie.
        """
    def read_column(
        self,
        name: str,
        first: typing.SupportsInt | typing.SupportsIndex,
        count: typing.SupportsInt | typing.SupportsIndex,
        dtype: numpy.dtype[typing.Any],
    ) -> numpy.ndarray[typing.Any, numpy.dtype[typing.Any]]:
        """
        Values [first, first + count) of a column, as they are given out: [count, dims…].
        """
    def shards(self) -> list: ...
    def task_json(self, shard: typing.SupportsInt | typing.SupportsIndex) -> str:
        """
        What the writer of a shard says that it was made from; null where its shard.json is not there.
        """
    @property
    def codec_json(self) -> str: ...
    @property
    def columns_json(self) -> str: ...
    @property
    def entries(self) -> int:
        """
        Of all shards.
        """
    @property
    def features(self) -> str:
        """
        Where the dataset of its features is; empty without.
        """
    @property
    def features_fingerprint(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def is_remote(self) -> bool:
        """
        Whether none of it lies on this machine.
        """
    @property
    def kind(self) -> str: ...
    @property
    def layout(self) -> typing.Any: ...
    @property
    def mode(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def records(self) -> int: ...
    @property
    def schema_json(self) -> str: ...
    @property
    def spans(self) -> int: ...
    @property
    def stores(self) -> list[tuple[str, int]]:
        """
        (how it reads, reads that it wants in flight) of each store but this machine's files.
        """
    @property
    def tokenizer_json(self) -> str: ...

class SourceIdentity:
    """
    What a job's state says of a source.
    """
    def __init__(
        self,
        *,
        fingerprint: str,
        shards: typing.SupportsInt | typing.SupportsIndex,
        records: typing.SupportsInt | typing.SupportsIndex,
        view: str,
    ) -> None: ...
    def named(self, name: str) -> SourceIdentity:
        """
        The same, called `name` by stages.
        """

class Source:
    """
    A view of a dataset: what one index selects.
    """
    def base_indices(
        self, indices: typing.Annotated[numpy.typing.ArrayLike, numpy.int64]
    ) -> numpy.typing.NDArray[numpy.int64]:
        """
        int64 of the same shape: numbers in the whole view; -1 of -1. All are below the size.
        """
    @property
    def fields_apart(self) -> bool: ...
    @property
    def identity(self) -> SourceIdentity: ...
    @property
    def ragged(self) -> bool: ...
    @property
    def row_length(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def stored_record_bytes(self) -> int: ...

class CachedStore(Store):
    """
    Another store's files, of which a part stays on this machine's disk.
    """
    def __init__(self, store: Store, folder: str) -> None: ...
    def keep(
        self,
        dataset: Dataset,
        addresses: collections.abc.Sequence[str],
        most_bytes: typing.SupportsInt | typing.SupportsIndex | None,
        place: str,
        etags: collections.abc.Mapping[str, str],
    ) -> None:
        """
        From now on keeps what is read of the dataset, which was opened from these addresses.

        place, etags: tell files of other formats apart: the server of their bucket; of paths read through Python
        """
    @property
    def counts(self) -> dict[str, int]:
        """
        hits, misses, wrong, filled: pages; failed: writes; stopped_by: errno
        """
    @property
    def share(self) -> float: ...

class Job:
    """
    Order, cursor and sources; see penstock.Job.
    """

    version: typing.ClassVar[int] = 1
    def __init__(
        self,
        *,
        sources: collections.abc.Sequence[SourceIdentity],
        order: Order,
        epochs: typing.SupportsInt | typing.SupportsIndex | None,
        per_epoch: bool,
        tail: str,
        skip: collections.abc.Sequence[
            tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex]
        ],
        schedule: collections.abc.Sequence[
            tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex]
        ],
        uneven: str = "refuse",
    ) -> None: ...
    def batch_at(self, position: typing.SupportsInt | typing.SupportsIndex) -> typing.Any:
        """
        (position, end, positions [rows], picks [rows]) of all ranks' next batch; None at the end of the run.
        """
    def begin_of_step(self, step: typing.SupportsInt | typing.SupportsIndex) -> int:
        """
        The position at which batch number `step` begins.
        """
    def check_share(
        self, rank: typing.SupportsInt | typing.SupportsIndex, world_size: typing.SupportsInt | typing.SupportsIndex
    ) -> None:
        """
        Refuses ranks that a batch of the schedule does not suit.
        """
    def describe(self, position: typing.SupportsInt | typing.SupportsIndex) -> str: ...
    def epoch(self, position: typing.SupportsInt | typing.SupportsIndex) -> int: ...
    def json_before(self, position: typing.SupportsInt | typing.SupportsIndex) -> str:
        """
        `json` with those of the weights that were set that begin before `position`.
        """
    def length(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> int: ...
    def load(
        self,
        version: typing.SupportsInt | typing.SupportsIndex,
        position: typing.SupportsInt | typing.SupportsIndex,
        job: str,
        on_mismatch: str,
    ) -> tuple:
        """
        (epoch, position, step, message) of where a state goes on.
        """
    def picks(
        self,
        first: typing.SupportsInt | typing.SupportsIndex,
        count: typing.SupportsInt | typing.SupportsIndex,
        sources: collections.abc.Sequence[Source],
    ) -> numpy.ndarray[typing.Any, numpy.dtype[typing.Any]]:
        """
        What stands at `count` positions from `first` on: structured [count]. first_record is -1 in documents.
        """
    def plan(
        self,
        position: typing.SupportsInt | typing.SupportsIndex,
        rank: typing.SupportsInt | typing.SupportsIndex,
        world_size: typing.SupportsInt | typing.SupportsIndex,
    ) -> typing.Any:
        """
        (position, end, picks [rows], valid rows, those of all ranks) of a rank's next batch; None at the end of the
        run.
        """
    def resumed(
        self,
        version: typing.SupportsInt | typing.SupportsIndex,
        position: typing.SupportsInt | typing.SupportsIndex,
        job: str,
    ) -> Job:
        """
        The job with the weights that a state's had set.
        """
    def set_before(self, position: typing.SupportsInt | typing.SupportsIndex) -> int:
        """
        How many weights were set that begin before `position`.
        """
    def steps_before(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> int: ...
    @property
    def batching(self) -> tuple:
        """
        (schedule, end or None, size of epochs that end batches, tail,
        uneven).
        """
    @property
    def is_steered(self) -> bool: ...
    @property
    def json(self) -> str: ...
    @property
    def mixture_plan(self) -> MixturePlan:
        """
        With the weights that were set; None where it is no mixture's.
        """
    @property
    def summary(self) -> str:
        """
        `json` with a digest of the weights that were set.
        """

class ColumnMaker:
    """
    Makes a column of each batch that core does not know.
    """

class CellSpec:
    """
    What all forms know of cells; see core/columns/cells/cell.h.
    """
    def __init__(
        self,
        *,
        value: str,
        known: typing.SupportsInt | typing.SupportsIndex | None,
        width: typing.SupportsInt | typing.SupportsIndex | None,
        places: typing.Annotated[numpy.typing.ArrayLike, numpy.int32],
        normalize: typing.SupportsFloat | typing.SupportsIndex | None,
        log1p: bool,
    ) -> None: ...

class SentenceSpec:
    """
    What sentences share; see core/columns/cells/forms.h.
    """
    def __init__(
        self,
        *,
        length: typing.SupportsInt | typing.SupportsIndex,
        tokens: typing.Annotated[numpy.typing.ArrayLike, numpy.int64],
        cls: typing.SupportsInt | typing.SupportsIndex | None,
        eos: typing.SupportsInt | typing.SupportsIndex | None,
        pad: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...

class DocumentBounds:
    """
    Where the documents of a row begin: by spans, or by the token that ends or begins each.
    """
    def __init__(
        self, *, by: str = "spans", field: str = "", value: typing.SupportsInt | typing.SupportsIndex = 0
    ) -> None: ...
    @property
    def by(self) -> str: ...
    @property
    def value(self) -> int: ...

class Padding:
    """
    Makes rectangles of documents: length 0 is that of the batch's longest.
    """
    def __init__(
        self,
        *,
        length: typing.SupportsInt | typing.SupportsIndex,
        multiple_of: typing.SupportsInt | typing.SupportsIndex,
        left: bool,
    ) -> None: ...

class FillInTheMiddleSpec:
    """
    How pieces of documents are rearranged in rows.
    """
    def __init__(
        self,
        *,
        field: str,
        prefix: typing.SupportsInt | typing.SupportsIndex,
        middle: typing.SupportsInt | typing.SupportsIndex,
        suffix: typing.SupportsInt | typing.SupportsIndex,
        rate: typing.SupportsFloat | typing.SupportsIndex,
        spm_rate: typing.SupportsFloat | typing.SupportsIndex,
        bounds: DocumentBounds,
        first_stays: typing.SupportsInt | typing.SupportsIndex | None,
        last_stays: typing.SupportsInt | typing.SupportsIndex | None,
        seed: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    @property
    def field(self) -> str: ...

class FieldSpec:
    """
    A field's values as `type`, without its first `skip` records.
    """
    def __init__(
        self,
        *,
        name: str,
        field: str,
        type: str,
        skip: typing.SupportsInt | typing.SupportsIndex = 0,
        shorten: typing.SupportsInt | typing.SupportsIndex = 0,
        labels: bool = False,
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...

class SequenceSpec:
    """
    An array of the sequences in a batch, by its name.
    """
    def __init__(
        self,
        *,
        name: str,
        shorten: typing.SupportsInt | typing.SupportsIndex,
        bounds: DocumentBounds,
        max_documents: typing.SupportsInt | typing.SupportsIndex | None,
    ) -> None: ...
    @property
    def bounds(self) -> DocumentBounds: ...
    @property
    def name(self) -> str: ...

class TargetSpec:
    """
    Which targets count: labels that are -100 elsewhere, and loss_mask.
    """

    bounds: DocumentBounds
    cross_document: bool
    labels: FieldSpec | None
    padding: Padding | None
    def __init__(
        self,
        *,
        mask: bool = False,
        shorten: typing.SupportsInt | typing.SupportsIndex = 0,
        fields: collections.abc.Sequence[str] = [],
        cross_document: bool = True,
        bounds: DocumentBounds = ...,
    ) -> None: ...
    def copy(self) -> TargetSpec: ...
    @property
    def mask(self) -> bool: ...

class PerSpanSpec:
    """
    A value of each span, for all its records; `fill` by its bytes.
    """

    padding: Padding | None
    def __init__(
        self,
        *,
        name: str,
        type: str,
        fill: typing.SupportsInt | typing.SupportsIndex,
        shorten: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    def copy(self) -> PerSpanSpec: ...
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...

class Chosen:
    """
    Some of so many observations, a bit each; see core/rows/chosen.h.
    """
    def __getstate__(self) -> tuple[numpy.typing.NDArray[numpy.uint64], int]: ...
    def __init__(
        self,
        words: typing.Annotated[numpy.typing.ArrayLike, numpy.uint64],
        size: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    def __setstate__(self, arg0: tuple) -> None: ...
    def digest(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def numbers(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        int64 [count]: of those that are chosen.
        """
    @property
    def size(self) -> int: ...

class Choosing:
    """
    Looks which documents a condition on their columns chooses.
    """
    def __init__(self, dataset: Dataset, condition: str) -> None: ...
    def chosen(self) -> Chosen:
        """
        Once, after all were looked at.
        """
    def look(
        self, first: typing.SupportsInt | typing.SupportsIndex, count: typing.SupportsInt | typing.SupportsIndex
    ) -> None:
        """
        Looks at some documents, multiples of 64; any thread.
        """
    @property
    def condition(self) -> str:
        """
        One text for all ways to write it.
        """
    @property
    def documents(self) -> int: ...
    @property
    def texts(self) -> list[tuple[str, str]]:
        """
        (column, text) that a category is compared with by =, <>, in.
        """

class ChoosingWindows:
    """
    Looks which windows lie in chosen documents.
    """
    def __init__(
        self,
        dataset: Dataset,
        documents: Chosen,
        window: typing.SupportsInt | typing.SupportsIndex,
        lookahead: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    def chosen(self) -> Chosen:
        """
        Once, after the last step.
        """
    def step(self, documents: typing.SupportsInt | typing.SupportsIndex) -> bool:
        """
        Looks at some more; False: all were looked at.
        """

class TokenDocuments:
    """
    Finds a token stream's documents by a token, step by step.
    """
    def __init__(
        self, dataset: Dataset, by: str, field: str, token: typing.SupportsInt | typing.SupportsIndex
    ) -> None: ...
    def dataset(self) -> Dataset:
        """
        The stream with its documents, after the last step.
        """
    def step(self, records: typing.SupportsInt | typing.SupportsIndex) -> bool:
        """
        Looks at about as many records; false once all were looked at.
        """
    @property
    def doubtful(self) -> list[int]:
        """
        Numbers of shards that begin with the token that ends documents, or the reverse.
        """
    @property
    def first_has(self) -> bool: ...
    @property
    def found(self) -> int: ...
    @property
    def last_has(self) -> bool: ...

class PackingRule:
    """
    How documents go into rows; see layout/packed/packing.h.
    """
    def __init__(
        self,
        *,
        window: typing.SupportsInt | typing.SupportsIndex,
        fit: str,
        group: typing.SupportsInt | typing.SupportsIndex,
        long_documents: str,
        multiple_of: typing.SupportsInt | typing.SupportsIndex,
        max_document: typing.SupportsInt | typing.SupportsIndex,
        max_documents: typing.SupportsInt | typing.SupportsIndex,
        fill: str,
        buffer: typing.SupportsInt | typing.SupportsIndex,
        refill: typing.SupportsInt | typing.SupportsIndex,
    ) -> None: ...
    @property
    def buffer(self) -> int: ...
    @property
    def fill(self) -> str: ...
    @property
    def fit(self) -> str: ...
    @property
    def group(self) -> int: ...
    @property
    def long_documents(self) -> str: ...
    @property
    def max_document(self) -> int: ...
    @property
    def max_documents(self) -> int: ...
    @property
    def multiple_of(self) -> int: ...
    @property
    def refill(self) -> int: ...
    @property
    def window(self) -> int: ...

class PackHeader:
    """
    What a pack table says of itself; see layout/packed/pack_table.h.
    """
    @property
    def cut(self) -> int: ...
    @property
    def documents(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def left_out(self) -> int: ...
    @property
    def pieces(self) -> int: ...
    @property
    def records(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def rule(self) -> PackingRule: ...
    @property
    def where(self) -> str:
        """
        What views say of the documents; empty where all are packed.
        """

class PackTable:
    """
    Which pieces each packed row has.
    """
    def __init__(self, path: str, dataset: Dataset) -> None: ...
    @property
    def header(self) -> PackHeader: ...

class DatasetPacker:
    """
    Packs a dataset's documents in memory, some at a time.
    """
    def __init__(self, dataset: Dataset, rule: PackingRule, chosen: Chosen | None = None, where: str = "") -> None: ...
    def step(self, documents: typing.SupportsInt | typing.SupportsIndex) -> bool:
        """
        Packs some more; False: all are packed.
        """
    def table(self) -> PackTable:
        """
        Once, after the last step.
        """
    @property
    def done(self) -> int: ...

class PackTableWriter:
    """
    Packs a dataset's documents into a file, some at a time.
    """
    def __init__(
        self, dataset: Dataset, rule: PackingRule, path: str, chosen: Chosen | None = None, where: str = ""
    ) -> None: ...
    def commit(self) -> PackHeader:
        """
        Finishes the file; what it says of itself.
        """
    def step(self, documents: typing.SupportsInt | typing.SupportsIndex) -> bool:
        """
        Packs some more; False: all are packed.
        """
    @property
    def done(self) -> int: ...

class PaddedField:
    """
    A field's array, padded by the bytes of one of its values.
    """
    def __init__(self, *, field: str, type: str, padding: bytes) -> None: ...

class SpanList:
    """
    The spans of one batch, by row and start.
    """
    def __len__(self) -> int: ...
    def arrays(self) -> tuple:
        """
        (rows, starts, stops, begins, ends, offsets, ids, source) as penstock.Batch.spans gives them.
        """
    def get(self, i: typing.SupportsInt | typing.SupportsIndex) -> tuple:
        """
        (row, start, stop, begins, ends, offset, shard, entry, source)
        """
    def of_row(self, row: typing.SupportsInt | typing.SupportsIndex) -> tuple[int, int]:
        """
        (first, stop): the numbers of the row's spans.
        """
    def raw(self, i: typing.SupportsInt | typing.SupportsIndex) -> bytes:
        """
        The entry's bytes, copied.
        """
    def view(self, i: typing.SupportsInt | typing.SupportsIndex) -> numpy.ndarray[typing.Any, numpy.dtype[typing.Any]]:
        """
        The entry's bytes as a read-only uint8 array, not copied.
        """

class EntryNumbers:
    """
    Which entry each span of a batch has: an entry has one number.
    """
    def first_spans(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        int64 [entries]: the first span of each entry.
        """

class Batch:
    """
    A ready batch; see penstock.Batch.
    """
    def cast(
        self, field: FieldSpec, dtype: numpy.dtype[typing.Any]
    ) -> numpy.ndarray[typing.Any, numpy.dtype[typing.Any]]:
        """
        A field of all rows, cast densely.
        """
    def column(
        self,
        i: typing.SupportsInt | typing.SupportsIndex,
        part: typing.SupportsInt | typing.SupportsIndex,
        dtype: numpy.dtype[typing.Any],
    ) -> typing.Any:
        """
        Array `part` of column i, whose type `dtype` is; not copied. None if the memory was lent.
        """
    def epochs(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        int64 [rows]; -1 where padded.
        """
    def field(self, name: str, dtype: numpy.dtype[typing.Any]) -> typing.Any:
        """
        Array over one leaf of the records as read; not copied. None where there are no records, or the leaf is of
        another type.
        """
    def first_records(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        int64 [rows]: where each row begins in the stream of its dataset; -1 where padded, or there is none.
        """
    def indices(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        int64 [rows]: observations; -1 where padded.
        """
    def keep_targets(
        self,
        column: typing.SupportsInt | typing.SupportsIndex,
        entries: EntryNumbers,
        firsts: typing.Annotated[numpy.typing.ArrayLike, numpy.uint64],
        ranges: typing.Annotated[numpy.typing.ArrayLike, numpy.uint64],
    ) -> None:
        """
        Only targets in the ranges (uint64 [n, 2]) of their document count from now on; entry e's are those from
        firsts[e] to firsts[e + 1].
        """
    def number_entries(self) -> EntryNumbers: ...
    def place(
        self,
        i: typing.SupportsInt | typing.SupportsIndex,
        part: typing.SupportsInt | typing.SupportsIndex,
        dtype: numpy.dtype[typing.Any],
    ) -> tuple:
        """
        (byte of the batch's memory where array `part` of column i begins, its shape).
        """
    def positions(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        int64 [rows]: where each row stands in the job; -1 where padded, or read by itself.
        """
    def records(self, dtype: numpy.dtype[typing.Any]) -> numpy.ndarray[typing.Any, numpy.dtype[typing.Any]]:
        """
        Array over the records as read, of the stored records' dtype; not copied.
        """
    def sources(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        int64 [rows]: number of each row's source; -1 where padded.
        """
    def spans(self) -> SpanList: ...
    def spread_values(
        self,
        column: typing.SupportsInt | typing.SupportsIndex,
        entries: EntryNumbers,
        values: typing.Annotated[numpy.typing.ArrayLike, numpy.uint8],
    ) -> None:
        """
        Fills the column with a value of each entry, given by their bytes.
        """
    def starts(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        int64 [rows + 1]: first record of each row; empty if rows are fixed.
        """
    def values(
        self, i: typing.SupportsInt | typing.SupportsIndex, dtype: numpy.dtype[typing.Any]
    ) -> numpy.ndarray[typing.Any, numpy.dtype[typing.Any]]:
        """
        Column i of the documents of all rows: [rows, dims…], of windows [spans, dims…].
        """
    @property
    def end(self) -> int: ...
    @property
    def lender(self) -> typing.Any:
        """
        The object whose memory was lent for this batch (a pinned tensor), or None.
        """
    @property
    def micro_batches(self) -> int: ...
    @property
    def of_all(self) -> int:
        """
        Valid rows of all ranks together.
        """
    @property
    def position(self) -> int: ...
    @property
    def record_count(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def valid(self) -> int: ...
    @property
    def world_size(self) -> int: ...

class TakenRows:
    """
    Rows [first, last) of a batch that is not given out yet.
    """
    def row_bytes(
        self, row: typing.SupportsInt | typing.SupportsIndex
    ) -> numpy.ndarray[typing.Any, numpy.dtype[typing.Any]]: ...
    def row_facts(self, row: typing.SupportsInt | typing.SupportsIndex) -> tuple:
        """
        (index, observation of the whole view, epoch, source, records)
        """
    def write_row(
        self,
        column: typing.SupportsInt | typing.SupportsIndex,
        row: typing.SupportsInt | typing.SupportsIndex,
        bytes: typing.Annotated[numpy.typing.ArrayLike, numpy.uint8],
    ) -> None: ...
    @property
    def batch(self) -> Batch: ...
    @property
    def cancelled(self) -> bool: ...
    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...

class HandOver:
    """
    Batches that wait for what threads of Python make of their rows.
    """
    def give_back(self, rows: TakenRows, error: str, is_process: bool) -> None:
        """
        They are finished, or failed with these words.
        """
    def take(self) -> typing.Any:
        """
        TakenRows; None where there were none for a while.
        """
    @property
    def closed(self) -> bool: ...

class Loader:
    """
    The native loader; see penstock.Loader.
    """
    def __init__(
        self,
        *,
        job: Job,
        sources: collections.abc.Sequence[Source],
        fields: collections.abc.Sequence[FieldSpec],
        computed: collections.abc.Sequence[collections.abc.Sequence[SequenceSpec | TargetSpec | PerSpanSpec]],
        made: collections.abc.Sequence[collections.abc.Sequence[ColumnMaker]],
        middles: collections.abc.Sequence[FillInTheMiddleSpec | None],
        values: collections.abc.Sequence[str],
        parts: typing.SupportsInt | typing.SupportsIndex,
        rank: typing.SupportsInt | typing.SupportsIndex,
        world_size: typing.SupportsInt | typing.SupportsIndex,
        reader: str,
        threads: typing.SupportsInt | typing.SupportsIndex,
        cores: typing.SupportsInt | typing.SupportsIndex,
        prefetch: typing.SupportsInt | typing.SupportsIndex,
        max_bytes: typing.SupportsInt | typing.SupportsIndex,
        allocate: typing.Any,
        slice: tuple[
            typing.SupportsInt | typing.SupportsIndex,
            typing.SupportsInt | typing.SupportsIndex,
            str,
            typing.SupportsInt | typing.SupportsIndex,
        ]
        | None = None,
        balance: tuple[
            collections.abc.Sequence[
                tuple[
                    str,
                    typing.SupportsInt | typing.SupportsIndex,
                    typing.Annotated[numpy.typing.ArrayLike, numpy.uint64] | None,
                ]
            ],
            typing.SupportsInt | typing.SupportsIndex,
        ]
        | None = None,
        far_reader: Store | None = None,
        takers: typing.SupportsInt | typing.SupportsIndex = 0,
    ) -> None: ...
    def begin(self) -> None: ...
    def close(self) -> None: ...
    def close_at_exit(self) -> None:
        """
        close(), whatever other threads are at.
        """
    def describe(self) -> str: ...
    def length(self) -> int: ...
    def load(
        self,
        version: typing.SupportsInt | typing.SupportsIndex,
        position: typing.SupportsInt | typing.SupportsIndex,
        job: str,
        on_mismatch: str,
    ) -> tuple:
        """
        (epoch, position, step, message) of where it goes on.
        """
    def metrics(self) -> dict:
        """
        What was counted since the loader was made, by the names of penstock.Metrics; by any thread.
        """
    def next(self) -> Batch:
        """
        The next batch; None at the end of this `for`.
        """
    def row_places(self, job: Job, position: typing.SupportsInt | typing.SupportsIndex) -> list[tuple[int, int]]:
        """
        (rank, row) of each observation of the global batch that begins there.
        """
    def seek(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    def set_global_batch_size(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...
    def set_weights(
        self,
        position: typing.SupportsInt | typing.SupportsIndex,
        weights: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
    ) -> int:
        """
        Where they begin.
        """
    def state(self) -> tuple: ...
    def tail_rows(self) -> int | None: ...
    @property
    def batch_rows(self) -> int:
        """
        Rows of this rank's batches at the position, padding included.
        """
    @property
    def hand_over(self) -> HandOver: ...
    @property
    def job(self) -> Job:
        """
        The job as it is now, with the batch sizes that were set.
        """
    @property
    def limit_bytes(self) -> int: ...
    @property
    def position(self) -> int: ...
    @property
    def reader(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def usage(self) -> tuple[int, int]: ...

class DatasetWriter:
    """
    What penstock.Writer writes with.
    """
    def __init__(
        self,
        *,
        path: str,
        mode: str,
        layout: str,
        fields: str,
        codec: str,
        shard_bytes: typing.SupportsInt | typing.SupportsIndex,
        tokenizer: str,
        task: str,
        shard: typing.SupportsInt | typing.SupportsIndex | None,
        run: str | None,
        overwrite: bool,
        columns: str,
        categories: collections.abc.Sequence[collections.abc.Sequence[str]],
        features: tuple[
            collections.abc.Sequence[str],
            str,
            collections.abc.Sequence[collections.abc.Sequence[str]],
            collections.abc.Sequence[typing_extensions.Buffer],
            str,
        ]
        | None,
    ) -> None: ...
    def abort(self) -> None: ...
    def append(
        self,
        records: typing_extensions.Buffer,
        entry: bytes | None,
        columns: collections.abc.Sequence[tuple[typing_extensions.Buffer, collections.abc.Sequence[str]]],
    ) -> None: ...
    def append_batch(
        self,
        records: typing_extensions.Buffer,
        lengths: typing.Annotated[numpy.typing.ArrayLike, numpy.uint64],
        entries: typing_extensions.Buffer,
        entry_ends: typing.Annotated[numpy.typing.ArrayLike, numpy.uint64],
        columns: collections.abc.Sequence[tuple[typing_extensions.Buffer, collections.abc.Sequence[str]]],
    ) -> None: ...
    def append_cut(
        self,
        dataset: Dataset,
        begin: typing.SupportsInt | typing.SupportsIndex,
        end: typing.SupportsInt | typing.SupportsIndex,
        token: typing.SupportsInt | typing.SupportsIndex,
        ends_document: bool,
        is_open: bool,
    ) -> tuple[int, bool]:
        """
        (documents that began, whether the last one goes on).
        """
    def append_ids(
        self, records: typing_extensions.Buffer, ids: typing.Annotated[numpy.typing.ArrayLike, numpy.uint64]
    ) -> None: ...
    def append_stream(
        self,
        dataset: Dataset,
        first: typing.SupportsInt | typing.SupportsIndex,
        lengths: typing.Annotated[numpy.typing.ArrayLike, numpy.uint64],
    ) -> None: ...
    def can_append(self, dataset: Dataset) -> bool: ...
    def commit(self) -> None: ...
    def entry(
        self,
        entry: bytes,
        columns: collections.abc.Sequence[tuple[typing_extensions.Buffer, collections.abc.Sequence[str]]],
    ) -> int: ...
    def leave(self) -> None: ...
    def set_task(self, task: str) -> None: ...
    @property
    def finished_shards(self) -> int: ...
    @property
    def has_failed(self) -> bool: ...
    @property
    def records(self) -> int: ...

class Report:
    """
    What verify() read and found; true if nothing is wrong.
    """
    def __bool__(self) -> bool: ...
    def __repr__(self) -> str: ...
    @property
    def bytes(self) -> int:
        """
        Bytes read and checked.
        """
    @property
    def entries(self) -> int: ...
    @property
    def fingerprint(self) -> str:
        """
        Hex; empty if the manifest cannot be read.
        """
    @property
    def notices(self) -> list[str]:
        """
        Folders that the manifest does not name, with what to do; no problems.
        """
    @notices.setter
    def notices(self, arg1: collections.abc.Sequence[str]) -> None: ...
    @property
    def ok(self) -> bool: ...
    @property
    def problems(self) -> list[str]:
        """
        What is wrong, each with its file and byte; empty if nothing is. At most 1,000.
        """
    @property
    def records(self) -> int: ...
    @property
    def shards(self) -> int: ...
    @property
    def unlisted(self) -> int:
        """
        Problems beyond those.
        """

class FinishedShard:
    """
    A finished shard, as its shard.json says.
    """
    @property
    def bytes(self) -> int:
        """
        Of its files, without the side files.
        """
    @property
    def entries(self) -> int: ...
    @property
    def files(self) -> list[tuple[str, int]]:
        """
        (name, size) of each, side files with them.
        """
    @property
    def number(self) -> int: ...
    @property
    def records(self) -> int: ...
    @property
    def spans(self) -> int: ...
    @property
    def task_json(self) -> str: ...

class Run:
    """
    Holds a folder for one run, with all its processes.
    """
    def __init__(self, path: str, run: str) -> None: ...
    def close(self) -> None: ...

class ShuffleWork:
    """
    What each process of a shuffle does: penstock._make.shuffle_tasks.
    """
    def __init__(
        self,
        path: str,
        seed: typing.SupportsInt | typing.SupportsIndex,
        window: typing.SupportsInt | typing.SupportsIndex | None,
        memory: typing.SupportsInt | typing.SupportsIndex,
        shard_bytes: typing.SupportsInt | typing.SupportsIndex,
        identity: str,
        buckets: collections.abc.Sequence[
            tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex]
        ],
    ) -> None: ...
    def make_shards(
        self,
        shards: collections.abc.Sequence[
            tuple[
                typing.SupportsInt | typing.SupportsIndex,
                str,
                typing.SupportsInt | typing.SupportsIndex,
                typing.SupportsInt | typing.SupportsIndex,
            ]
        ],
        first_bucket: typing.SupportsInt | typing.SupportsIndex,
        end_bucket: typing.SupportsInt | typing.SupportsIndex,
        files: collections.abc.Sequence[str],
        out: str,
        overwrite: bool,
        run: str | None,
    ) -> None: ...
    def put_aside(
        self,
        begin: typing.SupportsInt | typing.SupportsIndex,
        end: typing.SupportsInt | typing.SupportsIndex,
        file: str,
        is_synced: bool,
    ) -> None: ...

class ParsedLines:
    """
    What JsonLines.parse() gives; see text/json_lines.h.
    """
    @property
    def ends(self) -> numpy.typing.NDArray[numpy.uint64]:
        """
        uint64: where each document's payload ends.
        """
    @property
    def entries(self) -> numpy.typing.NDArray[numpy.uint8]:
        """
        uint8.
        """
    @property
    def entry_ends(self) -> numpy.typing.NDArray[numpy.uint64]:
        """
        uint64; empty where there is no metadata.
        """
    @property
    def payload(self) -> numpy.ndarray[typing.Any, numpy.dtype[typing.Any]]:
        """
        uint8: texts in UTF-8; int64: ids.
        """
    @property
    def refused(self) -> numpy.typing.NDArray[numpy.uint32]:
        """
        uint32: lines that Python has to read.
        """

class JsonLines:
    """
    Reads JSON lines as penstock._from.text.extract does.
    """
    def __init__(self, column: str, ids: bool, metadata: collections.abc.Sequence[str] | None, codec: str) -> None: ...
    def parse(
        self,
        block: typing_extensions.Buffer,
        begins: numpy.typing.NDArray[numpy.uint64],
        ends: numpy.typing.NDArray[numpy.uint64],
    ) -> ParsedLines: ...

class Unseen:
    """
    Finds characters and tokens that no text before had; see text/unseen.h.
    """
    def __init__(self, tokens: collections.abc.Sequence[bytes]) -> None: ...
    def scan(
        self, utf8: typing_extensions.Buffer, ends: numpy.typing.NDArray[numpy.uint64]
    ) -> numpy.typing.NDArray[numpy.uint64]:
        """
        Places, uint64, at which one begins that was not seen before.
        """

def annotate(
    path: str,
    columns: collections.abc.Sequence[tuple[str, collections.abc.Sequence[str], bool, typing_extensions.Buffer]],
    removed: collections.abc.Sequence[str],
    progress: typing.Any,
) -> str: ...
def append(path: str, more: collections.abc.Sequence[str], resume: bool, progress: typing.Any) -> str: ...
def batch_rows(
    size: typing.SupportsInt | typing.SupportsIndex,
    world_size: typing.SupportsInt | typing.SupportsIndex,
    micro_batches: typing.SupportsInt | typing.SupportsIndex = 1,
) -> int:
    """
    Rows of each rank's batch, padding included: size / world_size rounded up, to a multiple of micro_batches.
    """

def begin_exit() -> None:
    """
    The interpreter ends: other threads stay in native code.
    """

def can_stream(dataset: Dataset) -> bool:
    """
    Whether DatasetWriter.append_stream can take records of it.
    """

def check_columns(columns: str, categories: collections.abc.Sequence[collections.abc.Sequence[str]]) -> None:
    """
    Refuses columns (as JSON) that no writer takes.
    """

def check_features(
    features: tuple[
        collections.abc.Sequence[str],
        str,
        collections.abc.Sequence[collections.abc.Sequence[str]],
        collections.abc.Sequence[typing_extensions.Buffer],
        str,
    ],
) -> None:
    """
    Refuses features that no writer takes.
    """

def choice_json(condition: str, chosen: Chosen) -> str:
    """
    What views say of a choice.
    """

def chosen_of_part(part: Source, whole: Chosen) -> Chosen:
    """
    Those of a part of a view that are chosen of the whole view.
    """

def clean(path: str, overwrite: bool, run: str | None) -> None:
    """
    Removes what writers left unfinished.
    """

def combine(
    inputs: collections.abc.Sequence[str], out: str, resume: bool, overwrite: bool, progress: typing.Any
) -> str: ...
def commit(
    path: str,
    tokenizer: str,
    shards: typing.SupportsInt | typing.SupportsIndex | None,
    overwrite: bool,
    tasks: collections.abc.Sequence[str] | None,
    run: str | None,
    features: tuple[
        collections.abc.Sequence[str],
        str,
        collections.abc.Sequence[collections.abc.Sequence[str]],
        collections.abc.Sequence[typing_extensions.Buffer],
        str,
    ]
    | None = None,
    numbers: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] | None = None,
) -> str: ...
def concatenate(datasets: collections.abc.Sequence[Dataset]) -> Dataset:
    """
    Several datasets as one.
    """

def convert(path: str, out: str, layout: str, overwrite: bool) -> str: ...
def curl_refusal() -> str:
    """
    Why nothing is read over HTTP here; empty: it is.
    """

def describe_shard(shard_json: bytes, path: str, number: typing.SupportsInt | typing.SupportsIndex) -> FinishedShard:
    """
    What a shard.json says, which `path` names.
    """

def digest_of_parts(size: typing.SupportsInt | typing.SupportsIndex, parts: collections.abc.Sequence[bytes]) -> str:
    """
    The digest, in hex, of so many indices, by those of their parts.
    """

def digested(
    block: typing_extensions.Buffer,
    begins: numpy.typing.NDArray[numpy.uint64],
    ends: numpy.typing.NDArray[numpy.uint64],
    known: tuple[typing_extensions.Buffer, typing.Annotated[numpy.typing.ArrayLike, numpy.uint64]] | None,
) -> numpy.typing.NDArray[numpy.uint8]:
    """
    Bytes, uint8, that RawDocument.digested() gives for each document, together.
    """

def document_lengths(
    dataset: Dataset, first: typing.SupportsInt | typing.SupportsIndex, count: typing.SupportsInt | typing.SupportsIndex
) -> numpy.typing.NDArray[numpy.uint64]:
    """
    uint64 [count]: records of documents from `first` on.
    """

def fill(
    prefix: bytes, numbers: numpy.typing.NDArray[numpy.uint64], suffix: bytes
) -> tuple[numpy.typing.NDArray[numpy.uint8], numpy.typing.NDArray[numpy.uint64]]:
    """
    (bytes, ends), uint8 and uint64: `prefix`, a number in decimals and `suffix` for each number.
    """

def finished_shards(path: str, overwrite: bool) -> list[FinishedShard]: ...
def format_names() -> list[str]:
    """
    What `format=` may be.
    """

def joined_tokenizer(
    appends: bool, paths: collections.abc.Sequence[str], manifests: collections.abc.Sequence[bytes]
) -> str:
    """
    The tokenizer of datasets of these dataset.json that become one, as JSON; InvalidArgumentError: they cannot.
    """

def locate_rows(
    sources: collections.abc.Sequence[Source],
    numbers: typing.Annotated[numpy.typing.ArrayLike, numpy.int64],
    indices: typing.Annotated[numpy.typing.ArrayLike, numpy.int64],
    epochs: typing.Annotated[numpy.typing.ArrayLike, numpy.int64],
    parts: typing.SupportsInt | typing.SupportsIndex,
    most_bytes: typing.SupportsInt | typing.SupportsIndex,
) -> Batch:
    """
    Where observations lie, each of its source (by number in `sources`) in its epoch: a batch without records. All
    arrays are int64 of one length, rows of one shape.
    """

def make_binned(
    cells: CellSpec,
    sentences: SentenceSpec,
    quantiles: typing.Annotated[numpy.typing.ArrayLike, numpy.float64],
    choose: str,
    pad_value: typing.SupportsInt | typing.SupportsIndex,
    seed: typing.SupportsInt | typing.SupportsIndex,
) -> ColumnMaker:
    """
    Arrays: tokens, bins, mask.
    """

def make_csr(cells: CellSpec, wide_index: bool, double_value: bool) -> ColumnMaker:
    """
    Arrays: genes, values, offsets.
    """

def make_dense(cells: CellSpec, double_value: bool) -> ColumnMaker:
    """
    Array: x.
    """

def make_documents(
    dataset: Dataset,
    columns: collections.abc.Sequence[str],
    most_records: typing.SupportsInt | typing.SupportsIndex | None = None,
    refuse: bool = False,
) -> Source:
    """
    The view of documents; of longer ones than most_records their first records, or an error.
    """

def make_given(type: str, dims: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]) -> ColumnMaker:
    """
    An array [rows, dims…] that is written row by row.
    """

def make_packed(
    dataset: Dataset,
    table: PackTable,
    columns: collections.abc.Sequence[str],
    lookahead: typing.SupportsInt | typing.SupportsIndex,
) -> Source:
    """
    The view of packed rows.
    """

def make_padded(*, padding: Padding, fields: collections.abc.Sequence[PaddedField]) -> ColumnMaker:
    """
    Arrays: each field, attention_mask, lengths.
    """

def make_parts(source: Source, units: Source, parts: typing.SupportsInt | typing.SupportsIndex) -> Source:
    """
    Observations of `units` cut into `parts`: those of its whole view are the source's.
    """

def make_ranked(
    cells: CellSpec, sentences: SentenceSpec, medians: typing.Annotated[numpy.typing.ArrayLike, numpy.float64]
) -> ColumnMaker:
    """
    Arrays: tokens, mask.
    """

def make_selection(source: Source, selected: typing.Annotated[numpy.typing.ArrayLike, numpy.uint64]) -> Source:
    """
    The observations of a view that `selected` names, in this order.
    """

def make_slice(
    source: Source,
    first: typing.SupportsInt | typing.SupportsIndex,
    step: typing.SupportsInt | typing.SupportsIndex,
    count: typing.SupportsInt | typing.SupportsIndex,
) -> Source:
    """
    Observations first, first + step, … of a view, `count` of them.
    """

def make_span_corruption(
    *,
    field: str,
    type: str,
    density: typing.SupportsFloat | typing.SupportsIndex,
    mean_length: typing.SupportsFloat | typing.SupportsIndex,
    sentinels: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
    end: typing.SupportsInt | typing.SupportsIndex | None,
    pad: typing.SupportsInt | typing.SupportsIndex,
    seed: typing.SupportsInt | typing.SupportsIndex,
) -> ColumnMaker:
    """
    Arrays: inputs, labels, attention_mask.
    """

def make_split(
    source: Source,
    one_in: typing.SupportsInt | typing.SupportsIndex,
    seed: typing.SupportsInt | typing.SupportsIndex,
    held_out: bool,
) -> Source:
    """
    One of each run of `one_in` observations, or the others.
    """

def make_values(dataset: Dataset, columns: collections.abc.Sequence[str]) -> Source:
    """
    The view of entries, of which only values of columns are read.
    """

def make_where(source: Source, chosen: Chosen, said: str) -> Source:
    """
    The observations of a view that are chosen; `said` is what the view says of the choice.
    """

def make_windows(
    dataset: Dataset,
    window: typing.SupportsInt | typing.SupportsIndex,
    lookahead: typing.SupportsInt | typing.SupportsIndex,
    columns: collections.abc.Sequence[str],
    phase_window: typing.SupportsInt | typing.SupportsIndex = 0,
) -> Source:
    """
    The view of windows; with a phase_window each epoch begins at another record.
    """

def opaque_texts(dataset: Dataset) -> list[str]:
    """
    Entries of a dataset of entries without records. Raises UnicodeDecodeError.
    """

def open_as(
    format: str,
    paths: collections.abc.Sequence[str],
    descr_json: str,
    checks: str,
    stores: collections.abc.Sequence[Store | None],
    column: str = "",
) -> Dataset:
    """
    Opens paths of one format end to end; of each its store, None for this machine's files.
    """

def open_features(dataset: Dataset) -> Dataset:
    """
    The dataset of its features, which lies in the same store.
    """

def open_field_arrays(
    *,
    path: str,
    stamp: tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex],
    format: str,
    starts: typing.Annotated[numpy.typing.ArrayLike, numpy.uint64],
    genes: tuple[
        str, str, str, typing.SupportsInt | typing.SupportsIndex, typing.Annotated[numpy.typing.ArrayLike, numpy.uint64]
    ],
    values: tuple[
        str, str, str, typing.SupportsInt | typing.SupportsIndex, typing.Annotated[numpy.typing.ArrayLike, numpy.uint64]
    ],
    columns_json: str,
    columns: collections.abc.Sequence[
        tuple[
            typing.SupportsInt | typing.SupportsIndex | bytes,
            typing.SupportsInt | typing.SupportsIndex,
            collections.abc.Sequence[str] | None,
        ]
    ],
    features_fingerprint: str,
) -> Dataset:
    """
    Opens a file whose fields are arrays that lie where this says; see layout/foreign/field_arrays.h.
    """

def parse_address(url: str) -> tuple[str, str, str]:
    """
    (what may be shown, userinfo, query)
    """

def plan_shuffle(
    path: str,
    seed: typing.SupportsInt | typing.SupportsIndex,
    window: typing.SupportsInt | typing.SupportsIndex | None,
    memory: typing.SupportsInt | typing.SupportsIndex,
    shard_bytes: typing.SupportsInt | typing.SupportsIndex,
    progress: typing.Any,
) -> tuple[str, list[str], list[tuple[int, int, int]], list[tuple[int, int]], list[int]]: ...
def ranks_that_suit(
    size: typing.SupportsInt | typing.SupportsIndex, micro_batches: typing.SupportsInt | typing.SupportsIndex
) -> list[int]:
    """
    Numbers of ranks with equal shares of it, which the micro-batches divide, rising.
    """

def read_rows(
    source: Source,
    indices: typing.Annotated[numpy.typing.ArrayLike, numpy.uint64],
    made: collections.abc.Sequence[ColumnMaker],
    parts: typing.SupportsInt | typing.SupportsIndex,
    most_bytes: typing.SupportsInt | typing.SupportsIndex,
    computed: collections.abc.Sequence[SequenceSpec | TargetSpec | PerSpanSpec] = [],
) -> Batch:
    """
    Reads `parts` of observations (uint64 indices) at once, on this thread, without the GIL, in at most so many bytes.
    """

def recognise_format(path: str) -> str | None:
    """
    Name of the format of what is there; None: nothing is.
    """

def remove_shards(
    path: str,
    numbers: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
    overwrite: bool,
    run: str | None,
) -> None: ...
def row_places(
    job: Job,
    position: typing.SupportsInt | typing.SupportsIndex,
    world_size: typing.SupportsInt | typing.SupportsIndex,
    sources: collections.abc.Sequence[Source],
    balance: tuple[
        collections.abc.Sequence[
            tuple[
                str,
                typing.SupportsInt | typing.SupportsIndex,
                typing.Annotated[numpy.typing.ArrayLike, numpy.uint64] | None,
            ]
        ],
        typing.SupportsInt | typing.SupportsIndex,
    ]
    | None,
    most_bytes: typing.SupportsInt | typing.SupportsIndex,
) -> list[tuple[int, int]]:
    """
    (rank, row) of each observation of the global batch that begins there, by the job's own batch sizes.
    """

def rows_json(
    columns: collections.abc.Sequence[
        tuple[
            str,
            str,
            typing.SupportsInt | typing.SupportsIndex,
            typing_extensions.Buffer | None,
            typing_extensions.Buffer | None,
            typing_extensions.Buffer | None,
            typing.SupportsInt | typing.SupportsIndex,
        ]
    ],
    rows: typing.SupportsInt | typing.SupportsIndex,
) -> (
    tuple[
        tuple[numpy.typing.NDArray[numpy.uint8], numpy.typing.NDArray[numpy.uint64]],
        tuple[numpy.typing.NDArray[numpy.uint8], numpy.typing.NDArray[numpy.uint64]],
    ]
    | None
):
    """
    (bytes, ends) of rows of Arrow as sorted JSON of ASCII, and as compact JSON; None: Python has to do it.
    """

def select_shards(
    dataset: Dataset, shards: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]
) -> Dataset:
    """
    Some shards of a dataset, in this order, as a dataset.
    """

def shown_address(url: str) -> str:
    """
    An address without its userinfo and query.
    """

def shuffle(
    path: str,
    out: str,
    seed: typing.SupportsInt | typing.SupportsIndex,
    window: typing.SupportsInt | typing.SupportsIndex | None,
    memory: typing.SupportsInt | typing.SupportsIndex,
    shard_bytes: typing.SupportsInt | typing.SupportsIndex,
    scratch: str,
    resume: bool,
    overwrite: bool,
    progress: typing.Any,
    elsewhere: tuple[str, collections.abc.Sequence[bytes], bool, collections.abc.Callable] | None = None,
) -> str: ...
def spawn_bound(
    path: str,
    arguments: collections.abc.Sequence[str],
    fds: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
) -> int:
    """
    Starts a process that has these descriptors and is killed when the calling thread ends; its id.
    """

def split_lines(
    block: typing_extensions.Buffer, is_json: bool, strip_mark: bool
) -> tuple[
    numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.uint64], int
]:
    """
    (begins, ends, line numbers) of documents, uint64, and how many lines there are; see text/lines.h.
    """

def stored_manifest(
    path: str,
    shards: collections.abc.Sequence[tuple[str, bytes]],
    tokenizer: str,
    tasks: collections.abc.Sequence[str] | None,
    features: tuple[str, str] | None,
) -> str:
    """
    The dataset.json of shards of an object store, (name, shard.json) each; features as (folder, fingerprint).
    """

def summarize_indices(
    indices: numpy.ndarray[typing.Any, numpy.dtype[typing.Any]],
    begin: typing.SupportsInt | typing.SupportsIndex,
    end: typing.SupportsInt | typing.SupportsIndex,
) -> tuple:
    """
    (digest of the part, the largest of its indices, where that stands); without the GIL.
    """

def unique_run() -> str:
    """
    A name for a run of its own.
    """

def unnamed(path: str) -> list[str]:
    """
    What lies in a dataset's folder though its manifest does not name it: a text for each kind, with what to do.
    """

def usable_cores(processes: typing.SupportsInt | typing.SupportsIndex) -> int:
    """
    Cores that this process, one of `processes` alike, may use: affinity and quota of its control groups.
    """

def verify(path: str, progress: typing.Any = None, store: Store | None = None) -> Report: ...
def wrap_ids(
    ids: numpy.ndarray[typing.Any, numpy.dtype[typing.Any]],
    ends: numpy.ndarray[typing.Any, numpy.dtype[typing.Any]],
    prepend: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
    append: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
    itemsize: typing.SupportsInt | typing.SupportsIndex,
    last: typing.SupportsInt | typing.SupportsIndex,
) -> tuple[numpy.typing.NDArray[numpy.uint64], numpy.ndarray[typing.Any, numpy.dtype[typing.Any]], int]:
    """
    (lengths, ids, index of the first id that is negative or above `last`, else -1); see text/wrap_ids.h.
    """

def write_features(
    path: str,
    features: tuple[
        collections.abc.Sequence[str],
        str,
        collections.abc.Sequence[collections.abc.Sequence[str]],
        collections.abc.Sequence[typing_extensions.Buffer],
        str,
    ],
) -> str:
    """
    A dataset of them alone; its fingerprint.
    """

INDEX_PART: int = 4194304
MOST_PACKED_AT_OPENING: int = 10000000
