"""A marker and a text in, the README with that text between the marker's comments out: how generated tables get in."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def replace_block(name: str, text: str, path: Path = README) -> None:
    """Put ``text`` between ``<!-- name:begin -->`` and ``<!-- name:end -->``; a missing marker is an error."""
    from molgraph.base.paths import atomic_write

    page = path.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- {name}:begin -->\n).*?(<!-- {name}:end -->)", re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"{path.name} has no block {name!r}; add '<!-- {name}:begin -->' and '<!-- {name}:end -->'")
    with atomic_write(path, "w") as file:
        file.write(pattern.sub(lambda found: found.group(1) + text.rstrip() + "\n" + found.group(2), page))
