"""Mark the fragments that a prediction falls without, where plausible fragments stand in their place (FIDO)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import torch

from molgraph.base.contracts import Method
from molgraph.base.errors import EmptyError, UnsupportedError
from molgraph.base.ranges import Count, NotNegative, Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.systems import SystemCard
from molgraph.chem.infill import FragmentLibrary, Pieces, canonical, carbon, cut, infill, name_of
from molgraph.chem.smiles import parse_smiles
from molgraph.data.read import read_table
from molgraph.explain.answers import EDGE, as_score, explained_columns, target_columns
from molgraph.explain.explainer import Attribution, Explainer
from molgraph.explain.masks import enumerate_masks, learn_masks
from molgraph.explain.occlusion import answers_without
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model

Fill = Literal["library", "carbon", "zero"]
MOST, BASE, EXACT = 2000, 16, 8  # molecules of a library; draws without any fragment; fragments that are enumerated
FAINT = 0.1  # deviations in which nothing is to be explained


class Regions(NamedTuple):
    """What a prediction hangs on.

    Args:
        drop: float64 [fragments]: the probability that the smallest deletion region holds each; 0 or 1 if enumerated.
        deletion, sufficient: bool [fragments]: that region, and the smallest that alone keeps the prediction.
        alone: float64 [fragments]: the share of the evidence that is lost where one fragment is replaced; below 0 where
            there is more, NaN where no filling is a molecule.
        left, kept: the shares of the evidence without the deletion region, and with nothing but the sufficient one.
        gap: the evidence: the answer less that for molecules drawn anew as a whole.
    """

    drop: np.ndarray
    deletion: np.ndarray
    sufficient: np.ndarray
    alone: np.ndarray
    left: float
    kept: float
    gap: float


class Evidence:
    """The mean answer of a model for a molecule whose dropped fragments are filled anew, for any mask of fragments.

    Args:
        model: predicts molecules.
        smiles: the molecule, canonical, so that draws do not depend on how it is written.
        fill: ``library``: fragments in the same surroundings; ``carbon``: atoms become carbon; ``zero``: atoms of a
            graph network lose their features.
        library: for ``library``.
        column: of the model's output columns.
        draws: fillings of a mask, over which the answer is averaged.
    """

    def __init__(
        self, model: Model, smiles: str, fill: Fill, library: FragmentLibrary | None, column: int, draws: int
    ) -> None:
        self.model, self.smiles, self.fill, self.library = model, smiles, fill, library
        self.column, self.draws = column, draws if fill == "library" else 1
        self.mol = parse_smiles(smiles)[0]
        self.pieces: Pieces = cut(self.mol)
        self.sizes = np.array([len(atoms) for atoms in self.pieces.atoms], dtype=float)
        self._known: dict[bytes, float] = {}

    def filled(self, mask: np.ndarray, draws: int) -> list[str | None]:
        """The molecules that stand for a mask of dropped fragments, drawn by the mask and the molecule alone."""
        if not mask.any():
            return [self.smiles]
        if self.fill == "carbon" or self.library is None:
            return [carbon(self.mol, self._atoms(mask))]
        seed = int(hashlib.sha256(self.smiles.encode() + mask.astype(np.uint8).tobytes()).hexdigest()[:12], 16)
        rng = generator(seed, "infill")
        return [infill(self.pieces, mask.tolist(), self.library, rng) for _ in range(draws)]

    def values(self, masks: np.ndarray) -> np.ndarray:
        """float64 [k]: the mean answer for bool [k, fragments]; NaN where no filling gives a molecule."""
        keys = [mask.tobytes() for mask in masks]
        new = {key: mask for key, mask in zip(keys, masks, strict=True) if key not in self._known}
        if new and self.fill == "zero":
            atoms = [self._atoms(mask) for mask in new.values()]
            fitted = self.model.method.ready()  # type: ignore[attr-defined]
            raw = fitted.network.head.values(torch.from_numpy(answers_without(fitted, self.smiles, atoms)))[0]
            self._known |= zip(new, as_score(self.model, fitted.outputs.values(raw.numpy()), self.column), strict=True)
        elif new:
            fillings = [self.filled(mask, self.draws) for mask in new.values()]
            texts = sorted({text for filling in fillings for text in filling if text})
            value = (
                dict(zip(texts, as_score(self.model, self.model.predict(texts).value, self.column), strict=True))
                if texts
                else {}
            )
            for key, filling in zip(new, fillings, strict=True):
                scores = np.array([value[text] for text in filling if text])
                self._known[key] = float(np.nanmean(scores)) if np.isfinite(scores).any() else float("nan")
        return np.array([self._known[key] for key in keys])

    def background(self) -> tuple[float, float]:
        """The mean answer where every fragment is dropped, and the deviation of single answers."""
        every = np.ones(len(self.sizes), dtype=bool)
        if self.fill != "library":
            return float(self.values(every[None])[0]), 0.0
        texts = [text for text in self.filled(every, BASE) if text]
        scores = as_score(self.model, self.model.predict(texts).value, self.column) if texts else np.full(1, np.nan)
        scores = scores[np.isfinite(scores)]
        return (float(scores.mean()), float(scores.std())) if len(scores) else (float("nan"), 0.0)

    def _atoms(self, mask: np.ndarray) -> list[int]:
        return [i for piece, gone in zip(self.pieces.atoms, mask, strict=True) if gone for i in piece]


def find_regions(evidence: Evidence, size: float, *, exact: int = EXACT, seed: int = 0) -> Regions:
    """The smallest deletion and the smallest sufficient region of a molecule.

    With ``f(z)``, the evidence that is left where z is dropped, from 1 for the molecule to 0 for molecules drawn anew
    as a whole and no further: the first minimises ``f(z) + size * (share of atoms dropped)``, the second
    ``-f(z) + size * (share of atoms kept)``. Both are empty where the answer is not 0.1 deviations of drawn molecules
    away from their mean: then there is nothing to explain.
    """
    n, share = len(evidence.sizes), evidence.sizes / evidence.sizes.sum()
    whole, (base, spread) = float(evidence.values(np.zeros((1, n), bool))[0]), evidence.background()
    gap = whole - base
    if not np.isfinite(gap) or abs(gap) <= max(EDGE, FAINT * spread):
        nothing = np.zeros(n, bool)
        return Regions(np.zeros(n), nothing, nothing, np.zeros(n), 1.0, 0.0, gap)

    def left(masks: np.ndarray) -> np.ndarray:
        effects = np.where(masks.all(1), 0.0, (evidence.values(masks) - base) / gap)
        return np.asarray(effects.clip(0, 1))

    def deletion(masks: np.ndarray) -> np.ndarray:
        return left(masks) + size * masks @ share

    def sufficient(masks: np.ndarray) -> np.ndarray:
        return -left(masks) + size * ~masks @ share

    if n <= exact:
        gone, out = enumerate_masks(deletion, n), enumerate_masks(sufficient, n)
        theta = gone.astype(float)
    else:
        (theta, gone), (_, out) = learn_masks(deletion, n, seed), learn_masks(sufficient, n, seed)
    alone = 1 - (evidence.values(np.eye(n, dtype=bool)) - base) / gap
    return Regions(theta, gone, ~out, alone, float(left(gone[None])[0]), float(left(out[None])[0]), gap)


@lru_cache(maxsize=4)
def fragment_library(source: str) -> FragmentLibrary:
    """The fragments of the first 2,000 molecules of a table.

    Raises:
        EmptyError: none of them can be read.
    """
    table = read_table(source)
    texts = [str(text) for text, fine in zip(table.smiles, table.ok, strict=True) if fine][:MOST]
    if not texts:
        raise EmptyError(f"{source} has no molecule that can be read", hint="name another library, or builtin:nci")
    return FragmentLibrary(texts)


@register(
    "explainer",
    "infill",
    summary="the smallest fragments that a prediction falls without, replaced by plausible ones",
    paper="Chang et al. 2019, ICLR",
    systems=(
        SystemCard(
            "fido",
            left_out="images; a generative network as infiller (a library's frequencies of fragments stand for it) and "
            "the Concrete relaxation (no molecule has half a fragment: enumeration, or the score function's gradient)",
            off="infill(fill=carbon)",
            beside=("carbon", "zero"),
            command="molgraph train dataset:esol -m dmpnn -o assay.mgm && "
            "molgraph explain assay.mgm library.smi --by infill -o fragments.csv",
            modules=("molgraph.chem.infill", "molgraph.explain.masks", "molgraph.explain.occlusion"),
        ),
    ),
    command="molgraph train dataset:esol -m dmpnn -o dmpnn.mgm && molgraph explain dmpnn.mgm CCO --by infill",
)
class Infill(Explainer):
    """The fragments without which the evidence is gone, marked; a plausible fragment stands in the place of each.

    Chang et al. 2019, "Explaining Image Classifiers by Counterfactual Generation", section 3: the smallest deletion
    region minimises the expected score of the molecule with the region drawn anew given the rest, plus its size; the
    smallest sufficient one keeps the score where all else is drawn anew. A blank atom is an input that no model has
    seen; a fragment that stands in the same surroundings in other molecules is none. The evidence is the model's answer
    (log-odds of a class) less that for molecules drawn anew as a whole. A molecule is cut at acyclic bonds of
    rings, and between carbon and linking hetero atoms. Of up to 8 fragments all masks are tried; of more, probabilities
    are learned. ``values`` has a row a fragment: ``value`` (the probability that the deletion region holds it),
    ``alone`` (the share of the evidence that is lost by replacing it), ``change`` (the same in units of the answer),
    ``deletion`` and ``sufficient``, and its ``atoms``.

    Args:
        fill: ``library``, or for comparison ``carbon`` and, of graph networks, ``zero`` features.
        library: a table or a file of molecules whose fragments are drawn, by preference like those trained on.
        size: what a region of all atoms costs, as a share of the evidence.
        draws: fillings of each mask.
        target: its name; the model's first if empty. Of several classes it is the one that is predicted.
    """

    reads, model = "predictions of molecules", "dmpnn"
    whole_model = True
    rank = 5
    small = MappingProxyType({"draws": 2})

    def __init__(
        self,
        *,
        fill: Fill = "library",
        library: str = "builtin:nci",
        size: NotNegative = 0.5,
        draws: Annotated[Count, Range(1, 64)] = 4,
        target: str = "",
    ) -> None:
        self.fill, self.library, self.size, self.draws, self.target = fill, library, size, draws, target

    def can_read(self, encoder: Any) -> bool:
        """Whether the model predicts."""
        return isinstance(encoder, Model) and isinstance(encoder.method, Method) and bool(encoder.targets)

    def explain(self, encoder: Any, batch: Any, smiles: Sequence[str]) -> Attribution:
        """Both regions of each molecule."""
        model: Model = encoder
        if self.fill == "zero" and not isinstance(model.method, GraphMethod):
            words = f"a {model.kind} reads no features of atoms that could be zeros"
            raise UnsupportedError(words, hint="choose infill(fill=library) or infill(fill=carbon)")
        library = fragment_library(self.library) if self.fill == "library" else None
        predicted = model.predict([*smiles])
        columns, chosen = target_columns(model, self.target), explained_columns(model, predicted.value, self.target)
        rows: list[tuple[Any, ...]] = []
        drawings: list[tuple[int, dict[str, Any]]] = []
        captions: list[str] = []
        for i, text in enumerate(smiles):
            mol = parse_smiles(text)[0] if np.isfinite(predicted.value[i, columns]).all() else None
            if mol is None or not mol.GetNumAtoms():
                drawings.append((i, {}))
                captions.append("")
                continue
            plain, order = canonical(mol)
            evidence = Evidence(model, plain, self.fill, library, chosen[i], self.draws)
            areas = find_regions(evidence, self.size)
            marked: list[int] = []
            for k, piece in enumerate(evidence.pieces.atoms):
                atoms = sorted(order[a] for a in piece)
                marked += atoms if areas.deletion[k] else []
                name = name_of(mol, atoms)
                row = (i, atoms[0], areas.drop[k], name, areas.alone[k], areas.alone[k] * areas.gap, areas.deletion[k])
                rows.append((*row, areas.sufficient[k], " ".join(map(str, atoms))))
            drawings.append((i, {"atoms": marked}))
            names = ", ".join(row[3] for row in rows if row[0] == i and row[6])
            words = f"without {names} {areas.left:.0%} of the evidence is left" if names else "no evidence to lose"
            captions.append(f"{text}: {words}")
        head = ["molecule", "atom", "value", "fragment", "alone", "change", "deletion", "sufficient", "atoms"]
        notes = ("marked: the smallest region that the prediction falls without; chosen for the model, not for nature",)
        return Attribution("fragment", pd.DataFrame(rows, columns=head), drawings, captions, notes, tuple(chosen))
