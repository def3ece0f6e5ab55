"""Topology against elements: the bias of models that read one of both, and of networks with mixed elements."""

from __future__ import annotations

import numpy as np
import pytest
from rdkit import Chem

import molgraph
from molgraph.auxiliary.study.cue_conflict import bias_of, by_elements, by_topology, conflicts, cue_toys, share_interval
from molgraph.base.errors import EmptyError
from molgraph.chem.recombine import exchange_elements
from molgraph.data.read import read_table
from molgraph.data.table import Table
from molgraph.train.make_method import make_method
from tests.systems.effect import Effect


def share(made: list[tuple[str, int, int]]) -> float:
    return sum(k for _, k, _ in made) / sum(n for *_, n in made)


@pytest.mark.system("cue-conflict-bias", rung="exact")
def test_models_of_one_cue_have_the_bias_of_that_cue(off: str) -> None:
    """Topology alone 1, elements alone 0, guesses a half; off: elements are not exchanged."""
    table, rng = cue_toys(400, 0), np.random.default_rng(0)
    how = {"exchange": not off}
    rows = (np.flatnonzero(table.y[:, 0] == 0), np.flatnonzero(table.y[:, 0] == 1))
    assert share(bias_of(by_topology, table, 200, 0, **how)) == 1.0
    assert share(bias_of(by_elements, table, 200, 0, **how)) == 0.0
    guesses = bias_of(lambda some: rng.random(len(some)), table, 1000, 0, groups=rows, **how)
    assert abs(share(guesses) - 0.5) < 0.05


@pytest.mark.system("cue-conflict-bias", rung="exact")
def test_conflicts_are_molecules_with_the_bonds_of_one_and_the_elements_of_the_other(off: str) -> None:
    """BACE: skeletons are equal as graphs, shares of elements within one atom; off: elements stay."""
    texts = [str(text) for text in read_table("dataset:bace").smiles[:150]]
    made = conflicts(texts, range(75), range(75, 150), 80, 0, exchange=not off)
    assert len(made.smiles) == 80

    def skeleton(text: str) -> str:
        mol = Chem.RWMol(Chem.MolFromSmiles(text))
        for atom in mol.GetAtoms():
            atom.SetAtomicNum(6), atom.SetFormalCharge(0), atom.SetNumExplicitHs(0), atom.SetIsAromatic(False)
            atom.SetChiralTag(Chem.ChiralType.CHI_UNSPECIFIED)
        for bond in mol.GetBonds():
            (
                bond.SetBondType(Chem.BondType.SINGLE),
                bond.SetIsAromatic(False),
                bond.SetStereo(Chem.BondStereo.STEREONONE),
            )
        return Chem.CanonSmiles(Chem.CanonSmiles(Chem.MolToSmiles(mol)))

    for text, a, b in zip(made.smiles, made.topology, made.elements, strict=True):
        new, donor = (Chem.MolFromSmiles(each) for each in (text, texts[b]))
        assert new is not None and skeleton(text) == skeleton(texts[a])
        if any(atom.GetFormalCharge() for mol in (Chem.MolFromSmiles(texts[a]), donor) for atom in mol.GetAtoms()):
            continue
        for element in (7, 8, 9, 16, 17):
            have, want = (sum(x.GetAtomicNum() == element for x in mol.GetAtoms()) for mol in (new, donor))
            assert abs(have - want * new.GetNumAtoms() / donor.GetNumAtoms()) <= 1, (text, texts[a], texts[b])


@pytest.mark.system("cue-conflict-bias", rung="works")
def test_random_elements_in_training_turn_a_network_to_the_topology(off: str, effect: Effect) -> None:
    """Molecules whose class both cues tell; copies with elements drawn at random are learnt too; off: exact copies."""
    with_copies, without = [], []
    for seed in (0, 1, 2, 3, 4):
        table, test = cue_toys(150, seed), cue_toys(100, seed + 50)
        copies = cue_toys(150, seed + 100, mixed=not off)
        for rows, out in ((_both(table, copies), with_copies), (table, without)):
            how = {"depth": 4, "d_hidden": 24, "head_width": 16, "epochs": 30, "batch_size": 32, "threads": 1}
            method = make_method("gin", **how, seed=seed, learning_rate=3e-3).fit(rows)
            made = bias_of(lambda some, m=method: m.predict(some).value[:, 0], test, 60, seed)
            out.append(share(made))
    effect("share of decisions for the topology", with_copies, at_least=0.9, beside={"without copies": without})


def _both(a: Table, b: Table) -> Table:
    from molgraph.data.table import make_table

    smiles = [str(text) for part in (a, b) for text in part.smiles]
    return make_table(smiles, targets=a.targets, y=np.concatenate([a.y, b.y]))


def test_intervals_and_refusals() -> None:
    assert share_interval(5, 5)[1] == 1.0 and share_interval(3, 10)[0] == pytest.approx(0.0667, abs=1e-4)
    assert exchange_elements("", "C", np.random.default_rng(0)) == ""
    assert exchange_elements("C#CC#CC#C", "OOOO", np.random.default_rng(0)) == ""
    with pytest.raises(EmptyError, match="elements of another class"):
        molgraph.study("cue-conflict", cue_toys(60, 0), model="mean")
