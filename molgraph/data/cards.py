"""Read the cards of datasets, and write them out for people."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from molgraph.base.contracts import Target
from molgraph.base.errors import FormatError, UnknownNameError, nearest
from molgraph.base.resources import shipped_dir
from molgraph.base.table import VALUES
from molgraph.base.toml_config import Section, parse_toml
from molgraph.data.card_parts import UNVERIFIED, AuditSummary, Edition, Margin, Noise, Sha256, Source, TargetCard

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*$")]
Grade = Literal["A", "B", "C"]
LABEL_WIDTH = 14
_THINGS = {"molecule": "molecules", "geometry": "molecules", "graph": "graphs", "pair": "pairs"}
_GRADES = {"A": "one assay, or curated", "B": "in between", "C": "old compilation"}


class Card(Section):
    """What is known about one dataset."""

    name: Name  # the one word that stands for it everywhere
    title: str  # what people call it
    about: str  # one or two sentences
    collection: str  # MoleculeNet, ADME, TU, generation, drug-target, protein-protein or built-in
    # what a row holds beside its values: ``molecule``, ``graph``, ``geometry``, ``pair``
    entity: Literal["molecule", "graph", "geometry", "pair"] = "molecule"
    smiles: str = "smiles"  # the column of molecules in the file
    # what is to be learnt, in groups of one kind and unit; none for sets to generate from
    target: tuple[TargetCard, ...] = ()
    keep: Literal["all", "measured"] = "all"  # ``all`` rows of the file, or those with a ``measured`` value
    rows: int  # rows of the raw edition as loaded
    # sha256 of the raw edition's content (ids, structures, targets, values), whatever file it came from
    hash: Sha256 = UNVERIFIED
    metric: str = ""  # the recommended metric
    split: str = "random"  # the recommended splitter
    split_note: str = ""  # why that split, and what else is in use
    grade: Grade  # credibility: A (one assay, or curated), B, C (old compilation)
    grade_reason: str  # why
    licence: str  # of the data, as far as it is stated
    citation: str  # whom to cite
    home: str = ""  # where it is described
    faults: tuple[str, ...] = ()  # what is known against it, a sentence each
    noise: Noise = Noise()  # what is known of the noise of its labels
    margin: Margin | None = None  # differences of the metric that matter; none for sets to generate from
    source: tuple[Source, ...]  # places, the first that has it serves
    edition: dict[str, Edition] = Field(default_factory=dict)  # curated editions by name (``c1``)
    audit: AuditSummary | None = None  # what the audit found in the raw edition

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets one by one, in the card's order."""
        return tuple(Target(n, group.kind, classes=group.classes) for group in self.target for n in group.names)

    @property
    def units(self) -> dict[str, str]:
        """Target -> unit; empty text where there is none."""
        return {name: group.unit for group in self.target for name in group.names}

    @property
    def tolerances(self) -> dict[str, float]:
        """Target -> how far replicates of its values may lie apart in a curated edition, where the card says it."""
        return {n: group.tolerance for group in self.target if group.tolerance is not None for n in group.names}

    @property
    def task(self) -> str:
        """What kind of task it is, in a few words: ``12 x binary``."""
        if not self.target:
            return "generation"
        kinds = Counter(target.kind for target in self.targets)
        return ", ".join(kind if n == 1 else f"{n} x {kind}" for kind, n in kinds.items())

    @property
    def verified(self) -> bool:
        """Whether the content's hash is known; where not, the first download settles it."""
        return self.hash != UNVERIFIED

    def _repr_html_(self) -> str:
        return card_html(self)

    def __str__(self) -> str:
        return card_text(self)


def card_names() -> list[str]:
    """Names of all datasets that have a card."""
    return sorted(path.stem for path in shipped_dir("datasets").glob("*.toml"))


def card(name: str) -> Card:
    """The card of a dataset; an edition's name (``bbbp@c1``) gives the dataset's card.

    Raises:
        UnknownNameError: no such card, with the nearest known names.

    Example:
        >>> card("esol").rows, card("esol").targets[0].kind
        (1128, 'regression')
    """
    word = name.strip().lower().replace("-", "_").split("@")[0]
    if word not in card_names():
        raise UnknownNameError(f"no dataset is named {name!r}", hint=nearest(word, card_names()))
    return read_card(shipped_dir("datasets") / f"{word}.toml")


