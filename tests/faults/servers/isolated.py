"""Trials that need a machine of their own: run below `unshare`, with other names, networks, hosts and processes.

    names SECONDS   a name that stops being resolved, and is again; a resolver that says nothing
    machines        two writers of one address on two machines, with networks, hosts and processes of their own
It prints what it found as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import penstock
from servers import operations, trials
from servers.objects import Answer, Objects, Request
from servers.server import LyingServer, Wire

HOST = "data.penstock.test"
BRIDGE = "10.83"
Found = dict[str, Any]


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def overlaid(path: str, folder: Path) -> Path:
    """A file of ours in the place of one of the system's, for this process and its children."""
    mine = folder / Path(path).name
    mine.write_bytes(Path(path).read_bytes())
    run("mount", "--bind", str(mine), path)
    return mine


def ends(wire: Wire, request: Request, answer: Answer) -> None:
    wire.reply(Answer(answer.status, {**answer.headers, "Connection": "close"}, answer.body))
    wire.end()


def outcome(ask: Callable[[], Any]) -> Found:
    begin = time.monotonic()
    try:
        ask()
        said = ""
    except penstock.Error as error:
        said = f"{type(error).__name__}: {error}"
    return {"said": said, "seconds": time.monotonic() - begin}


def names(folder: Path) -> Found:
    """Every read has a connection of its own, so each asks for the name; libcurl keeps it for a channel's life."""
    run("ip", "link", "set", "lo", "up")
    hosts, resolver = overlaid("/etc/hosts", folder), overlaid("/etc/resolv.conf", folder)
    known, unknown = f"127.0.0.1 localhost {HOST}\n", "127.0.0.1 localhost\n"
    hosts.write_text(known)
    resolver.write_text("nameserver 192.0.2.1\n")  # no network leads there
    found: Found = {}
    objects = Objects(trials.files())
    with LyingServer(objects).running() as server:
        server.lie = lambda request: ends
        at = operations.At(f"http://{HOST}:{server.port}", 2.0, folder, objects)
        view = operations.view(at)
        expected = view()
        write = operations.writing(at)
        hosts.write_text(unknown)
        found["reading"] = outcome(view)
        found["opening"] = outcome(operations.opening(at))
        found["writing"] = outcome(write)
        found["published"] = operations.published(at)
        hosts.write_text(known)
        found["again"] = view() == expected and bool(operations.writing(at, overwrite=True)())
        hosts.write_text(unknown)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind(("127.0.0.1", 53))
            resolver.write_text("nameserver 127.0.0.1\noptions timeout:4 attempts:2\n")
            found["silent reading"] = outcome(view)
            loader = penstock.Loader(
                penstock.open(f"http://127.0.0.1:{server.port}/data/corpus").windows(64), 4, seed=1
            )
            loader.close()
            found["silent opening"] = outcome(operations.opening(at))
            begin = time.monotonic()
        found["silent writing"] = outcome(operations.writing(at, overwrite=True))
        found["ended in"] = time.monotonic() - begin
    return found


def machines(folder: Path) -> Found:
    """The second of two that publish is refused, and what stands is the first one's, whole."""
    run("ip", "link", "set", "lo", "up")
    objects = Objects(trials.files())
    with LyingServer(objects, host="0.0.0.0").running() as server:
        made = [_machine(number, server.port, folder) for number in (1, 2)]
        # Both begin where nothing is: one that finds the other's shards is refused at once.
        for word, answer in (("begin", "begun"), ("write", "written")):
            for machine in made:
                _tell(machine, word)
            for machine in made:
                assert _hear(machine) == answer
        said = []
        for machine in made:
            _tell(machine, "publish")
            said.append(json.loads(_hear(machine)))
        for machine in made:
            assert machine.stdin is not None
            machine.stdin.close()
            machine.wait(30)
        at = operations.At(server.address, 5.0, folder / "out", objects)
        at.folder.mkdir()
        folders = {name.partition("/")[0] for name in objects.below("data/out/") if "/" in name}
        return {"said": said, "published": operations.published(at), "folders": sorted(folders)}


def _machine(number: int, port: int, folder: Path) -> subprocess.Popen[str]:
    isolated = ("unshare", "--net", "--mount", "--uts", "--pid", "--ipc", "--fork", "--mount-proc")
    command = [*isolated, sys.executable, __file__, "machine", str(number), str(port), str(folder)]
    made = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert _hear(made) == "ready"  # its network is there
    run("ip", "link", "add", f"v{number}", "type", "veth", "peer", "name", "eth0", "netns", str(made.pid))
    run("ip", "addr", "add", f"{BRIDGE}.{number}.1/24", "dev", f"v{number}")
    run("ip", "link", "set", f"v{number}", "up")
    return made


def _tell(machine: subprocess.Popen[str], word: str) -> None:
    assert machine.stdin is not None
    machine.stdin.write(word + "\n")
    machine.stdin.flush()


def _hear(machine: subprocess.Popen[str]) -> str:
    assert machine.stdout is not None
    return machine.stdout.readline().strip()


def machine(number: str, port: str, folder: str) -> None:
    """One of the two. Both have the same process number, and the same scratch folder."""
    print("ready", flush=True)
    assert input() == "begin"
    socket.sethostname(f"machine{number}")
    for command in (["addr", "add", f"{BRIDGE}.{number}.2/24", "dev", "eth0"], ["link", "set", "eth0", "up"]):
        run("ip", *command)
    at = operations.At(f"http://{BRIDGE}.{number}.1:{port}", 60.0, Path(folder), Objects({}))
    options: dict[str, Any] = {"shard_size": 20_000, "scratch": folder, "storage": at.bucket()}
    writer = penstock.Writer("s3://data/out", {"token": "u2"}, metadata="json", **options)
    print("begun", flush=True)
    assert input() == "write"
    for each in range(30):
        writer.append(token=np.full(800, each * int(number), "u2"), metadata={"number": each})
    print("written", flush=True)
    assert input() == "publish"
    host = f"{socket.gethostname()}, process {os.getpid()}"
    try:
        writer.commit()
        said = "published"
    except penstock.Error as error:
        said = f"{type(error).__name__}: {error}"
        with contextlib.suppress(penstock.Error):
            writer.abort()
    print(json.dumps({"host": host, "said": said}), flush=True)
    sys.stdin.read()


def refuse_to_share() -> None:
    """Ends where files of the system would be overlaid for others too."""
    for name in ("mnt", "net", "uts"):
        mine, parents = (Path(f"/proc/{pid}/ns/{name}").readlink() for pid in ("self", os.getppid()))
        if mine == parents:
            sys.exit(f"{name}: this namespace is the parent's: run it below unshare --net --mount --uts")


def main() -> None:
    if sys.argv[1] == "machine":
        return machine(*sys.argv[2:])
    refuse_to_share()
    with tempfile.TemporaryDirectory() as folder:
        trials.environment(Path(folder))
        found = {"names": names, "machines": machines}[sys.argv[1]](Path(folder))
    print(json.dumps(found), flush=True)
    return None


if __name__ == "__main__":
    main()
