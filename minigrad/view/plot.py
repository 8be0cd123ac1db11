"""Figures → SVG, drawn by matplotlib: one picture for both themes, its colours are CSS variables.

Text stays text, ids are prefixed with the op's name, and the same figure gives the same bytes.
"""

from __future__ import annotations

import io
import re
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from .figures import Curve, Figure, Jacobian, Map
from .parts import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

INK, MUTED, LINE = "#1b2430", "#4d5867", "#d5dbe3"
VALUE, GRAD, NUMERIC, KINK = "#215ba6", "#c95c10", "#5c54a0", "#7a4bd0"
VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    LINE: "line",
    VALUE: "value",
    GRAD: "grad",
    NUMERIC: "num",
    KINK: "kink",
}
BELOW, ABOVE = (52, 120, 214), (222, 110, 28)  # hues of a heat map, readable in both themes
FULL = 0.9  # opacity of the strongest colour of a heat map; under numbers it is weaker
UNDER_TEXT = 0.55
LETTER = 13.5  # px

SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "minigrad",
    "svg.image_inline": True,
    "font.size": LETTER,
    "axes.labelsize": LETTER,
    "xtick.labelsize": LETTER,
    "ytick.labelsize": LETTER,
    "legend.fontsize": LETTER,
    "font.family": "DejaVu Sans",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.unicode_minus": True,
}
_DRAWING = threading.Lock()  # matplotlib's settings are global


