"""`penstock doctor`: what it finds is so, and nothing of it is private."""

from __future__ import annotations

import getpass
import importlib.metadata
import json
import os
import platform
import re
import resource
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import penstock
import pytest
from penstock._cli import machine, machine_files
from penstock._cli.doctor import _of_extras, rows_of
from penstock._cli.main import main


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    command = [sys.executable, "-m", "penstock", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == "" and done.stdout.count("\n") == 1
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_versions_and_limits_are_those_of_this_process(found: dict[str, Any]) -> None:
    assert found["versions"]["penstock"] == penstock.__version__
    assert found["versions"]["python"].startswith(platform.python_version())
    for name in ("numpy", "click", "rich"):
        assert found["versions"][name] == importlib.metadata.version(name)
    assert found["system"]["kernel"] == f"Linux {platform.release()}"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert found["limits"]["open_files"] == [None if each == resource.RLIM_INFINITY else each for each in (soft, hard)]
    assert 1 <= found["cores"]["usable"] <= found["cores"]["affinity"] <= found["cores"]["machine"]
    assert 0 < found["memory"]["usable_bytes"] <= found["memory"]["machine_bytes"]
    assert found["path"] is None


def test_a_loader_chooses_what_is_said(found: dict[str, Any], tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "d", {"token": "u2"}) as writer:
        writer.append(token=range(64))
    with penstock.Loader(penstock.open(tmp_path / "d").windows(8), 2, rank=0, world_size=1) as loader:
        next(loader)
        assert (found["loader"]["reader"], found["loader"]["threads"]) == (loader.reader, loader.threads)
    assert found["loader"]["io_uring"] == (found["loader"]["reader"] == "uring")


def test_extras_say_what_they_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        "numpy>=1.26",
        'tokenizers>=0.20; extra == "text"',
        "pyarrow>=15; extra == 'text'",
        "ray[data]>=2.50; extra == 'ray'",
        "msgpack; extra == 'msgpack'",
        'penstock[msgpack,text]; extra == "all"',
    ]
    there = {"tokenizers": "0.20.0", "pyarrow": "9.0.1", "msgpack": "1.0"}
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: lines)
    monkeypatch.setattr(machine, "_version", there.get)
    old = ["pyarrow 9.0.1, which is older than 15"]
    assert machine.extras() == {"all": old, "msgpack": [], "ray": ["ray"], "text": old}
    rows = dict(_of_extras(machine.extras()))
    assert rows == {"extras": "msgpack", "missing": f"ray: ray; text: {old[0]}"}


def test_the_text_is_short_and_names_no_user_host_or_folder(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "hunter2"
    for name in ("AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "https_proxy", "PENSTOCK_TRACEBACK"):
        monkeypatch.setenv(name, f"http://me:{secret}@there")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    rows = dict(re.split(r"  +", line, maxsplit=1) for line in re.sub(r"\n  +", " ", text).splitlines())
    assert len(rows) <= 22 and max(map(len, text.splitlines())) <= 80
    assert rows["penstock"] == penstock.__version__ and rows["environment"] == "OMP_NUM_THREADS=3, https_proxy is set"
    private = [
        secret,
        socket.gethostname(),
        str(Path.home()),
        str(Path.cwd()),
        sys.prefix,
        str(Path(__file__).parent),
    ]
    private += [getpass.getuser()] if getpass.getuser() != "root" else []
    assert [each for each in private if len(each) > 3 and each in text] == []


def test_a_path_is_described(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "some.bin"
    file.write_bytes(bytes(1 << 20))
    assert main(["doctor", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["path"]
    kinds = {line.split(" - ")[1].split()[0] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    assert found["path"] == str(file) and found["file_system"] in kinds | {None}
    assert 0 <= found["free_bytes"] <= found["size_bytes"] and (found["files"], found["more_files"]) == (1, False)
    assert found["cached"] == 1.0  # it was just written
    os.sync()
    with file.open("rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if found["file_system"] in ("ext4", "xfs", "btrfs"):
        assert machine_files.of_path(str(file))["cached"] == 0.0
    assert main(["doctor", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert re.search(rf"^path +{re.escape(str(tmp_path))}$", text, re.MULTILINE) and "of 1 file\n" in text
    assert main(["doctor", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: no such file or folder on this machine" in capsys.readouterr().err


def test_what_is_refused_or_missing_is_said_in_words(found: dict[str, Any]) -> None:
    changed = json.loads(json.dumps(found))
    changed["versions"]["torch"] = None
    changed["extras"] = {"text": [], "query": ["duckdb"], "ray": ["ray", "pyarrow 9, which is older than 15"]}
    changed["engines"] = {"gigatoken": None, "tokenizers": "0.20"}
    changed["cores"] = {"machine": 64, "affinity": 16, "usable": 2, "processes_on_node": 4}
    changed["limits"] = {"memlock_bytes": [65536, None], "open_files": [1024, 4096]}
    changed["libcurl"] = {"version": None, "tls": None, "refusal": "there is no libcurl.so.4"}
    changed["loader"] |= {"io_uring": False, "refusal": "Operation not permitted", "io_uring_disabled": 2}
    rows = dict(rows_of(changed))
    assert rows["torch"] == "not installed" and rows["extras"] == "text"
    assert rows["missing"] == "query: duckdb; ray: ray, pyarrow 9, which is older than 15"
    assert rows["engines"] == "gigatoken not installed, tokenizers 0.20"
    assert rows["cores"] == ("2 usable of 64, affinity 16, the control group's quota allows 2, shared by 4 processes")
    assert rows["limits"] == "memlock 64.0 KiB (hard unlimited), open files 1,024 (hard 4,096)"
    assert rows["libcurl"] == "none: there is no libcurl.so.4"
    assert rows["io_uring"] == "refused: Operation not permitted (kernel.io_uring_disabled is 2)"


REFUSING = """
import ctypes, struct, sys
# seccomp(2), as a container's: io_uring_setup, number 425, fails with EPERM; all else is allowed.
program = b"".join(
    struct.pack("HBBI", *each)
    for each in ((0x20, 0, 0, 0), (0x15, 0, 1, 425), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000))
)
kept = ctypes.create_string_buffer(program)
given = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(kept)))
library = ctypes.CDLL(None, use_errno=True)
if library.prctl(38, 1, 0, 0, 0) or library.prctl(22, 2, ctypes.byref(given), 0, 0):
    sys.exit(77)
from penstock._cli.main import main
sys.exit(main(["doctor", *sys.argv[1:]]))
"""


def test_a_ring_that_a_container_refuses_is_said_with_the_kernels_words() -> None:
    done = subprocess.run([sys.executable, "-c", REFUSING, "--json"], capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("seccomp is not allowed here")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["loader"]
    assert (told["io_uring"], told["refusal"], told["reader"]) == (False, "Operation not permitted", "pread")
