"""The figures of a report as one picture: a point and its interval for each, in SVG."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import svg

from bench.labelled.measures import Figure

_ROW, _LABELS, _PLOT, _MARGIN, _HEAD, _FOOT = 22, 420, 480, 20, 64, 34
_INK, _FAINT, _CHANCE = "#1f2933", "#d5dbe1", "#9aa5b1"
_COLOURS = ("#2364aa", "#c8553d", "#3a7d44", "#7b4b94")
_FONT = "ui-sans-serif, system-ui, 'DejaVu Sans', sans-serif"


class Line(NamedTuple):
    """One line of the picture: what is measured, and its figures by name."""

    name: str
    figures: dict[str, Figure]


def write_picture(path: Path, title: str, lines: Sequence[Line]) -> None:
    """Write the lines as an SVG file; the axis goes from 0 to 1, with a mark at 0.5, where guessing lies."""
    path.write_text(str(_picture(title, lines)), encoding="utf-8")


def _picture(title: str, lines: Sequence[Line]) -> svg.SVG:
    names = list(dict.fromkeys(name for line in lines for name in line.figures))
    heights = [max(len(line.figures), 1) * _ROW * 0.6 + _ROW * 0.6 for line in lines]
    width, height = _LABELS + _PLOT + 2 * _MARGIN, _HEAD + sum(heights) + _FOOT
    drawn: list[svg.Element] = [svg.Rect(width=width, height=height, fill="white"), *_heading(title, names)]
    drawn += _axis(height)
    top = float(_HEAD)
    for line, tall in zip(lines, heights, strict=True):
        drawn += _line(line, names, top, tall)
        top += tall
    return svg.SVG(width=width, height=height, viewBox=svg.ViewBoxSpec(0, 0, width, height), elements=drawn)


def _x(value: float) -> float:
    return round(_MARGIN + _LABELS + value * _PLOT, 1)


def _text(x: float, y: float, text: str, *, size: int = 12, fill: str = _INK, centred: bool = False) -> svg.Text:
    anchor: Literal["middle", "start"] = "middle" if centred else "start"
    return svg.Text(x=x, y=y, text=text, font_size=size, font_family=_FONT, fill=fill, text_anchor=anchor)


def _heading(title: str, names: Sequence[str]) -> list[svg.Element]:
    drawn: list[svg.Element] = [_text(_MARGIN, 26, title, size=15)]
    at = float(_x(0))
    for name, colour in zip(names, _COLOURS, strict=False):
        drawn += [svg.Circle(cx=at + 5, cy=46, r=4, fill=colour), _text(at + 14, 50, name)]
        at += 40 + 7 * len(name)
    return drawn


def _axis(height: float) -> list[svg.Element]:
    drawn: list[svg.Element] = []
    for tenth in range(11):
        x, chance = _x(tenth / 10), tenth == 5
        drawn.append(svg.Line(x1=x, y1=_HEAD - 6, x2=x, y2=height - _FOOT, stroke=_CHANCE if chance else _FAINT))
        if tenth % 2 == 0 or chance:
            drawn.append(_text(x, height - _FOOT + 18, f"{tenth / 10:g}", size=11, centred=True))
    return drawn


def _line(line: Line, names: Sequence[str], top: float, tall: float) -> list[svg.Element]:
    drawn: list[svg.Element] = [_text(_MARGIN, top + tall / 2 + 1, line.name)]
    for place, (name, figure) in enumerate(line.figures.items()):
        y = round(top + _ROW * 0.45 + place * _ROW * 0.6, 1)
        colour = _COLOURS[names.index(name) % len(_COLOURS)]
        if figure.value is None:
            drawn.append(_text(_x(0) + 4, y + 4, "not defined", size=10, fill=_CHANCE))
            continue
        if figure.interval is not None:
            low, high = map(_x, figure.interval)
            drawn.append(svg.Line(x1=low, y1=y, x2=high, y2=y, stroke=colour, stroke_width=2))
        drawn.append(svg.Circle(cx=_x(figure.value), cy=y, r=4, fill=colour))
    return drawn
