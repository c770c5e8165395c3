"""Which share of the job this process wants."""

from __future__ import annotations

import operator
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from penstock._base.errors import InvalidArgumentError

# Variables by which launchers tell a process how many there are, and which it is (torchrun, Slurm, Open MPI, MPICH).
_LAUNCHERS = {
    "WORLD_SIZE": "RANK",
    "SLURM_NTASKS": "SLURM_PROCID",
    "OMPI_COMM_WORLD_SIZE": "OMPI_COMM_WORLD_RANK",
    "PMI_SIZE": "PMI_RANK",
}
# How frameworks call the dimensions of a mesh. Data parallelism: dp, dp_replicate, dp_shard, data_parallel, fsdp, …
_DATA_PARALLEL = ("dp", "data", "batch", "replicate", "shard", "ddp", "fsdp", "hsdp")
_FURTHER = frozenset({*_DATA_PARALLEL, "parallel", "inner", "outer"})  # words after the first, as in dp_replicate
_CONTEXT_PARALLEL = ("cp", "context", "context_parallel")
# Ranks along these work on the same rows: of tensor and of pipeline parallelism.
_PEERS = ("tp", "tensor", "tensor_parallel", "mp", "model", "model_parallel", "pp", "pipe", "pipeline",
          "pipeline_parallel")  # fmt: skip
_MOST_RANKS = 2**32
_is_divided = ContextVar("_is_divided", default=False)


class Mesh(Protocol):
    """The part of torch's DeviceMesh that is used; `mesh["dp_replicate", "dp_shard"]` is one too."""

    def get_coordinate(self) -> Any:
        """Coordinates of this process in the mesh, or None if it is not in it."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the mesh's dimensions."""


def resolve(
    rank: int | str | None, world_size: int | None, mesh: Mesh | None
) -> tuple[int, int, tuple[int, int] | None]:
    """The rank and world size that a loader works with.

    Args:
        rank: a number, "env" (RANK and WORLD_SIZE of the environment; alone where they are not set, unless another
            launcher's variables say that there are several) or None.
        world_size: how many ranks there are; needed with a number.
        mesh: a device mesh: coordinates of its data-parallel dimensions are folded in mesh order, those along tp and
            pp do not count.

    Returns:
        The rank, the number of ranks, and of a mesh with a dimension cp (rank, size) in it.

    Raises:
        InvalidArgumentError: rank >= world size, a contradiction, an unknown dimension, or no answer in a process that
            is one of several.

    >>> resolve(1, 4, None)
    (1, 4, None)
    >>> resolve(None, None, None)
    (0, 1, None)
    """
    if mesh is not None:
        if rank is not None or world_size is not None:
            raise InvalidArgumentError("give either mesh= or rank= and world_size=, not both")
        return _from_mesh(mesh)
    if rank == "env":
        if world_size is not None:
            raise InvalidArgumentError('rank="env" takes the world size from WORLD_SIZE: leave world_size= out')
        for name, other in (("RANK", "WORLD_SIZE"), ("WORLD_SIZE", "RANK")):
            if name in os.environ and other not in os.environ:
                raise InvalidArgumentError(f'rank="env": {name} is set and {other} is not; set both, or neither')
        if "RANK" not in os.environ:
            _refuse_alone_in_a_job()
        return (*_checked(_from_env("RANK", 0), _from_env("WORLD_SIZE", 1)), None)
    if isinstance(rank, str):
        raise InvalidArgumentError(f'rank={rank!r}: must be a number or "env"')
    if rank is None and world_size is None:
        _refuse_one_of_several()
        return 0, 1, None
    if rank is None or world_size is None:
        raise InvalidArgumentError(f"rank={rank} and world_size={world_size}: give both, or neither")
    return (*_checked(rank, world_size), None)


@contextmanager
def divided() -> Iterator[None]:
    """An adapter makes a loader in a DataLoader's worker, and has given the worker its share."""
    token = _is_divided.set(True)
    try:
        yield
    finally:
        _is_divided.reset(token)


def is_divided() -> bool:
    """True if a loader that is made now is an adapter's, see `divided`."""
    return _is_divided.get()


def refuse_worker(what: str, instead: str, why: str = "each worker would give all rows of its rank") -> None:
    """Refuses a loader in a worker of torch's DataLoader, where each worker would give all rows of the rank.

    Args:
        what: is refused.
        instead: what to use, for the message.
        why: it is refused.

    Raises:
        InvalidArgumentError: this process is such a worker.
    """
    # Only asked if the program has imported it: a worker has, and importing torch here would cost seconds.
    data = sys.modules.get("torch.utils.data")
    info = data.get_worker_info() if data is not None and hasattr(data, "get_worker_info") else None
    if info is not None:
        raise InvalidArgumentError(
            f"{what} in worker {info.id} of a DataLoader with num_workers={info.num_workers}: {why}. {instead}"
        )


