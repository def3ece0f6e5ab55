"""Draw figures as SVG in the page's own colours."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f6fd1", "#a6761d", "#66a61e", "#c51b7d")
INK, SOFT, LINE, CARD = "#1d2733", "#5a6572", "#dde2e8", "#fefefe"
_VARIABLES = {INK: "var(--ink)", SOFT: "var(--soft)", LINE: "var(--line)", CARD: "var(--card)"}
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "molgraph",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
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
_KEY = "figure-"
WIDTH = 5.6  # inches


def drawn(make: Callable[..., Figure | None]) -> Callable[..., str]:
    """Draw and return an ``<svg>`` that stands inside a page: ids for ``placed``, no ground, the page's ink."""

    @wraps(make)
    def draw(*args: Any, **kwargs: Any) -> str:
        with rc_context(_STYLE):
            figure = make(*args, **kwargs)
            if figure is None:
                return ""
            out = io.StringIO()
            figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
        text = out.getvalue()
        return _own(text[text.index("<svg") :])

    return draw


def placed(svg: str, key: str) -> str:
    """A figure whose ids begin with ``key``, so that they are those of no other figure of a page.

    Example:
        >>> placed('<svg><g id="figure-a"/><use href="#figure-a"/></svg>', "esol-1")
        '<svg><g id="esol-1-a"/><use href="#esol-1-a"/></svg>'
    """
    return svg.replace(f'id="{_KEY}', f'id="{key}-').replace(f"#{_KEY}", f"#{key}-")


def _own(svg: str) -> str:
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    asked = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    svg = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in asked else "", svg)
    svg = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{_KEY}", svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, variable)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    return re.sub(r"\n\s*", "\n", svg)


def colours(methods: Sequence[str]) -> dict[str, str]:
    """A colour a method, the same all over a page."""
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(methods)}


def short(name: str, n: int = 22) -> str:
    """A name of at most ``n`` letters.

    Example:
        >>> short("catboost_maplight", 9)
        'catboost…'
    """
    return name if len(name) <= n else name[: n - 1] + "\N{HORIZONTAL ELLIPSIS}"
