"""Audit datasets and write the findings onto their cards.

python pipelines/cards/audit.py NAME...     # the cards in datasets/; made for those who add a dataset
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from molgraph.base.errors import UsageError
from molgraph.base.paths import atomic_write
from molgraph.base.resources import shipped_dir
from molgraph.base.table import VALUES
from molgraph.chem.identity import Identity
from molgraph.data.card_parts import AuditSummary, Edition, Repeats
from molgraph.data.cards import Card
from molgraph.data.content import content_hash
from molgraph.data.curate import RULES, curate, identify
from molgraph.data.datasets import RAW, Dataset, load_dataset
from molgraph.data.featurize import rdkit_version
from molgraph.data.replicates import contradictory
from molgraph.data.table import MISSING, Table
from pipelines.cards.graph_codes import graph_codes

MARK = "# Below this line: written by `python pipelines/cards/audit.py NAME`, checked by tests."
MANY = 30  # targets; of more, shares of positives are summed up
SHARE_DIGITS = 5


def summarise(table: Table, *, workers: int | None = None, who: list[Identity | None] | None = None) -> AuditSummary:
    """What stands on a card about a table: counts of everything that is odd in it.

    Args:
        table: of any kind.
        workers: processes; None decides by the number of molecules.
        who: what ``identify`` gave for the table, where that is known already.

    Example:
        >>> from molgraph.data.table import make_table
        >>> found = summarise(make_table(["C[C@H](F)O", "CC(F)O", "OCC", "CCO", "C("]))
        >>> found.unreadable, found.undefined_centres, found.written.groups, found.flat.groups
        (1, 1, 1, 2)
    """
    labels = _labels(table)
    molecules = [e for e in table.entities if e.kind == "molecule"]
    if not molecules:
        return AuditSummary(rdkit=rdkit_version(), rows=len(table), **_graphs(table), **labels)
    who = identify(table, workers=workers) if who is None else who
    rows = np.array([row for row, one in enumerate(who) if one is not None and not one.reason], dtype=np.int64)
    each = [one for one in who if one is not None and not one.reason]
    with_pair = [f"\0{text}" for text in _second(table, rows)]
    by = {
        how: [getattr(one, how) + more for one, more in zip(each, with_pair, strict=True)]
        for how in ("written", "parent", "stereo_free")
    }
    missing = int((table.status == MISSING).sum())
    return AuditSummary(
        rdkit=rdkit_version(),
        rows=len(table),
        distinct=len(set(by["parent"])),
        unreadable=len(table) - len(rows) - missing,
        missing=missing,
        no_carbon=sum(not one.carbon for one in each),
        salts=sum(one.fragments > 1 for one in each),
        undefined_stereo=sum(one.open_centres + one.open_bonds > 0 for one in each),
        undefined_centres=sum(one.open_centres > 0 for one in each),
        written=_repeats(table, rows, by["written"]),
        parent=_repeats(table, rows, by["parent"]),
        flat=_repeats(table, rows, by["stereo_free"]),
        **labels,
    )


def write_card(dataset: Dataset) -> Path:
    """Audit an edition, curate it where it is the raw one, and write both and its hash onto the dataset's card.

    Returns:
        The card's file.
    """
    card, path = dataset.card, shipped_dir("datasets") / f"{dataset.card.name}.toml"
    if dataset.edition in card.edition:
        raise UsageError(f"{dataset.name} is curated", hint=f"the audit is of what it came from: {card.name}")
    head = path.read_text(encoding="utf-8").split(MARK)[0].rstrip()
    raw = dataset.edition == RAW
    if raw:
        top, table, rest = head.partition("\n[")
        top = re.sub(r"^hash = .*\n", "", top, flags=re.MULTILINE)
        stated = f'rows = {len(dataset)}\nhash = "{dataset.hash}"\n'
        head = re.sub(r"^rows = .*\n", stated, top, count=1, flags=re.MULTILINE) + table + rest
    who = identify(dataset.table) if any(e.kind == "molecule" for e in dataset.table.entities) else None
    found = summarise(dataset.table, who=who).model_copy(update={"edition": dataset.edition})
    lines = [head, "", MARK, *_section("audit", found.model_dump(exclude_defaults=True))]
    if raw and curatable(card):
        lines += _section("edition.c1", curated_edition(dataset, who=who).model_dump(exclude_defaults=True))
    with atomic_write(path, "w") as file:
        file.write("\n".join(lines) + "\n")
    return path


def curatable(card: Card) -> bool:
    """Whether the rule c1 is meant for a dataset: classes of molecules, or values whose tolerance the card states.

    Example:
        >>> from molgraph.data.cards import card
        >>> [curatable(card(name)) for name in ("bbbp", "esol", "qm8", "davis")]
        [True, True, False, False]
    """
    stated = all(t.kind not in VALUES or t.name in card.tolerances for t in card.targets)
    return card.entity == "molecule" and bool(card.target) and stated


def curated_edition(dataset: Dataset, name: str = "c1", *, who: list[Identity | None] | None = None) -> Edition:
    """The card's words on a curated edition, computed; ``who`` as for ``summarise``."""
    made = curate(dataset.table, name, tolerance=dataset.card.tolerances, who=who)
    digest, version = content_hash(made.table), rdkit_version()
    return Edition(rule=RULES[name], rows=len(made.table), hash=digest, rdkit=version, changes=made.counts)


