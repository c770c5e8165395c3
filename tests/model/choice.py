"""Which cases are run: a few in which all pairs of values meet, one for each refusal, random ones."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from dimensions import DEFAULTS, DIMENSIONS, REFUSALS, Case, Refusal, broken

Pair = tuple[tuple[str, str], tuple[str, str]]

_ATTEMPTS = 4  # of which the one with the most new pairs is taken
_RESTARTS = 12  # of a case that came to a dimension without a value that may be
_NAMES = tuple(DIMENSIONS)
_PLACES = {name: place for place, name in enumerate(_NAMES)}
_RULES_OF = {name: tuple(rule for rule in REFUSALS if name in rule.dimensions) for name in _NAMES}
#: How much more often a value is drawn than the others of its dimension: what is slow comes seldom.
_OFTEN = {"local": 12, "none": 2}


def all_pairs() -> set[Pair]:
    """The pairs of values that may meet."""
    found = set()
    for one, other in itertools.combinations(_NAMES, 2):
        for a, b in itertools.product(DIMENSIONS[one], DIMENSIONS[other]):
            if not broken({one: a, other: b}):
                found.add(((one, a), (other, b)))
    return found


def pairs_of(case: Case) -> set[Pair]:
    return set(itertools.combinations([(name, case[name]) for name in _NAMES], 2))


def covering(seed: int = 0) -> list[dict[str, str]]:
    """Cases in which all pairs meet that may; the same for the same seed."""
    chance = random.Random(seed)
    left = sorted(all_pairs())
    chance.shuffle(left)
    missing = set(left)
    found = []
    for pair in left:
        if pair not in missing:
            continue
        tries = [_completed(dict(pair), missing, chance) for _ in range(_ATTEMPTS)]
        made = [each for each in tries if each is not None]
        if not made:  # refused with every value of a third dimension
            missing.discard(pair)
            continue
        found.append(max(made, key=lambda each: len(pairs_of(each) & missing)))
        missing -= pairs_of(found[-1])
    return found


def _completed(begun: dict[str, str], missing: set[Pair], chance: random.Random) -> dict[str, str] | None:
    """The rest of a case, dimension by dimension, each time the value with the most pairs that are still missing."""
    for _ in range(_RESTARTS):
        case = dict(begun)
        names = [name for name in _NAMES if name not in case]
        chance.shuffle(names)
        for name in names:
            values = _values(case, name)
            if not values:
                break
            chance.shuffle(values)
            case[name] = max(values, key=lambda value: _new_pairs(case, name, value, missing))
        else:
            return case
    return None


def _values(case: Case, name: str) -> list[str]:
    """Those of a dimension that no rule refuses beside what is there."""
    rules = [rule for rule in _RULES_OF[name] if all(each == name or each in case for each in rule.dimensions)]

    def is_refused(value: str) -> bool:
        return any(rule.when(*(value if each == name else case[each] for each in rule.dimensions)) for rule in rules)

    return [each for each in DIMENSIONS[name] if not rules or not is_refused(each)]


def _new_pairs(case: Case, name: str, value: str, missing: set[Pair]) -> int:
    place = _PLACES[name]
    return sum(
        (((name, value), (other, each)) if place < _PLACES[other] else ((other, each), (name, value))) in missing
        for other, each in case.items()
    )


def refused(seed: int = 0) -> list[dict[str, str]]:
    """For each rule, each combination of values that it refuses, in a case that breaks no other rule."""
    chance = random.Random(seed)
    found = []
    for rule in REFUSALS:
        for values in itertools.product(*(DIMENSIONS[name] for name in rule.dimensions)):
            begun = dict(zip(rule.dimensions, values, strict=True))
            if rule.when(*values):
                found.append(_refused(begun, rule, chance))
    return found


def _refused(begun: dict[str, str], rule: Refusal, chance: random.Random) -> dict[str, str]:
    """The other dimensions at random, as far as no other rule is broken by it."""
    case = {**DEFAULTS, **begun}
    for name in chance.sample(_NAMES, len(_NAMES)):
        if name in begun:
            continue
        rules = tuple(each for each in _RULES_OF[name] if each is not rule)
        worst = len(broken(case, rules))
        case[name] = chance.choice([v for v in DIMENSIONS[name] if len(broken({**case, name: v}, rules)) <= worst])
    return case


def at_random(first: int, count: int) -> Iterator[tuple[int, dict[str, str]]]:
    """Numbered cases that no rule refuses: number k is the same whatever else is run."""
    for number in range(first, first + count):
        chance = random.Random(f"penstock {number}")
        case: dict[str, str] = {}
        while len(case) < len(_NAMES):
            case = {}
            for name in chance.sample(_NAMES, len(_NAMES)):
                values = _values(case, name)
                if not values:
                    break
                case[name] = chance.choices(values, [_OFTEN.get(each, 1) for each in values])[0]
        yield number, case
