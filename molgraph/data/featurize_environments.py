"""Featurise molecules as lists of Morgan environments, with the vocabulary of the training rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from molgraph.base.packed import offsets_of
from molgraph.base.registry import register
from molgraph.base.table import OK, UNREADABLE, EntityKind
from molgraph.chem.identity import canonical_smiles
from molgraph.chem.morgan_words import NONE, Words, morgan_words
from molgraph.chem.parallel import map_molecules
from molgraph.data.featuriser import Featuriser, why_no_text
from molgraph.data.featurize import rdkit_version
from molgraph.data.graph_store import GraphStore, InputSpec, Level

MAX_WORDS = 20_000
"""Environments of a vocabulary: the most common ones of the training rows."""
AGAIN = "its canonical SMILES cannot be read again"


@register("featuriser", "environments", summary="Morgan environments of radius 0 and 1 of each atom (mol2vec)")
class Environments(Featuriser):
    """Levels ``environment``, in the order of the atoms of the canonical SMILES, and ``piece``, what each consists of.

    ``environment.word`` is a place in the vocabulary, from 1; 0 for an environment that it lacks. ``piece.hash`` tells
    pieces apart, and ``piece.word`` is the environment that a piece belongs to. The vocabulary is kept in
    ``InputSpec.settings``: each Morgan identifier with its place.
    """

    name = "environments"
    kind: ClassVar[EntityKind] = "molecule"
    examples = ("CCO", "c1ccccc1", "CC(=O)Oc1ccccc1C(=O)O")
    learns = True

    @property
    def versions(self) -> tuple[str, ...]:  # type: ignore[override]
        """Its own, and RDKit's, which makes the identifiers."""
        return "environments.1", rdkit_version()

    def featurise(self, values: Sequence[Any], *, spec: InputSpec | None = None, workers: int = 1) -> GraphStore:
        """One row for each environment; what RDKit cannot read is ``unreadable``."""
        reason = np.array([why_no_text(value, self.kind) for value in values], dtype=object)
        made = [NONE] * len(values)
        rows = np.flatnonzero(reason == "").tolist()
        written = canonical_smiles([values[row] for row in rows], workers=workers)
        reason[rows] = ["" if text else why or "a molecule without atoms" for text, why in written]
        texts = [text for text, _ in written if text]
        listed = map_molecules(_listed, texts, _refused, workers=workers)
        for row, words in zip(np.flatnonzero(reason == "").tolist(), listed, strict=True):
            if isinstance(words, str):
                reason[row] = words
            else:
                made[row], reason[row] = words, "" if len(words.key) else AGAIN
        keys = np.concatenate([NONE.key, *(each.key for each in made)])
        settings = _settings(keys) if spec is None else dict(spec.settings)
        place = {int(key): number for key, number in settings.items()}
        word = np.array([place.get(key, 0) for key in keys.tolist()], dtype=np.int32)
        sizes = [np.diff(each.offsets) for each in made]
        owner = [np.repeat(np.arange(len(size)), size) for size in sizes]
        pieces = {
            "hash": np.concatenate([NONE.piece, *(each.piece for each in made)]),
            "word": np.concatenate([NONE.piece, *owner]),
        }
        levels = {
            "environment": Level(offsets_of([len(each.key) for each in made]), {"word": word}),
            "piece": Level(offsets_of([len(each.piece) for each in made]), pieces, {"word": "environment"}),
        }
        status = np.where(reason == "", OK, UNREADABLE).astype(object)
        return GraphStore(levels, {}, status, reason, self.versions[0], settings=settings)


def _listed(text: str) -> Words | str:
    return morgan_words(text)


def _refused(_: str, why: str) -> Words | str:
    return f"{why} to list the environments of"


def _settings(keys: np.ndarray) -> dict[str, int]:
    """The most common identifiers, each with its place, from 1."""
    counts = Counter(keys.tolist())
    common = sorted(counts, key=lambda key: (-counts[key], key))[:MAX_WORDS]
    return {str(key): i for i, key in enumerate(common, 1)}
