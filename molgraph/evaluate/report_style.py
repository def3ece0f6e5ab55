"""Draw figures, fill templates and write numbers in one style, for the pages of trainings, splits and benchmarks."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.figure import Figure

from molgraph.base.version import __version__

# Okabe and Ito's colours first: told apart by colour-blind readers and in grey print
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f6fd1", "#a6761d", "#66a61e", "#c51b7d")
INK, SOFT, LINE, CARD = "#1d2733", "#5a6572", "#dde2e8", "#fefefe"
DASHED: dict[str, Any] = {"color": SOFT, "linewidth": 1, "linestyle": (0, (4, 3))}
NONE = "\N{EM DASH}"
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "molgraph",
    "text.parse_math": False,  # a target may be called "$x"
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.linewidth": 0.7,
    "grid.color": LINE,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}
_VARIABLES = {INK: "var(--ink)", SOFT: "var(--soft)", LINE: "var(--line)", CARD: "var(--card)"}


def save(figure: Figure, form: str, transparent: bool = False) -> bytes:
    """The figure as ``svg``, which begins with its tag, or ``png``; the same figure gives the same bytes."""
    meta: dict[str, Any] = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the reader's fonts are used, not ours
        warnings.filterwarnings("ignore", message="constrained_layout not applied")  # long names in a small figure
        if (engine := figure.get_layout_engine()) is not None:  # once; savefig draws a second time for it
            engine.execute(figure)
            figure.set_layout_engine(None)
        figure.savefig(out, format=form, dpi=150, metadata=meta, transparent=transparent)
    return out.getvalue()[out.getvalue().index(b"<svg") if form == "svg" else 0 :]


def drawn(make: Callable[..., Figure | None]) -> Callable[..., Markup]:
    """Draw as an ``<svg>`` that stands inside a page, in the page's colours; empty where there is nothing to draw.

    The keyword ``key`` makes the ids of one figure differ from those of the others on its page.
    """

    @wraps(make)
    def draw(*args: Any, key: str = "figure", **kwargs: Any) -> Markup:
        with rc_context(STYLE | {"svg.hashsalt": key}):
            figure = make(*args, **kwargs)
            if figure is None:
                return Markup("")
            svg = save(figure, "svg", transparent=True).decode()
        svg = re.sub(r'<metadata>.*?</metadata>|<!--.*?-->\s*| id="[\w.]+?_\d{1,4}"', "", svg, flags=re.DOTALL)
        size = f'style="max-width: {110 * figure.get_figwidth():.0f}px"'  # it fills the page up to this
        svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', rf"\1 {size}", re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg))
        for colour, variable in _VARIABLES.items():
            svg = svg.replace(colour, variable)
        return Markup(re.sub(r"\n\s*", "\n", svg))

    return draw


def render(template: str, **values: Any) -> str:
    """A page of one of the templates beside this file, which loads nothing from anywhere."""
    environment = Environment(
        loader=PackageLoader("molgraph.evaluate", ""), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    page = environment.get_template(template).render(version=__version__, **values)
    return page.encode("utf-8", "replace").decode()  # a lone surrogate would make the page unwritable


def reliability(y: np.ndarray, p: np.ndarray, bins: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Mean probability and share of ones in groups of equal size, of ten rows at least."""
    use = np.isfinite(y) & np.isfinite(p)
    y, p = y[use], p[use]
    groups = [g for g in np.array_split(np.argsort(p, kind="stable"), min(bins, max(len(p) // 10, 1))) if len(g)]
    return np.array([p[g].mean() for g in groups]), np.array([y[g].mean() for g in groups])


def number(value: float) -> str:
    """Three significant digits, or a dash for NaN.

    Example:
        >>> number(0.12345), number(0.69), number(1234.5), number(float("nan")) == NONE
        ('0.123', '0.690', '1,234', True)
    """
    if not np.isfinite(value):
        return NONE
    text = f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:#.3g}".rstrip(".") if value else "0"
    return text.replace("-", "\N{MINUS SIGN}")


def short(name: str, n: int = 22) -> str:
    """A name of at most ``n`` letters.

    Example:
        >>> short("catboost_maplight", 9)
        'catboost…'
    """
    return name if len(name) <= n else name[: n - 1] + "\N{HORIZONTAL ELLIPSIS}"
