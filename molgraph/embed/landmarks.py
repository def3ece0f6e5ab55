"""Describe molecules by a softmax over their Tanimoto distances to reference molecules."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from molgraph.base.contracts import State
from molgraph.base.errors import DamagedModelError, EmptyError
from molgraph.base.parts import read_part, settings_of
from molgraph.base.ranges import Count, NotNegative
from molgraph.base.seeds import generator
from molgraph.chem.fingerprints import Fingerprints, morgan
from molgraph.chem.identity import canonical_smiles
from molgraph.chem.tanimoto import tanimoto
from molgraph.data.read import read_table
from molgraph.embed.encoder import MoleculeEncoder
from molgraph.train.checkpoint import digest

NAME = "landmarks"
CHUNK = 4_096


@dataclass(frozen=True)
class Landmarks:
    """``g_i = exp(-alpha d_i) / sum_k exp(-alpha d_k)``, d being ``1 - Tanimoto`` of ECFP4 to each of L molecules.

    Mirowski et al. 2018, section 3.2, where a goal is described by its distances to landmarks. A row is at least 0 and
    its sum is 1. At ``alpha`` 0 all are 1 / L; an infinite one leaves the nearest molecule, the first of equal ones.

    Args:
        prints: uint8 [L, 2048], bits of the reference molecules.
        alpha: how fast a landmark fades with distance, which has no unit. A small one, under which no single landmark
            outweighs the others, serves linear models best.

    Example:
        >>> rows = Landmarks(morgan(["CCO", "c1ccccc1"]).x, alpha=5.0).vectors(["CCCO", "Cc1ccccc1"]).x
        >>> rows.argmax(axis=1).tolist(), rows.sum(axis=1).round(6).tolist()
        ([0, 1], [1.0, 1.0])
    """

    prints: np.ndarray
    alpha: float = 0.3

    @classmethod
    def read(cls, file: str, n: Count = 256, alpha: NotNegative = 0.3) -> Self:
        """Landmarks drawn from a table: ``n`` different molecules, or all where there are fewer.

        Raises:
            EmptyError: no molecule of the table can be read.
        """
        texts = [text for text, error in canonical_smiles([str(t) for t in read_table(Path(file)).smiles]) if not error]
        distinct = sorted({*texts})
        if not distinct:
            raise EmptyError(f"no molecule of {file} can be read", hint="name a table of reference molecules")
        rows = generator(0, NAME).permutation(len(distinct))[:n]
        return cls(morgan([distinct[row] for row in sorted(rows.tolist())]).x, float(alpha))

    @property
    def width(self) -> int:
        """Number of landmarks."""
        return len(self.prints)

    @property
    def name(self) -> str:
        """A name that tells them from every other set: a hash of the fingerprints."""
        return f"{NAME}-{digest([repr(float(self.alpha)), np.packbits(self.prints, axis=1)])}"

    def vectors(self, texts: Sequence[str], threads: int | None = None) -> Fingerprints:
        """float32 [n, L] of SMILES, in order; zeros and a reason for a molecule that cannot be read."""
        bits = morgan(texts, threads=threads or 1)
        x = np.zeros((len(texts), self.width), np.float32)
        for start in range(0, len(texts), CHUNK):
            rows = slice(start, start + CHUNK)
            x[rows] = softmax_of_distances(1 - tanimoto(bits.x[rows], self.prints).astype(np.float64), self.alpha)
        x[~bits.ok] = 0
        return Fingerprints(x, bits.ok, bits.reasons)

    def state(self) -> State:
        """The fingerprints, and the values that rebuild them."""
        alpha = "inf" if np.isinf(self.alpha) else self.alpha
        return State({"prints": np.packbits(self.prints, axis=1)}, {NAME: True, "alpha": alpha})

    @classmethod
    def from_state(cls, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> Self:
        """Rebuild them; raises ``DamagedModelError`` where they are not whole."""
        bits, alpha = np.asarray(arrays.get("prints", np.zeros(0))), float(meta["alpha"])
        if bits.ndim != 2 or bits.dtype != np.uint8 or not len(bits) or bits.shape[1] != 256 or not alpha >= 0:
            raise DamagedModelError("the model's landmarks are not whole", hint="fetch the file again")
        return cls(np.unpackbits(bits, axis=1), alpha)


def softmax_of_distances(distance: np.ndarray, alpha: float) -> np.ndarray:
    """float64 [n, L]: ``exp(-alpha d) / sum exp(-alpha d)`` of distances float64 [n, L].

    Example:
        >>> softmax_of_distances(np.array([[0.1, 0.2]]), float("inf")).tolist()
        [[1.0, 0.0]]
    """
    if np.isinf(alpha):
        return np.eye(distance.shape[1])[distance.argmin(axis=1)]
    weight = np.exp(-alpha * (distance - distance.min(axis=1, keepdims=True)))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


VectorSource = MoleculeEncoder | Landmarks
"""What gives each molecule a vector: a name, a width, and ``vectors``."""


def read_vectors(text: str) -> VectorSource:
    """What ``--descriptors`` names: ``landmarks(FILE, N, ALPHA)``, or the file of an encoder."""
    if not text.startswith(f"{NAME}("):
        return MoleculeEncoder.load(text)
    return Landmarks.read(**settings_of(Landmarks.read, read_part(text, "descriptors")))


def restore_vectors(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> VectorSource:
    """The same of a model file."""
    return Landmarks.from_state(arrays, meta) if NAME in meta else MoleculeEncoder.from_state(arrays, meta)


def without_folder(text: str) -> str:
    """The text of ``--descriptors`` without the folder of its file.

    Example:
        >>> without_folder("landmarks(data/refs.smi, 256)"), without_folder("data/encoder.mgm")
        ('landmarks(refs.smi, 256)', 'encoder.mgm')
    """
    if text.startswith(f"{NAME}("):
        return re.sub(r"^(\w+\((?:file=)?)[^,)]*[/\\]", r"\1", text)
    return Path(text).name
