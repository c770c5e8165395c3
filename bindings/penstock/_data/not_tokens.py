"""Files that are no bare tokens, by their first bytes or their name: what they are, and how they are imported."""

from __future__ import annotations

from pathlib import Path

from penstock._base.errors import InvalidArgumentError
from penstock._places.paths import looking_at

_UNPACK = "unpack it first"
# Magic numbers of four bytes and more: shorter ones stand at the beginning of real tokens too often.
_MAGIC = (
    (b"\x1f\x8b\x08\x00", "compressed by gzip", _UNPACK),
    (b"\x1f\x8b\x08\x08", "compressed by gzip", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "compressed by Zstandard", _UNPACK),
    (b"\xfd7zXZ\x00", "compressed by xz", _UNPACK),
    (b"PK\x03\x04", "a zip archive", f"{_UNPACK}; of an .npz save each array as .npy"),
    (b"PAR1", "a Parquet file", "give the format, parquet"),
    (b"ARROW1\x00\x00", "an Arrow file", "give the format, huggingface"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", "call it .h5ad if it is AnnData's"),
    (b"MMIDIDX\x00\x00", "a Megatron index", "call it .idx, beside its .bin"),
)
_MOST = max(len(magic) for magic, _, _ in _MAGIC)
_PACKED = (".gz", ".zst", ".bz2", ".xz", ".zip")
_TEXT = (".jsonl", ".json", ".txt", ".csv", ".tsv", ".md", ".html")


def refuse_name(path: str, shown: str) -> None:
    """Refuses names that token files never have.

    Args:
        path: of the file, or its address.
        shown: the path as messages have it.

    Raises:
        InvalidArgumentError: it is one of them; the message has what to do.
    """
    name = Path(path).name.lower()
    suffix, before = Path(name).suffix, Path(Path(name).stem).suffix
    if (suffix in _TEXT and name != "index.json") or (suffix in _PACKED and before in _TEXT):
        raise InvalidArgumentError(f"{shown}: text, not tokens: penstock write makes a dataset of it")
    if suffix == ".mds" or before == ".mds":
        raise InvalidArgumentError(f"{shown}: one shard of MDS: give its folder, which has the index.json")
    if suffix in _PACKED:
        raise InvalidArgumentError(
            f"{shown}: compressed: unpack it first if it holds tokens; of text penstock write makes a dataset"
        )


def refuse_content(path: str) -> None:
    """Refuses a file of this machine that begins as a file of a known format does which holds no bare tokens.

    Raises:
        InvalidArgumentError: it does; the message has what to do.
    """
    known = _known(path)
    if known is not None and not (known[0] == "a Megatron index" and path.endswith(".idx")):
        what, advice = known
        raise InvalidArgumentError(
            f"{path}: {what}, by its first bytes: {advice}, or give the format, raw, if they are tokens"
        )


def refuse_in_place(path: str, *, has_type: bool) -> None:
    """The same for a file that is to be opened as bare tokens; by its name too, unless the user says a type.

    Raises:
        InvalidArgumentError: it begins so, or is text; the message has what to do.
    """
    if not has_type and Path(path).suffix.lower() in _TEXT:
        raise InvalidArgumentError(
            f"{path}: text, not tokens: make a dataset of it first, by `penstock write {path} --tokenizer "
            'tokenizer.json --out corpus/`; format="raw" (--format raw) if these bytes are tokens'
        )
    known = _known(path)
    if known is not None:
        raise InvalidArgumentError(
            f"{path}: {known[0]}, by its first bytes: unpack it, or let `penstock import` or `penstock write` make a "
            'dataset of what it holds; format="raw" (--format raw) if these bytes are tokens'
        )


def _known(path: str) -> tuple[str, str] | None:
    if not Path(path).is_file():
        return None
    with looking_at(path), Path(path).open("rb") as file:
        head = file.read(_MOST)
    return next(((what, advice) for magic, what, advice in _MAGIC if head.startswith(magic)), None)
