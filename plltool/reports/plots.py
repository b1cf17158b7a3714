"""Elements of HTML and SVG, and small plots for pages, whose style sheet colours them.

Text within elements is escaped unless it is `Markup` already, so that no name can become code.
"""

import re
from collections.abc import Sequence
from importlib.resources import files

from plltool.reports.picture import round_ticks

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML does not allow
VOID = ("input", "meta")  # elements without an end


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *content: str, **attributes: object) -> Markup:
    """An HTML or SVG element; `content` that is text is escaped, `Markup` is not.

    Names of attributes lose a trailing underscore, and others become hyphens; True is an attribute without a value,
    None and False leave it out.
    """
    written = ""
    for key, value in attributes.items():
        called, text = key.rstrip("_").replace("_", "-"), xml_text(str(value)).replace('"', "&quot;")
        written += "" if value in (None, False) else f" {called}" if value is True else f' {called}="{text}"'
    end = "" if name in VOID else f"</{name}>"
    return Markup(f"<{name}{written}>{join(*content)}{end}")


def join(*content: str) -> Markup:
    """Several pieces of content, one behind the other."""
    return Markup("".join(piece if isinstance(piece, Markup) else xml_text(piece) for piece in content))


def xml_text(text: str) -> str:
    """A text as XML holds it; what XML does not allow becomes U+FFFD."""
    return _NOT_XML.sub("\ufffd", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def read_part(name: str) -> str:
    """A file of this package."""
    return files("plltool.reports").joinpath(name).read_text(encoding="utf-8")


WIDTH, HEIGHT = 560.0, 240.0
LEFT, RIGHT, TOP, BOTTOM = 78.0, 26.0, 12.0, 42.0  # margins
BAR_ROW, NAME_WIDTH, NAME_LETTERS = 22.0, 150.0, 22
TICKS = 5
BINS = 10  # of a histogram
DOT = 2.5
TRACE_KINDS = (1, 3, 2, 4, 5, 6, 7, 0)  # colours, neighbours of which people with any eyes can tell apart
LEGEND_WIDTH = 24.0  # of a number in the legend of traces


def draw_bars(heights: Sequence[float], widths: Sequence[float], names: tuple[str, str], title: str) -> Markup:
    """Bars side by side, of any widths; `names` are for the axes, and x counts the widths from 0."""
    frame = _Frame((0.0, sum(widths)), (0.0, max(*heights, 1e-9)))
    bars, left = [], 0.0
    for height, width in zip(heights, widths, strict=True):
        x, y = frame.x(left), frame.y(height)
        bars.append(_bar(x + 0.5, y, max(frame.x(left + width) - x - 1.0, 0.5), frame.y(0.0) - y, f"{height:.4g}"))
        left += width
    return frame.draw(bars, names, title)


def draw_histogram(values: Sequence[float], largest: float, names: tuple[str, str], title: str) -> Markup:
    """The number of values, from 0 to the largest possible one, in each of BINS bins."""
    heights = [0.0] * BINS
    for value in values:
        heights[min(max(int(value * BINS / largest), 0), BINS - 1)] += 1
    return draw_bars(heights, [largest / BINS] * BINS, names, title)


def draw_path(
    points: Sequence[Sequence[tuple[float, float]]],
    kinds: Sequence[Sequence[int]],
    legend: Sequence[str],
    names: tuple[str, str],
    title: str,
) -> Markup:
    """Lines through points (x, y), whose dots are coloured by their kinds, numbers of the `legend`."""
    xs, ys = zip(*(point for line in points for point in line), strict=True)
    frame = _Frame((min(0.0, *xs), max(*xs, 1e-9)), (min(ys), max(ys)))
    drawn = []
    for line, own in zip(points, kinds, strict=True):
        drawn.append(frame.line(line))
        for (x, y), kind in zip(line, own, strict=True):
            drawn.append(frame.dot(x, y, f"{legend[kind]}: {names[0]} {x:.5g}, {names[1]} {y:.4f}", kind % 8))
    for number, name in enumerate(legend if len(legend) > 1 else ()):
        y = HEIGHT - BOTTOM - 16.0 * (len(legend) - number) + 4.0
        x = WIDTH - RIGHT - 90.0
        drawn.append(element("circle", cx=x, cy=y - 4.0, r=4, class_=f"kind{number % 8}"))
        drawn.append(element("text", name, x=x + 10.0, y=y, class_="tick"))
    return frame.draw(drawn, names, title)


def draw_traces(
    xs: Sequence[float], traces: Sequence[Sequence[float]], start: float, names: tuple[str, str], title: str
) -> Markup:
    """A line for each of some traces, a colour each. What is before `start` is shaded, and cut off where it is beyond.

    The range of y is that of the values from `start` on.
    """
    kept = [[y for x, y in zip(xs, ys, strict=True) if x >= start] for ys in traces]
    low, high = min(map(min, kept)), max(map(max, kept))
    frame = _Frame((xs[0], xs[-1]), (low, high))
    width, height = frame.x(start) - LEFT - 1.0, HEIGHT - BOTTOM - TOP - 1.0  # beside the axes
    drawn = []
    if width > 0.0:
        drawn.append(element("rect", x=LEFT + 1.0, y=TOP, width=f"{width:.1f}", height=height, class_="left-out"))
    kinds = [f"kind{TRACE_KINDS[number % len(TRACE_KINDS)]}" for number in range(len(traces))]
    for ys, kind in zip(traces, kinds, strict=True):
        drawn.append(frame.line([(x, min(max(y, low), high)) for x, y in zip(xs, ys, strict=True)], f"trace {kind}"))
    first, y = WIDTH - RIGHT - LEGEND_WIDTH * len(traces), HEIGHT - 12.0
    drawn.append(element("text", "run", x=first - 9.0, y=y + 4.0, text_anchor="end", class_="tick"))
    for number, kind in enumerate(kinds):
        x = first + LEGEND_WIDTH * number
        drawn.append(element("circle", cx=x, cy=y, r=4, class_=kind))
        drawn.append(element("text", str(number + 1), x=x + 7.0, y=y + 4.0, class_="tick"))
    return frame.draw(drawn, names, title)


def draw_points(
    points: Sequence[tuple[float, float, str]], line: Sequence[tuple[float, float]], names: tuple[str, str], title: str
) -> Markup:
    """Named points (x, y, name), and a line through others."""
    xs = [*(point[0] for point in points), *(end[0] for end in line)]
    ys = [*(point[1] for point in points), *(end[1] for end in line)]
    frame = _Frame((min(xs), max(xs)), (min(*ys, 0.0), max(ys)))
    dots = [frame.dot(x, y, f"{name}, {round(x, 2):.10g}: {y:.4g}", 0) for x, y, name in points]
    return frame.draw([frame.line(line), *dots], names, title)


def draw_named_bars(names: Sequence[str], values: Sequence[float], title: str) -> Markup:
    """A bar for each name, from the left, with its value behind it."""
    height = BAR_ROW * len(names) + 8.0
    scale = (WIDTH - NAME_WIDTH - 80.0) / max(*values, 1e-300)
    drawn = [element("title", title)]
    for number, (name, value) in enumerate(zip(names, values, strict=True)):
        y = 4.0 + BAR_ROW * number
        short = name if len(name) <= NAME_LETTERS else f"{name[: NAME_LETTERS - 1]}…"
        drawn.append(element("text", short, x=NAME_WIDTH - 6.0, y=y + 14.0, text_anchor="end", class_="tick"))
        drawn.append(_bar(NAME_WIDTH, y + 3.0, max(value * scale, 0.5), BAR_ROW - 8.0, f"{name}: {value:.4g}"))
        drawn.append(element("text", f"{value:.4g}", x=NAME_WIDTH + value * scale + 6.0, y=y + 14.0, class_="tick"))
    return _svg(drawn, height)


class _Frame:
    """Two axes with ticks at round numbers."""

    def __init__(self, x_range: tuple[float, float], y_range: tuple[float, float]):
        self._x, self._y = _widened(x_range), _widened(y_range)

    def x(self, value: float) -> float:
        low, high = self._x
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        low, high = self._y
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def line(self, points: Sequence[tuple[float, float]], class_: str = "line") -> Markup:
        path = "M" + "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in points)
        return element("path", d=path, class_=class_)

    def dot(self, x: float, y: float, text: str, kind: int) -> Markup:
        title = element("title", text)
        return element("circle", title, cx=f"{self.x(x):.1f}", cy=f"{self.y(y):.1f}", r=DOT, class_=f"kind{kind}")

    def draw(self, drawn: Sequence[Markup], names: tuple[str, str], title: str) -> Markup:
        bottom, middle = HEIGHT - BOTTOM, (TOP + HEIGHT - BOTTOM) / 2.0
        lines = [element("path", d=f"M{LEFT} {TOP}V{bottom}H{WIDTH - RIGHT}", class_="axis")]
        for value, text in round_ticks(*self._x, TICKS):
            x = f"{self.x(value):.1f}"
            lines.append(element("text", text, x=x, y=bottom + 15.0, text_anchor="middle", class_="tick"))
        for value, text in round_ticks(*self._y, TICKS):
            y = self.y(value)
            lines.append(element("path", d=f"M{LEFT - 4} {y:.1f}h4", class_="axis"))
            lines.append(element("text", text, x=LEFT - 7.0, y=f"{y + 4.0:.1f}", text_anchor="end", class_="tick"))
        lines.append(element("text", names[0], x=(LEFT + WIDTH - RIGHT) / 2.0, y=HEIGHT - 8.0, text_anchor="middle"))
        lines.append(element("text", names[1], transform=f"translate(14 {middle}) rotate(-90)", text_anchor="middle"))
        return _svg([element("title", title), *lines, *drawn], HEIGHT)


def _widened(given: tuple[float, float]) -> tuple[float, float]:
    """A range, made wider if it is a point."""
    return given if given[0] < given[1] else (given[0] - 1.0, given[1] + 1.0)


def _svg(content: Sequence[Markup], height: float) -> Markup:
    size = {"width": f"{WIDTH:g}", "height": f"{height:g}"}
    return element("svg", *content, role="img", class_="plot", viewBox=f"0 0 {WIDTH:g} {height:g}", **size)


def _bar(x: float, y: float, width: float, height: float, text: str) -> Markup:
    size = {"width": f"{width:.1f}", "height": f"{height:.1f}"}
    return element("rect", element("title", text), class_="bar", x=f"{x:.1f}", y=f"{y:.1f}", **size)
