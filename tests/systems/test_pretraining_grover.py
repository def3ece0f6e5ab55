"""GROVER: its labels against RDKit and against texts of contexts, its attention against a loop, and what it learns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from rdkit import Chem
from rdkit.Chem import Fragments
from torch import Tensor

from molgraph.base.registry import get
from molgraph.base.table import Target
from molgraph.chem.functional_groups import GROUPS, functional_groups
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featurize import featurize
from molgraph.data.sources.builtin import nci
from molgraph.data.table import make_table
from molgraph.nn.contexts import Contexts, context_keys
from molgraph.nn.gtransformer import GTransformer
from molgraph.nn.heads.agreement import AgreementHead
from molgraph.nn.hops import Hops
from molgraph.nn.relation import Relation
from molgraph.nn.size_groups import SizeGroups
from molgraph.train.method import GraphMethod
from tests.systems.effect import Effect

SMILES = ["CC(=O)Nc1ccc(O)cc1", "C#N", "OC(=O)C1CC1", "CC(C)(C)OC(=O)N1CCC(=C)CC1", "c1ccc2[nH]ccc2c1"]


def molecules(n: int, skip: int = 0) -> list[str]:
    """Molecules of the NCI's list that can be read."""
    table = nci()
    return [str(text) for text in table.smiles[table.ok][skip : skip + n]]


def batch_of(smiles: Sequence[str]) -> GraphBatch:
    store = featurize(list(smiles))
    return collate(store, np.arange(len(store)))


@pytest.mark.system("grover", rung="exact")
def test_groups_are_those_of_rdkit_on_the_whole_list(off: str) -> None:
    texts = [str(text) for text in nci().smiles]
    found = functional_groups(texts, workers=1)
    found = np.roll(found, 1, axis=0) if off else found
    for text, row in zip(texts, found, strict=True):
        mol = Chem.MolFromSmiles(text)
        if mol is not None and not np.isnan(row).all():
            assert row.tolist() == [float(getattr(Fragments, name)(mol) >= 1) for name in GROUPS], text
    assert len(GROUPS) == 85 and np.isfinite(found).all(axis=1).mean() > 0.99


def written(text: str) -> tuple[list[str], list[str]]:
    """The contexts of the atoms and bonds of a molecule in words."""
    mol = Chem.MolFromSmiles(text)
    atoms, ends = [], []
    for atom in mol.GetAtoms():
        bonds = [(str(b.GetBondType()), b.GetOtherAtom(atom).GetSymbol()) for b in atom.GetBonds()]
        counts = Counter(f"{symbol}-{kind}" for kind, symbol in bonds)
        atoms.append("_".join([atom.GetSymbol(), *(f"{key}{n}" for key, n in sorted(counts.items()))]))
        ends.append(f"{atom.GetSymbol()}{sorted(kind for kind, _ in bonds)}")
    return atoms, [
        f"{b.GetBondType()} {sorted((ends[b.GetBeginAtomIdx()], ends[b.GetEndAtomIdx()]))}" for b in mol.GetBonds()
    ]


@pytest.mark.system("grover", rung="exact")
def test_two_atoms_or_bonds_have_one_key_where_their_contexts_are_written_alike(off: str) -> None:
    texts = molecules(300)
    batch = batch_of(texts)
    atoms, bonds = context_keys(batch)
    bonds = bonds[batch["bond"].arrays["reverse"] > torch.arange(batch.n_bonds)]  # one direction of each
    if off:
        atoms = atoms.roll(1)
    words: tuple[list[str], list[str]] = ([], [])
    for text in texts:
        for known, more in zip(words, written(text), strict=True):
            known += more
    of_atoms = set(zip(atoms.tolist(), words[0], strict=True))
    assert len(of_atoms) == len({key for key, _ in of_atoms}) == len({text for _, text in of_atoms}) > 50
    n_bonds = len(set(words[1]))
    assert len(bonds) == len(words[1]) and len(set(bonds.tolist())) == n_bonds > 100


@pytest.mark.system("grover", rung="exact")
def test_outputs_do_not_depend_on_the_order_of_atoms(off: str) -> None:
    torch.manual_seed(0)
    rng, encoder = np.random.default_rng(0), get("encoder", "grover")(featurize(SMILES).spec, size="tiny").eval()
    mols = [Chem.MolFromSmiles(text) for text in SMILES]
    orders = [rng.permutation(mol.GetNumAtoms()).tolist() for mol in mols]
    renumbered = [Chem.RenumberAtoms(mol, order) for mol, order in zip(mols, orders, strict=True)]
    if off:
        renumbered = renumbered[::-1]
    others = [Chem.MolToSmiles(mol, canonical=False) for mol in renumbered]
    one, two = (encoder(batch_of(texts), rows=True) for texts in (SMILES, others))
    torch.testing.assert_close(one.graphs, two.graphs, atol=1e-5, rtol=1e-4)
    for a, b in zip(one.rows, two.rows, strict=True):
        torch.testing.assert_close(a.h.sum(dim=0), b.h.sum(dim=0), atol=1e-4, rtol=1e-4)


