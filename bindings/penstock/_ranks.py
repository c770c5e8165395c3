"""Which share of the job this process wants."""

from __future__ import annotations

import operator
import os
import sys
from typing import Any, Protocol

from penstock._errors import InvalidArgumentError

# Variables by which launchers tell a process how many there are (torchrun, Slurm, Open MPI, MPICH).
_WORLD_SIZE_VARIABLES = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


class Mesh(Protocol):
    """What is used of torch's DeviceMesh; `mesh["dp_replicate", "dp_shard"]` is one."""

    def get_coordinate(self) -> Any:
        """Coordinates of this process in the mesh, or None if it is not in it."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the mesh's dimensions."""


def resolve(rank: int | str | None, world_size: int | None, mesh: Mesh | None) -> tuple[int, int]:
    """The (rank, world size) that a loader works with.

    Args:
        rank: a number, "env" (RANK and WORLD_SIZE of the environment; alone where they are not set) or None.
        world_size: how many ranks there are; needed with a number.
        mesh: a device mesh of the data-parallel dimensions; its coordinates are folded in mesh order.

    Returns:
        The rank and the number of ranks.

    Raises:
        InvalidArgumentError: rank >= world size, a contradiction, or no answer in a process that is one of several.

    >>> resolve(1, 4, None)
    (1, 4)
    >>> resolve(None, None, None)
    (0, 1)
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
        return _checked(_from_env("RANK", 0), _from_env("WORLD_SIZE", 1))
    if isinstance(rank, str):
        raise InvalidArgumentError(f'rank={rank!r}: must be a number or "env"')
    if rank is None and world_size is None:
        _refuse_one_of_several()
        return 0, 1
    if rank is None or world_size is None:
        raise InvalidArgumentError(f"rank={rank} and world_size={world_size}: give both, or neither")
    return _checked(rank, world_size)


def local_world_size() -> int:
    """Processes of this job on this node, as the launcher says (LOCAL_WORLD_SIZE); 1 where it does not."""
    return max(1, _from_env("LOCAL_WORLD_SIZE", 1))


def _checked(rank: int, world_size: int) -> tuple[int, int]:
    try:
        rank, world_size = operator.index(rank), operator.index(world_size)
    except TypeError:
        raise InvalidArgumentError(f"rank={rank!r} and world_size={world_size!r}: must be integers") from None
    if world_size < 1 or not 0 <= rank < world_size:
        raise InvalidArgumentError(f"rank {rank} of world size {world_size}: ranks go from 0 to world size - 1")
    return rank, world_size


def _from_env(name: str, default: int) -> int:
    text = os.environ.get(name)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        raise InvalidArgumentError(f"environment variable {name}={text!r}: must be a number") from None


def _from_mesh(mesh: Mesh) -> tuple[int, int]:
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        raise InvalidArgumentError("this process is not part of the mesh: it needs no loader")
    rank, world_size = 0, 1
    for at, size in zip(coordinate, mesh.shape, strict=True):
        rank = rank * size + int(at)
        world_size *= size
    return _checked(rank, world_size)


def _refuse_one_of_several() -> None:
    advice = 'say which share it wants: rank= and world_size=, mesh=, or rank="env"'
    for name in _WORLD_SIZE_VARIABLES:
        if _from_env(name, 1) > 1:
            raise InvalidArgumentError(f"this process is one of {os.environ[name]} ({name}); {advice}")
    # Only asked if the program has imported it: importing torch here would cost seconds.
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        size = distributed.get_world_size()
        if size > 1:
            raise InvalidArgumentError(f"this process is one of {size} (torch.distributed); {advice}")
