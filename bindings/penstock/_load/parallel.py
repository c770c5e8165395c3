"""Context parallelism and balance: which part of its rows a rank gets, and which rows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock._base.arguments import index, one_of
from penstock._base.errors import InvalidArgumentError
from penstock._data.computed import ComputedSpecs
from penstock._data.loadable import Loadable

_LAYOUTS = ("zigzag", "contiguous", "zigzag-documents")
_COSTS = ("attention", "tokens")


@dataclass(frozen=True)
class ContextParallel:
    """Which part of each row this process gets, where several share the rows of one data-parallel rank.

    `inputs`, `labels`, `position_ids`, `document_ids`, `loss_mask` and the fields are [rows, window / size], the rank's
    part; `cu_seqlens`, `max_seqlen` and `spans` are those of the whole rows. Only the part is read. It is no part of
    the job: a state goes on with any size.

    Attributes:
        rank: of this process among them; None: as the mesh says.
        size: how many share a row; None: as the mesh says.
        layout: "zigzag": chunks `rank` and `2 * size - 1 - rank` of 2 * size, so that causal attention costs all alike;
            "contiguous": part `rank` of `size`; "zigzag-documents": zigzag within each document of packed rows, whose
            `multiple_of` is a multiple of 2 * size.

    Examples:
        >>> import numpy as np, os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
        >>> np.arange(1000, dtype=np.uint16).tofile(path)
        >>> view = penstock.open(path, dtype="u2").windows(8, lookahead=1)
        >>> for rank in range(2):
        ...     part = penstock.ContextParallel(rank, 2)
        ...     batch = next(penstock.Loader(view, 1, order="sequential", context_parallel=part, framework="numpy"))
        ...     print(batch.inputs.tolist(), batch.labels.tolist())
        [[0, 1, 6, 7]] [[1, 2, 7, 8]]
        [[2, 3, 4, 5]] [[3, 4, 5, 6]]
    """

    rank: int | None = None
    size: int | None = None
    layout: str = "zigzag"


@dataclass(frozen=True, eq=False)
class Balance:
    """A rank's rows of the global batch by their cost, instead of every `world_size`-th.

    Rows go, heaviest first, to the rank with least so far, as many to each; of equal rows the earlier position comes
    first. The global batch and the state stay as they are. Nothing is communicated: every rank reads the lengths of all
    rows of the batch from the index or the pack table.

    Attributes:
        cost: "attention", sum of len²/W + len/2 over a row's documents (W is the window; 32,768 for documents);
            "tokens", the row's records that are no padding; or an integer for each observation of the view, from 0 on
            (of a mixture {name: array}).
        micro_batches: equal parts of a rank's rows, one after the other in the batch, to which its rows go by the same
            rule: the k-th parts of all ranks cost alike. None: rows are by position.
    """

    cost: Any = "attention"
    micro_batches: int | None = None


class Slice(NamedTuple):
    """A context-parallel rank's part, as the native side takes it."""

    rank: int
    size: int
    layout: str
    lookahead: int


class Rule(NamedTuple):
    """The cost of a row of one source; see CostRule in core/engine/row_costs.h."""

    kind: str
    shorten: int
    given: npt.NDArray[np.uint64] | None


