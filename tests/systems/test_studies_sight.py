"""Studies of what encoders see: collisions by enumeration, and made tasks whose cues are balanced."""

from __future__ import annotations

import numpy as np
import pytest

import molgraph
from molgraph.auxiliary.study.capabilities import atom_counts, bag_of_atoms
from molgraph.auxiliary.study.collisions import collisions, differing_pairs
from molgraph.base.errors import UnsupportedError
from molgraph.chem.environment_keys import environment_keys
from molgraph.chem.smiles import parse_smiles
from molgraph.data.standardise import standardise
from molgraph.study.made_tasks import made_table, near, tasks


@pytest.mark.system("transformer-universality", rung="exact")
def test_collisions_are_those_of_all_pairs(off: str) -> None:
    """By two loops over environments of two bonds; off: of the atoms alone."""
    texts = ["CCCCCCO", "CC(C)CCCO", "c1ccccc1CCN", "CCOC(=O)c1ccccc1"]
    mols = [parse_smiles(text).mol for text in texts]
    keys = environment_keys(mols, 2)[0 if off else 2]
    atoms = [(i, j) for i in range(len(keys)) for j in range(i)]
    assert len(set(keys.tolist())) >= 20, "environments of two bonds"
    states = np.random.default_rng(0).normal(size=(len(keys), 3))
    states[5] = states[2] = states[9]
    scale = np.sqrt(((states - states.mean(axis=0)) ** 2).sum(axis=1).mean())
    wanted = {(j, i) for i, j in atoms if keys[i] != keys[j] and np.linalg.norm(states[i] - states[j]) <= 1e-3 * scale}
    assert {tuple(sorted(pair)) for pair in collisions(states, keys, 1e-3).tolist()} == wanted
    assert differing_pairs(keys) == sum(keys[i] != keys[j] for i, j in atoms)
    lookup = np.random.default_rng(1).normal(size=(keys.max() + 1, 8))[keys]
    assert not len(collisions(lookup, keys, 1e-4))
    assert len(collisions(np.zeros((len(keys), 8)), keys, 1e-4)) == differing_pairs(keys)


@pytest.mark.system("cater", rung="exact")
def test_counts_of_atoms_tell_nothing_of_the_tasks_but_composition(off: str) -> None:
    """AUC 0.5 within 0.03 on 3,000 molecules of each task, all of them readable; off: the task of composition."""
    for name, draw in tasks((2, 4, 8)).items():
        if name == "composition" and not off:
            continue
        table = made_table(draw, 3000, 0, name)
        assert standardise(table.take(np.arange(50))).ok.all() and 0.45 < table.y.mean() < 0.55
        half = len(table) // 2
        both = table.take(np.arange(half)), table.take(np.arange(half, len(table)))
        assert abs(bag_of_atoms(*both) - 0.5) < 0.035, name
        mol = parse_smiles(str(table.smiles[0])).mol
        assert atom_counts(table)[0].sum() == mol.GetNumAtoms()


@pytest.mark.system("cater", rung="exact")
def test_molecules_of_both_labels_are_alike_within_half_of_the_distance(off: str) -> None:
    """The same counts of environments for the same linker, of 3 bonds at a distance of 8; off: of 4, which reach."""
    for seed in range(20):
        texts, labels = zip(*(near(8)(_Label(seed, label)) for label in (0, 1)), strict=True)
        assert labels == (0, 1)
        mols = [parse_smiles(text).mol for text in texts]
        first = mols[0].GetNumAtoms()
        keys = environment_keys(mols, 4)[4 if off else 3]
        assert sorted(keys[:first]) == sorted(keys[first:])


class _Label(np.random.Generator):
    """Draws of one seed whose first whole number is a label."""

    def __init__(self, seed: int, label: int) -> None:
        super().__init__(np.random.PCG64(seed))
        self.first: int | None = label

    def integers(self, *args: object, **how: object) -> object:  # type: ignore[override]
        label, self.first = self.first, None
        return super().integers(*args, **how) if label is None else label  # type: ignore[call-overload]


def test_a_file_has_learnt_its_task_already() -> None:
    with pytest.raises(UnsupportedError, match="already"):
        molgraph.study("capabilities", model="assay.mgm")
