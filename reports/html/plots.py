"""Plots as SVG that takes the colours and the type of the page it stands in, drawn by matplotlib.

Conventions
-----------
* A figure is drawn at 72 dots an inch, so its units are the page's pixels. Text stays text.
* Colours are those of :data:`COLOURS`: stand-ins that become CSS variables, so a plot follows light and dark.
* Nothing in it depends on time or chance: equal runs give equal bytes.
* What leaves here holds drawing elements and links inside the report, nothing else.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, HAIR, PAPER = "#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04"
SERIES = tuple(f"#0a0b1{k}" for k in range(8))
COLOURS = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    HAIR: "var(--hair)",
    PAPER: "var(--surface)",
    **{colour: f"var(--s{k + 1})" for k, colour in enumerate(SERIES)},
}
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")
"""Series differ by shape as well as by colour."""

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 11,
    "axes.edgecolor": HAIR,
    "axes.labelcolor": MUTED,
    "axes.titlesize": 11,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 1,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": HAIR,
    "grid.linewidth": 1,
    "text.color": INK,
    "xtick.color": HAIR,
    "ytick.color": HAIR,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "xtick.major.size": 0,
    "xtick.major.pad": 7,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "legend.fontsize": 10.5,
    "legend.handletextpad": 0.4,
    "legend.borderaxespad": 0.2,
    "lines.linewidth": 1.6,
    "axes.unicode_minus": True,
}

_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"
_DRAWING = {
    "svg",
    "g",
    "path",
    "defs",
    "use",
    "text",
    "tspan",
    "clipPath",
    "rect",
    "style",
    "a",
    "pattern",
    "line",
    "circle",
}
_FONT = re.compile(r"font-family:[^;]*;?|font:[^;]*?(?P<size>\d[\d.]*px)[^;]*;?")


@contextmanager
def drawing(name: str, width: float, height: float, **layout: Any) -> Iterator[tuple[Figure, Callable[[], str]]]:
    """Yield an empty figure of a size in pixels, and what returns it as SVG; ``name`` keeps ids of several apart."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = {**_STYLE, "svg.hashsalt": name, "svg.id": name}
    with mpl.rc_context(style):
        figure = Figure(figsize=(width / 72, height / 72), dpi=72, layout="constrained", **layout)
        yield figure, lambda: _finish(figure, name)


def share_axis(axis: Any, low: float = 0.0, high: float = 1.0) -> None:
    """Show an axis of shares in percent."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f}"))
    (axis.axes.set_xlim if axis.axis_name == "x" else axis.axes.set_ylim)(low, high)


def legend(axes: Axes, **how: Any) -> None:
    """Put the legend above the plot, where nothing is drawn."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), borderpad=0, ncols=how.pop("ncols", 3), **how)


def points(
    axes: Axes, cells: Sequence[tuple[float, Mapping[str, Any]]], field: str, series: int, label: str, line: bool = True
) -> None:
    """Draw values with their intervals at places on the x axis."""
    known = [(x, cell) for x, cell in cells if cell.get(field) is not None]
    if not known:
        return
    xs, ys = [x for x, _ in known], [cell[field] for _, cell in known]
    for x, cell in known:
        if cell.get("ci95"):
            axes.plot([x, x], cell["ci95"], color=SERIES[series], lw=1.4, alpha=0.65, solid_capstyle="butt")
    axes.plot(
        xs, ys, color=SERIES[series], marker=MARKERS[series], ms=5.5, lw=1.2 if line else 0, label=label, clip_on=False
    )


def _finish(figure: Figure, name: str) -> str:
    raw = io.BytesIO()
    figure.savefig(
        raw, format="svg", transparent=True, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
    )
    ET.register_namespace("", "http://www.w3.org/2000/svg")
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ET.fromstring(raw.getvalue())
    _clean(root, name)
    box = root.get("viewBox", "0 0 1 1").split()
    root.attrib.pop("width", None)
    root.attrib.pop("height", None)
    root.set("style", f"max-width:{float(box[2]):.0f}px")
    text = ET.tostring(root, encoding="unicode")
    for colour, variable in COLOURS.items():
        text = text.replace(colour, variable)
    return text


def _clean(element: ET.Element, name: str) -> None:
    """Drop what is no drawing, and make ids of one plot its own."""
    for child in list(element):
        if child.tag.removeprefix(_SVG) not in _DRAWING:
            element.remove(child)
            continue
        style = child.get("style")
        if style and child.tag == f"{_SVG}text":
            child.set("style", _FONT.sub(lambda found: f"font-size: {found['size']};" if found["size"] else "", style))
        target = child.get(_LINK)
        if target is not None and not target.startswith("#"):
            del child.attrib[_LINK]
        elif child.tag == f"{_SVG}a":
            child.set("tabindex", "-1")  # hundreds of dots are no way through a page; the list of cases is
            child.attrib.pop("target", None)
        if (own := child.get("id")) is not None and child.tag == f"{_SVG}g":
            del child.attrib["id"]
            del own
        _clean(child, name)
