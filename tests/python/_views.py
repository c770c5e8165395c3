"""`penstock view` for its tests: a server in this process, and datasets worth a look."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np
import penstock
from penstock._view.exhibit import Exhibit
from penstock._view.server import ViewServer

ATTACK = "<script>document.hacked=1</script><img src=x onerror='document.hacked=2'>"


@contextmanager
def serving(
    *datasets: penstock.Dataset, tokenizer: str | None = None, mixture: tuple[str, penstock.Mixture] | None = None
) -> Iterator[ViewServer]:
    server = ViewServer([Exhibit((each.path,), each, tokenizer) for each in datasets], mixture=mixture)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.close()


def get(server: ViewServer, path: str, method: str = "GET", **headers: str) -> tuple[int, Any, Any]:
    """(status, headers, body) of a path below the key, or an absolute one."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    base = urlsplit(server.address).path
    connection.request(method, path if path.startswith("/") else base + path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, answer.headers, body


def ask(server: ViewServer, name: str, **query: Any) -> Any:
    status, _, body = get(server, f"api/{name}?{urlencode(query)}")
    value = json.loads(body)
    assert status == 200, value
    return value


def lines(server: ViewServer, name: str, **query: Any) -> list[Any]:
    """The lines of an answer that comes line by line."""
    status, _, body = get(server, f"api/{name}?{urlencode(query)}")
    found = [json.loads(line) for line in body.splitlines()]
    assert status == 200 and not any("error" in each for each in found), found
    return found


def refusal(server: ViewServer, name: str, **query: Any) -> str:
    status, _, body = get(server, f"api/{name}?{urlencode(query)}")
    assert status in (400, 404, 500), body
    return str(json.loads(body)["error"])


def hostile(folder: Path) -> penstock.Dataset:
    """Everything that a writer may name is markup."""
    path = folder / "<img src=x onerror=document.hacked=3>"
    columns = {ATTACK: "category"}
    with penstock.Writer(path, {"token": "u2"}, metadata="json", columns=columns) as writer:
        for number in range(6):
            writer.append(
                token=np.arange(40) + number,
                metadata={ATTACK: f"{ATTACK}!", "list": [ATTACK]},
                columns={ATTACK: ATTACK},
            )
    return penstock.open(path)


def one_long(folder: Path, records: int = 20_000) -> tuple[penstock.Dataset, np.ndarray]:
    """Documents of 3, `records` and 5 records."""
    tokens = np.random.default_rng(0).integers(0, 60_000, records + 8).astype("u2")
    with penstock.Writer(folder / "long", {"token": "u2", "weight": "f4"}, metadata="json") as writer:
        at = 0
        for length in (3, records, 5):
            some = tokens[at : at + length]
            writer.append(token=some, weight=some / 7, metadata={"length": length})
            at += length
    return penstock.open(folder / "long"), tokens


def cells(folder: Path) -> penstock.Dataset:
    random = np.random.default_rng(1)
    genes = {"names": [f"GENE{n}" if n else ATTACK for n in range(40)]}
    with penstock.Writer(
        folder / "cells", {"gene": "u2", "count": "u1"}, "boundaries", features=genes, columns={"line": "category"}
    ) as writer:
        for number in range(30):
            chosen = np.sort(random.choice(40, 12, replace=False))
            counts = random.integers(1, 90, 12)
            writer.append(gene=chosen, count=counts, columns={"line": ("A549", "MCF7")[number % 2]})
    return penstock.open(folder / "cells")
