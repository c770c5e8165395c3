"""Batch sizes on the command line."""

from __future__ import annotations

from typing import Any

import click

from penstock._cli.param_type import ParamType


class ScheduleType(ParamType[Any]):
    """A batch size, or a schedule of them: 512, or 0:256,100000:512."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """An integer, or [(position, size), …]."""
        if not isinstance(value, str):
            return value
        try:
            if ":" not in value:
                return int(value)
            return [(int(at), int(size)) for at, size in (each.split(":") for each in value.split(","))]
        except ValueError:
            self.fail(f"{value!r} is no number, and no schedule such as 0:256,100000:512", param, ctx)
