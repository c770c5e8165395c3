"""Which share of the job a process wants: given, from the environment or from a mesh; never guessed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import raw_tokens
from penstock._base import resources

LAUNCHERS = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


@pytest.fixture
def view(tmp_path, monkeypatch):
    for name in (*LAUNCHERS, "RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    return raw_tokens(tmp_path / "tokens.bin", 1000)[0].windows(8)


def make(view: penstock.View, **options: Any) -> penstock.Loader:
    return penstock.Loader(view, 2, framework="numpy", threads=1, **options)


@pytest.mark.parametrize(
    "options",
    [{"rank": 4, "world_size": 4}, {"rank": 9, "world_size": 4}, {"rank": -1, "world_size": 4},
     {"rank": 0, "world_size": 0}, {"rank": 0, "world_size": -1}, {"rank": 1}, {"world_size": 4}, {"rank": "RANK"},
     {"rank": "0", "world_size": 2}, {"rank": "env", "world_size": 2}, {"rank": 0.5, "world_size": 2},
     {"rank": 0, "world_size": "2"}],
    ids=str,
)  # fmt: skip
def test_half_an_answer_and_a_rank_that_is_not_below_the_world_size_are_refused(view, options):
    with pytest.raises(ValueError, match=str(options.get("rank", "rank"))):
        make(view, **options)


def test_ranks_share_a_batch_by_turns(view):
    alone = next(make(view, rank=0, world_size=1))
    parts = [next(make(view, rank=rank, world_size=2)) for rank in range(2)]
    assert np.stack([part.indices for part in parts], 1).ravel()[:2].tolist() == alone.indices.tolist()
    loader = make(view, rank=np.int64(1), world_size=np.int32(2))
    assert (loader.rank, loader.world_size) == (1, 2)


def test_env_takes_rank_and_world_size_and_is_alone_without_them(view, monkeypatch):
    assert (make(view, rank="env").rank, make(view, rank="env").world_size) == (0, 1)
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "5")
    assert (make(view, rank="env").rank, make(view, rank="env").world_size) == (2, 5)
    for rank, world_size in [("5", "5"), ("x", "5"), ("-1", "5"), ("1", "")]:
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("WORLD_SIZE", world_size)
        with pytest.raises(ValueError):
            make(view, rank="env")
    monkeypatch.setenv("WORLD_SIZE", "5")
    monkeypatch.delenv("RANK")
    with pytest.raises(ValueError, match="RANK"):  # else all five would be rank 0
        make(view, rank="env")


@pytest.mark.parametrize(
    ("size", "rank"),
    [("SLURM_NTASKS", "SLURM_PROCID"), ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"), ("PMI_SIZE", "PMI_RANK")],
)
def test_env_is_not_alone_where_another_launcher_says_several(view, monkeypatch, size, rank):
    monkeypatch.setenv(size, "2")
    with pytest.raises(penstock.InvalidArgumentError) as caught:  # else each of the two would be rank 0 of 1
        make(view, rank="env")
    for words in ("RANK and WORLD_SIZE", "one of 2", f"set RANK to {rank} and WORLD_SIZE to {size}"):
        assert words in str(caught.value)
    monkeypatch.setenv(size, "1")
    assert make(view, rank="env").world_size == 1
    monkeypatch.setenv(size, "2")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert make(view, rank="env").rank == 1


def test_a_process_that_is_one_of_several_and_did_not_say_is_refused(view, monkeypatch):
    for variable in LAUNCHERS:
        monkeypatch.setenv(variable, "2")
        with pytest.raises(penstock.InvalidArgumentError) as caught:
            make(view)
        for word in ("one of 2", variable, "rank=", "mesh=", 'rank="env"'):
            assert word in str(caught.value)
        monkeypatch.setenv(variable, "1")
        assert make(view).world_size == 1
        monkeypatch.delenv(variable)


# --- a mesh


class FakeMesh:
    """What is used of a mesh."""

    def __init__(
        self, shape: tuple[int, ...], coordinate: list[int] | None, names: tuple[str, ...] | None = None
    ) -> None:
        self.shape, self.coordinate, self.mesh_dim_names = shape, coordinate, names

    def get_coordinate(self) -> list[int] | None:
        return self.coordinate


def test_a_meshs_dimensions_are_folded_in_its_order(view):
    loader = make(view, mesh=FakeMesh((2, 3), [1, 2], ("dp_replicate", "dp_shard")))
    assert (loader.rank, loader.world_size) == (5, 6)
    loader = make(view, mesh=FakeMesh((4,), [3]))
    assert (loader.rank, loader.world_size) == (3, 4)
    with pytest.raises(ValueError, match="not part of the mesh"):
        make(view, mesh=FakeMesh((4,), None))
    with pytest.raises(ValueError, match="not both"):
        make(view, mesh=FakeMesh((2, 2), [0, 0]), rank=0, world_size=4)
    with pytest.raises(penstock.InvalidArgumentError, match="mesh=5: must be a device mesh"):
        make(view, mesh=5)


@pytest.mark.parametrize(
    ("names", "rank", "world_size"),
    [(("dp", "tp"), 1, 3), (("dp_replicate", "dp_shard", "tp"), 5, 9), (("pp", "data_parallel", "tp"), 2, 3),
     (("tp",), 0, 1), (("fsdp", "pp", "tp"), 1, 3), (("pp", "dp_replicate", "fsdp", "cp", "tp"), 7, 9)],
)  # fmt: skip
def test_peers_of_tensor_and_pipeline_parallelism_get_the_same(view, names, rank, world_size):
    coordinate = [1, 2, 1, 1, 2][: len(names)]
    loader = make(view, mesh=FakeMesh((3, 3, 3, 2, 3)[: len(names)], coordinate, names))
    assert (loader.rank, loader.world_size) == (rank, world_size)


def test_ranks_along_cp_share_rows(tmp_path, view):
    view = raw_tokens(tmp_path / "more.bin", 1001)[0].windows(8, lookahead=1)
    mesh = FakeMesh((2, 2), [1, 1], ("dp", "cp"))
    expected = next(make(view, rank=1, world_size=2, context_parallel=penstock.ContextParallel(1, 2))).inputs
    np.testing.assert_array_equal(next(make(view, mesh=mesh)).inputs, expected)
    part = penstock.ContextParallel(layout="contiguous")
    expected = next(make(view, rank=1, world_size=2)).inputs[:, 4:]
    np.testing.assert_array_equal(next(make(view, mesh=mesh, context_parallel=part)).inputs, expected)
    alone = FakeMesh((2, 1), [1, 0], ("dp", "cp"))
    assert next(make(view, mesh=alone)).inputs.shape == (2, 8)
    with pytest.raises(penstock.InvalidArgumentError, match="the mesh says rank 1 of 2"):
        make(view, mesh=mesh, context_parallel=penstock.ContextParallel(0, 2))


@pytest.mark.parametrize(
    ("names", "words"),
    [(("dp", "ep"), "'ep'"), (("dp_replicate", "dp_shard_cp"), "'dp_shard_cp'"), (("mine",), "'mine'"),
     (("dataset",), "'dataset'"), (("dp_expert",), "'dp_expert'"), (("fsdp2tp",), "'fsdp2tp'"),
     (("shard_cp2",), "'shard_cp2'"), (("dp", "cp", "context"), "two of them"), (None, "mesh_dim_names")],
)  # fmt: skip
def test_a_dimension_that_nobody_knows_is_refused_by_name(view, names, words):
    dimensions = len(names) if names else 2
    with pytest.raises(penstock.InvalidArgumentError) as caught:  # else its ranks would read what they must not
        make(view, mesh=FakeMesh((2,) * dimensions, [0] * dimensions, names))
    assert words in str(caught.value)


def in_a_job(rank: int, folder: str, view: penstock.View) -> None:
    """One of four real processes: two replicas of two shards, or data beside tensor parallelism."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=4)
    try:
        make(view)
    except penstock.InvalidArgumentError as error:
        refused = str(error)
    both = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp_replicate", "dp_shard"))
    three = init_device_mesh("cpu", (2, 1, 2), mesh_dim_names=("dp_replicate", "dp_shard", "tp"))
    shared = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp_shard", "cp"))
    meshes = {"whole": both, "slice": both["dp_replicate", "dp_shard"], "one": both["dp_shard"], "shared": shared}
    meshes |= {"beside": three["dp_replicate", "dp_shard"], "with peers": three}
    for name, mesh in meshes.items():
        with make(view, mesh=mesh) as loader:
            batch = next(loader)
            given = {"rank": loader.rank, "world_size": loader.world_size, "indices": batch.indices}
            np.savez(f"{folder}/{name}-{rank}.npz", **given, token=batch["token"], refused=refused)
    dist.destroy_process_group()


