"""Uses the installed wheel as someone without torch does: writes a dataset, loads it from the disk and over HTTP."""

import contextlib
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import penstock


def main() -> None:
    """Raises where the wheel does not do what it should."""
    assert importlib.util.find_spec("torch") is None, "this environment must not have torch"
    assert "site-packages" in penstock.__file__, penstock.__file__
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus"
        rng = np.random.default_rng(0)
        documents = [rng.integers(0, 1000, size=n, dtype=np.uint32) for n in rng.integers(1, 300, size=50)]
        with penstock.Writer(str(path), fields={"token": "u4"}, metadata="json") as writer:
            for number, tokens in enumerate(documents):
                writer.append(token=tokens, metadata={"number": number})
        stream = np.concatenate(documents)

        view = penstock.open(str(path)).windows(16)
        assert len(view) == len(stream) // 16
        load(view, stream)
        assert "torch" not in sys.modules

        command = [str(Path(sys.executable).parent / "penstock"), "info", str(path), "--json"]
        info = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        assert str(len(stream)) in json.dumps(info), info
        for name in ("man/man1/penstock-info.1", "bash-completion/completions/penstock"):
            assert (Path(sys.prefix) / "share" / name).is_file(), name
        exit_with_daemon_threads(path)
        how = read_over_http(path, stream)
    print(f"penstock {penstock.__version__}: written, loaded and described without torch; over HTTP: {how}")


def load(view: Sequence[Any], stream: np.ndarray) -> str:
    """An epoch, each window once; says by which reader."""
    seen = []
    with penstock.Loader(view, batch_size=4, seed=7, epochs=1) as loader:
        for batch in loader:
            assert isinstance(batch["token"], np.ndarray)
            for row, index in enumerate(batch.indices):
                if index >= 0:
                    assert np.array_equal(batch["token"][row], stream[index * 16 : index * 16 + 16])
                    seen.append(int(index))
        reader = loader.reader
    assert sorted(seen) == list(range(len(view)))
    return reader


EXIT = """
import sys, threading, time, penstock
path = sys.argv[1]
def load():
    loader = penstock.Loader(penstock.open(path).windows(16), batch_size=4)
    while True:
        next(loader)
def verify():
    while True:
        penstock.verify(path, progress=lambda *_: sum(range(100)))
for work in (load, load, verify, verify):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
"""


def exit_with_daemon_threads(path: Path) -> None:
    """Python up to 3.13 unwinds them by glibc, whichever unwinder a wheel has of its own."""
    for _ in range(10):
        done = subprocess.run([sys.executable, "-c", EXIT, path], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stderr)


def read_over_http(path: Path, stream: np.ndarray) -> str:
    """Says by which libcurl, or that there is none."""
    with server(path.parent) as address:
        try:
            view = penstock.open(f"{address}/{path.name}").windows(16)
        except penstock.InvalidArgumentError as refusal:
            assert "libcurl4" in str(refusal), refusal  # the package that has it
            return "refused, there is no libcurl"
        assert load(view, stream) == "http"
    maps = Path("/proc/self/maps").read_text()
    return Path(re.search(r"/\S*libcurl\S*", maps).group()).name


class Ranges(BaseHTTPRequestHandler):
    """Files below the server's `root`, whole or by ranges."""

    def log_message(self, *arguments: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        """Answers 206 where a range is asked for."""
        data = (self.server.root / self.path.lstrip("/")).read_bytes()
        begin, end = 0, len(data)
        if asked := self.headers.get("Range"):
            first, last = re.fullmatch(r"bytes=(\d+)-(\d+)", asked).groups()
            begin, end = int(first), min(int(last) + 1, len(data))
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(end - begin))
        self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(data)}")
        self.end_headers()
        with contextlib.suppress(OSError):  # a loader that is closed hangs up
            self.wfile.write(data[begin:end])


@contextlib.contextmanager
def server(root: Path) -> Iterator[str]:
    """Its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Ranges) as made:
        made.root = root
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_address[1]}"
        made.shutdown()


if __name__ == "__main__":
    main()
