"""Jobs of several hosts: torchrun over network namespaces, a host that is lost; and jobs of very many ranks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import raw_tokens

WINDOW = 8
ROWS = 24  # of a global batch: 2, 4, 6 and 8 ranks divide it
PER_HOST = 2
EPOCHS = 2

# One process of a training job: a step needs every rank, as an all-reduce of gradients does. On the host that is to be
# lost, both processes say that they came to the fatal step, and stay there.
WORKER = f"""
import json, os, sys, time
from pathlib import Path
import torch, torch.distributed as dist
import penstock

folder, name, fatal = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
dist.init_process_group("gloo")
rank = dist.get_rank()
view = penstock.open(folder / "tokens.bin", dtype="u2").windows({WINDOW})
loader = penstock.Loader(view, global_batch_size={ROWS}, seed=3, epochs={EPOCHS}, rank="env", framework="numpy")
state = folder / "state.json"
if state.exists():
    loader.load_state_dict(json.loads(state.read_text()))
loader.check_agreement()
with (folder / f"{{name}}-{{rank}}.jsonl").open("w") as log:
    for step, batch in enumerate(loader):
        for i in range(int(batch.valid.sum())):
            row = [batch.position + i * dist.get_world_size() + rank, int(batch.epochs[i]), int(batch.indices[i])]
            log.write(json.dumps(row + batch["token"][i].tolist()) + "\\n")
        log.flush()
        if fatal is not None and step == fatal["step"] and os.environ["GROUP_RANK"] == str(fatal["host"]):
            (folder / f"lost-{{rank}}").touch()
            while True:
                time.sleep(60)
        dist.all_reduce(torch.ones(1))
        if rank == 0 and step % 2 == 1:
            (folder / "state.new").write_text(json.dumps(batch.state_dict()))
            (folder / "state.new").rename(state)
