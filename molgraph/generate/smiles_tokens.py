"""Pick the molecules of a table that a generator can learn from, as tokens."""

from __future__ import annotations

from collections.abc import Collection

from molgraph.base.errors import AmbiguousColumnError, EmptyError
from molgraph.chem.identity import canonical_smiles
from molgraph.chem.tokens import alphabet, is_vocabulary
from molgraph.data.table import Table


def learnable_texts(
    table: Table, max_length: int, known: Collection[str] | None = None, tokens: str = "smiles"
) -> tuple[list[list[str]], tuple[str, ...]]:
    """The tokens of each molecule that can be learned from, and notes on the rows that are passed over.

    Args:
        table: one column of molecules.
        max_length: tokens of a molecule, at most.
        known: an alphabet: molecules with other tokens are passed over, and none need be left. None takes any token.
        tokens: the alphabet, ``smiles`` or ``selfies``; molecules are written as they are, in no canonical order.

    Raises:
        DataError: the table has no column of molecules, or several, or nothing can be learned from.

    Example:
        >>> from molgraph.data.table import make_table
        >>> texts, notes = learnable_texts(make_table(["CCl", "C1C"]), 4)
        >>> texts, notes
        ([['C', 'Cl']], ('rows that are not learned from: 1 (unreadable)',))
    """
    check_corpus(table)
    readable = table.smiles[table.ok]
    results = canonical_smiles(readable, label="reading")
    sound = [unmapped_text(text, row.smiles) for text, row in zip(readable, results, strict=True) if not row.reason]
    texts = [text for text, reason in alphabet(tokens).split(sound) if not reason]
    kept = [text for text in texts if 0 < len(text) <= max_length and is_vocabulary([*{*text}])]
    none = sum(row.reason != "" and row.smiles != "" for row in results)
    passed = {
        "unreadable": len(table) - len(texts) - none,
        "not a molecule": none,
        f"over {max_length} tokens": len(texts) - len(kept),
    }
    if known is not None:
        there = [text for text in kept if {*text} <= {*known}]
        outside = len(kept) - len(there)
        return there, (f"rows that are not learned from: {outside:,} (tokens that the alphabet lacks)",) * bool(outside)
    if not kept:
        raise EmptyError("no molecule can be learned from", hint="look at the reasons: molgraph data audit FILE")
    return kept, tuple(f"rows that are not learned from: {n:,} ({reason})" for reason, n in passed.items() if n)


def check_corpus(table: Table) -> None:
    """Raise ``AmbiguousColumnError`` for a table without a column of molecules, or with several."""
    if [entity.kind for entity in table.entities] != ["molecule"]:
        read = ", ".join(f"{entity.name} ({entity.kind})" for entity in table.entities)
        words = f"a generator learns from one column of molecules, the table has {read}"
        raise AmbiguousColumnError(words, hint="name it")


def unmapped_text(text: str, canonical: str) -> str:
    """A SMILES as it is written; where it may have atom maps, which nobody should learn, its canonical SMILES.

    Example:
        >>> unmapped_text("OCC", "CCO"), unmapped_text("[OH:1]CC", "CCO")
        ('OCC', 'CCO')
    """
    return canonical if ":" in text else text.strip()
