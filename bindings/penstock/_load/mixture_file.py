"""Mixtures in a JSON file: the same words as `Mixture`, with paths instead of views."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock._base.arguments import index
from penstock._base.errors import InvalidArgumentError, NotFoundError
from penstock._base.words import quoted
from penstock._data.dataset import Dataset
from penstock._data.open import open as open_dataset
from penstock._data.token_documents import SIDES
from penstock._data.view import View
from penstock._load.mixture_stages import Place, Positions, Stage, Tokens
from penstock._places.paths import PathLike, local_path, looking_at

_HINTS = ("dtype", "format", "checks", "column", "x", "modality")
_OF_ALL = ("metadata", "columns", *SIDES)  # arguments of windows, documents and packed
_PACKING = (
    *("fit", "fill", "buffer", "refill", "group", "long", "multiple_of"),
    *("max_document", "cut", "max_documents", "table"),
)
_SOURCE = ("path", "where", "window", "lookahead", "phase", "packed", *_OF_ALL, *_PACKING, *_HINTS)
_STAGE = ("weights", "window", "max_document", "at", "at_tokens", "ramp", "ramp_tokens")
_TOP = ("sources", "stages", "caps", "epochs", "end", "end_tokens", "group", "steered")


def read_mixture(path: PathLike) -> tuple[str, dict[str, Any]]:
    """The file's name, and the arguments of `Mixture` that it holds; paths in it are relative to its folder.

    Raises:
        InvalidArgumentError: what cannot be, with the file's name.
        NotFoundError: no such file, or no such dataset.
        IoError: the file cannot be read.
    """
    text = local_path(path)
    try:
        return text, _arguments(_content(text), Path(text).parent)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{text}: {error}") from error


def _content(path: str) -> Any:
    with looking_at(path):
        try:
            return json.loads(Path(path).read_text(encoding="utf-8"), object_pairs_hook=_once)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFoundError(errno.ENOENT, f"{path}: no such file", path) from None
        except IsADirectoryError:
            raise InvalidArgumentError("a folder, and the JSON file of a mixture is wanted") from None
        except InvalidArgumentError:
            raise
        except UnicodeDecodeError:
            raise InvalidArgumentError("a token file or another one of bytes, not a mixture's JSON") from None
        except (ValueError, RecursionError) as error:
            raise InvalidArgumentError(f"no JSON: {error}") from None


def _arguments(content: Any, folder: Path) -> dict[str, Any]:
    top = _object("the file", content, _TOP)
    given = _object("sources", top.get("sources", {}), None)
    stages = top.get("stages", [{}])
    if not isinstance(stages, list):
        raise InvalidArgumentError(f"stages: {stages!r:.80}: a list is wanted")
    extra: dict[str, Any] = {name: top[name] for name in ("group", "steered") if name in top}
    return {
        "sources": {name: _view(name, each, folder) for name, each in given.items()},
        "stages": [_stage(number, each) for number, each in enumerate(stages)],
        "caps": top.get("caps"),
        "epochs": top.get("epochs"),
        "end": _place("end", top),
        **extra,
    }


def _view(name: str, given: Any, folder: Path) -> View:
    source = _object(f"sources[{name!r}]", given, _SOURCE)
    if "path" not in source:
        raise InvalidArgumentError(f"sources[{name!r}]: it has no path")
    paths = source["path"] if isinstance(source["path"], list) else [source["path"]]
    if not paths:
        raise InvalidArgumentError(f"sources[{name!r}]: path is an empty list")
    try:
        dataset = open_dataset(
            *(folder / Path(local_path(each)) for each in paths),
            **{key: source[key] for key in _HINTS if key in source},
        )
        return _made(dataset, source, folder)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"sources[{name!r}]: {error}") from error


def _made(dataset: Dataset, source: Mapping[str, Any], folder: Path) -> View:
    """The view that the keys of a source say: packed rows, windows or documents."""
    is_packed = source.get("packed", False)
    if not isinstance(is_packed, bool):
        raise InvalidArgumentError(f"packed: {is_packed!r:.80}: true or false is wanted; arguments are keys beside it")
    for key, why in (
        *(
            (key, "is of windows" if key == "phase" else "is of windows and packed rows")
            for key in ("lookahead", "phase")
        ),
        *((key, "is of packed rows") for key in ("packed", *_PACKING)),
    ):
        if key in source and "window" not in source:
            raise InvalidArgumentError(f"{key} {why}: give a window too, or leave it out for documents")
        if key in source and key in _PACKING and not is_packed:
            raise InvalidArgumentError(f'{key} is of packed rows: give "packed": true too, or leave it out for windows')
    if is_packed and "phase" in source:
        raise InvalidArgumentError("phase is of windows: leave it out for packed rows")
    options = {key: source[key] for key in _OF_ALL if key in source}
    chosen: Any = dataset.where(source["where"]) if "where" in source else dataset
    if "window" not in source:
        view: View = chosen.documents(**options)
    elif not is_packed:
        view = chosen.windows(source["window"], source.get("lookahead", 0), phase=source.get("phase"), **options)
    else:
        options |= {key: source[key] for key in ("lookahead", *_PACKING) if key in source}
        if "table" in options:
            options["table"] = folder / Path(local_path(options["table"]))
        view = chosen.packed(source["window"], **options)
    return view


def _stage(number: int, given: Any) -> Stage:
    stage = _object(f"stages[{number}]", given, _STAGE)
    try:
        ramp = _place("ramp", stage)
        length = ramp if ramp is None or isinstance(ramp, Tokens) else Positions(index("ramp", ramp))
        lengths = {"window": stage.get("window"), "max_document": stage.get("max_document")}
        return Stage(stage.get("weights"), **lengths, at=_place("at", stage), ramp=length)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"stages[{number}]: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON without a key that is given twice, of which one would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise InvalidArgumentError(f"{quoted([name for name in found if names.count(name) > 1])}: given twice")
    return found


def _place(name: str, given: Mapping[str, Any]) -> Place | None:
    if name in given and f"{name}_tokens" in given:
        raise InvalidArgumentError(f"{name} and {name}_tokens: give one of them")
    in_tokens = f"{name}_tokens"
    return Tokens(index(in_tokens, given[in_tokens])) if in_tokens in given else given.get(name)


def _object(what: str, given: Any, known: tuple[str, ...] | None) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise InvalidArgumentError(f"{what}: {given!r:.80}: an object is wanted")
    for key in given if known is not None else ():
        if key not in known:  # type: ignore[operator]
            raise InvalidArgumentError(f"{what}: there is no {key!r}; there are {quoted(list(known or ()))}")
    return given
