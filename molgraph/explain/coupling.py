"""Measure how much the element at one position tells an encoder of the element at another (social influence)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from molgraph.base.errors import EmptyError
from molgraph.base.ranges import Count
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.systems import SystemCard
from molgraph.chem.element_swaps import swap_element
from molgraph.chem.smiles import parse_smiles
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.feature_layout import FEATURISER
from molgraph.data.graph_store import GraphStore
from molgraph.data.read import read_table
from molgraph.data.views.mask import chosen_rows, hidden
from molgraph.explain.explainer import Attribution, Explainer
from molgraph.train.inference import FittedNetworks
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.objectives.masked_atoms import elements as element_places

ELEMENTS = (6, 7, 8, 9, 16, 17, 35)  # that are tried at each position, where its bonds allow them
MOST, BATCH, COPIES, RATE = 60, 256, 3, 0.15  # atoms; graphs at once; masked copies of a library molecule; share masked
FLOOR = 1e-9  # probability of an element that the library does not have


def influence(q: np.ndarray, p: np.ndarray, weights: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """The influence of each value of one variable on another, and its mean.

    Jaques et al. 2019, section 3: ``KL(p(b | a, s) || sum_a' p(b | a', s) q(a' | s))``, whose mean over ``a`` from q
    is the mutual information of both, given s.

    Args:
        q: float64 [k], the probabilities of the values a.
        p: float64 [k, m], those of b for each of them.
        weights: those by which the counterfactual values are averaged; q if None.

    Example:
        >>> kl, mean = influence(np.array([0.5, 0.5]), np.eye(2))
        >>> bool(np.allclose(kl, np.log(2))), round(mean, 6)
        (True, 0.693147)
    """
    marginal = (q if weights is None else weights) @ p
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * (np.log(p) - np.log(marginal)), 0.0)
    kl = terms.sum(axis=1)
    return kl, float(q @ kl)


class ElementModel(NamedTuple):
    """Probabilities of the elements of masked atoms, from the states that an encoder gives them.

    ``mean``, ``scale`` standardise states; ``fitted`` is a multinomial logistic regression; ``place`` is the column of
    each atomic number that it knows.
    """

    mean: np.ndarray
    scale: np.ndarray
    fitted: LogisticRegression
    place: Mapping[int, int]

    def probabilities(self, states: Tensor) -> np.ndarray:
        """float64 [n, elements] of [n, d]."""
        x = (states.double().numpy() - self.mean) / self.scale
        return np.asarray(self.fitted.predict_proba(x), dtype=np.float64)


def fit_elements(fitted: FittedNetworks, library: str, molecules: int) -> ElementModel:
    """Mask atoms of a library's molecules and learn their elements from their states.

    Raises:
        EmptyError: no molecules, or no two elements among the masked atoms.
    """
    table = read_table(library)
    texts = [str(text) for text, fine in zip(table.smiles, table.ok, strict=True) if fine][:molecules]
    if not texts:
        raise EmptyError(f"{library} has no molecule that can be read", hint="name another library, or builtin:nci")
    store, rng = store_of(fitted, texts), generator(0, "coupling")
    states, labels = [], []
    for start in range(0, len(texts) * COPIES, BATCH):
        batch = collate(store, np.arange(start, min(start + BATCH, len(texts) * COPIES)) % len(texts))
        rows = chosen_rows(batch["atom"].offsets.numpy(), RATE, rng)
        atoms = batch["atom"]
        assert atoms.table is not None
        labels.append(element_places(atoms.table[atoms.code[rows]]).numpy())
        states.append(atom_states(fitted, hidden(batch, "atom", rows))[rows])
    x, y = torch.cat(states).double().numpy(), np.concatenate(labels)
    if len({*y.tolist()}) < 2:
        raise EmptyError(f"the atoms of {library} are of one element", hint="name another library, or builtin:nci")
    mean, scale = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-6)
    model = LogisticRegression(max_iter=1000, tol=1e-3).fit((x - mean) / scale, y)
    return ElementModel(mean, scale, model, {number_of(int(c)): k for k, c in enumerate(model.classes_)})


def number_of(place: int) -> int:
    """The atomic number at a place among the elements of an atom's features; 0 for those that have no place."""
    return place + 1 if place < 36 else 53 if place == 36 else 0


def store_of(fitted: FittedNetworks, smiles: Sequence[str]) -> GraphStore:
    """The graphs of molecules as the model reads them."""
    return fitted.inputs[0].featuriser.featurise([*smiles], spec=fitted.inputs[0].spec)


@torch.no_grad()
def atom_states(fitted: FittedNetworks, batch: GraphBatch) -> Tensor:
    """float [atoms, d]: the last state of each atom."""
    (h,) = (entry.h for entry in fitted.network.encoder(batch, rows=True).rows if entry.level == "atom")
    return h


class Positions:
    """A molecule with the elements that each of its positions may have.

    Args:
        fitted: the model's network.
        elements: the probabilities of masked atoms' elements.
        smiles: the molecule, of two atoms or more.
    """

    def __init__(self, fitted: FittedNetworks, elements: ElementModel, smiles: str) -> None:
        self.fitted, self.elements = fitted, elements
        self.store, mol = store_of(fitted, [smiles]), parse_smiles(smiles)[0]
        single = collate(self.store, np.array([0]))["atom"]
        assert single.table is not None and mol is not None
        self.n, self.own = mol.GetNumAtoms(), [atom.GetAtomicNum() for atom in mol.GetAtoms()]
        self.tokens: list[list[int]] = []  # of each atom: its own element first
        rows, texts, places = [], [], []
        for i, element in enumerate(self.own):
            tried = {e: swap_element(mol, i, e) for e in ELEMENTS if e != element}
            self.tokens.append([element, *(e for e, variant in tried.items() if variant is not None)])
            for variant in filter(None, tried.values()):
                texts.append(variant.smiles)
                places.append(variant.atom)
        if texts:
            others = collate(store_of(fitted, texts), np.arange(len(texts)))["atom"]
            assert others.table is not None
            at = others.offsets[:-1] + torch.tensor(places)
            rows = [others.table[others.code[at]]]
        self.table = torch.cat([single.table, *rows, torch.zeros_like(single.table[:1])])
        starts = np.cumsum([len(single.table), *(len(choices) - 1 for choices in self.tokens)])
        #: of each atom the rows of the table with its elements
        self.rows = [[int(single.code[i]), *range(starts[i], starts[i + 1])] for i in range(self.n)]

    def probabilities(self, changes: Sequence[Mapping[int, int]], asked: Sequence[int]) -> np.ndarray:
        """float64 [k, elements]: of an atom of each of k copies, in which atoms have other rows; -1 is the mask."""
        pieces = []
        for start in range(0, len(changes), BATCH):
            part = changes[start : start + BATCH]
            batch = collate(self.store, np.zeros(len(part), dtype=np.int64))
            code = batch["atom"].code.clone()
            for k, change in enumerate(part):
                for atom, row in change.items():
                    code[k * self.n + atom] = row % len(self.table)
            h = atom_states(self.fitted, batch.with_level("atom", table=self.table, code=code))
            at = torch.arange(len(part)) * self.n + torch.tensor(asked[start : start + BATCH])
            pieces.append(self.elements.probabilities(h[at]))
        return np.concatenate(pieces)

    def couplings(self, uniform: bool = False) -> pd.DataFrame:
        """A row for each ordered pair of atoms: ``value`` and ``mutual``, in nats."""
        pairs = list(combinations(range(self.n), 2))
        both = [dict.fromkeys(pair, -1) for pair in pairs for _ in pair]
        alone = self.probabilities(both, [atom for pair in pairs for atom in pair])
        q = {pair: (alone[2 * k], alone[2 * k + 1]) for k, pair in enumerate(pairs)}
        asked = [(i, j, row) for i in range(self.n) for j in range(self.n) if i != j for row in self.rows[i]]
        p = self.probabilities([{i: row, j: -1} for i, j, row in asked], [j for _, j, _ in asked])
        rows, start = [], 0
        for i in range(self.n):
            for j in (other for other in range(self.n) if other != i):
                k = len(self.tokens[i])
                share = q[min(i, j), max(i, j)][int(i > j)]
                weights = np.array(
                    [share[self.elements.place[e]] if e in self.elements.place else FLOOR for e in self.tokens[i]]
                )
                weights = weights / weights.sum()
                kl, mean = influence(weights, p[start : start + k], np.full(k, 1 / k) if uniform else None)
                rows.append((i, j, kl[0], mean))
                start += k
        return pd.DataFrame(rows, columns=["atom", "other", "value", "mutual"])


@register(
    "explainer",
    "coupling",
    summary="pairs of positions by how much the element at one tells of that at the other",
    paper="Jaques et al. 2019, ICML",
    systems=(
        SystemCard(
            "social-influence-reward",
            left_out="agents, actions and the reward: positions of a molecule stand for agents, elements for actions",
            off="coupling(weights=uniform)",
            beside=("uniform counterfactuals",),
            command="molgraph pretrain dataset:nci -m gin --epochs 2 -o encoder.mgm && "
            "molgraph explain encoder.mgm library.smi --by coupling -o coupling.csv",
            modules=("molgraph.chem.element_swaps",),
        ),
    ),
    command="molgraph pretrain dataset:nci -m gin -o enc.mgm && molgraph explain enc.mgm CCO --by coupling",
)
class Coupling(Explainer):
    """Which positions of a molecule an encoder treats as depending on each other: counterfactual influence.

    Jaques et al. 2019, "Social Influence as Intrinsic Motivation", section 3: agent k influences agent j by
    ``KL(p(a_j | a_k, s) || sum_a p(a_j | a, s) p(a | s))``, where k's action is swapped for the others that it could
    have taken; the mean over k's actions is the mutual information of both, given the state. Here agents are atoms, an
    action is the element at a position, the state is the rest of the molecule, and both probabilities are learned by
    supervision, as those of the paper's model of other agents: a logistic regression of the elements of masked atoms on
    the states that the encoder gives them, fitted on a library. Elements that the bonds of a position do not allow are
    not tried; bonds and all other atoms stay. What is found is how the molecules of the library hang together as the
    encoder sees them, not how a potency does. Molecules of more than 60 atoms are left out.

    ``values`` has a row for each ordered pair: ``atom``, ``other``, ``value`` (how much the element at ``atom``, as it
    is, tells of that at ``other``; nats) and ``mutual`` (its mean over the elements that could stand there).

    Args:
        library: a table or a file of molecules, by preference those that the encoder learned from.
        molecules: how many of them.
        weights: of counterfactual elements: the model's probabilities, or for comparison ``uniform``.
    """

    reads, model = "states of atoms that can be masked", "gin"
    whole_model = True
    small = MappingProxyType({"molecules": 50})

    def __init__(
        self,
        *,
        library: str = "builtin:nci",
        molecules: Count = 400,
        weights: Literal["model", "uniform"] = "model",
    ) -> None:
        self.library, self.molecules, self.weights = library, molecules, weights

    def can_read(self, encoder: Any) -> bool:
        """Whether it is a network of one column of molecules whose encoder gives states of atoms."""
        if not isinstance(encoder, Model) or not isinstance(encoder.method, GraphMethod):
            return False
        fitted = encoder.method.ready()
        known = len(fitted.inputs) == 1 and fitted.inputs[0].spec.featuriser == FEATURISER
        return known and fitted.network.encoder.d_rows > 0 and not fitted.network.encoder.by_code

    def explain(self, encoder: Any, batch: GraphBatch, smiles: Sequence[str]) -> Attribution:
        """The couplings of each molecule's pairs; atoms are shaded by what they tell of all others together."""
        fitted = encoder.method.ready()
        elements = fit_elements(fitted, self.library, self.molecules)
        frames, drawings, captions = [], [], []
        for i, (start, end) in enumerate(pairwise(batch["atom"].offsets.tolist())):
            n = end - start
            drawings.append((i, {"groups": [0] * n, "shares": [0.0] * n} if n else {}))
            captions.append(f"{smiles[i]}: more than {MOST} atoms" if n > MOST else "")
            if not 2 <= n <= MOST:
                continue
            frame = Positions(fitted, elements, smiles[i]).couplings(self.weights == "uniform")
            total = frame.groupby("atom")["value"].sum().to_numpy()
            drawings[-1] = (i, {"groups": [0] * n, "shares": (total / max(total.max(), FLOOR)).tolist()})
            top = frame.loc[frame["mutual"].idxmax()]
            captions[-1] = f"{smiles[i]}: most between atoms {top.atom:.0f} and {top.other:.0f}, {top.mutual:.3g} nats"
            frames.append(frame.assign(molecule=i))
        columns = ["molecule", "atom", "other", "value", "mutual"]
        values = pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns, dtype=float)
        notes = (
            "shaded: how much an atom's element tells of all others; of the molecules learned from, not of potency",
        )
        return Attribution("atom", values, drawings, captions, notes)