dist.destroy_process_group()
"""


@dataclass(frozen=True)
class Host:
    """A network namespace with an address of its own."""

    name: str
    address: str

    def processes(self) -> list[int]:
        return [int(pid) for pid in ip("netns", "pids", self.name).split()]

    def kill(self) -> None:
        """As when it loses power: its link is gone first, so that no other host is told."""
        ip("-n", self.name, "link", "set", "eth0", "down")
        for _ in range(100):
            left = self.processes()
            if not left:
                return
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.05)
        raise AssertionError(f"{self.name}: {left} do not end")


def ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def hosts_of(count: int) -> Iterator[list[Host]]:
    """Namespaces that are joined by a bridge in one more; skips the test where they may not be made."""
    if shutil.which("ip") is None:
        pytest.skip("there is no program ip (iproute2) here, which makes network namespaces")
    mark = f"penstock-{os.getpid()}"
    names = [f"{mark}-hub", *(f"{mark}-{number}" for number in range(count))]
    hosts = [Host(name, f"10.77.0.{number + 1}") for number, name in enumerate(names[1:])]
    try:
        try:
            for name in names:
                ip("netns", "add", name)
            ip("-n", names[0], "link", "add", "br0", "type", "bridge")
            ip("-n", names[0], "link", "set", "br0", "up")
            for number, host in enumerate(hosts):
                port = f"port{number}"
                ip("-n", names[0], "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host.name)
                ip("-n", names[0], "link", "set", port, "master", "br0", "up")
                ip("-n", host.name, "addr", "add", f"{host.address}/24", "dev", "eth0")
                for link in ("eth0", "lo"):
                    ip("-n", host.name, "link", "set", link, "up")
            ip("netns", "exec", hosts[0].name, "true")
        except OSError as error:
            pytest.skip(f"no network namespaces here: {error}")
        yield hosts
    finally:
        for host in hosts:
            try:
                host.kill()
            except OSError:
                continue  # it was not made
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def launch(hosts: list[Host], folder: Path, name: str, fatal: Any) -> list[subprocess.Popen[str]]:
    """torchrun on each host."""
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "1"}
    started = []
    for number, host in enumerate(hosts):
        command = ["ip", "netns", "exec", host.name, sys.executable, "-m", "torch.distributed.run"]
        command += ["--nnodes", str(len(hosts)), "--nproc-per-node", str(PER_HOST), "--node-rank", str(number)]
        command += ["--master-addr", hosts[0].address, "--master-port", "29400", "--local-addr", host.address]
        command += [str(folder / "worker.py"), str(folder), name, json.dumps(fatal)]
        out = (folder / f"{name}-host-{number}.txt").open("w")
        with out:
            started.append(subprocess.Popen(command, env=environment, stdout=out, stderr=out, text=True))
    return started


def said(folder: Path, name: str) -> str:
    return "\n".join(path.read_text()[-3000:] for path in sorted(folder.glob(f"{name}-host-*.txt")))


def rows_of(folder: Path, name: str) -> list[list[int]]:
    """[position, epoch, index, tokens …] of all ranks, by position."""
    logs = folder.glob(f"{name}-[0-9]*.jsonl")
    return sorted(json.loads(line) for log in logs for line in log.read_text().splitlines())


@pytest.mark.slow
def test_a_host_is_lost_and_fewer_go_on_with_what_was_left(tmp_path):
    """It takes some ten seconds: ten processes import torch and meet twice."""
    before, after = 3, 2
    pytest.importorskip("torch")
    view = raw_tokens(tmp_path / "tokens.bin", 101 * WINDOW)[0].windows(WINDOW)
    (tmp_path / "worker.py").write_text(WORKER)
    with hosts_of(before) as hosts:
        fatal = {"host": before - 1, "step": 4}
        jobs = launch(hosts, tmp_path, "first", fatal)
        deadline = time.monotonic() + 240
        while len(list(tmp_path.glob("lost-*"))) < PER_HOST:
            assert all(job.poll() is None for job in jobs), said(tmp_path, "first")
            assert time.monotonic() < deadline, said(tmp_path, "first")
            time.sleep(0.1)
        for host in reversed(hosts):  # the lost one, then the others, which would wait for it
            host.kill()
        for job in jobs:
            assert job.wait(60) != 0
    position = json.loads((tmp_path / "state.json").read_text())["position"]
    assert position == 4 * ROWS  # the last step that was saved: two of step 4's ranks never ended it
    with hosts_of(after) as hosts:
        for job in launch(hosts, tmp_path, "second", None):
            assert job.wait(240) == 0, said(tmp_path, "second")
    first = [row for row in rows_of(tmp_path, "first") if row[0] < position]
    union = first + rows_of(tmp_path, "second")
    assert [row[0] for row in union] == list(range(EPOCHS * len(view)))
    with penstock.Loader(view, 1, seed=3, epochs=EPOCHS, rank=0, world_size=1, framework="numpy") as whole:
        for row, batch in zip(union, whole, strict=True):
            assert row[1:] == [int(batch.epochs[0]), int(batch.indices[0]), *batch["token"][0].tolist()]


@pytest.mark.parametrize("ranks", [1024, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("order", ["uniform", "blocks"])
def test_each_observation_is_one_ranks_of_very_many(tmp_path, ranks, order):
    rows = 2  # of a rank's batch
    size = 2 * rows * ranks + ranks + 7  # two whole steps, and one that is not full
    with (tmp_path / "tokens.bin").open("wb") as file:
        file.truncate(size)
    view = penstock.open(tmp_path / "tokens.bin", dtype="u1").windows(1)
    chosen = penstock.orders.Blocks(16, 64, lanes=ranks) if order == "blocks" else order
    job = penstock.Job(view, global_batch_size=rows * ranks, seed=9, order=chosen, epochs=1)
    given = np.zeros(size, np.int64)
    position, steps = 0, 0
    while position < size:
        ends = set()
        for rank in range(ranks):
            plan = job.plan(position, rank, ranks)
            assert plan is not None and len(plan.picks) == rows
            given[plan.picks["index"][plan.valid]] += 1
            ends.add(plan.next_position)
        (position,) = ends
        steps += 1
    assert steps == len(job) == 3 and (given == 1).all()
    assert job.plan(position, 0, ranks) is None
    located = job.locate(1, world_size=ranks)
    assert [row.rank for row in located] == [*range(ranks), *range(ranks)]
    for rank in (0, 1, 777, ranks - 1):
        plan = job.plan(rows * ranks, rank, ranks)
        assert plan is not None and plan.picks["index"].tolist() == [row.index for row in located[rank::ranks]]
