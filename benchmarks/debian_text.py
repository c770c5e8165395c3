"""Real text of many scripts: Debian's documentation and sources, downloaded and read without installing them."""

from __future__ import annotations

import gzip
import html
import os
import re
import shutil
import subprocess
import sysconfig
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from results import SkippedError

_HELP = "de fr ja ru zh-cn zh-tw pl ko es it pt-br hi km el tr vi cs hu fi sv da et eu gl ca id om sl nl pt dz"
_GUIDES = "de es fr id it ja pt pt-br zh-cn zh-tw"
_PAGES = "de de-dev fr fr-dev ja ja-dev zh ru ru-dev pl pl-dev es it hu tr cs pt-br nl uk"
PACKAGES: dict[str, tuple[str, ...]] = {
    "English": (
        *("linux-doc-6.1", "rust-doc", "openjdk-17-doc", "erlang-doc", "libboost1.74-doc", "qtbase5-doc-html"),
        *("python3.11-doc", "postgresql-doc-15", "cmake-doc", "libgtk-3-doc", "libglib2.0-doc", "perl-doc", "git-doc"),
        *("octave-doc", "dict-wn", "dict-foldoc", "manpages", "manpages-dev", "debian-reference-en"),
        *("sagemath-doc", "qtdeclarative5-doc-html", "r-doc-html", "libreoffice-help-en-us"),
    ),
    "code": ("linux-source-6.1", "golang-1.19-src", "rust-src", "python-sources"),
    "other": (
        *(f"libreoffice-help-{each}" for each in _HELP.split()),
        *(f"debian-reference-{each}" for each in _GUIDES.split()),
        *(f"manpages-{each}" for each in _PAGES.split()),
        *("debian-handbook", "gnome-user-docs", "lilypond-doc-html", "installation-guide-amd64"),
        *("dict-freedict-deu-eng", "dict-freedict-jpn-eng", "dict-freedict-eng-hin", "dict-freedict-ara-eng"),
    ),
}
MARKED = (".html", ".htm", ".page", ".xhtml")
PLAIN = (".txt", ".rst", ".md", ".pod", ".dict", ".c", ".h", ".S", ".go", ".rs", ".py")
_MANUAL = re.compile(r"/man/.*\.[1-9]\w*$")
_LEFT_OUT = re.compile(r"(?s)<(script|style|head|nav)\b.*?</\1>")
_TAG = re.compile(r"(?s)<[^>]*>")
_SPACES = re.compile(r"[ \t]*\n(?:[ \t]*\n)+")
MOST_BYTES = 240 << 20  # of a package
LONG = 40  # characters of a line that may be there once only
TRAINING = 10  # one file in so many is for tokenizers


def download(names: list[str], folder: Path) -> None:
    """Fetches those packages that the folder does not have yet: 0.8 GB in all.

    Raises:
        SkippedError: this is no Debian, or it cannot reach its archive.
    """
    folder.mkdir(parents=True, exist_ok=True)
    missing = [name for name in names if not list(folder.glob(f"{name}_*.deb"))]
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise SkippedError("text for it comes from Debian's packages, and there is no apt-get")
    done = subprocess.run(["apt-get", "download", *missing], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = " ".join(done.stderr.strip().splitlines()[-1:])
        raise SkippedError(f"the packages are Debian 12's, and `apt-get update` comes before them: {last}")


def parts(package: str, folder: Path, seen: set[int], most: int | None = None) -> tuple[str, str]:
    """The text of a package, and the text of one file in ten, which is for tokenizers alone.

    Args:
        most: bytes of both; None: 240 MiB.
        seen: hashes of lines of 40 characters and more: those lines are left out, and new ones come in.
    """
    found: tuple[list[str], list[str]] = ([], [])
    size = 0
    for name, text in sources() if package == "python-sources" else packed(next(folder.glob(f"{package}_*.deb"))):
        fresh = new_lines(text, seen)
        found[zlib.crc32(name.encode()) % TRAINING == 0].append(fresh)
        size += len(fresh.encode())
        if size > (most or MOST_BYTES):
            break
    corpus, training = ("\n\n".join(filter(None, each)) for each in found)
    return corpus, training


def new_lines(text: str, seen: set[int]) -> str:
    """The text without those of its longer lines that came before."""
    kept = []
    for line in text.splitlines(keepends=True):
        if len(line) >= LONG:
            key = hash(line.strip())
            if key in seen:
                continue
            seen.add(key)
        kept.append(line)
    return "".join(kept)


def packed(package: Path) -> Iterator[tuple[str, str]]:
    """(name, text) of the files of a package that are text, in its order."""
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                yield from members(archive)
        finally:
            process.kill()  # where it was not read to its end


def members(archive: tarfile.TarFile) -> Iterator[tuple[str, str]]:
    for member in archive:
        file = archive.extractfile(member) if member.isfile() else None
        if file is None:
            continue
        if member.name.endswith(".tar.xz"):
            with tarfile.open(fileobj=file, mode="r|xz") as inner:
                yield from members(inner)
            continue
        name = member.name.removesuffix(".gz").replace(".dict.dz", ".dict")
        if name.endswith((*MARKED, *PLAIN)) or _MANUAL.search(name):
            data = file.read()
            try:
                text = (gzip.decompress(data) if name != member.name else data).decode()
            except ValueError:
                continue  # older encodings
            yield name, plain(text) if name.endswith(MARKED) else text


def plain(text: str) -> str:
    """The text of a page without its tags."""
    return _SPACES.sub("\n\n", html.unescape(_TAG.sub("", _LEFT_OUT.sub("", text))))


def sources() -> Iterator[tuple[str, str]]:
    """(name, text) of Python's library and of the packages that are installed beside it."""
    paths = sysconfig.get_paths()
    for root in dict.fromkeys((paths["stdlib"], paths["purelib"])):
        for path in sorted(Path(root).rglob("*.py")):
            if os.access(path, os.R_OK):
                yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8", errors="ignore")
