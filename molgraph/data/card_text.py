"""A card in; its page out, as plain text for a terminal and as HTML for a notebook."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from html import escape

from molgraph.data.cards import Card

_GRADES = {"A": "one assay, or curated", "B": "in between", "C": "old compilation"}


def card_lines(card: Card) -> Iterator[tuple[str, str]]:
    """Label and text of each line of a card's page; lists give one line an item, the label with the first."""
    yield "about", card.about
    yield "rows", f"{card.rows:,} ({card.collection})"
    yield "task", _task(card)
    yield "metric", card.metric or "-"
    yield "split", f"{card.split}. {card.split_note}".strip()
    yield "grade", f"{card.grade}, {_GRADES[card.grade]}: {card.grade_reason}"
    if card.noise.sd is not None:
        yield "noise", f"standard deviation {card.noise.sd:g} {card.noise.unit} ({card.noise.source})"
    for i, fault in enumerate(card.faults):
        yield "" if i else "known faults", f"- {fault}"
    yield from _audit_lines(card)
    for i, (name, edition) in enumerate(card.edition.items()):
        out = ", ".join(f"{n:,} {reason}" for reason, n in edition.taken_out.items())
        yield "" if i else "editions", f"{card.name}@{name}: {edition.rows:,} rows by rule {edition.rule}; {out}"
    yield "licence", card.licence
    yield "cite", card.citation
    yield "home", card.home or "-"
    for i, source in enumerate(card.source):
        files = ", ".join(source.files.values())
        mark = "" if source.verified else ", unverified"
        words = f"{source.place}: {files} ({'? rows' if source.rows is None else f'{source.rows:,} rows'}{mark})"
        yield "" if i else "found in", f"{words} {source.note}".strip()
    yield "content", card.hash if card.verified else "unverified until its first download"


def _task(card: Card) -> str:
    if not card.target:
        return "none: a set of structures"
    shown = [f"{t.name} [{card.units[t.name] or t.kind}]" for t in card.targets[:6]]
    more = f" and {len(card.targets) - 6:,} more" if len(card.targets) > 6 else ""
    return f"{card.task}: {', '.join(shown)}{more}"


def _audit_lines(card: Card) -> Iterator[tuple[str, str]]:
    found = card.audit
    if found is None:
        return
    share = f"{found.undefined_stereo / max(found.rows, 1):.0%}"
    yield "audit", f"{found.molecules:,} different molecules in {found.rows:,} rows (rdkit {found.rdkit})"
    yield "", f"{found.unreadable:,} unreadable, {found.missing:,} missing; {found.salts:,} salts or mixtures"
    yield "", f"{found.duplicate_groups:,} molecules stand there several times ({found.duplicate_rows:,} rows)"
    yield "", f"{found.contradictory_groups:,} of them with different values ({found.contradictory_rows:,} rows)"
    yield "", f"{found.undefined_stereo:,} rows ({share}) with stereo that is not stated"


def card_text(card: Card, width: int = 100) -> str:
    """A card as plain text, wrapped.

    Example:
        >>> from molgraph.data.cards import card
        >>> print(card_text(card("esol")).splitlines()[0])
        esol: ESOL (Delaney)
    """
    lines = [f"{card.name}: {card.title}", ""]
    for label, text in card_lines(card):
        first, rest = f"{label:<14}", " " * 14
        wrapped = textwrap.wrap(text, max(width, 40), initial_indent=first, subsequent_indent=rest)
        lines += wrapped or [first.rstrip()]
    return "\n".join(lines)


def card_html(card: Card) -> str:
    """A card as an HTML table."""
    rows = "".join(
        f"<tr><th style='text-align:left;vertical-align:top'>{escape(label)}</th>"
        f"<td style='text-align:left'>{escape(text)}</td></tr>"
        for label, text in card_lines(card)
    )
    return f"<h4>{escape(card.name)}: {escape(card.title)}</h4><table>{rows}</table>"
