"""Featurise text as a sequence of tokens: amino-acid letters, or the characters of SMILES."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from molgraph.base.packed import offsets_of
from molgraph.base.registry import register
from molgraph.base.table import OK, UNREADABLE, EntityKind
from molgraph.chem.handedness import without_maps
from molgraph.chem.identity import canonical_smiles
from molgraph.chem.smiles import why_unreadable
from molgraph.data.featuriser import Featuriser, why_no_text
from molgraph.data.featurize import rdkit_version
from molgraph.data.graph_store import GraphStore, InputSpec, Level

RESIDUES = "ABCDEFGHIKLMNOPQRSTUVWXYZ"
"""One-letter codes: the 20 amino acids, U and O, and those that leave it open (B, X, Z); there is no J."""
CHARACTERS = "".join(map(chr, range(33, 127)))
MAX_RESIDUES = 100_000
AS_WRITTEN = "smiles_characters.1"


class _Tokens(Featuriser):
    """One level, ``token``: a row for each letter, its features one-hot."""

    alphabet: ClassVar[str] = ""

    def featurise(self, values: Sequence[Any], *, spec: InputSpec | None = None, workers: int = 1) -> GraphStore:
        """One row a letter; what is no text, or has a letter outside the alphabet, is ``unreadable``."""
        missing = [why_no_text(value, self.kind) for value in values]
        letters = self.letters(["" if error else value for value, error in zip(values, missing, strict=True)], workers)
        read = [("", error) if error else pair for pair, error in zip(letters, missing, strict=True)]
        reason = np.array([error for _, error in read], dtype=object)
        sound = ["" if error else text for text, error in read]
        lookup = np.zeros(256, np.uint8)
        lookup[[ord(letter) for letter in self.alphabet]] = np.arange(len(self.alphabet))
        code = lookup[np.frombuffer("".join(sound).encode("latin-1"), np.uint8)]
        offsets = offsets_of([len(text) for text in sound])
        status = np.where(reason == "", OK, UNREADABLE).astype(object)
        table = np.eye(len(self.alphabet), dtype=np.float32)
        return GraphStore({"token": Level(offsets, {"code": code})}, {"token": table}, status, reason, self.versions[0])

    def letters(self, texts: Sequence[str], workers: int) -> list[tuple[str, str]]:
        """For each value the text whose letters are the tokens, and why it cannot be read (empty where it can)."""
        raise NotImplementedError


@register("featuriser", "residues", summary="a protein's letters, one-hot")
class Residues(_Tokens):
    """Amino acids of a protein sequence in one-letter code; blanks and line ends are dropped, small letters raised."""

    name = "residues"
    kind: ClassVar[EntityKind] = "sequence"
    versions = ("residues.1",)
    examples = ("MKTAYIAKQRQISFVKSHFSRQ", "GIVEQCCTSICSLYQLENYCN", "ACDEFGHIKLMNPQRSTVWY")
    alphabet = RESIDUES

    def letters(self, texts: Sequence[str], workers: int) -> list[tuple[str, str]]:
        """Letters alone, in capitals, a stop sign at the end dropped; and why they are no protein."""
        return [self._letters(text) for text in texts]

    def _letters(self, text: str) -> tuple[str, str]:
        text = "".join(text.split()).upper().removesuffix("*")
        if not text:
            return text, "an empty sequence"
        if len(text) > MAX_RESIDUES:
            return text, f"a sequence of {len(text):,} letters, of which {MAX_RESIDUES:,} are read at most"
        odd = sorted(set(text) - set(self.alphabet))
        return text, f"{odd[0]!r} is no amino acid (X stands for an unknown one)" if odd else ""


@register("featuriser", "smiles_characters", summary="the characters of a SMILES text, one-hot")
class SmilesCharacters(_Tokens):
    """Characters of SMILES, as DeepDTA reads them (Oeztuerk et al. 2018); what RDKit cannot read is unreadable.

    Each molecule is read as its canonical SMILES, whatever text it is given as; version 1 reads the text itself.
    """

    name = "smiles_characters"
    kind: ClassVar[EntityKind] = "molecule"
    version = "smiles_characters.2"
    older = (AS_WRITTEN,)
    examples = ("CCO", "c1ccccc1", "CC(=O)Oc1ccccc1C(=O)O")
    alphabet = CHARACTERS
    as_written = False

    @property
    def versions(self) -> tuple[str, ...]:  # type: ignore[override]
        """Its own, and RDKit's, by whose canonical order the text is written."""
        return self.version, rdkit_version()

    def letters(self, texts: Sequence[str], workers: int) -> list[tuple[str, str]]:
        """The text of each molecule, and why there is none."""
        texts = [text.strip().partition(" ")[0] for text in texts]
        if self.version == AS_WRITTEN or self.as_written:
            return [(text, why_unreadable(text)) for text in texts]
        written = canonical_smiles([without_maps(text) for text in texts], workers=workers)
        return [(text, "" if text else reason) for text, reason in written]  # what is no molecule has characters too