def test_real_meshes_in_real_processes(tmp_path, view):
    import torch.multiprocessing

    torch.multiprocessing.spawn(in_a_job, (str(tmp_path), view), nprocs=4)
    for name, ranks, world_size in [
        ("whole", [0, 1, 2, 3], 4), ("slice", [0, 1, 2, 3], 4), ("one", [0, 1, 0, 1], 2), ("beside", [0, 0, 1, 1], 2),
        ("with peers", [0, 0, 1, 1], 2), ("shared", [0, 0, 1, 1], 2),
    ]:  # fmt: skip
        found = [np.load(tmp_path / f"{name}-{process}.npz") for process in range(4)]
        assert [int(each["rank"]) for each in found] == ranks
        assert {int(each["world_size"]) for each in found} == {world_size}
        for process, (each, rank) in enumerate(zip(found, ranks, strict=True)):
            expected = next(make(view, rank=rank, world_size=world_size))
            part = ([0, 1, 6, 7], [2, 3, 4, 5])[process % 2] if name == "shared" else slice(None)
            np.testing.assert_array_equal(each["indices"], expected.indices)
            np.testing.assert_array_equal(each["token"], expected["token"][:, part])
            assert "one of 4 (torch.distributed)" in str(each["refused"])


# --- the machine's share


