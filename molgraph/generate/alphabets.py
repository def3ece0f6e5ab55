"""Write molecules as tokens of SMILES or SELFIES, each row with its tokens or the reason why it has none."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from molgraph.chem.tokens import canonical_tokens, is_vocabulary
from molgraph.data.table import Table
from molgraph.generate.smiles_tokens import check_corpus


class Written(NamedTuple):
    """Rows as tokens.

    Args:
        tokens: those of each row, none where it has a reason.
        reason: object [n], empty where a row has tokens.
        canonical: the canonical SMILES of each row, empty where it has none.
    """

    tokens: list[list[str]]
    reason: np.ndarray
    canonical: list[str]

    @property
    def ok(self) -> np.ndarray:
        """bool [n], whether each row has tokens."""
        return self.reason == ""


def write_tokens(
    table: Table, name: str, max_length: int, known: Collection[str] | None = None, *, label: str = ""
) -> Written:
    """The tokens of each row's molecule, by its canonical SMILES: they do not depend on how it was written.

    Args:
        table: one column of molecules.
        name: the alphabet, ``smiles`` or ``selfies``.
        max_length: tokens of a molecule, at most.
        known: the vocabulary that a molecule is written with; any token if not given.
        label: what the progress bar says.

    Raises:
        DataError: the table has no column of molecules, or several.

    Example:
        >>> from molgraph.data.table import make_table
        >>> found = write_tokens(make_table(["ClCC", "C1C", "CCBr"]), "smiles", 9, {"C", "Cl"})
        >>> found.tokens, found.reason[2]
        ([['C', 'C', 'Cl'], [], []], "'Br' is outside the model's vocabulary")
    """
    check_corpus(table)
    reason = table.reason.astype(object)
    tokens: list[list[str]] = [[] for _ in range(len(table))]
    canonical = [""] * len(table)
    rows, vocabulary = np.flatnonzero(table.ok).tolist(), None if known is None else {*known}
    for row, (parts, text, error) in zip(rows, canonical_tokens(table.smiles[rows], name, label=label), strict=True):
        canonical[row], reason[row] = "" if error and parts else text, error or _why_not(parts, max_length, vocabulary)
        tokens[row] = [] if reason[row] else parts
    return Written(tokens, reason, canonical)


def _why_not(tokens: Sequence[str], max_length: int, known: set[str] | None) -> str:
    if len(tokens) > max_length:
        return f"{len(tokens):,} tokens, at most {max_length:,} are read"
    if not is_vocabulary([*{*tokens}]) or not tokens:
        return "no tokens that a model can learn"
    odd = [] if known is None else [token for token in tokens if token not in known]
    return f"{odd[0]!r} is outside the model's vocabulary" if odd else ""
