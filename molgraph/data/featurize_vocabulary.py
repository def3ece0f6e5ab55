"""Featurise molecules as tokens of SMILES or SELFIES, with the vocabulary of the training rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from molgraph.base.errors import TooLargeError
from molgraph.base.packed import offsets_of
from molgraph.base.registry import get, names, register
from molgraph.base.table import OK, UNREADABLE, EntityKind
from molgraph.chem.tokens import alphabet, canonical_tokens
from molgraph.data.featuriser import Featuriser, why_no_text
from molgraph.data.featurize import rdkit_version
from molgraph.data.graph_store import GraphStore, InputSpec, Level

MAX_TOKENS = 1000
"""Tokens of a vocabulary: the most common ones of the training rows."""


def token_store(texts: Sequence[Sequence[str]], vocabulary: Sequence[str]) -> GraphStore:
    """Pack tokenised texts into one level, ``token``, whose ``code`` is a token's place in the vocabulary, from 1.

    Args:
        texts: the tokens of each text; those outside the vocabulary have the code 0.
        vocabulary: distinct tokens; for a generator the code 0 is the start and the end of a text.

    Example:
        >>> store = token_store([["C", "O"], ["C", "Br"]], ("C", "O"))
        >>> store.levels["token"].offsets.tolist(), store.levels["token"].arrays["code"].tolist()
        ([0, 2, 4], [1, 2, 1, 0])
    """
    place = {token: i for i, token in enumerate(vocabulary, 1)}
    offsets = offsets_of([*map(len, texts)])
    code = np.fromiter((place.get(token, 0) for text in texts for token in text), np.int32, int(offsets[-1]))
    status, reason = np.full(len(texts), OK, dtype=object), np.full(len(texts), "", dtype=object)
    return GraphStore({"token": Level(offsets, {"code": code})}, {}, status, reason, "smiles_tokens.1")


class _Vocabulary(Featuriser):
    """One level, ``token``: a row for each token of the canonical text, one-hot by the training rows' vocabulary.

    The vocabulary is kept in ``InputSpec.settings``, each token with its place. A token that no training row has is a
    row of zeros, as an element outside the table of atoms is "something else": the molecule is predicted by its others.
    """

    kind: ClassVar[EntityKind] = "molecule"
    examples = ("CCO", "c1ccccc1", "CC(=O)Oc1ccccc1C(=O)O")
    learns = True
    as_written = False

    @property
    def versions(self) -> tuple[str, ...]:  # type: ignore[override]
        """The tokens', and RDKit's, which writes the canonical text."""
        return f"{self.name}.1", rdkit_version()

    def featurise(self, values: Sequence[Any], *, spec: InputSpec | None = None, workers: int = 1) -> GraphStore:
        """One row a token; what RDKit cannot read, or the alphabet cannot write, is ``unreadable``."""
        reason = np.array([why_no_text(value, self.kind) for value in values], dtype=object)
        tokens: list[list[str]] = [[] for _ in values]
        rows = np.flatnonzero(reason == "").tolist()
        texts = [values[row] for row in rows]
        if self.as_written:
            written = [
                (parts, text, why) for text, (parts, why) in zip(texts, alphabet(self.name).split(texts), strict=True)
            ]
        else:
            written = canonical_tokens(texts, self.name, molecules=False, label="tokens", workers=workers)
        for row, (parts, _, why) in zip(rows, written, strict=True):
            reason[row] = why or ("" if parts else "a molecule without tokens")
            tokens[row] = [] if why else parts
        settings = _settings(tokens) if spec is None else spec.settings
        vocabulary = sorted(settings, key=lambda token: settings[token])
        if len(vocabulary) > MAX_TOKENS:
            raise TooLargeError(f"a vocabulary of {len(vocabulary):,} tokens, where {MAX_TOKENS:,} are read at most")
        table = np.eye(1 + len(vocabulary), max(len(vocabulary), 1), k=-1, dtype=np.float32)
        status = np.where(reason == "", OK, UNREADABLE).astype(object)
        store = token_store(tokens, vocabulary)
        facts: dict[str, Any] = {"tables": {"token": table}, "status": status, "reason": reason, "settings": settings}
        return replace(store, featuriser=self.versions[0], **facts)

    def as_of(self, version: str) -> Featuriser:
        """The registered featuriser of tokens that makes the features of a version."""
        name = version.partition(".")[0]
        return get("featuriser", name)() if name in names("featuriser") else self


def _settings(tokens: Sequence[Sequence[str]]) -> dict[str, int]:
    """The most common tokens, each with its place, from 1."""
    counts = Counter(token for text in tokens for token in text)
    common = sorted(counts, key=lambda token: (-counts[token], token))
    return {token: i for i, token in enumerate(common[:MAX_TOKENS], 1)}


@register("featuriser", "smiles", summary="tokens of canonical SMILES (atoms in brackets, Br, Cl are one each)")
class SmilesTokens(_Vocabulary):
    """Tokens of canonical SMILES: an atom in brackets, Br, Cl and a ring number of two digits are one each."""

    name = "smiles"


@register("featuriser", "selfies", summary="tokens of SELFIES (needs the library selfies)")
class SelfiesTokens(_Vocabulary):
    """Symbols of SELFIES (Krenn et al. 2020, Mach. Learn.: Sci. Technol. 1:045024), of canonical SMILES."""

    name = "selfies"
