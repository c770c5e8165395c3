"""Checks which systems a wheel runs on: the libraries and symbol versions that its extension asks of them.

    python scripts/check_wheel.py --glibc 2.28 WHEEL…

Prints for each shared object the newest version of each library's symbols. Exits with 1 and names the symbols where one
is newer than glibc `--glibc`, than the libstdc++ of the oldest system of that glibc, or of a library that a system may
lack. Reads with readelf, so that nothing of the wheel is loaded.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import defaultdict
from pathlib import Path

# libstdc++ of RHEL 8 (GCC 8) and of RHEL 9 (GCC 11), as the manylinux policies have them.
LIBSTDCXX = {
    "2.28": {"GLIBCXX": "3.4.25", "CXXABI": "1.3.11", "GCC": "7.0.0"},
    "2.34": {"GLIBCXX": "3.4.29", "CXXABI": "1.3.13", "GCC": "7.0.0"},
}
SYSTEM = re.compile(r"(lib(c|m|pthread|dl|rt|util)\.so\.\d|libstdc\+\+\.so\.6|libgcc_s\.so\.1|ld-linux.*\.so\.\d)$")


def number(version: str) -> tuple[int, ...]:
    """A version that compares."""
    return tuple(map(int, version.split(".")))


def readelf(option: str, library: Path) -> str:
    """The output of readelf."""
    return subprocess.run(["readelf", "-W", option, library], check=True, capture_output=True, text=True).stdout


def asked(library: Path) -> dict[str, dict[str, list[str]]]:
    """Undefined symbols by the name and number of their version: {"GLIBC": {"2.34": ["pthread_create", …]}}."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for symbol, name, version in re.findall(r" UND +([^\s@]+)@([A-Z]+)_([\d.]+)", readelf("--dyn-syms", library)):
        found[name][version].append(symbol)
    return found


def needed(library: Path) -> list[str]:
    """File names of the libraries that it is linked to."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("--dynamic", library))


def problems(library: Path, glibc: str, beside: set[str]) -> list[str]:
    """All that a system of this glibc may lack; `beside` are names of libraries that the wheel brings."""
    limits = {**LIBSTDCXX[glibc], "GLIBC": glibc}
    found = [f"needs {each}" for each in needed(library) if not SYSTEM.match(each) and each not in beside]
    known = asked(library)
    for name, limit in sorted(limits.items()):  # other names are of libraries that are told of above
        for version, symbols in sorted(known[name].items(), key=lambda each: number(each[0])):
            if number(version) > number(limit):
                found.append(f"{name}_{version} is newer than {name}_{limit}: {' '.join(sorted(symbols))}")
    return found


def check(wheel: Path, glibc: str) -> int:
    """Prints what a wheel asks for; returns how many problems there are."""
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(wheel).extractall(folder)
        libraries = sorted(each for each in Path(folder).rglob("*.so*") if each.is_file())
        if not libraries:
            print(f"{wheel.name}: has no extension")
            return 1
        beside = {each.name for each in libraries}
        for library in libraries:
            newest = (f"{name}_{max(each, key=number)}" for name, each in sorted(asked(library).items()))
            print(f"{wheel.name}: {library.relative_to(folder)}: {', '.join(newest)}; {' '.join(needed(library))}")
            for each in problems(library, glibc, beside):
                print(f"  {each}")
                count += 1
    return count


def main() -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--glibc", choices=LIBSTDCXX, default="2.28")
    parser.add_argument("wheels", nargs="+", type=Path)
    options = parser.parse_args()
    return min(1, sum(check(wheel, options.glibc) for wheel in options.wheels))


if __name__ == "__main__":
    sys.exit(main())
