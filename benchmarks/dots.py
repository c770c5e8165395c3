"""Pictures of figures as SVG: a dot for a median, a line for the lowest to the highest repeat.

480 units wide, so that letters can be read on a telephone; light or dark as the reader's browser asks. The same figures
give the same bytes on every machine.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

WIDTH = 480
LEFT, RIGHT = 14, WIDTH - 14
STYLE = """
svg{--ink:#1c2b33;--soft:#5a6b75;--grid:#dfe6ea;--card:#fff;--ours:#00708c;--other:#8b6a2f;--limit:#b3362b}
@media(prefers-color-scheme:dark){svg{--ink:#e4ecf0;--soft:#9fb0ba;--grid:#34424b;--card:#151d22;--ours:#4cc3e0;
--other:#d8b26a;--limit:#ff8a7a}}
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:var(--ink);font-size:13px;
paint-order:stroke;stroke:var(--card);stroke-width:4px;stroke-linejoin:round}
.title{font-size:16px;font-weight:700}.panel{font-weight:700}.soft{fill:var(--soft);font-size:12px}
.card{fill:var(--card)}.grid{stroke:var(--grid)}.mark{stroke:var(--limit);stroke-dasharray:4 3}
.marked{fill:var(--limit);font-size:12px}.ours{fill:var(--ours);stroke:var(--ours)}
.other{fill:var(--other);stroke:var(--other)}.spread{stroke-width:3;stroke-linecap:round;opacity:.55}
.curve{fill:none;stroke-width:1.6}
"""


@dataclass(frozen=True)
class Point:
    median: float
    lowest: float | None = None
    highest: float | None = None
    strength: float = 1  # opacity


@dataclass(frozen=True)
class Row:
    label: str
    points: tuple[Point, ...]
    said: str  # the figures in words, at the right end
    ours: bool = True


@dataclass(frozen=True)
class Panel:
    """Rows over one axis. `marks` are dashed lines at values, each with its word; `within` the axis reaches to all."""

    title: str
    rows: Sequence[Row]
    axis: str
    logarithmic: bool = False
    within: Sequence[float] = ()
    marks: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True)
class Curve:
    label: str
    values: Sequence[float]
    crosses: dict[int, float] = field(default_factory=dict)  # at the place of an x, a value of another's


@dataclass(frozen=True)
class Curves:
    """Values over places of equal distance, a curve each with a short label."""

    title: str
    axis: str
    places: Sequence[str]
    curves: Sequence[Curve]
    mark: tuple[float, str]


def picture(title: str, conditions: str, panels: Sequence[Panel | Curves]) -> str:
    """The SVG's text."""
    body: list[str] = []
    y = 12.0
    for line in textwrap.wrap(title, 46):
        y += 20
        body.append(text(LEFT, y, line, "title"))
    for line in textwrap.wrap(conditions, 66):
        y += 17
        body.append(text(LEFT, y, line, "soft"))
    for panel in panels:
        drawn, y = curves(panel, y + 14) if isinstance(panel, Curves) else rows(panel, y + 14)
        body += drawn
    height = math.ceil(y + 8)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="620" '
        f'height="{round(620 * height / WIDTH)}" role="img" aria-label="{escape(title)}">'
    )
    card = f'<rect class="card" width="{WIDTH}" height="{height}" rx="6"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", card, *body, "</svg>", ""])


def rows(panel: Panel, y: float) -> tuple[list[str], float]:
    """A panel's elements from `y` downwards, and where they end."""
    out = []
    if panel.title:
        y += 16
        out.append(text(LEFT, y, panel.title, "panel"))
    if panel.marks:
        y += 16
    top = y + 6
    bottom = top + 36 * len(panel.rows)
    ends = [end for row in panel.rows for each in row.points for end in reach(each)]
    ends += [*(value for value, _ in panel.marks), *panel.within]
    scale = Scale.over(ends, panel.logarithmic)
    for tick in scale.ticks:
        x = scale.at(tick)
        out.append(f'<line class="grid" x1="{x:.1f}" y1="{top:.1f}" x2="{x:.1f}" y2="{bottom + 4:.1f}"/>')
        out.append(text(x, bottom + 18, plain(tick), "soft", anchor(x)))
    for value, word in panel.marks:
        x = scale.at(value)
        out.append(f'<line class="mark" x1="{x:.1f}" y1="{top - 2:.1f}" x2="{x:.1f}" y2="{bottom + 4:.1f}"/>')
        out.append(text(x, top - 6, word, "marked", anchor(x)))
    for place, row in enumerate(panel.rows):
        out += row_of(row, scale, top + 36 * place)
    out.append(text(RIGHT, bottom + 34, panel.axis, "soft", "end"))
    return out, bottom + 38


def row_of(row: Row, scale: Scale, top: float) -> list[str]:
    look = "ours" if row.ours else "other"
    out = [text(LEFT, top + 14, row.label), text(RIGHT, top + 14, row.said, "soft", "end")]
    middle = top + 25
    for each in row.points:
        low, high = reach(each)
        if low < high:
            ends = f'x1="{scale.at(low):.1f}" x2="{scale.at(high):.1f}" y1="{middle:.1f}" y2="{middle:.1f}"'
            out.append(f'<line class="spread {look}" {ends}/>')
    for each in row.points:
        faint = "" if each.strength == 1 else f' opacity="{each.strength}"'
        out.append(f'<circle class="{look}" cx="{scale.at(each.median):.1f}" cy="{middle:.1f}" r="4.5"{faint}/>')
    return out


def curves(panel: Curves, y: float) -> tuple[list[str], float]:
    y += 16
    out = [text(LEFT, y, panel.title, "panel")]
    top, bottom, left, right = y + 26, y + 206, LEFT + 26, RIGHT - 10
    ends = [value for each in panel.curves for value in (*each.values, *each.crosses.values())]
    highest = max(*ends, panel.mark[0])
    ticks = linear_ticks(0, highest)

    def x_of(place: int) -> float:
        return left + (right - left) * place / max(1, len(panel.places) - 1)

    def y_of(value: float) -> float:
        return bottom - (bottom - top) * value / max(ticks[-1], highest)

    for tick in ticks:
        out.append(f'<line class="grid" x1="{left}" y1="{y_of(tick):.1f}" x2="{right}" y2="{y_of(tick):.1f}"/>')
        out.append(text(left - 6, y_of(tick) + 4, plain(tick), "soft", "end"))
    for place, word in enumerate(panel.places):
        out.append(text(x_of(place), bottom + 18, word, "soft", "middle"))
    value, word = panel.mark
    out.append(f'<line class="mark" x1="{left}" y1="{y_of(value):.1f}" x2="{right}" y2="{y_of(value):.1f}"/>')
    out.append(text(left, y_of(value) - 5, word, "marked"))
    for each in panel.curves:
        first = len(panel.places) - len(each.values)
        points = [(x_of(first + i), y_of(value)) for i, value in enumerate(each.values)]
        out.append(f'<polyline class="curve ours" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}"/>')
        out += [f'<circle class="ours" cx="{a:.1f}" cy="{b:.1f}" r="3.2"/>' for a, b in points]
        for place, value in each.crosses.items():
            a, b = x_of(place), y_of(value)
            path = f"M{a - 5:.1f} {b - 5:.1f}l10 10m0 -10l-10 10"
            out.append(f'<path class="curve other" style="stroke-width:2.4" d="{path}"/>')
        begin, high = points[0]
        below = high + 18 < bottom  # beside the first point, under the curve
        out.append(text(begin + 8 if below else begin + 16, high + 16 if below else high - 2, each.label, "soft"))
    out.append(text(RIGHT, bottom + 34, panel.axis, "soft", "end"))
    return out, bottom + 38


@dataclass(frozen=True)
class Scale:
    low: float
    high: float
    logarithmic: bool
    ticks: tuple[float, ...]

    @classmethod
    def over(cls, values: Sequence[float], logarithmic: bool) -> Scale:
        low, high = min(values), max(values)
        if logarithmic:
            low, high = low / 1.15, high * 1.15
            return cls(low, high, True, log_ticks(low, high))
        ticks = linear_ticks(min(low, 0), high)
        return cls(min(low, ticks[0]), max(high, ticks[-1]), False, ticks)

    def at(self, value: float) -> float:
        """The x of a value."""
        low, high = self.low, self.high
        if self.logarithmic:
            value, low, high = math.log(value), math.log(low), math.log(high)
        left, right = LEFT + 6, RIGHT - 6
        return left + (right - left) * (value - low) / (high - low)


def linear_ticks(low: float, high: float) -> tuple[float, ...]:
    """At most seven round values from below `low` to `high` or the next one."""
    exponent = math.floor(math.log10((high - low) / 6)) if high > low else 0
    step = next(s for s in (10.0**exponent * m for m in (1, 2, 5, 10)) if (high - low) / s <= 6)
    first, last = math.ceil(low / step - 1e-9), math.ceil(high / step - 1e-9)
    return tuple(round(step * i, 10) for i in range(first, last + 1))


def log_ticks(low: float, high: float) -> tuple[float, ...]:
    found: tuple[float, ...] = ()
    for factors in ((1,), (1, 3), (1, 2, 5)):
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        found = tuple(t for d in decades for t in (round(f * 10.0**d, 10) for f in factors) if low <= t <= high)
        if len(found) >= 3:
            break
    return found


def reach(point: Point) -> tuple[float, float]:
    low = point.median if point.lowest is None else point.lowest
    return low, point.median if point.highest is None else point.highest


def plain(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:g}"


def anchor(x: float) -> str:
    """Words at an edge stay within the picture."""
    return "start" if x < LEFT + 24 else "end" if x > RIGHT - 24 else "middle"


def text(x: float, y: float, words: str, look: str = "", end: str = "start") -> str:
    attributes = f' class="{look}"' if look else ""
    attributes += f' text-anchor="{end}"' if end != "start" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{attributes}>{escape(words)}</text>'
