"""Commands that read, given addresses: each with a profile, without credentials, with requester pays, with a cache."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _fault_servers import FaultServer, fault_server
from _places import ACCESS, SECRET
from _servers import without_credentials
from penstock._cli.main import main

pytest.importorskip("obstore")
pytest.importorskip("boto3")

COMMANDS = {
    "info": (),
    "show": ("2", "--window", "64"),
    "trace": ("--step", "3", "--global-batch-size", "2", "--window", "64"),
    "bench": ("--window", "64", "--batch-size", "4", "--seconds", "0.1"),
    "pack": ("--window", "512", "--out", "{folder}/corpus.pack"),
    "export": ("--to", "megatron", "--out", "{folder}/corpus", "--drop", "metadata,columns"),
    "verify": (),
    "query": ("select count(*) from documents",),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("buckets")
    rng = np.random.default_rng(0)
    columns = {"score": "f4"}
    with penstock.Writer(folder / "data" / "corpus", {"token": "u2"}, "json", columns=columns) as writer:
        for number in range(100):
            tokens = rng.integers(0, 60_000, 200).astype("u2")
            writer.append(token=tokens, metadata={"number": number}, columns={"score": number / 100})
    return folder


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A profile, and nothing else."""
    without_credentials(monkeypatch, tmp_path)
    keys = f"aws_access_key_id = {ACCESS}\naws_secret_access_key = {SECRET}\n"
    (tmp_path / "credentials").write_text(f"[corpora]\n{keys}")


@pytest.fixture
def server(root: Path) -> Any:
    with fault_server(root) as server:
        yield server


def run(command: str, folder: Path, server: FaultServer, *options: str) -> str:
    if command == "query":
        pytest.importorskip("duckdb")
    given = [each.format(folder=folder) for each in COMMANDS[command]]
    reached = ["--endpoint", server.address, "--region", "us-east-1", *options]
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(io.StringIO()) as errors:
        code = main([command, "s3://data/corpus", *given, *reached])
    assert code == 0, said.getvalue() + errors.getvalue()
    return said.getvalue()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_reads_a_bucket_as_its_options_say(command: str, server: FaultServer, tmp_path: Path) -> None:
    for folder in (tmp_path / "anonymous", tmp_path / "signed"):
        folder.mkdir()
    run(command, tmp_path / "anonymous", server, "--anonymous")
    assert server.requests and not any("X-Amz" in path for path, _, _ in server.requests)
    before, server.keys[ACCESS] = len(server.requests), (SECRET, None)
    said = run(command, tmp_path / "signed", server, "--profile", "corpora", "--requester-pays")
    assert said.strip() or command == "export"
    # The server refuses what is not signed; a read ahead of the first run may still come in.
    asked = [f"{path} {headers}".lower() for path, _, headers in server.requests[before:] if "X-Amz" in path]
    assert asked and all("x-amz-request-payer" in each for each in asked)


@pytest.mark.parametrize("command", ["show", "bench", "export"])
def test_a_command_keeps_what_it_reads(command: str, server: FaultServer, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        before = len(server.requests)
        run(command, folder, server, "--anonymous", "--cache", str(cache), "--cache-bytes", "1GiB")
    if command != "bench":  # which reads as much as it can
        assert [path for path, _, _ in server.requests[before:]] == ["/data/corpus/dataset.json"]
    assert any(cache.iterdir())