def resolve_slice(given: Any, of_mesh: tuple[int, int] | None, view: Loadable) -> Slice | None:
    """The part that a loader's rows are; None: all of them.

    Args:
        given: the loader's `context_parallel=`.
        of_mesh: (rank, size) of the mesh's dimension, if it has one.
        view: what is loaded.

    Raises:
        InvalidArgumentError: what cannot be; a mesh that says something else; rows that cannot be shared.
    """
    if given is not None and not isinstance(given, ContextParallel):
        raise InvalidArgumentError(f"context_parallel={given!r:.80}: must be a penstock.ContextParallel(rank, size)")
    if given is None:
        given = ContextParallel()
        if of_mesh is None:
            return None
    one_of("layout", given.layout, _LAYOUTS)
    if given.rank is None and given.size is None:
        if of_mesh is None:
            raise InvalidArgumentError(f"{given!r}: give rank= and size=, or a mesh with a dimension cp")
        rank, size = of_mesh
    else:
        size = index("size", given.size, 1, (1 << 32) - 1)
        rank = index("rank", given.rank)
        if rank >= size:
            raise InvalidArgumentError(f"{given!r}: ranks go from 0 to size - 1")
        if of_mesh is not None and (rank, size) != of_mesh:
            raise InvalidArgumentError(
                f"{given!r}: the mesh says rank {of_mesh[0]} of {of_mesh[1]} in its dimension cp: leave rank= and "
                "size= out"
            )
    if size == 1:
        return None
    first = view._first
    first._check_sliced()
    return Slice(rank, size, given.layout, first.lookahead)


def check_sliced(computed: ComputedSpecs) -> None:
    """Refuses columns that need records of the whole row.

    Raises:
        InvalidArgumentError: documents are bounded by a token.
    """
    bounded = [each.bounds for each in computed.sequences]
    if computed.targets is not None and not computed.targets.cross_document:
        bounded.append(computed.targets.bounds)
    for bounds in bounded:
        if bounds.by != "spans":
            raise InvalidArgumentError(
                f"context_parallel: documents are bounded by a token ({bounds.by}={bounds.value}), which only a rank "
                "with the whole row sees: use a dataset with spans (`penstock write --metadata`), or leave out the "
                "columns of documents"
            )


def resolve_balance(given: Any, view: Loadable) -> tuple[list[Rule], int] | None:
    """The rules for each native source, and the number of micro-batches; None: rows go by turns.

    Raises:
        InvalidArgumentError: what cannot be; costs by lengths that no index tells.
    """
    if given is None:
        return None
    if not isinstance(given, Balance):
        raise InvalidArgumentError(f"balance={given!r:.80}: must be a penstock.Balance(…)")
    micro = 1 if given.micro_batches is None else index("micro_batches", given.micro_batches, 1)
    views = view._views()
    cost = given.cost
    if isinstance(cost, str):
        one_of("cost", cost, _COSTS)
        for each in views.values():
            each._check_lengths(cost, "give Balance(cost=array), an integer for each observation")
        return [Rule(cost, each.lookahead, None) for each in views.values()] * len(view._windows()), micro
    cost = view._costs(cost)
    return [Rule("given", 0, _costs(cost[name], each)) for name, each in views.items()], micro


def in_words(balance: tuple[list[Rule], int] | None) -> str:
    """The result of `resolve_balance` in words, so that two that give other rows differ."""
    if balance is None:
        return "none"
    rules, micro = balance
    kinds = dict.fromkeys(_rule_in_words(each) for each in rules)
    return f"{', '.join(kinds)} in {micro} micro-batches"


def _rule_in_words(rule: Rule) -> str:
    if rule.given is None:
        return f"by {rule.kind}"
    return f"by costs of digest {hashlib.blake2b(rule.given.tobytes(), digest_size=8).hexdigest()}"


def _costs(given: Any, view: Any) -> npt.NDArray[np.uint64]:
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidArgumentError(f"cost: no array of integers [{len(view)}]: {error!s:.200}") from None
    if isinstance(given, Mapping):
        raise InvalidArgumentError("cost: {name: array} is of a mixture: give an array of this view's observations")
    if array.shape != (len(view),) or array.dtype.kind not in "iub":
        raise InvalidArgumentError(
            f"cost: {array.dtype} of shape {list(array.shape)}: integers [{len(view)}] wanted, one for each observation"
        )
    if array.dtype.kind == "i" and array.size and array.min() < 0:
        raise InvalidArgumentError(f"cost: {array.min()}: costs are from 0 on")
    return np.ascontiguousarray(array, np.uint64)
