"""The refusal of a state, with the arguments that would be those of its run."""

from __future__ import annotations

import json
from typing import Any

_RULES = '. Use on_mismatch="restart"'


def advised(message: str, saved: str, now: str) -> str:
    """The message of a StateMismatchError, with the arguments to give where those alone differ.

    Args:
        message: of the native side.
        saved: the state's job, which nobody has checked.
        now: the job of the loader.
    """
    try:
        wanted = _wanted(json.loads(saved), json.loads(now))
    except (KeyError, IndexError, TypeError, ValueError, RecursionError, AttributeError):
        return message
    if not wanted:
        return message
    return message.replace(_RULES, f'. Give {" and ".join(wanted)}, or use on_mismatch="restart"', 1)


def _wanted(saved: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Arguments of the saved job that this one lacks; none where another dataset or view differs too."""
    ours, theirs = now["sources"], saved["sources"]
    if [each["dataset"] for each in ours] != [each["dataset"] for each in theirs]:
        return []
    order = _order(saved["order"], now["order"])
    if order is None:
        return []
    views = [_window(each["view"], own["view"]) for each, own in zip(theirs, ours, strict=True)]
    if None in views or len(set(views)) > 1:
        return []
    found = [*order, *(each for each in views[:1] if each)]
    seed = saved["order"].get("seed")
    if isinstance(seed, int) and seed != now["order"].get("seed"):
        found.append(f"seed={seed}")
    return found


def _order(saved: dict[str, Any], now: dict[str, Any]) -> list[str] | None:
    """`order=` of the saved job, if it is another one; None: an order of which a state does not tell all."""
    plain = [{key: value for key, value in each.items() if key not in ("seed", "size")} for each in (saved, now)]
    if plain[0] == plain[1]:
        return []
    if saved["name"] in ("uniform", "sequential"):
        return [f'order="{saved["name"]}"']
    if saved["name"] == "blocks":
        block, fetch, lanes = (int(saved[name]) for name in ("block", "fetch", "lanes"))
        return [f"order=orders.Blocks({block}, {fetch}, lanes={lanes})"]
    return None


def _window(saved: dict[str, Any], now: dict[str, Any]) -> str | None:
    """`windows(…)` of the saved job, if it differs; None: the views differ in something else."""
    if saved == now:
        return ""
    both = ("window", "lookahead")
    if saved["kind"] != "windows" or saved.keys() != now.keys():
        return None
    if any(saved[name] != now[name] for name in saved if name not in both):
        return None
    window, lookahead = (int(saved[name]) for name in both)
    return f"windows({window}, lookahead={lookahead})"
