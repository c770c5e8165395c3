"""Ray, where it is not installed."""

from __future__ import annotations

from types import ModuleType

from penstock._base.extras import install
from penstock._base.missing import missing


def needed() -> ModuleType:
    """The package ray.

    Raises:
        ModuleNotFoundError: it is not installed; the message says what to install.
        ImportError: the installed one lacks a part.
    """
    try:
        import ray
        import ray.data  # which a folder called ray, such as Ray's own of temporary files, has not
    except ImportError as error:
        raise missing("penstock.ray", "ray", install("ray"), error) from error
    return ray  # type: ignore[no-any-return]
