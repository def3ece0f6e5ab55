"""Find atoms in different environments that an encoder gives the same state."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree

from molgraph.base.ranges import LARGEST, NotNegative, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.chem.environment_keys import environment_keys
from molgraph.study.ablation import atom_states
from molgraph.study.graph_subject import graph_subject
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.train.inputs import input_graphs
from molgraph.train.runtime import torch_settings

LEAST, SHOWN = 20, 1  # molecules; examples of each radius


def collisions(states: np.ndarray, keys: np.ndarray, tolerance: float) -> np.ndarray:
    """int64 [pairs, 2]: atoms in different environments whose states are nearer than the tolerance.

    After Yun et al. 2020, "Are transformers universal approximators of sequence-to-sequence functions?", definition
    3.1: a contextual mapping gives each token of each sequence a state of its own, and whatever has one state has one
    output.

    Args:
        states: float [atoms, d].
        keys: int [atoms], the number of each atom's environment.
        tolerance: as a share of the root of the mean squared distance of the states from their mean.

    Example:
        >>> collisions(np.zeros((3, 2)), np.array([0, 1, 1]), 1e-4).tolist()
        [[0, 1], [0, 2]]
    """
    spread = float(np.sqrt(((states - states.mean(axis=0)) ** 2).sum(axis=1).mean()))
    pairs = cKDTree(states).query_pairs(tolerance * spread, output_type="ndarray")
    return np.asarray(pairs[keys[pairs[:, 0]] != keys[pairs[:, 1]]])


def differing_pairs(keys: np.ndarray) -> int:
    """How many pairs of atoms have different environments."""
    counts = np.bincount(keys)
    return int((len(keys) ** 2 - (counts**2).sum()) // 2)


@register(
    "study",
    "collisions",
    summary="atoms in different surroundings that an encoder gives the same state, by how far one looks",
    paper="Yun et al. 2020, ICLR",
    systems=(
        SystemCard(
            "transformer-universality",
            left_out="the theorem itself, and the construction of its network",
            off="'collisions(radius=0)'",
            beside=("a constant encoder", "a lookup of the environments"),
            command="molgraph study collisions builtin:chembl2321810 -m encoder.mgm -o collisions.csv",
            modules=("molgraph.chem.environment_keys",),
        ),
    ),
)
class CollisionsStudy(Study):
    """A row for each radius: pairs of atoms whose environments of so many bonds differ, and those with the same state.

    After Yun et al. 2020: what a network can compute of an atom depends on its states being different for different
    contexts. Message passing of ``depth`` rounds cannot tell atoms apart that look alike within ``depth`` bonds; an
    encoder that has collisions within its reach has lost them. ``-m`` is a file or the name of a graph network, which
    then learns the table's targets. Controls: an encoder that is constant, and one that looks the environment up.

    Args:
        radius: bonds that are looked at, at most.
        tolerance: distance of two states that count as one, as a share of the states' spread.
        most: molecules, drawn by the seed.
    """

    needs = ("graph_model",)
    small = MappingProxyType({"most": 60})

    def __init__(
        self,
        *,
        radius: Annotated[int, Range(0, 20)] = 4,
        tolerance: NotNegative = 1e-4,
        most: Annotated[int, Range(LEAST, LARGEST)] = 200,
    ) -> None:
        self.radius, self.tolerance, self.most = radius, tolerance, most

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Compare the states of all atoms, radius by radius."""
        found = graph_subject(subject, what="collisions", most=self.most, least=LEAST, seed=seed)
        with torch_settings(1, derive(seed, "collisions")):
            graphs = input_graphs(found.table, found.method.graph_inputs())[0]
            states = atom_states(found.method.ready().network.encoder, graphs)
        keys, texts = environment_keys(found.mols, self.radius), [str(text) for text in found.table.smiles]
        molecule = np.repeat(np.arange(len(texts)), [mol.GetNumAtoms() for mol in found.mols])
        place = np.arange(len(molecule)) - np.searchsorted(molecule, molecule)
        rows = []
        for radius, own in enumerate(keys):
            pairs = collisions(states, own, self.tolerance)
            total = differing_pairs(own)
            atoms = len(np.unique(pairs)) / len(own)
            examples = [" and ".join(f"atom {place[i]} of {texts[molecule[i]]}" for i in pair)
                        for pair in pairs[:SHOWN]]  # fmt: skip
            share = len(pairs) / max(total, 1)
            rows.append((radius, len(np.unique(own)), total, len(pairs), share, atoms, "; ".join(examples)))
        columns = ["radius", "environments", "pairs_that_differ", "collisions", "share", "atoms", "example"]
        frame = pd.DataFrame(rows, columns=columns)
        constant, lookup = self.controls(keys[min(2, self.radius)], seed)
        last, clear = frame.iloc[-1], frame.loc[frame["collisions"] == 0, "radius"]
        within = f"none within {clear.max()} bonds" if len(clear) else "some of one atom alone"
        return Findings(
            f"Collisions of {found.method.model_name}, {len(molecule):,} atoms of {len(texts):,} molecules",
            f"{last['collisions']:,} of {last['pairs_that_differ']:,} pairs of atoms that differ within {self.radius} "
            f"bonds have one state ({last['atoms']:.1%} of the atoms are in one), {within} (molecules by seed {seed}).",
            frame,
            Control("a constant encoder", "all pairs", f"{constant:.0%}", constant == 1),
            Control("a lookup of the environment", "no pair", f"{lookup:.0%}", lookup == 0),
            lambda form: _drawn(frame, form),
        )

    def controls(self, keys: np.ndarray, seed: int) -> tuple[float, float]:
        """The shares of an encoder that is constant, and of one with random vectors for the environments."""
        keys = keys[:200]  # all pairs of a constant encoder collide
        table = generator(seed, "lookup").normal(size=(keys.max() + 1, 16))
        total = max(differing_pairs(keys), 1)
        made = (np.zeros((len(keys), 16)), table[keys])
        constant, lookup = (len(collisions(states, keys, self.tolerance)) / total for states in made)
        return constant, lookup


def _drawn(frame: pd.DataFrame, form: str) -> bytes:
    from molgraph.evaluate.report_trust import paired_bars  # with matplotlib

    names = [f"{radius} bonds" for radius in frame["radius"]]
    return paired_bars(names, {"atoms": [*frame["atoms"]]}, "share of the atoms in a collision", form)