def plot(figure: Figure, prefix: str) -> str:
    """One figure as SVG. prefix: what makes its ids its own on a page."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Drawing

    draw: Any = {Curve: _curve, Map: _map, Jacobian: _jacobian}[type(figure)]
    with _DRAWING, rc_context(SETTINGS):
        drawing = Drawing(layout="constrained", dpi=72)
        drawing.patch.set_visible(False)
        draw(drawing, figure)
        text = io.StringIO()
        drawing.savefig(text, format="svg", metadata={"Date": None})
    return _cleaned(text.getvalue(), prefix, alt(figure))


def alt(figure: Figure) -> str:
    """What a figure shows, for those who do not see it."""
    if isinstance(figure, Curve):
        x = figure.input
        return f"y over {x}, its slope by the rule, and the numeric slope, equal to it"
    if isinstance(figure, Map):
        return f"{figure.name} over {figure.across} and {figure.up}, as a heat map"
    return f"the slope of each cell of y by each cell of {figure.input}, as a matrix"


# --- the three kinds ------------------------------------------------------------------------------


def _curve(drawing: Drawing, figure: Curve) -> None:
    drawing.set_size_inches(460 / 72, 330 / 72)
    axes = drawing.subplots()
    axes.patch.set_visible(False)
    axes.grid(color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.axhline(0, color=MUTED, linewidth=0.8)
    axes.axvline(0, color=MUTED, linewidth=0.8)
    axes.plot(figure.x, figure.y, color=VALUE, linewidth=2.2, label="y")
    axes.plot(figure.x, figure.slope, color=GRAD, linewidth=2.2, label="slope, rule")
    dots: dict[str, Any] = {"linestyle": "none", "markeredgewidth": 1.6, "markerfacecolor": "none"}
    axes.plot(
        figure.at,
        figure.numeric,
        color=NUMERIC,
        marker="o",
        markersize=5.5,
        label="slope, numeric",
        **dots,
    )
    if figure.kinks:
        places, slopes = zip(*figure.kinks, strict=True)
        axes.plot(
            places, slopes, color=KINK, marker="D", markersize=7, label="slope at the kink", **dots
        )
    axes.set_xlim(float(figure.x[0]), float(figure.x[-1]))
    axes.set_ylim(*figure.window)
    axes.set_xlabel(figure.input)
    axes.set_ylabel("y and its slope")
    _quiet(axes)
    drawing.legend(loc="outside upper left", ncols=2, frameon=False, columnspacing=1.6)


def _map(drawing: Drawing, figure: Map) -> None:
    drawing.set_size_inches(252 / 72, 222 / 72)
    axes = drawing.subplots()
    axes.patch.set_visible(False)
    (left, right), (bottom, top) = figure.spans
    axes.imshow(
        _painted(figure.values, figure.limit, FULL),
        origin="lower",
        extent=(left, right, bottom, top),
        aspect="auto",
        interpolation="none",
    )
    axes.set_xlabel(figure.across)
    axes.set_ylabel(figure.up)
    _quiet(axes)
    axes.locator_params(nbins=5)
    bar = axes.inset_axes((1.06, 0, 0.07, 1))
    shades = np.linspace(-figure.limit, figure.limit, 128)[:, None]
    bar.imshow(
        _painted(shades, figure.limit, FULL),
        origin="lower",
        extent=(0, 1, -figure.limit, figure.limit),
        aspect="auto",
        interpolation="none",
    )
    bar.patch.set_visible(False)
    bar.yaxis.tick_right()
    bar.set_xticks([])
    less, more = ("≤ " * figure.beyond[0], "≥ " * figure.beyond[1])
    ticks = [-figure.limit, -figure.limit / 2, 0, figure.limit / 2, figure.limit]
    words = [short(t, 2) for t in ticks]
    bar.set_yticks(ticks, [less + words[0], *words[1:-1], more + words[-1]])
    _quiet(bar)


def _jacobian(drawing: Drawing, figure: Jacobian) -> None:
    count = figure.values.shape
    written = [[short(float(v), 2) for v in row] for row in figure.values]
    letters = max(len(text) for row in [*written, figure.columns] for text in row)
    wide = max(40.0, 8.4 * letters + 10)
    side = 8.4 * max(map(len, figure.rows)) + 46
    drawing.set_size_inches((side + count[1] * wide + 12) / 72, (count[0] * 32 + 62) / 72)
    axes = drawing.subplots()
    axes.patch.set_visible(False)
    limit = float(np.max(np.abs(figure.values), initial=0, where=np.isfinite(figure.values))) or 1
    axes.imshow(_painted(figure.values, limit, UNDER_TEXT), aspect="auto", interpolation="none")
    for row, texts in enumerate(written):
        for column, text in enumerate(texts):
            colour = MUTED if figure.values[row, column] == 0 else INK
            axes.text(column, row, text, ha="center", va="center", color=colour)
    axes.set_xticks(range(count[1]), figure.columns)
    axes.set_yticks(range(count[0]), figure.rows)
    axes.set_xticks(np.arange(1, count[1]) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, count[0]) - 0.5, minor=True)
    axes.grid(which="minor", color=LINE, linewidth=0.8)
    axes.tick_params(length=0, which="both")
    axes.set_xlabel(f"cell of {figure.input}" if figure.columns[0] else figure.input)
    axes.set_ylabel("cell of y" if figure.rows[0] else "y", labelpad=7)
    _quiet(axes)


def _quiet(axes: Axes) -> None:
    for spine in axes.spines.values():
        spine.set_linewidth(0.8)
    axes.tick_params(width=0.8)


def _painted(values: Any, limit: float, strongest: float) -> Any:
    """Blue below 0, orange above, fainter towards 0: the page shines through, in both themes."""
    share = np.clip(np.nan_to_num(values / limit, nan=0, posinf=1, neginf=-1), -1, 1)
    colours = np.empty((*share.shape, 4), np.uint8)
    colours[..., :3] = np.where(share[..., None] < 0, BELOW, ABOVE)
    colours[..., 3] = np.round(255 * strongest * np.abs(share))
    return colours


# --- clean SVG ------------------------------------------------------------------------------------


def _cleaned(text: str, prefix: str, alternative: str) -> str:
    """Without prolog, metadata and style sheet; colours, ids and size made fit for any page."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<(metadata|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"<defs>\s*</defs>\s*", "", text)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", text)
    text = re.sub(r"font-family: [^;\"]*; ?", "", text)  # the page's own
    for colour, name in VARIABLES.items():
        text = text.replace(colour, f"var(--{name}, {colour})")
    width, height = re.findall(r'\b(?:width|height)="([\d.]+)pt"', text)[:2]
    head = (
        f'<svg class="plot" role="img" aria-label="{alternative}" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" '
        'xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return head + re.sub(r"\s*\n\s*", " ", text[text.index(">") + 1 :]).strip()
