"""Write a picture as PDF or PNG, by matplotlib, which embeds the letters of any alphabet that its fonts have."""

from __future__ import annotations

import io

from plltool.errors import InputError
from plltool.reports.picture import DOT, Picture, group_lines

POINTS_PER_INCH = 72.0
PIXELS_PER_POINT = 3
ALIGNMENTS = {"start": "left", "middle": "center", "end": "right"}


def write_pdf(picture: Picture, as_png: bool = False) -> bytes:
    """A picture as a PDF of one page, or as PNG.

    Raises
    ------
    InputError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.backends.backend_pdf import FigureCanvasPdf
        from matplotlib.collections import LineCollection
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("a picture as PDF or PNG needs matplotlib: pip install 'plltool[pdf]'") from None
    figure = Figure(figsize=(picture.width / POINTS_PER_INCH, picture.height / POINTS_PER_INCH))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0.0, picture.width), ylim=(picture.height, 0.0))
    axes.axis("off")
    for lines in group_lines(picture.lines):
        segments = [[(line.x1, line.y1), (line.x2, line.y2)] for line in lines]
        cap = "butt" if lines[0].is_thick else "projecting"
        axes.add_collection(LineCollection(segments, colors=lines[0].colour, linewidths=lines[0].width, capstyle=cap))
    for dot in picture.dots:
        axes.plot(dot.x, dot.y, "o", color=dot.colour, markersize=2 * DOT, markeredgewidth=0)
    for text in picture.texts:
        axes.text(
            text.x, text.y, text.text.encode("utf-8", "replace").decode(), fontsize=text.size, color=text.colour,
            ha=ALIGNMENTS[text.anchor], va="center" if text.angle else "baseline", rotation=-text.angle,
            rotation_mode="anchor", parse_math=False,
        )  # fmt: skip
    content = io.BytesIO()
    if as_png:
        figure.set_dpi(POINTS_PER_INCH * PIXELS_PER_POINT)
        FigureCanvasAgg(figure).print_png(content)
    else:
        FigureCanvasPdf(figure).print_pdf(content, metadata={"CreationDate": None})
    return content.getvalue()
