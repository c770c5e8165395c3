"""A run as its saved state tells it: view, order, seed and skips."""

from __future__ import annotations

import json
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from penstock._data.token_documents import SIDES
from penstock._make.errors import UsageError
from penstock._places.remote import shown

_KEYS = {"version", "position", "job"}


class TracedRun(NamedTuple):
    """The arguments of a loader."""

    view: Any
    seed: int
    order: Any
    skip: list[tuple[int, int]]
    grown: bool = False  # the dataset has, or had in the state's run
    steered: bool = False  # weights may have been set in the state's run


def read_state(file: str) -> dict[str, Any]:
    """The loader's state that a file holds, alone or anywhere in a checkpoint.

    Raises:
        UsageError: no such file; neither JSON nor torch's; no state in it, or several that differ.
    """
    path = Path(file)
    if not path.exists():
        raise UsageError(f"--state {file}: there is no such file")
    content: Any
    if path.is_dir():
        content = _load_checkpoint(file)
    else:
        with path.open("rb") as opened:
            is_torch = opened.read(2) in (b"PK", b"\x80\x02")  # a zip file, or a pickle: may be larger than memory
        try:
            content = _load_torch(file) if is_torch else json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            raise UsageError(f"--state {file}: neither JSON nor what torch.save wrote") from None
    found: list[dict[str, Any]] = []
    _find_states(content, found)
    if len(found) != 1:
        there = f"{len(found)} states of loaders that differ" if found else "no state of a loader"
        raise UsageError(f"--state {file}: it holds {there}: give a file with the state_dict() of one")
    return found[0]


