"""MultiIndexable over `penstock.Collections`."""

from __future__ import annotations

from typing import Any

import penstock

import scdataset


class MultiIndexable(penstock.Collections):
    """Parts by position, with or without names."""

    def __init__(self, *parts: Any, names: Any = None, unstructured: Any = None, **named: Any) -> None:
        scdataset.count()
        self.names = list(names) if names is not None else list(named) or None
        keys = names if names is not None else [str(number) for number in range(len(parts))]
        super().__init__(dict(zip(keys, parts, strict=True)), unstructured=unstructured, **named)

    def with_parts(self, parts: dict[str, Any]) -> MultiIndexable:
        return MultiIndexable(unstructured=self.unstructured, **parts)
