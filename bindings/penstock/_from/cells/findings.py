"""Findings: odd values, repeated inputs and repeated names, which an import tells when it has ended."""

from __future__ import annotations

from pathlib import Path

from penstock._base.words import counted, excerpt
from penstock._data.anndata.opened import Opened
from penstock._from.cells.odd import Names, Odd, OddPlace, Seen, notes_of_values, repeated_inputs
from penstock._from.cells.plan import Plan, Task


class Findings:
    """Gathers what was seen of all tasks, in any order. One thread."""

    def __init__(self, opened: Opened, plan: Plan, tasks: list[Task], scratch: Path) -> None:
        """`scratch` is a folder for the hashes of names."""
        self._opened = opened
        self._matrices = plan.matrices
        self._genes = plan.genes.names
        self._tasks = tasks
        self._begins = [0]
        for task in tasks:
            self._begins.append(self._begins[-1] + task.end - task.begin)
        self._names = Names(scratch, self._begins[-1])
        self._seen: dict[int, tuple[str, list[Odd]]] = {}

    def add(self, task: Task, seen: Seen, odd: list[Odd]) -> None:
        """Takes what was seen of one task; `odd` of each matrix."""
        self._names.put(self._begins[task.number], seen.names)
        self._seen[task.number] = seen.digest, odd

    def told(self, scratch: Path) -> tuple[dict[str, int], list[str]]:
        """How many there are of each kind, and the same in words; `scratch` may be another folder."""
        odd = [Odd() for _ in self._matrices]
        digests: list[list[str]] = [[] for _ in range(len(self._opened))]
        for task in self._tasks:
            digest, found = self._seen[task.number]
            digests[task.source].append(digest)
            for whole, each in zip(odd, found, strict=True):
                whole.merge(each)
        counts: dict[str, int] = {}
        for each in odd:
            for kind, count in each.counts.items():
                counts[kind] = counts.get(kind, 0) + count
        paths = [self._opened.path(source) for source in range(len(self._opened))]
        notes = notes_of_values(self._matrices, odd, self._of_value)
        again, words = repeated_inputs(paths, [tuple(each) for each in digests])
        if again:
            counts["repeated input"] = again
            notes.append(words)
        twice, second, first = self._names.twice(scratch)
        if twice:
            counts["repeated name"] = twice
            words = (
                f"{counted(twice, 'cell')} of {self._begins[-1]:,} {'has' if twice == 1 else 'have'} the name of one"
            )
            notes.append(f"{words} before: the first is {self._place(second)}, as {self._place(first)}")
        return counts, notes

    def _of_value(self, number: int, place: OddPlace) -> str:
        matrix = self._opened.matrix(place.source, number)
        return f"{matrix.store.path}: {matrix.cell(place.cell)}, gene {excerpt(self._genes[place.gene])}"

    def _place(self, cell: int) -> str:
        task = next(each for each in self._tasks if cell < self._begins[each.number + 1])
        row = task.begin + cell - self._begins[task.number]
        name = self._opened.store(task.source).obs.names(row, row + 1)[0]
        return f"{self._opened.path(task.source)}: cell {row:,} ({excerpt(name)})"
