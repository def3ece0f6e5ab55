"""Check which generated SMILES are valid, unique and novel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Self

import numpy as np
import pandas as pd

from molgraph.base.printable import count
from molgraph.chem.identity import canonical_smiles
from molgraph.data.standardise import standardise
from molgraph.data.table import make_table
from molgraph.train.training_molecules import molecule_hashes

SEEN, FEW = 50, 0.5  # of so many draws, the share of valid ones below which there is advice

UNENDED = "the text did not end within the length that the model writes"


@dataclass(frozen=True)
class Generated:
    """Generated SMILES in the order in which they were drawn.

    Args:
        smiles: as they were drawn.
        canonical: RDKit's canonical SMILES of each, without atom maps; empty where it cannot be read.
        reason: why each is no molecule; empty where it is one.
        novel: bool, whether each is a molecule that the generator did not learn from, salts and stereoisomers taken
            for one molecule; None where that is not known.
        weight: float64, of texts that were drawn without replacement: the sum of weight times value estimates the mean
            value of independent draws without bias (0 for what is no molecule); None for independent draws.
    """

    smiles: tuple[str, ...]
    canonical: tuple[str, ...]
    reason: tuple[str, ...]
    novel: np.ndarray | None
    weight: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.smiles)

    def __repr__(self) -> str:
        return f"Generated({self.sentence})"

    def _repr_html_(self) -> str:
        """The sentence and the first rows."""
        return f"<p>{escape(self.sentence)}</p>{self.to_frame().head(10).to_html(border=0)}"

    @classmethod
    def joined(cls, pieces: Sequence[Generated]) -> Self:
        """Several, one after the other."""
        novel = [piece.novel for piece in pieces if piece.novel is not None]
        columns = (
            [text for piece in pieces for text in getattr(piece, name)] for name in ("smiles", "canonical", "reason")
        )
        smiles, canonical, reason = map(tuple, columns)
        weight = [piece.weight for piece in pieces if piece.weight is not None]
        whole = [np.concatenate(values) if values else None for values in (novel, weight)]
        return cls(smiles, canonical, reason, *whole)

    @property
    def valid(self) -> np.ndarray:
        """bool [n], whether each is a molecule."""
        return np.array([reason == "" for reason in self.reason], dtype=bool)

    @property
    def n_no_molecule(self) -> int:
        """How many RDKit reads that are no molecules: open attachment points, bare ions."""
        return sum(reason != "" and text != "" for reason, text in zip(self.reason, self.canonical, strict=True))

    @property
    def n_valid(self) -> int:
        """How many are valid."""
        return int(self.valid.sum())

    @property
    def n_unique(self) -> int:
        """How many distinct molecules the valid ones are, by canonical SMILES."""
        return len({text for text, valid in zip(self.canonical, self.valid, strict=True) if valid})

    @property
    def n_novel(self) -> int | None:
        """How many of the distinct molecules are novel; None where that is not known."""
        if self.novel is None:
            return None
        return len({text for text, new in zip(self.canonical, self.novel, strict=True) if new})

    @property
    def sentence(self) -> str:
        """The counts in words.

        Example:
            >>> judge(["CCO", "OCC", "C1C"], None).sentence
            '3 drawn: 2 valid (66.7%), 1 unique of those'
        """
        words = f"{len(self):,} drawn: {self.n_valid:,} valid ({self.n_valid / max(len(self), 1):.1%})"
        words += f", {self.n_unique:,} unique of those"
        words += "" if self.n_novel is None else f", {self.n_novel:,} novel of those"
        if none := self.n_no_molecule:
            words += f"; {count(none, 'string')} that RDKit reads without a molecule in it"
        if len(self) >= SEEN and self.n_valid < FEW * len(self):
            words += ". Few are valid: train longer, draw at a lower temperature, or write SELFIES (params.tokens)"
        if self.weight is not None:
            words += f"; drawn without replacement, the valid ones have {self.weight[self.valid].sum():.1%} by weight"
        return words

    def to_frame(self) -> pd.DataFrame:
        """A row for each: smiles, valid, novel (where that is known), weight (of distinct draws), reason."""
        columns = {"smiles": self.smiles, "valid": self.valid, "novel": self.novel, "weight": self.weight}
        columns["reason"] = self.reason
        return pd.DataFrame({name: values for name, values in columns.items() if values is not None})


def judge(smiles: Sequence[str], trained_on: np.ndarray | None, standardiser: str = "standard") -> Generated:
    """Read each SMILES, and look for its molecule among those that a generator learned from.

    Args:
        smiles: as they were drawn.
        trained_on: hashes of the molecules learned from (``molgraph.train.training_molecules``), or None.
        standardiser: the preset that these went through.

    Example:
        >>> found = judge(["CCO", "C1C"], np.array([], np.uint64))
        >>> found.valid.tolist(), found.novel.tolist()
        ([True, False], [True, False])
    """
    molecules = canonical_smiles(list(smiles))
    novel = None
    if trained_on is not None:
        hashes = molecule_hashes(standardise(make_table(list(smiles)), standardiser))
        novel = np.array([molecule.reason == "" for molecule in molecules], dtype=bool) & ~np.isin(hashes, trained_on)
    canonical = tuple(molecule.smiles for molecule in molecules)
    reason = tuple(molecule.reason if text else UNENDED for text, molecule in zip(smiles, molecules, strict=True))
    return Generated(tuple(smiles), canonical, reason, novel)