def by_loop(block: GTransformer, h: Tensor, pairs: list[tuple[int, int]], offsets: list[int]) -> Tensor:
    """One block, written out: 3 x heads networks of two hops, attention over the rows of each graph."""
    n, heads, d = len(h), block.heads, h.shape[1]
    made = []
    for i in range(3 * heads):
        w, state = block.passing.weight[i], h
        for _ in range(2):
            heard = torch.stack([sum((state[u] for u, v in pairs if v == t), h.new_zeros(d)) for t in range(n)])
            state = (h + heard @ w).relu()
        made.append(state @ block.project[i // heads])
    rows = []
    for t in range(n):
        g = next(i for i in range(len(offsets) - 1) if offsets[i] <= t < offsets[i + 1])
        own, out = slice(offsets[g], offsets[g + 1]), []
        for head in range(heads):
            q, k, v = made[head], made[heads + head], made[2 * heads + head]
            out.append(((q[t] @ k[own].T) / math.sqrt(d)).softmax(dim=0) @ v[own])
        rows.append(torch.cat(out))
    return torch.stack(rows) @ block.w_o.weight.T


@pytest.mark.system("grover", rung="exact")
def test_a_block_is_attention_over_the_molecule_of_states_that_were_passed(off: str) -> None:
    torch.manual_seed(0)
    block = GTransformer(4, 0, heads=2, hops=2, spread=1.0, dropout=0.0).double().eval()
    h, pairs, offsets = torch.randn(5, 4).double(), [(0, 1), (1, 0), (1, 2), (2, 1), (3, 4), (4, 3)], [0, 3, 5]
    source, target = (torch.tensor(side) for side in zip(*sorted(pairs, key=lambda p: p[1]), strict=True))
    relation = Relation.from_pairs(source, target, 5, 5)
    groups = SizeGroups.of(torch.tensor([0, 5] if off else offsets))  # off: across molecules
    torch.testing.assert_close(block(h, Hops(relation, None), None, groups), by_loop(block, h, pairs, offsets))


@pytest.mark.system("grover", rung="exact")
def test_the_head_is_the_mean_of_two_branches_that_pay_for_their_difference(off: str) -> None:
    torch.manual_seed(0)
    head, h, y = AgreementHead(6, [Target("y")], 8, weight=0.0 if off else 0.1), torch.randn(7, 6), torch.randn(7, 1)
    zeros = torch.zeros(7, 3)
    one = super(AgreementHead, head).forward(torch.cat([h[:, :3], zeros], dim=1))
    two = head.second(torch.cat([zeros, h[:, 3:]], dim=1))
    raw = head(h)
    torch.testing.assert_close(head.values(raw)[0], (one + two) / 2)
    expected = (one - y).square() + (two - y).square() + 0.1 * (one - two).square()
    torch.testing.assert_close(head.losses(raw, y), expected)


@pytest.mark.system("grover", rung="works")
def test_contexts_of_other_molecules_are_learned(off: str, effect: Effect) -> None:
    """The validation losses as shares of the entropies of their labels' frequencies, which need no molecule."""
    texts = molecules(1_500)
    train, valid = make_table(texts[:1_300]), make_table(texts[1_300:])
    params: dict[str, Any] = {"size": "tiny", "hops": 3, "objective.vocabulary": 256}
    fit = GraphMethod(
        "grover", params, objective="grover", epochs=8, batch_size=32, threads=1, seed=0, learning_rate=2e-3
    )
    with pytest.MonkeyPatch.context() as patch:
        if off:  # the vectors of other molecules' rows
            patch.setattr(Contexts, "views", shuffled(Contexts.views))
        curves = fit.fit(train, valid).curves
    assert curves is not None
    contexts: Any = fit.ready().network.parts["contexts"]
    entropies = {}
    for level, keys in zip(Contexts.LEVELS, context_keys(batch_of(texts[1_300:])), strict=True):
        shares = torch.bincount(contexts.labels(level, keys)).double() / len(keys)
        entropies[f"{level}s"] = 2 * float(-torch.special.xlogy(shares, shares).sum())  # of both views
    shares_found = [curves[f"valid_{name}"].iloc[-1] / entropy for name, entropy in entropies.items()]
    effect("loss of contexts / entropy of their frequencies", [float(np.mean(shares_found))], at_most=0.6)


def shuffled(views: Any) -> Any:
    def other(self: Contexts, batch: GraphBatch, rows: Any) -> Any:
        order = torch.Generator().manual_seed(0)
        own = views(self, batch, rows)
        return {k: [h[torch.randperm(len(h), generator=order)] for h in each] for k, each in own.items()}

    return other
