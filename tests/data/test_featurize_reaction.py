"""Condensed graphs of reaction equal chemprop's; what cannot be one is a row with a reason."""

from __future__ import annotations

import numpy as np
import pytest
from rdkit import Chem

from molgraph.base.errors import UnknownNameError
from molgraph.data.batch import collate
from molgraph.data.featurize_reaction import MODES, Reactions

# balanced and not, agents, charges, aromatic rings, E/Z, ring closure, mapped hydrogens, atoms of one side alone
MAPPED = (
    "[CH3:1][Br:2].[OH-:3]>>[CH3:1][OH:3].[Br-:2]",
    "[CH3:1][C:2](=[O:3])[OH:4].[NH2:5][CH3:6]>>[CH3:1][C:2](=[O:3])[NH:5][CH3:6].[OH2:4]",
    "[CH2:1]=[CH:2][CH:3]=[CH2:4].[CH2:5]=[CH2:6]>>[CH2:1]1[CH:2]=[CH:3][CH2:4][CH2:5][CH2:6]1",
    "[CH3:1][C:2](=[O:3])Cl.[NH2:5][c:6]1[cH:7][cH:8][cH:9][cH:10][cH:11]1>CCN(CC)CC>"
    "[CH3:1][C:2](=[O:3])[NH:5][c:6]1[cH:11][cH:10][cH:9][cH:8][cH:7]1",
    "[c:1]1([Br:7])[cH:2][cH:3][cH:4][n:5][cH:6]1.OB(O)[c:8]1[cH:9][cH:10][cH:11][cH:12][cH:13]1>>"
    "[c:1]1(-[c:8]2[cH:9][cH:10][cH:11][cH:12][cH:13]2)[cH:2][cH:3][cH:4][n:5][cH:6]1.[Br-:7]",
    "[CH3:1]/[CH:2]=[CH:3]/[CH3:4]>>[CH3:1]/[CH:2]=[CH:3]\\[CH3:4]",
    "[CH3:1][CH:2]=[O:3]>>[CH3:1][CH:2]([OH:3])C#N",
    "[H:1][O:2][CH:3]=[CH2:4]>>[H:1][CH2:4][CH:3]=[O:2]",
    "[CH3:1][N+:2](=[O:3])[O-:4].[Na+].[OH-]>>[CH2-:1][N+:2](=[O:3])[O-:4].O.[Na+]",
    "CC(C)(C)OC(=O)[NH:1][CH2:2][CH3:3]>>[NH2:1][CH2:2][CH3:3].CO.[13CH4]",
)


def chemprop_graph(text: str, mode: str) -> tuple[np.ndarray, dict[tuple[int, int], np.ndarray]]:
    data = pytest.importorskip("chemprop.data.datapoints")
    from chemprop.featurizers import CondensedGraphOfReactionFeaturizer

    point = data.ReactionDatapoint.from_smi(text, keep_h="[H:" in text)
    graph = CondensedGraphOfReactionFeaturizer(mode_=mode)((point.rct, point.pdt))
    pairs = zip(*graph.edge_index.tolist(), strict=True)
    return graph.V, dict(zip(pairs, graph.E, strict=True))


@pytest.mark.parametrize("mode", MODES)
def test_features_and_bonds_are_those_of_chemprop(mode: str) -> None:
    store = Reactions(mode).featurise(MAPPED)
    assert (store.status == "ok").all()
    for i, text in enumerate(MAPPED):
        batch = collate(store, np.array([i]))
        atoms, bonds = chemprop_graph(text, mode)
        np.testing.assert_allclose(batch.features("atom").numpy(), atoms, atol=1e-7)  # masses are single precision
        bond = batch["bond"].arrays
        pairs = zip(bond["source"].tolist(), bond["target"].tolist(), strict=True)
        rows = dict(zip(pairs, batch.features("bond").numpy(), strict=True))
        assert rows.keys() == bonds.keys()
        for pair, row in rows.items():
            np.testing.assert_array_equal(row, bonds[pair].astype(np.float32))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CBr>>CO", "no atom of the reactants is mapped"),
        ("[CH3:1][CH3:1]>>[CH4:1]", "atom map 1 stands twice in the reactants"),
        ("[CH4:1]>>[CH3:1][CH3:1]", "atom map 1 stands twice in the products"),
        ("[CH3:1][OH:2]>>[CH3:2][OH:1]", "atom map 1 is C in the reactants and O in the products"),
        ("[CH3:1](C>>[CH4:1]", "reactants: SMILES Parse Error"),
        ("[CH4:1]>>C[N:1](C)(C)C", "products: Explicit valence"),
        ("[CH4:1]>>", "a reaction without products"),
        (">>[CH4:1]", "a reaction without reactants"),
        ("CCO", "no reaction"),
        ("[CH4:1]>>[CH4:1]>>[CH4:1]", "no reaction"),
        ("[CH4:1]>>[CH4:1] and more", "text after the reaction"),
    ],
)
def test_what_is_no_mapped_reaction_is_a_row_with_a_reason(text: str, words: str) -> None:
    store = Reactions().featurise([MAPPED[0], text, MAPPED[1]])
    assert store.status.tolist() == ["ok", "unreadable", "ok"] and words in store.reason[1]
    assert np.diff(store.levels["atom"].offsets)[1] == 0


def test_a_graph_depends_on_neither_the_numbers_nor_the_order_of_atoms() -> None:
    one = "[CH3:1][C@H:2]([NH2:3])[C:4](=[O:5])[OH:6].[CH3:7][OH:8]>>[CH3:1][C@H:2]([NH2:3])[C:4](=[O:5])[O:8][CH3:7]"
    numbers = dict(zip("12345678", "47162853", strict=True))
    sides = [Chem.MolFromSmiles(side) for side in one.split(">>")]
    for atom in (atom for side in sides for atom in side.GetAtoms()):
        atom.SetAtomMapNum(int(numbers[str(atom.GetAtomMapNum())]))
    other = ">>".join(Chem.MolToSmiles(side, doRandom=True) for side in sides)
    store = Reactions("reac_prod").featurise([one, other])
    a, b = (collate(store, np.array([i])) for i in (0, 1))
    for level in ("atom", "bond"):
        rows = [sorted(map(tuple, each.features(level).tolist())) for each in (a, b)]
        assert rows[0] == rows[1]


def test_modes_are_kept_apart() -> None:
    assert len({Reactions(mode).versions for mode in MODES}) == len(MODES)
    with pytest.raises(UnknownNameError, match="mode"):
        Reactions("reac")