def _load_torch(file: str) -> Any:
    try:
        import torch

        return torch.load(file, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # whatever a file that is none makes it raise
        line = str(error).strip().splitlines()[:1]
        raise UsageError(f"--state {file}: neither JSON nor what torch.save wrote: {''.join(line):.200}") from None


def _load_checkpoint(folder: str) -> Any:
    """The states in a checkpoint of torch.distributed.checkpoint, and nothing else of it."""
    try:
        from torch.distributed.checkpoint.filesystem import FileSystemReader
        from torch.distributed.checkpoint.state_dict_loader import load

        reader = FileSystemReader(folder)
        states: dict[tuple[Any, ...], set[Any]] = defaultdict(set)
        for path in reader.read_metadata().planner_data.values():  # from names to where they stood in what was saved
            states[tuple(path[:-1])].add(path[-1])
        found = []
        for path, keys in states.items():
            if keys >= _KEYS:
                state: dict[str, Any] = {"version": 0, "position": 0, "job": ""}
                wanted: Any = state
                for key in reversed(path):
                    wanted = {key: wanted}
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # that this process is alone
                    load(wanted, storage_reader=reader)
                for key in path:
                    wanted = wanted[key]
                found.append(wanted)
        return found
    except Exception as error:  # whatever a folder that is none makes it raise
        line = str(error).strip().splitlines()[:1]
        raise UsageError(f"--state {folder}: no checkpoint of torch.distributed: {''.join(line):.200}") from None


def _find_states(value: Any, found: list[dict[str, Any]]) -> None:
    if isinstance(value, dict):
        if value.keys() >= _KEYS and isinstance(value["job"], str):
            state = {key: value[key] for key in sorted(_KEYS)}
            if state not in found:
                found.append(state)
            return
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for each in value:
            _find_states(each, found)


def run_of_state(
    given: Any, state: dict[str, Any], custom: Sequence[Any] = (), *, with_orders: bool = True
) -> TracedRun:
    """The run of a state, on a dataset or a mixture that was opened; whether it is the same one, loading it tells.

    Args:
        given: the dataset, or the mixture.
        state: of the loader.
        custom: of `orders.Custom`, arrays that the state may be of.
        with_orders: whether a mixture's sources get their orders, of which a state may tell too little.

    Raises:
        UsageError: a state that does not tell all of it.
    """
    import penstock

    try:
        job = json.loads(state["job"])
        order, sources = job["order"], job["sources"]
        skip = [(int(begin), int(end)) for begin, end in job["skip"]]
        if isinstance(given, penstock.Mixture):
            if order["name"] != "mixture":
                raise UsageError("--state is of no mixture: give the dataset as DATA")
            orders = {name: _order(order["orders"][name], given.sources[name], custom) for name in given.names
                      if with_orders and name in order["orders"]}  # fmt: skip
            is_steered = "steered" in order
            view = given.steered() if is_steered and not given.is_steered else given
            return TracedRun(view, int(order["seed"]), orders, skip, steered=is_steered)
        if order["name"] == "mixture":
            raise UsageError("--state is of a mixture: give the mixture's file, mix.json, as DATA")
        view = _view(given, sources[0]["view"])
        grown = order["name"] == "grown"
        if grown:
            order = order["stages"][-1]["order"]
        elif given.kind == "penstock" and "phase" not in sources[0]["view"]:
            grown = sources[0]["dataset"]["shards"] < len(given.shards)
        return TracedRun(view, int(order.get("seed", 0)), _order(order, view, custom), skip, grown)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        if isinstance(error, (UsageError, penstock.Error)):
            raise
        raise UsageError(f"--state: its job cannot be read: {type(error).__name__}: {error}") from None


def with_orders_of(own: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    """A mixture's state as if its sources had the orders that they have in another one."""
    said = json.loads(state["job"])
    ours = json.loads(own["job"])["order"]["orders"]
    orders = said["order"].get("orders")
    if not isinstance(orders, dict):
        return state
    said["order"]["orders"] = {name: ours.get(name, each) for name, each in orders.items()}
    return {**state, "job": json.dumps(said, ensure_ascii=False, separators=(",", ":"), sort_keys=True)}


@contextmanager
def refusals_of(data: Sequence[str]) -> Iterator[None]:
    """Makes the refusal of a state name the files that were given, not arguments of a loader.

    Raises:
        StateMismatchError: As inside.
    """
    import penstock

    try:
        yield
    except penstock.StateMismatchError as error:
        what = re.split(r"\. (?:Use on_mismatch|Give )", str(error), maxsplit=1)[0]
        what = what.removeprefix("this state is of another job: ")
        if "dataset: " in what:
            what = f"this state is of other files than {shown(*data)}: name those of the run ({what})"
        else:
            what = f"this state is of another run than {shown(*data)} tells: {what}"
        raise penstock.StateMismatchError(what) from None


_PACKING = (
    *("lookahead", "fit", "fill", "buffer", "refill", "group", "long"),
    *("multiple_of", "max_document", "cut", "max_documents"),
)


def _view(dataset: Any, said: dict[str, Any]) -> Any:
    kind = said["kind"]
    if kind == "packed" and "where" in said:
        dataset = dataset.where(said["where"]["condition"])  # if it chooses others now, loading says so
    if kind == "windows":
        view = dataset.windows(said["window"], said["lookahead"], phase=said.get("phase"))
    elif kind == "documents":
        view = dataset.documents(**_told(said))
    elif kind == "packed":
        options = {name: said[name] for name in _PACKING if name in said}
        view = dataset.packed(said["window"], **options, **_told(said))
    else:
        raise UsageError(f"--state: it is of {kind!r:.80}, of which there is no text: windows, documents, packed rows")
    own = {"where"} if kind == "packed" else set()
    for _, name in sorted((_depth(key), key) for key in said if _depth(key) and key not in own):
        view = _part(view, name.rstrip("0123456789"), said[name])
    return view


def _told(said: dict[str, Any]) -> dict[str, int]:
    """The token that tells documents."""
    return {name: said[name] for name in SIDES if name in said}


def _depth(key: str) -> int:
    """Which part of a part a member tells: "slice" the first, "split2" one of that; 0: it tells none."""
    found = re.fullmatch(r"(?:slice|split|selection|where)(\d*)", key)
    return 0 if found is None else int(found[1] or 1)


def _part(view: Any, what: str, said: dict[str, Any]) -> Any:
    if what == "slice":
        first, step = said["first"], said["step"]
        stop = first + said["count"] * step
        return view[first : None if stop < 0 else stop : step]
    if what == "split":
        return view.split(said["one_in"], said["seed"])[int(said["held_out"])]
    if what == "where":
        return view.where(said["condition"])
    raise UsageError(
        "--state: it is of a selection (view.select), of which a state has only the digest: use loader.locate in Python"
    )


def _order(said: dict[str, Any], view: Any, custom: Sequence[Any]) -> Any:
    from penstock._load import orders

    name = said["name"]
    if name in ("uniform", "sequential"):
        return name
    if name == "sequential in fetches":
        return orders.Sequential(said["fetch"])
    if name == "blocks":
        return orders.Blocks(said["block"], said["fetch"], said["lanes"])
    if name == "bucketed" and getattr(view, "kind", None) == "documents":
        return orders.Bucketed(view.lengths(), said["pool"], said["bucket"])  # if these are other ones, loading says so
    if name == "custom":
        return _custom(said, custom)
    raise UsageError(
        f"--state: its order is {name!r:.80}, of whose numbers a state has only the digest: use loader.locate in Python"
    )


def _custom(said: dict[str, Any], custom: Sequence[Any]) -> Any:
    """The one of the arrays that has the digest which a state says."""
    if "digest" not in said:
        raise UsageError(
            f"--state: its order is the function {said['function']!r:.80}, version {said['version']!r:.80}: use "
            "loader.locate in Python"
        )
    for each in custom:
        if each.digest == said["digest"]:
            return each
    found = f"; {', '.join(map(repr, custom))} " + ("have others" if len(custom) > 1 else "has another")
    raise UsageError(
        f"--state: its order is an array of {said['length']:,} indices, of which a state has only the digest "
        f"{said['digest']!r:.80}: give its .npy by --indices{found if custom else ''}"
    )
