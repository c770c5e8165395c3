"""Features: what the genes of a dataset are called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


class Features(Sequence[str]):
    """The genes of a dataset, by their numbers in the records.

    Attributes:
        names: of gene 0, 1, ….
    """

    def __init__(self, names: Sequence[str]) -> None:
        """Takes the names."""
        self.names: list[str] = list(names)

    def __len__(self) -> int:
        """How many genes there are."""
        return len(self.names)

    def __getitem__(self, number: int) -> str:  # type: ignore[override]
        """The name of a gene."""
        return self.names[number]

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self.names)

    def __repr__(self) -> str:
        """How many, and the first ones."""
        first = ", ".join(self.names[:3])
        return f"Features({len(self):,}: {first}{', …' if len(self) > 3 else ''})"
