"""The extra penstock[ray]."""

from __future__ import annotations

from types import ModuleType


def needed() -> ModuleType:
    """The package ray.

    Raises:
        ModuleNotFoundError: it is not installed; the message says what to install.
    """
    try:
        import ray
        import ray.data  # which a folder called ray, such as Ray's own of temporary files, has not
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"Ray is needed, and {error.name} is not installed: pip install 'penstock[ray]'", name=error.name
        ) from error
    return ray  # type: ignore[no-any-return]
