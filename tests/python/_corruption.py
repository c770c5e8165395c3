"""Span corruption as its page says it, in plain Python: what the native one is compared with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from _middle import Draws
from penstock.columns import SpanCorruption


def counts(n: int, column: SpanCorruption) -> tuple[int, int]:
    """Tokens of noise, and spans of them."""
    if n < 2:
        return 0, 0
    noise = min(max(round(n * column.density), 1), n - 1)
    return noise, max(1, min(round(noise / column.mean_length), noise, n - noise, len(column.sentinels)))


def parted(items: int, parts: int, draws: Draws) -> list[int]:
    """Lengths above 0: cuts among the items - 1 places, or those that are none, drawn until enough are distinct."""
    places, cuts = items - 1, parts - 1
    chosen: set[int] = set()
    while len(chosen) < min(cuts, places - cuts):
        chosen.add(draws.below(places))
    if cuts > places - cuts:
        chosen = set(range(places)) - chosen
    return np.diff([0, *(each + 1 for each in sorted(chosen)), items]).tolist()


def corrupted(
    tokens: Sequence[int], column: SpanCorruption, seed: int, epoch: int, observation: int
) -> tuple[list[int], list[int]]:
    noise, spans = counts(len(tokens), column)
    end = [] if column.end is None else [column.end]
    if spans == 0:
        return [*tokens, *end], end
    draws = Draws(seed, epoch, observation, "span")
    cut = parted(noise, spans, draws)
    stays = parted(len(tokens) - noise, spans, draws)
    inputs, labels, at = [], [], 0
    for sentinel, kept, out in zip(column.sentinels, stays, cut, strict=False):
        inputs += [*tokens[at : at + kept], sentinel]
        labels += [sentinel, *tokens[at + kept : at + kept + out]]
        at += kept + out
    assert at == len(tokens)
    return inputs + end, labels + end
