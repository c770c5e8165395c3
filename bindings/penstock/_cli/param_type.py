"""click's ParamType, generic in every version of click 8: it is from 8.4 on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click import ParamType
else:

    class ParamType(click.ParamType):
        """As click's, and may be subscripted."""

        def __class_getitem__(cls, item: Any) -> type:
            """The same type."""
            return cls


__all__ = ["ParamType"]
