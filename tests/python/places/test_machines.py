"""Machines of their own, by Linux' namespaces: names that stop being resolved, and two writers of one address."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("obstore")
pytest.importorskip("pyarrow")
PROGRAM = Path(__file__).parents[2] / "faults" / "servers" / "isolated.py"


def isolated(what: str) -> Any:
    """The program's findings, below namespaces of its own; a skip where these are not allowed."""
    command = ["unshare", "--net", "--mount", "--uts"]
    for missing in ("unshare", "ip"):
        if shutil.which(missing) is None:
            pytest.skip(f"needs {missing} (Debian: util-linux, iproute2)")
    tried = subprocess.run([*command, "ip", "link", "add", "v0", "type", "veth"], capture_output=True, text=True)
    if tried.returncode != 0:
        command.append("--map-root-user")
        tried = subprocess.run([*command, "ip", "link", "add", "v0", "type", "veth"], capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"namespaces are not allowed here: {tried.stderr.strip()[-200:]}")
    done = subprocess.run([*command, sys.executable, PROGRAM, what], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_a_name_that_stops_being_resolved_is_told_and_is_read_again() -> None:
    found = isolated("names")
    for what in ("reading", "opening", "silent reading", "silent opening"):
        assert "resolve host name" in found[what]["said"] or "stalled" in found[what]["said"], found[what]
        assert "http://data.penstock.test" in found[what]["said"] and found[what]["seconds"] < 5, found[what]
    for what in ("writing", "silent writing"):
        assert found[what]["said"].startswith("IoError: s3://data/"), found[what]
        assert found[what]["seconds"] < 10, found[what]
    assert found["published"] == "" and found["again"] is True


def test_of_two_machines_that_write_to_one_address_the_second_is_refused() -> None:
    found = isolated("machines")
    first, second = found["said"]
    assert first["said"] == "published"
    assert "someone else has published" in second["said"]
    hosts = [each["host"].split(",") for each in found["said"]]
    assert hosts[0][0] != hosts[1][0] and hosts[0][1] == hosts[1][1], "other machines, the same process number"
    assert found["published"] and len(found["folders"]) > 1
