"""How commands are told where their tasks run: --workers, --ray."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from penstock._make.pools import Executor


def _address(context: click.Context, option: click.Parameter, address: str | None) -> str | None:
    """Refuses what is no address before click misses the INPUT that --ray took for one."""
    if address is None:
        return None
    from penstock._base.errors import InvalidArgumentError
    from penstock._from.rows.cluster import Cluster

    try:
        Cluster(address)
    except InvalidArgumentError as error:
        raise click.UsageError(f"--ray {error}; what follows --ray is taken for one") from None
    return address


ray_option = click.option(
    "--ray",
    callback=_address,
    is_flag=False,
    flag_value="auto",
    metavar="[ADDRESS]",
    help="Run on a Ray cluster: ADDRESS is host:port of its head; without ADDRESS it is the cluster that this machine "
    "belongs to. All nodes must see inputs and output at the same paths. Default: processes of this machine.",
)


workers_option = click.option("--workers", type=click.IntRange(1), help="Number of processes. Default: one.")


def workers_of(given: dict[str, Any]) -> int | Executor:
    """What --workers or --ray say; one process without them.

    Raises:
        UsageError: Both are given.
        ModuleNotFoundError: Ray is not installed.
    """
    return cluster_of(given) or given.pop("workers") or 1


def default_workers() -> int:
    """One for each core that this process may use."""
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def cluster_of(given: dict[str, Any]) -> Executor | None:
    """The cluster that --ray names; None: it is not given.

    Raises:
        UsageError: --workers is given too.
        ModuleNotFoundError: Ray is not installed.
    """
    address = given.pop("ray")
    if address is None:
        return None
    if given["workers"] is not None:
        raise click.UsageError(
            "--workers counts processes of this machine, --ray takes the cores of a cluster: give one of them"
        )
    from penstock._from.rows.cluster import Cluster
    from penstock._from.rows.missing import needed

    needed()
    return Cluster(address)
