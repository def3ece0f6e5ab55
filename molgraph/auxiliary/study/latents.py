"""Score how far dimensions of a latent space stand for single chemical properties (DCI, MIG), and what probes gain."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import pandas as pd
from sklearn.linear_model import RidgeCV

from molgraph.base.contracts import LatentGenerator
from molgraph.base.errors import EmptyError, MissingOptionError
from molgraph.base.ranges import LARGEST, Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.systems import SystemCard
from molgraph.chem.concepts import NUMBERS, concepts
from molgraph.chem.smiles import parse_smiles
from molgraph.data.sources import builtin
from molgraph.embed.disentanglement import disentanglement
from molgraph.embed.encoder import MoleculeEncoder
from molgraph.embed.vectors import holds_vectors, read_vectors
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject

FEWEST, FACTORS, TOY = 40, 6, 600  # rows; true factors and rows of the controls
ALPHAS = np.logspace(-3, 6, 19)


def probe(z: np.ndarray, v: np.ndarray, n: int, seed: int) -> np.ndarray:
    """float64 [k]: R2 of a ridge regression of each factor that learns from n rows, on a third that it never sees.

    Args:
        z: float64 [rows, d].
        v: float64 [rows, k].
        n: rows to learn from, at most two thirds.
        seed: of the division.
    """
    order = generator(seed, "probe").permutation(len(z))
    test, train = np.split(order, [len(z) // 3])
    train = train[:n]
    spread = z[train].std(axis=0)
    scaled = (z - z[train].mean(axis=0)) / np.where(spread > 1e-9, spread, np.inf)
    guess = RidgeCV(ALPHAS, alpha_per_target=True).fit(scaled[train], v[train]).predict(scaled[test])
    error = ((v[test] - guess.reshape(len(test), -1)) ** 2).sum(axis=0)
    return np.asarray(1 - error / np.maximum(((v[test] - v[train].mean(axis=0)) ** 2).sum(axis=0), 1e-12))


def rotated(z: np.ndarray, seed: int) -> np.ndarray:
    """The vectors, standardised and turned by a random orthogonal matrix."""
    spread = z.std(axis=0)
    z = (z - z.mean(axis=0)) / np.where(spread > 1e-9, spread, np.inf)
    q, r = np.linalg.qr(generator(seed, "rotation").normal(size=(z.shape[1],) * 2))
    return np.asarray(z @ (q * np.sign(np.diag(r))))


@register(
    "study",
    "latents",
    summary="how far the dimensions of a latent space stand for single properties (DCI, MIG)",
    paper="van Steenkiste et al. 2019, NeurIPS; Eastwood and Williams 2018, ICLR",
    systems=(
        SystemCard(
            "disentanglement-metrics-vs-downstream-sa",
            left_out="the matrices of abstract reasoning, correlations over 360 models, other scores",
            off="latents(rotate=true)",
            beside=("the same vectors, rotated", "six independent factors"),
            command="molgraph study latents dataset:esol -m jtvae-zinc -o latents.csv",
            modules=("molgraph.embed.disentanglement",),
        ),
    ),
)
class LatentsStudy(Study):
    """A row for each property: its gap of mutual information, completeness, and R2 of trees and of linear probes.

    van Steenkiste et al. 2019, "Are Disentangled Representations Helpful for Abstract Visual Reasoning?": disentangled
    codes help where few labels are there, and less with more, so R2 of probes with ``few`` labels stands beside that
    with all. Properties of molecules depend on each other, so that no latent space reaches 1, and the rotated one
    stands beside. Data are vectors, as ``molgraph embed`` writes them, or molecules with the file of a generator with
    latent vectors or an encoder (``-m``). Controls: six independent factors as they are, and turned at random.

    Args:
        few: labels of the first probe.
        rows: that are used, at most, drawn at random.
        rotate: whether the vectors are turned at random first.
    """

    reads = "vectors"
    small = MappingProxyType({"rows": 100, "few": 20})

    def __init__(
        self,
        *,
        few: Annotated[int, Range(10, LARGEST)] = 50,
        rows: Annotated[int, Range(FEWEST, LARGEST)] = 2000,
        rotate: bool = False,
    ) -> None:
        self.few, self.rows, self.rotate = few, rows, rotate

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Encode, score, and score the controls."""
        z, mols = self._vectors(subject)
        rows = np.sort(generator(seed, "rows").permutation(len(z))[: self.rows])
        z, mols = z[rows], [mols[i] for i in rows]
        if len(z) < FEWEST:
            raise EmptyError(f"{len(z)} molecules have a vector, of {FEWEST} that are needed", hint="give more rows")
        frame = concepts(mols)
        every = concepts(mols)
        frame = every[[name for name in NUMBERS if name in every]]
        v, turned = frame.to_numpy(), rotated(z, seed)
        if self.rotate:
            z, turned = turned, rotated(turned, seed + 1)
        ours, other = disentanglement(z, v, seed), disentanglement(turned, v, seed)
        found = pd.DataFrame(
            {"property": list(frame), "dimension": ours.importance.argmax(axis=0), "completeness": ours.completeness,
             "mig": ours.mig, "mig_rotated": other.mig, "r2_trees": ours.r2,
             f"r2_{self.few}": probe(z, v, self.few, seed), "r2_all": probe(z, v, len(z), seed)}
        )  # fmt: skip
        words = (
            f"DCI {ours.dci:.2f} and MIG {ours.mig.mean():.2f} of {z.shape[1]} dimensions and {len(v.T)} properties, "
            f"rotated {other.dci:.2f} and {other.mig.mean():.2f}; R2 of linear probes "
            f"{found[f'r2_{self.few}'].mean():.2f} "
            f"with {self.few} labels and {found['r2_all'].mean():.2f} with {2 * len(z) // 3:,}."
        )
        true = generator(seed, "factors").normal(size=(TOY, FACTORS))
        copy, mixed = disentanglement(true, true, seed), disentanglement(rotated(true, seed), true, seed)
        linear = float(probe(rotated(true, seed), true, TOY, seed).min())
        name = "vectors" if subject.model is None else str(subject.model)
        return Findings(
            f"Latent dimensions of {name}: {len(z):,} molecules", words, found,
            Control("six independent factors", "DCI and MIG above 0.9", f"{copy.dci:.2f} and {copy.mig.mean():.2f}",
                    min(copy.dci, copy.mig.mean()) > 0.9),
            Control("the same turned at random", "DCI below 0.5, R2 above 0.99", f"{mixed.dci:.2f}, {linear:.3f}",
                    mixed.dci < 0.5 and linear > 0.99),
        )  # fmt: skip

    def _vectors(self, subject: Subject) -> tuple[np.ndarray, list[Any]]:
        """float64 [n, d] and RDKit's molecules of the rows that have both."""
        if holds_vectors(subject.data):
            rows = read_vectors(subject.data)
            x, ok, texts = rows.x, rows.ok, [str(text) for text in rows.texts]
        else:
            if subject.model is None:
                words = "this study is about vectors, and the table holds molecules"
                raise MissingOptionError(words, hint="name a model (-m vae.mgm), or give what molgraph embed writes")
            model, table = subject.fitted(), builtin.nci() if subject.data is None else subject.table()
            texts = [str(text) for text in table.smiles]
            if isinstance(model.method, LatentGenerator):
                points = model.method.encode(table)
                x, ok = points.mean, points.ok
            else:
                prints = MoleculeEncoder(model).vectors(texts, 1)
                x, ok = prints.x, prints.ok
        mols = [parse_smiles(text).mol if fine and text else None for text, fine in zip(texts, ok, strict=True)]
        kept = [i for i, mol in enumerate(mols) if mol is not None and mol.GetNumAtoms()]
        return np.asarray(x, dtype=np.float64)[kept], [mols[i] for i in kept]
