"""States, as they come from a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock._base.arguments import index
from penstock._base.errors import InvalidArgumentError


def checked_state(state: Mapping[str, Any]) -> tuple[int, int, str]:
    """The contents of a state: version, position and job.

    Raises:
        InvalidArgumentError: it is no state.
    """
    if not isinstance(state, Mapping):
        raise InvalidArgumentError(
            f"{type(state).__name__} is no state of a penstock loader: must be what state_dict() gave"
        )
    for key in ("version", "position", "job"):
        if key not in state:
            inner = [name for name, each in state.items() if isinstance(each, Mapping) and "position" in each]
            hint = f"; its {inner[0]!r} looks like one" if inner else ""
            raise InvalidArgumentError(f"this is no state of a penstock loader: it has no {key!r}{hint}")
    if not isinstance(state["job"], str):
        raise InvalidArgumentError(f"the state's job is {type(state['job']).__name__}: must be str")
    try:
        state["job"].encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"the state's job is no text: {error}") from None
    return index("version", state["version"]), index("position", state["position"]), state["job"]