def test_threads_are_shared_with_the_nodes_other_ranks(monkeypatch):
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    alone = resources.usable_cores()
    assert 1 <= alone <= len(os.sched_getaffinity(0))
    for local in (None, 1, 2, 4, 200, 10**12):
        if local is not None:
            monkeypatch.setenv("LOCAL_WORLD_SIZE", str(local))
        cores = max(1, alone // (local or 1))
        assert resources.usable_cores() == cores
        assert resources.default_threads() == min(8, cores)
        assert resources.default_max_bytes() == resources.memory_bytes() // 4 // (local or 1)


@pytest.mark.parametrize(
    ("name", "text", "tasks"),
    [("OMPI_COMM_WORLD_LOCAL_SIZE", "4", 4), ("MPI_LOCALNRANKS", "2", 2), ("SLURM_STEP_TASKS_PER_NODE", "8", 8),
     ("SLURM_STEP_TASKS_PER_NODE", "8(x2),4", 8), ("SLURM_STEP_TASKS_PER_NODE", "2,16(x30)", 16),
     ("SLURM_STEP_TASKS_PER_NODE", "", 1)],
)  # fmt: skip
def test_every_launcher_says_how_many_share_the_node(monkeypatch, name, text, tasks):
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    monkeypatch.setenv(name, text)
    assert resources.default_max_bytes() == resources.memory_bytes() // 4 // tasks
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "")
    assert resources.default_max_bytes() == resources.memory_bytes() // 4 // tasks
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")  # torchrun in a step of Slurm
    assert resources.default_max_bytes() == resources.memory_bytes() // 4 // 3


SAY_CORES = "from penstock._base import resources as r; print(r.usable_cores(), r.default_threads())"


def cores_in(group: Path | None, affinity: set[int]) -> list[int]:
    """Usable cores and default threads of a process of that control group, bound to those cores."""
    enter = "" if group is None else f"open({str(group / 'cgroup.procs')!r}, 'w').write('0')\n"
    program = f"import os\nos.sched_setaffinity(0, {affinity})\n{enter}{SAY_CORES}"
    environment = {name: value for name, value in os.environ.items() if name != "LOCAL_WORLD_SIZE"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


def test_a_process_bound_to_one_core_takes_one_thread():
    assert cores_in(None, {min(os.sched_getaffinity(0))}) == [1, 1]


def test_a_quota_of_one_core_is_one_thread():
    mine = os.sched_getaffinity(0)
    if cores_in(None, mine)[0] < 2:
        pytest.skip("this process may use one core only")
    second = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    group = Path("/sys/fs/cgroup", "" if second else "cpu", f"penstock-cores-{os.getpid()}")
    try:
        group.mkdir()
        first = {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "100000"}
        files = {"cpu.max": "100000 100000"} if second else first
        for name, text in files.items():
            (group / name).write_text(text)
    except OSError as error:
        if group.exists():
            group.rmdir()
        pytest.skip(f"no control group with a quota can be made here: {error}")
    try:
        assert cores_in(group, mine) == [1, 1]
    finally:
        group.rmdir()


def test_memory_is_what_this_process_may_use():
    total = int(next(line for line in Path("/proc/meminfo").read_text().splitlines() if "MemTotal" in line).split()[1])
    assert 1 << 20 < resources.memory_bytes() <= total * 1024
