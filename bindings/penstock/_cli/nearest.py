"""Suggestions for a mistyped word; none for a word that is far from all known ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_SHORT, _MIDDLE = 7, 14  # letters up to which one mistake, or two, are still the same word


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """The known words that are nearest to `word`, as many as are equally near.

    Args:
        word: as it was typed.
        known: words that would be right.

    Returns:
        Words with the fewest mistakes: letters missing, too many, changed, or two swapped. One mistake counts in words
        of up to six letters, two in words of up to thirteen, three in longer ones. A word of which three letters or
        more were typed is near too. Sorted; empty if none is near.
    """
    known = sorted(set(known))
    found = {each: _mistakes(word, each) for each in known if abs(len(word) - len(each)) <= 3}
    near = {each: count for each, count in found.items() if count <= _allowed(max(len(word), len(each)))}
    if near:
        fewest = min(near.values())
        return [each for each, count in near.items() if count == fewest]
    begun = [each for each in known if each.startswith(word)]
    return begun if len(word) >= 3 else []


def _allowed(letters: int) -> int:
    return 1 if letters < _SHORT else 2 if letters < _MIDDLE else 3


def _mistakes(one: str, other: str) -> int:
    """The optimal string alignment distance: Levenshtein's, and two neighbours swapped count once."""
    rows: list[Sequence[int]] = [range(len(other) + 1)]
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            least = min(row[j - 1] + 1, rows[i - 1][j] + 1, rows[i - 1][j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                least = min(least, rows[i - 2][j - 2] + 1)
            row.append(least)
        rows.append(row)
    return rows[-1][-1]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean 'info'?)`; empty where no word is near, or more than three are."""
    names = [repr(each) for each in nearest(word, known)]
    if not names or len(names) > 3:
        return ""
    return f" (did you mean {' or '.join(names)}?)"
