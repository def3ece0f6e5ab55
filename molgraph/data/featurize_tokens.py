"""Featurise text as a sequence of tokens: amino-acid letters, or the characters of SMILES."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from molgraph.base.packed import offsets_of
from molgraph.base.registry import register
from molgraph.base.table import OK, UNREADABLE, EntityKind
from molgraph.chem.smiles import why_unreadable
from molgraph.data.featuriser import Featuriser, why_no_text
from molgraph.data.graph_store import GraphStore, InputSpec, Level

RESIDUES = "ABCDEFGHIKLMNOPQRSTUVWXYZ"
"""One-letter codes: the 20 amino acids, U and O, and those that leave it open (B, X, Z); there is no J."""
CHARACTERS = "".join(map(chr, range(33, 127)))
MAX_RESIDUES = 100_000


class _Tokens(Featuriser):
    """One level, ``token``: a row for each letter, its features one-hot."""

    alphabet: ClassVar[str] = ""

    def featurise(self, values: Sequence[Any], *, spec: InputSpec | None = None, workers: int = 1) -> GraphStore:
        """One row a letter; what is no text, or has a letter outside the alphabet, is ``unreadable``."""
        missing = [why_no_text(value, self.kind) for value in values]
        read = [("", why) if why else self.letters(value) for value, why in zip(values, missing, strict=True)]
        reason = np.array([why for _, why in read], dtype=object)
        sound = ["" if why else text for text, why in read]
        lookup = np.zeros(256, np.uint8)
        lookup[[ord(letter) for letter in self.alphabet]] = np.arange(len(self.alphabet))
        code = lookup[np.frombuffer("".join(sound).encode("latin-1"), np.uint8)]
        offsets = offsets_of([len(text) for text in sound])
        status = np.where(reason == "", OK, UNREADABLE).astype(object)
        table = np.eye(len(self.alphabet), dtype=np.float32)
        return GraphStore({"token": Level(offsets, {"code": code})}, {"token": table}, status, reason, self.versions[0])

    def letters(self, text: str) -> tuple[str, str]:
        """The text whose letters are the tokens, and why it cannot be read (empty where it can)."""
        raise NotImplementedError


@register("featuriser", "residues", summary="a protein's letters, one-hot")
class Residues(_Tokens):
    """Amino acids of a protein sequence in one-letter code; blanks and line ends are dropped, small letters raised."""

    name = "residues"
    kind: ClassVar[EntityKind] = "sequence"
    versions = ("residues.1",)
    examples = ("MKTAYIAKQRQISFVKSHFSRQ", "GIVEQCCTSICSLYQLENYCN", "ACDEFGHIKLMNPQRSTVWY")
    alphabet = RESIDUES

    def letters(self, text: str) -> tuple[str, str]:
        """Letters alone, in capitals, a stop sign at the end dropped; and why they are no protein."""
        text = "".join(text.split()).upper().removesuffix("*")
        if not text:
            return text, "an empty sequence"
        if len(text) > MAX_RESIDUES:
            return text, f"a sequence of {len(text):,} letters, of which {MAX_RESIDUES:,} are read at most"
        odd = sorted(set(text) - set(self.alphabet))
        return text, f"{odd[0]!r} is no amino acid (X stands for an unknown one)" if odd else ""


@register("featuriser", "smiles_characters", summary="the characters of a SMILES text, one-hot")
class SmilesCharacters(_Tokens):
    """Characters of SMILES, as DeepDTA reads them (Oeztuerk et al. 2018); what RDKit cannot read is unreadable."""

    name = "smiles_characters"
    kind: ClassVar[EntityKind] = "molecule"
    versions = ("smiles_characters.1",)
    examples = ("CCO", "c1ccccc1", "CC(=O)Oc1ccccc1C(=O)O")
    alphabet = CHARACTERS

    def letters(self, text: str) -> tuple[str, str]:
        """The text without what may follow the SMILES, and why that is no molecule."""
        text = text.strip().partition(" ")[0]
        return text, why_unreadable(text)