def local_world_size() -> int:
    """Processes of this job on this node, as the launcher says; 1 where it does not.

    torchrun says LOCAL_WORLD_SIZE, Open MPI OMPI_COMM_WORLD_LOCAL_SIZE, MPICH MPI_LOCALNRANKS, srun a list over the
    nodes, such as "8(x2),4": the largest of these.
    """
    for name in ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"):
        if os.environ.get(name):
            return max(1, _from_env(name, 1))
    tasks = re.findall(r"(?:^|,)(\d+)", os.environ.get("SLURM_STEP_TASKS_PER_NODE", ""))
    return max([1, *map(int, tasks)])


def _checked(rank: int, world_size: int) -> tuple[int, int]:
    try:
        rank, world_size = operator.index(rank), operator.index(world_size)
    except TypeError:
        raise InvalidArgumentError(f"rank={rank!r} and world_size={world_size!r}: must be integers") from None
    if world_size < 1 or not 0 <= rank < world_size:
        raise InvalidArgumentError(f"rank {rank} of world size {world_size}: ranks go from 0 to world size - 1")
    if world_size > _MOST_RANKS:
        raise InvalidArgumentError(f"world size {world_size}: must be at most {_MOST_RANKS:,}")
    return rank, world_size


def _from_env(name: str, default: int) -> int:
    text = os.environ.get(name)
    if not text:  # or empty, as `export A=$B` leaves it where B is not set
        return default
    try:
        return int(text)
    except ValueError:
        raise InvalidArgumentError(f"environment variable {name}={text!r}: must be a number") from None


def _from_mesh(mesh: Mesh) -> tuple[int, int, tuple[int, int] | None]:
    if not hasattr(mesh, "get_coordinate") or not hasattr(mesh, "shape"):
        raise InvalidArgumentError(f"mesh={mesh!r:.80}: must be a device mesh of torch.distributed")
    dimensions = _dimensions(mesh)
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        raise InvalidArgumentError("this process is not part of the mesh: it needs no loader")
    rank, world_size = 0, 1
    context: tuple[int, int] | None = None
    for kind, at, size in zip(dimensions, coordinate, mesh.shape, strict=True):
        if kind == "data":
            rank = rank * size + int(at)
            world_size *= size
        elif kind == "context":
            context = (int(at), int(size))
    return (*_checked(rank, world_size), context)


def _dimensions(mesh: Mesh) -> list[str]:
    """The kind of each of the mesh's dimensions: "data", "context" or "peers"."""
    names = tuple(getattr(mesh, "mesh_dim_names", None) or ())
    if not names:
        if len(mesh.shape) < 2:
            return ["data"] * len(mesh.shape)
        raise InvalidArgumentError(
            f"mesh of shape {tuple(mesh.shape)} without names: name its dimensions (mesh_dim_names=), so that those of "
            "data parallelism can be told, or give rank= and world_size="
        )
    kinds = [_kind(name, names) for name in names]
    if kinds.count("context") > 1:
        raise InvalidArgumentError(
            f"mesh with the dimensions {', '.join(names)}: two of them are of context parallelism"
        )
    return kinds


def _kind(name: str, names: tuple[str, ...]) -> str:
    if name in _CONTEXT_PARALLEL:
        return "context"
    if name in _PEERS:
        return "peers"
    first, *others = name.split("_")
    if first.rstrip("0123456789") in _DATA_PARALLEL and all(word in _FURTHER or word.isdigit() for word in others):
        return "data"
    raise InvalidArgumentError(
        f"mesh with the dimensions {', '.join(names)}: {name!r} is none that penstock knows: those of data parallelism "
        f"are {', '.join(_DATA_PARALLEL)}, or such words joined by _, as dp_shard; cp shares rows; tp and pp get the "
        'same rows. Give the part of the mesh that has only these, as mesh["dp"], or rank= and world_size='
    )


def _refuse_alone_in_a_job() -> None:
    for size, rank in _LAUNCHERS.items():
        if _from_env(size, 1) > 1:
            raise InvalidArgumentError(
                f'rank="env" takes RANK and WORLD_SIZE, which are not set, but this process is one of '
                f"{os.environ[size]} ({size}): set RANK to {rank} and WORLD_SIZE to {size}, or give rank= and "
                "world_size=, 0 and 1 if it runs alone"
            )


def _refuse_one_of_several() -> None:
    advice = (
        'say which share it wants: rank= and world_size=, mesh=, or rank="env"; rank=0, world_size=1 if it runs alone'
    )
    for name in _LAUNCHERS:
        if _from_env(name, 1) > 1:
            raise InvalidArgumentError(f"this process is one of {os.environ[name]} ({name}); {advice}")
    # Only asked if the program has imported it: importing torch here would cost seconds.
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        size = distributed.get_world_size()
        if size > 1:
            raise InvalidArgumentError(f"this process is one of {size} (torch.distributed); {advice}")
