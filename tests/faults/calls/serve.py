"""Serves the files of a folder by ranges, and prints its address; ends with standard input."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "python"))

from _fault_servers import fault_server

if __name__ == "__main__":
    with fault_server(Path(sys.argv[1])) as server:
        print(server.address, flush=True)
        sys.stdin.read()
