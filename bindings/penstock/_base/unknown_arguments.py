"""Errors for arguments that a function does not have: they say which one is meant."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from penstock._base.words import excerpt

_Function = TypeVar("_Function", bound=Callable[..., Any])


def tells_unknown(others: Mapping[str, str], called: str = "") -> Callable[[_Function], _Function]:
    """A decorator whose function says of an argument that it does not have which one is meant.

    Args:
        others: by the names that other libraries use, what to use here.
        called: how the message calls the function; "": by its class, as of `__init__`.
    """

    def decorate(function: _Function) -> _Function:
        parameters = inspect.signature(function).parameters
        names = [name for name in parameters if name != "self"]

        @functools.wraps(function)
        def checked(*args: Any, **given: Any) -> Any:
            for name in given.keys() - set(names):
                near = difflib.get_close_matches(name, names, 1, 0.8)
                meant = others.get(name) or (f"{near[0]}=" if near else "")
                hint = f": use {meant}" if meant else f"; it has {', '.join(names)}"
                raise TypeError(f"{called or type(args[0]).__name__} has no argument {excerpt(name)}={hint}")
            return function(*args, **given)

        return cast(_Function, checked)

    return decorate
