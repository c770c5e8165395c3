"""Messages that name arguments of Python's functions, in the words of the command line."""

from __future__ import annotations

import re
from collections.abc import Collection

_OF_STORAGE = re.compile(
    r"Storage\((?P<name>anonymous|requester_pays|region|endpoint|profile|credentials)="
    r"(?:True|…|\"(?P<text>[^\"]*)\"|'(?P<other>[^']*)')\)"
)
_PLACES = re.compile(r"(?<![\w/.-])(storage|scratch)=…(?=: )")
_DTYPE = re.compile(r"(?<=give )the dtype, (?:as )?(?=u\d)")
_UNEVEN = re.compile(r'(?<=give )uneven="pad"')
_ENVIRONMENT = "credentials in the environment"  # credentials are no option: they would stand in lists of processes


def in_options(text: str, reaching: Collection[str] = ()) -> str:
    """The text with `Storage(region="x")` as `--region x`, `scratch=…` as `--scratch`, a dtype as `--dtype`.

    Args:
        text: the message.
        reaching: names of the options that say how buckets are reached and were given, as in "requester_pays".
    """

    def of_storage(found: re.Match[str]) -> str:
        if found["name"] == "credentials":
            return _ENVIRONMENT
        value = found["text"] or found["other"]
        return _option(found["name"]) + (f" {value}" if value else "")

    def of_places(found: re.Match[str]) -> str:
        return ", ".join(map(_option, reaching if found[1] == "storage" and reaching else found.groups()))

    text = text.replace("join='inner' or 'outer'", "--join inner or outer")
    text = _UNEVEN.sub("--uneven pad", _DTYPE.sub("--dtype ", text))
    return _PLACES.sub(of_places, _OF_STORAGE.sub(of_storage, text))


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
