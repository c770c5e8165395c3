"""Metrics: what a loader has done, as numbers to look at and as text for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import counted


@dataclass(frozen=True)
class Histogram:
    """How long things took.

    Attributes:
        bounds: in seconds; bucket k counts what took at most bounds[k], and more than bounds[k - 1].
        counts: one for each bound, and one more for what took longer than the last.
        sum: of all times, in seconds.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.counts)

    @property
    def mean(self) -> float:
        """In seconds; 0 where there were none."""
        return self.sum / self.count if self.count else 0.0


@dataclass(frozen=True)
class Metrics:
    """Counts of a loader, by `loader.metrics()`: those since the loader was made, and two that are of now.

    Attributes:
        batches: that `next` took; one that came again (an error of `transform`) each time.
        observations: rows of those that are no padding.
        bytes_read: asked of the stores; with what lies between reads that were merged.
        reads: requests to the stores that ended.
        merged_reads: reads that went with the one before them in one request.
        read_seconds: of requests, from when they were submitted until they had ended.
        queue_depth: batches that were ready when `next` last took one.
        stalls: times that `next` had to wait for its batch.
        stall_seconds: for how long it waited, altogether. It reads itself meanwhile where bytes are at hand.
        retries: times that a store went on with a read that was cut short, or tried it again.
        memory_bytes: of batches, held ones included, and fetches, now.
    """

    batches: int
    observations: int
    bytes_read: int
    reads: int
    merged_reads: int
    read_seconds: Histogram
    queue_depth: int
    stalls: int
    stall_seconds: float
    retries: int
    memory_bytes: int

    def prometheus(self, labels: Mapping[str, str] | None = None) -> str:
        """The text that Prometheus scrapes: each metric is called penstock_<name>, counters end in _total.

        Args:
            labels: given to all of them, such as {"rank": "3"}.

        Raises:
            InvalidArgumentError: a label's name that Prometheus does not allow.

        Examples:
            >>> import numpy as np, os, penstock, tempfile
            >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
            >>> np.arange(1000, dtype=np.uint16).tofile(path)
            >>> loader = penstock.Loader(penstock.open(path, dtype="u2").windows(10), batch_size=4)
            >>> batch = next(loader)
            >>> print("\\n".join(loader.metrics().prometheus({"rank": "0"}).splitlines()[:3]))
            # HELP penstock_batches_total Batches that next took.
            # TYPE penstock_batches_total counter
            penstock_batches_total{rank="0"} 1
        """
        return "".join(f"{line}\n" for line in self._lines(_pairs(labels or {})))

    def _lines(self, labels: list[str]) -> Iterator[str]:
        for name, (kind, words) in _KINDS.items():
            value = getattr(self, name)
            called = f"penstock_{name}{'_total' if kind == 'counter' else ''}"
            yield f"# HELP {called} {words}"
            yield f"# TYPE {called} {kind}"
            if isinstance(value, Histogram):
                yield from _buckets(called, value, labels)
            else:
                yield f"{called}{_braced(labels)} {value!r}"

    def __str__(self) -> str:
        """All of it in one line."""
        return (
            f"{self.batches:,} batch{'' if self.batches == 1 else 'es'}, {counted(self.observations, 'observation')}; "
            f"{self.bytes_read:,} bytes in {counted(self.reads, 'read')} of {self.read_seconds.mean * 1e6:,.1f} µs, "
            f"{self.merged_reads:,} merged, {self.retries:,} retried; {self.queue_depth:,} ready; "
            f"{counted(self.stalls, 'stall')}, {self.stall_seconds:.3f} s; {self.memory_bytes / (1 << 20):,.1f} MiB"
        )


_KINDS = {
    "batches": ("counter", "Batches that next took."),
    "observations": ("counter", "Rows of those that are no padding."),
    "bytes_read": ("counter", "Bytes asked of the stores."),
    "reads": ("counter", "Requests to the stores that ended."),
    "merged_reads": ("counter", "Reads that went with the one before them in one request."),
    "read_seconds": ("histogram", "From when a request was submitted until it had ended."),
    "queue_depth": ("gauge", "Batches that were ready when next last took one."),
    "stalls": ("counter", "Times that next had to wait for its batch."),
    "stall_seconds": ("counter", "For how long next waited."),
    "retries": ("counter", "Times that a store went on with a read that was cut short, or tried it again."),
    "memory_bytes": ("gauge", "Memory of batches, held ones included, and of fetches."),
}


def metrics_of(found: dict[str, Any]) -> Metrics:
    """Of what the native loader counted."""
    total, counts = found["read_seconds"]
    bounds = tuple(4**k / 1e6 for k in range(len(counts) - 1))
    return Metrics(**{**found, "read_seconds": Histogram(bounds, tuple(counts), total)})


def _buckets(name: str, times: Histogram, labels: list[str]) -> Iterator[str]:
    below = 0
    for bound, count in zip([*map(repr, times.bounds), "+Inf"], times.counts, strict=True):
        below += count
        quoted_bound = f'le="{bound}"'
        yield f"{name}_bucket{_braced([*labels, quoted_bound])} {below}"
    yield f"{name}_sum{_braced(labels)} {times.sum!r}"
    yield f"{name}_count{_braced(labels)} {times.count}"


def _pairs(labels: Mapping[str, str]) -> list[str]:
    for name in labels:
        if not (isinstance(name, str) and name.isascii() and name.isidentifier()) or name == "le":
            raise InvalidArgumentError(f"labels={dict(labels)!r:.80}: {name!r:.80} is no name of a label")
    escaped = {
        name: str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        for name, value in labels.items()
    }
    return [f'{name}="{value}"' for name, value in escaped.items()]


def _braced(labels: list[str]) -> str:
    return "{" + ",".join(labels) + "}" if labels else ""
