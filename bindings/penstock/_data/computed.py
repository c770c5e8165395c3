"""What a loader's `columns=` come to for one view."""

from __future__ import annotations

from typing import NamedTuple

from penstock._native import FillInTheMiddleSpec, PerSpanSpec, SequenceSpec, TargetSpec


class ComputedSpecs(NamedTuple):
    """What a loader's `columns=` come to for one view."""

    sequences: tuple[SequenceSpec, ...] = ()
    targets: TargetSpec | None = None  # its labels are those of the layout
    per_span: tuple[PerSpanSpec, ...] = ()
    wants_labels: bool = False  # a column says something of labels, and of nothing else
    middle: FillInTheMiddleSpec | None = None  # what rearranges the rows before all of these are made

    @property
    def names(self) -> list[str]:
        """Of the arrays in `batch.columns`."""
        names = [each.name for each in self.sequences if each.name != "max_seqlen"]
        if self.targets is not None and self.targets.mask:
            names.append("loss_mask")
        return names + [each.name for each in self.per_span]

    @property
    def specs(self) -> list[SequenceSpec | TargetSpec | PerSpanSpec]:
        """All of them, as the native side numbers them."""
        return [*self.sequences, *([] if self.targets is None else [self.targets]), *self.per_span]


NOTHING_COMPUTED = ComputedSpecs()