def read_card(path: str | Path) -> Card:
    """Read and check one card file."""
    path = Path(path)
    try:
        return Card.model_validate(parse_toml(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        known = re.findall(r"\w+", where)[-1:] if problem["type"] == "extra_forbidden" else []
        hint = nearest(known[0], Card.model_fields) if known else f"it is {str(problem.get('input'))[:80]!r}"
        raise FormatError(f"the card {path.name}, {where}: {problem['msg']}", hint=hint) from None
    except ValueError as error:
        raise FormatError(f"the card {path.name} is not TOML: {error}") from None


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
    if card.margin is not None:
        least = "none" if card.margin.value is None else f"{card.margin.value:g} of {card.metric}"
        yield "margin", f"{least}: {card.margin.reason}"
    for i, fault in enumerate(card.faults):
        yield "" if i else "known faults", f"- {fault}"
    yield from audit_lines(card)
    for name, edition in card.edition.items():
        yield f"{card.name}@{name}", f"{edition.rows:,} rows, hash {edition.hash[:12]} (rdkit {edition.rdkit})"
        for change, n in edition.changes.items():
            cause = f" ({_contradiction(card, _tolerance(card))})" if change.endswith("contradictory") else ""
            yield "", f"- {change}{cause}: {n:,}"
        by = f" (a value by more than {_tolerance(card)})" if any(t.kind in VALUES for t in card.targets) else ""
        yield "", edition.rule.replace(" (a value by more than the tolerance)", by)
    if not card.edition and card.target and card.entity == "molecule":
        values = any(t.kind in VALUES and t.name not in card.tolerances for t in card.targets)
        reason = "no tolerance is known within which its values would agree" if values else "its files were not at hand"
        yield "curated", f"no edition: {reason}"
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


def _contradiction(card: Card, line: str = "") -> str:
    """What sets contradictory labels apart; ``line`` is how far values may lie apart, empty for not at all."""
    apart = f"values more than {line} apart" if line else "values that differ at all"
    return " or ".join(sorted({apart if target.kind in VALUES else "different labels" for target in card.targets}))


def _task(card: Card) -> str:
    if not card.target:
        return "none: a set of structures"
    shown = [f"{t.name} [{card.units[t.name] or t.kind}]" for t in card.targets[:6]]
    more = f" and {len(card.targets) - 6:,} more" if len(card.targets) > 6 else ""
    return f"{card.task}: {', '.join(shown)}{more}"


def audit_lines(card: Card) -> Iterator[tuple[str, str]]:
    """Label and text of each line on a card's audit; none where there is none."""
    audit = card.audit
    if audit is None:
        return
    edition = "" if audit.edition == "raw" else f"of {card.name}@{audit.edition}: "
    different = f"{audit.distinct:,} different {_THINGS[card.entity]}"
    yield "audit", f"{edition}{different} in {audit.rows:,} rows (rdkit {audit.rdkit})"
    unused = [f"{n:,} {word}" for n, word in ((audit.unreadable, "unreadable"), (audit.missing, "missing")) if n]
    if unused:
        yield "", f"{', '.join(unused)} rows"
    by = {"as written": audit.written, "by parent": audit.parent, "by parent without stereo": audit.flat}
    for how, repeats in by.items():
        if repeats.groups:
            differ = f"{repeats.contradictory_groups:,} contradictory"
            if repeats.contradictory_groups:
                differ += f" ({repeats.contradictory_rows:,} rows; {_contradiction(card)})"
            yield "", f"repeated {how}: {repeats.groups:,} groups ({repeats.rows:,} rows), {differ}"
    if audit.undefined_stereo:
        centres = f"{audit.undefined_centres:,} ({audit.undefined_centres / audit.rows:.1%}) at a centre"
        yield "", f"stereo not stated: {audit.undefined_stereo:,} rows, {centres}"
    if audit.salts or audit.no_carbon:
        yield "", f"{audit.salts:,} salts or mixtures; {audit.no_carbon:,} without carbon"
    if audit.missing_labels:
        share = audit.missing_labels / (audit.labels + audit.missing_labels)
        yield "", f"{audit.labels:,} labels, {share:.1%} of all cells missing"
    if audit.positives:
        yield "", "positive: " + ", ".join(f"{name} {share:.1%}" for name, share in audit.positives.items())


def card_text(card: Card, width: int = 100) -> str:
    """A card as plain text, wrapped.

    Example:
        >>> print(card_text(card("esol")).splitlines()[0])
        esol: ESOL (Delaney)
    """
    lines = [f"{card.name}: {card.title}", ""]
    for label, text in card_lines(card):
        first, rest = f"{label:<{LABEL_WIDTH}}", " " * (LABEL_WIDTH + 2 * text.startswith("- "))
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