def _second(table: Table, rows: np.ndarray) -> list[str]:
    """What else tells two rows apart: the sequence of a pair."""
    sequences = [e.values[rows] for e in table.entities if e.kind == "sequence"]
    return [str(text) for text in sequences[0]] if sequences else [""] * len(rows)


def _graphs(table: Table) -> dict[str, Any]:
    """Graphs that colour refinement does not tell apart, or pairs of sequences in any order; geometries are counted."""
    graphs = [e for e in table.entities if e.kind == "graph"]
    sequences = [e.values for e in table.entities if e.kind == "sequence"]
    if sequences and not graphs:
        texts = ["\0".join(sorted(each)) for each in zip(*sequences, strict=True)]
        return {"distinct": len(set(texts)), "written": _repeats(table, np.arange(len(table)), texts)}
    if not graphs:
        return {"distinct": len(table)}
    texts = [str(code) for code in graph_codes(list(graphs[0].values))]
    return {"distinct": len(set(texts)), "written": _repeats(table, np.arange(len(table)), texts)}


def _repeats(table: Table, rows: np.ndarray, texts: list[str]) -> Repeats:
    """Groups of rows with one text; contradictory are those whose values differ at all, unlike in curated editions."""
    codes, _ = pd.factorize(np.array(texts, dtype=object))
    repeated = np.bincount(codes, minlength=1)[codes] > 1 if len(codes) else np.zeros(0, bool)
    rows, codes = rows[repeated], codes[repeated]
    differs = contradictory(table, rows, codes)
    return Repeats(
        groups=len(np.unique(codes)),
        rows=len(rows),
        contradictory_groups=len(np.unique(codes[differs])),
        contradictory_rows=int(differs.sum()),
    )


def _labels(table: Table) -> dict[str, Any]:
    if table.y is None:
        return {}
    known = ~np.isnan(table.y)
    shares: dict[str, float] = {}
    for j, target in enumerate(table.row_targets):
        values = table.y[known[:, j], j]
        if target.kind == "binary":
            shares[target.name] = float(values.mean()) if len(values) else 0.0
        elif target.kind == "multiclass":
            shares |= {label: float((values == k).mean()) for k, label in enumerate(target.classes)}
    if len(shares) > MANY:
        numbers = list(shares.values())
        shares = {"lowest": min(numbers), "median": float(np.median(numbers)), "highest": max(numbers)}
    rounded = {name: round(share, SHARE_DIGITS) for name, share in shares.items()}
    return {"labels": int(known.sum()), "missing_labels": int((~known).sum()), "positives": rounded}


def _section(name: str, values: Mapping[str, Any]) -> Iterator[str]:
    yield f"\n[{name}]"
    for key, value in values.items():
        if isinstance(value, Mapping):
            inside = ", ".join(f"{json.dumps(k, ensure_ascii=False)} = {v}" for k, v in value.items())
            yield f"{key} = {{ {inside} }}"
        else:
            yield f"{key} = {json.dumps(value, ensure_ascii=False)}"


if __name__ == "__main__":
    for each in sys.argv[1:]:
        print(write_card(load_dataset(each)))
