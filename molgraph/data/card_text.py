"""A card in; its page out, as plain text for a terminal and as HTML for a notebook."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from html import escape

from molgraph.data.cards import Card
from molgraph.data.editions import VALUES

LABEL_WIDTH = 14
_THINGS = {"molecule": "molecules", "geometry": "molecules", "graph": "graphs", "pair": "pairs"}
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
    yield from audit_lines(card)
    for name, edition in card.edition.items():
        yield f"{card.name}@{name}", f"{edition.rows:,} rows, hash {edition.hash[:12]} (rdkit {edition.rdkit})"
        for what, n in edition.changes.items():
            how = f" ({_contradiction(card, _tolerance(card))})" if what.endswith("contradictory") else ""
            yield "", f"- {what}{how}: {n:,}"
        by = f" (a value by more than {_tolerance(card)})" if _kinds(card)[1] else ""
        yield "", edition.rule.replace(" (a value by more than the tolerance)", by)
    if not card.edition and card.target and card.entity == "molecule":
        values = any(t.kind in VALUES and t.name not in card.tolerances for t in card.targets)
        why = "no tolerance is known within which its values would agree" if values else "its files were not at hand"
        yield "curated", f"no edition: {why}"
    yield "licence", card.licence
    yield "cite", card.citation
    yield "home", card.home or "-"
    for i, source in enumerate(card.source):
        files = ", ".join(source.files.values())
        mark = "" if source.verified else ", unverified"
        words = f"{source.place}: {files} ({'? rows' if source.rows is None else f'{source.rows:,} rows'}{mark})"
        yield "" if i else "found in", f"{words} {source.note}".strip()
    yield "content", card.hash if card.verified else "unverified until its first download"


def _tolerance(card: Card) -> str:
    """The tolerance in words, where all values share one."""
    stated = {f"{value:g} {card.units[name]}".strip() for name, value in card.tolerances.items()}
    return stated.pop() if len(stated) == 1 else "its tolerance" if stated else "nothing"


def _kinds(card: Card) -> tuple[bool, bool]:
    """Whether the card has targets of classes, and of values."""
    values = [target.kind in VALUES for target in card.targets]
    return not all(values), any(values)


def _contradiction(card: Card, line: str = "") -> str:
    """What sets contradictory labels apart; ``line`` is how far values may lie apart, empty for not at all."""
    classes, values = _kinds(card)
    apart = f"values more than {line} apart" if line else "values that differ at all"
    return " or ".join(["different labels"] * classes + [apart] * values)


def _task(card: Card) -> str:
    if not card.target:
        return "none: a set of structures"
    shown = [f"{t.name} [{card.units[t.name] or t.kind}]" for t in card.targets[:6]]
    more = f" and {len(card.targets) - 6:,} more" if len(card.targets) > 6 else ""
    return f"{card.task}: {', '.join(shown)}{more}"


def audit_lines(card: Card) -> Iterator[tuple[str, str]]:
    """Label and text of each line on a card's audit; none where there is none."""
    found = card.audit
    if found is None:
        return
    edition = "" if found.edition == "raw" else f"of {card.name}@{found.edition}: "
    yield (
        "audit",
        f"{edition}{found.distinct:,} different {_THINGS[card.entity]} in {found.rows:,} rows (rdkit {found.rdkit})",
    )
    lost = [f"{n:,} {word}" for n, word in ((found.unreadable, "unreadable"), (found.missing, "missing")) if n]
    if lost:
        yield "", f"{', '.join(lost)} rows"
    by = {"as written": found.written, "by parent": found.parent, "by parent without stereo": found.flat}
    for how, repeats in by.items():
        if repeats.groups:
            differ = f"{repeats.contradictory_groups:,} contradictory"
            if repeats.contradictory_groups:
                differ += f" ({repeats.contradictory_rows:,} rows; {_contradiction(card)})"
            yield "", f"repeated {how}: {repeats.groups:,} groups ({repeats.rows:,} rows), {differ}"
    if found.undefined_stereo:
        centres = f"{found.undefined_centres:,} ({found.undefined_centres / found.rows:.1%}) at a centre"
        yield "", f"stereo not stated: {found.undefined_stereo:,} rows, {centres}"
    if found.salts or found.no_carbon:
        yield "", f"{found.salts:,} salts or mixtures; {found.no_carbon:,} without carbon"
    if found.missing_labels:
        share = found.missing_labels / (found.labels + found.missing_labels)
        yield "", f"{found.labels:,} labels, {share:.1%} of all cells missing"
    if found.positives:
        yield "", "positive: " + ", ".join(f"{name} {share:.1%}" for name, share in found.positives.items())


def card_text(card: Card, width: int = 100) -> str:
    """A card as plain text, wrapped.

    Example:
        >>> from molgraph.data.cards import card
        >>> print(card_text(card("esol")).splitlines()[0])
        esol: ESOL (Delaney)
    """
    lines = [f"{card.name}: {card.title}", ""]
    for label, text in card_lines(card):
        first, rest = f"{label:<{LABEL_WIDTH}}", " " * LABEL_WIDTH
        rest += "  " * text.startswith("- ")
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
