"""Write generated text between two comments of a page, such as the README."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"speed": "docs/speed.md", "board": "docs/benchmarks.md"}


def page_of(name: str) -> Path:
    """The page that holds a block: the README where it has none of its own."""
    return ROOT / PAGES.get(name, "README.md")


def replace_block(name: str, text: str, path: Path | None = None) -> None:
    """Put ``text`` between ``<!-- name:begin -->`` and ``<!-- name:end -->``; a missing marker is an error."""
    from molgraph.base.paths import atomic_write

    path = page_of(name) if path is None else path
    page = path.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- {name}:begin -->\n).*?(<!-- {name}:end -->)", re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"{path.name} has no block {name!r}; add '<!-- {name}:begin -->' and '<!-- {name}:end -->'")
    with atomic_write(path, "w") as file:
        file.write(pattern.sub(lambda found: found.group(1) + text.rstrip() + "\n" + found.group(2), page))
