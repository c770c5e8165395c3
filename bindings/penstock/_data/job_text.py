"""What the states of a loader hold beside the position: a text that they share."""

from __future__ import annotations

from typing import Any

from penstock import _native


class JobText:
    """The job of a loader's states, as it is from some batch on. Any thread.

    The text of a steered mixture may be a few MB: it is made when a state is asked for, and kept for those that follow.
    """

    __slots__ = ("_job", "_made", "version")

    def __init__(self, job: _native.Job) -> None:
        """Of a native job, which never changes."""
        self.version = job.version
        self._job = job
        self._made: tuple[int, str] | None = None if job.is_steered else (0, job.json)

    def before(self, position: int) -> str:
        """The text with those of the weights that were set that begin before a position."""
        count = self._job.set_before(position)
        made = self._made
        if made is None or made[0] != count:
            made = self._made = count, self._job.json_before(position)
        return made[1]

    def all(self) -> str:
        """The text with all weights that were set."""
        return self.before((1 << 64) - 1)


def state_of(job: JobText | tuple[int, str], position: int) -> dict[str, Any]:
    """A state at the end of a batch; a job that has no weights to set may be (version, text)."""
    version, text = job if isinstance(job, tuple) else (job.version, job.before(position))
    return {"version": version, "position": position, "job": text}
