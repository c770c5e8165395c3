"""Workers' part of a run: they make the shards of tasks, and look at items for a recipe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from penstock._base.errors import InvalidArgumentError
from penstock._make.base_recipe import BaseRecipe
from penstock._make.place import Made, Numbered, Place


class Make(NamedTuple):
    """An item: make the shards of these tasks. The answer is a Made of each."""

    together: Sequence[Numbered]


class See(NamedTuple):
    """An item: the answer is what decides the bytes of the task's shard."""

    numbered: Numbered


@dataclass
class LookWork:
    """The work of workers that make no shards: they look at items for a recipe."""

    recipe: BaseRecipe

    def begin(self) -> Callable[[Any], Any]:
        """The function that answers each item."""
        self.recipe.begin()
        return self._answer

    def place(self, item: Any) -> str:
        """The item's name, for messages."""
        return self.recipe.place_of(item)

    def for_thread(self) -> LookWork:
        """The same work for one thread of several."""
        return replace(self, recipe=self.recipe.for_thread())

    def _answer(self, item: Any) -> Any:
        return self.recipe.look(item)


@dataclass
class ShardWork(LookWork):
    """The work of a run's workers, with all that they need to know of the run."""

    place_of_shards: Place

    def place(self, item: Any) -> str:
        if isinstance(item, Make):
            return self.recipe.place(item.together[0].task)
        return self.recipe.place(item.numbered.task) if isinstance(item, See) else super().place(item)

    def _answer(self, item: Any) -> Any:
        if isinstance(item, Make):
            return self._make(item.together)
        return self.recipe.see(item.numbered) if isinstance(item, See) else super()._answer(item)

    def _make(self, together: Sequence[Numbered]) -> list[Made]:
        try:
            return self.recipe.make_all(together, self.place_of_shards)
        except InvalidArgumentError:
            made = self._made_before(together)
            if not made:
                raise
        numbers = {each.number for each in made}
        left = [each for each in together if each.number not in numbers]
        return sorted([*made, *(self._make(left) if left else [])])

    def _made_before(self, together: Sequence[Numbered]) -> list[Made]:
        """Shards of these tasks that an earlier attempt finished, whose worker was killed before it could say so."""
        found = []
        there = {
            each.number: each for each in self.place_of_shards.folder.finished(self.place_of_shards.overwrite, now=True)
        }
        for each in together:
            shard = there.get(each.number)
            if shard is None:
                continue
            seen = self.recipe.see(each)
            if self.recipe.is_made_of(each, seen, shard.task):
                found.append(Made(each.number, shard.task, shard.records, shard.spans, seen))
        return found
