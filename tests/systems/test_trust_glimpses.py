"""Saccader for molecules: nothing outside the picks reaches the answer, and picks lie where a motif was planted."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch
from rdkit import Chem

import molgraph
from molgraph.base.contracts import Target
from molgraph.chem.smiles import parse_smiles
from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.data.sources import builtin
from molgraph.data.table import make_table
from molgraph.explain.glimpses import surroundings
from molgraph.models.hard_subgraphs import HardSubgraphs
from molgraph.nn.hard_attention import Look, order_log_prob
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from tests.systems.effect import Effect

SMILES = ["CCCCCCCCCO", "OCc1ccc(cc1)-c1ccncc1", "CC(=O)NCCCCN"]
NITRO = Chem.MolFromSmarts("[N+](=O)[O-]")


def glimpses(off: str) -> int:
    return 0 if off else 2


@pytest.mark.system("saccader", rung="exact")
def test_atoms_outside_of_the_picks_change_nothing(off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The picks held as they are; off: all atoms are picked, and none lies outside."""
    store = featurize(SMILES)
    torch.manual_seed(1)
    encoder = HardSubgraphs(store.spec, glimpses=glimpses(off), radius=2, d_hidden=32).eval()
    batch = collate(store, np.arange(3))
    look = encoder.look(batch)
    picked = encoder.picked(look.scores, look.graph_of)
    monkeypatch.setattr(encoder, "picked", lambda *_: picked)
    seen = surroundings(batch, picked.numpy(), 2)
    assert off or picked.sum() == 6
    table = torch.cat([batch["atom"].table, torch.zeros_like(batch["atom"].table[:1])])
    changes = []
    for atom in range(batch.n_atoms):
        code = batch["atom"].code.clone()
        code[atom] = len(table) - 1
        with torch.no_grad():
            gap = encoder(batch.with_level("atom", table=table, code=code)).graphs - encoder(batch).graphs
        changes.append(float(gap.abs().max()))
    assert (~seen).sum() >= 5 and (np.array(changes)[~seen] == 0).all() and (np.array(changes)[seen] > 0).mean() > 0.9


@pytest.mark.system("saccader", rung="exact")
def test_the_probabilities_of_all_orders_of_picks_sum_to_one(off: str) -> None:
    """Enumerated: no atom twice; the gradient of the expected loss is that of the score function."""
    rng, n = np.random.default_rng(0), 5
    scores = torch.tensor(rng.normal(size=n), requires_grad=True)
    loss, expected, surrogate, total = rng.normal(size=(n, n)), 0.0, 0.0, 0.0
    for first, second in permutations(range(n), 2):
        by = torch.zeros(n)
        by[first], by[second] = 2.0, 1.0
        look = Look(torch.zeros(n, 1), scores, torch.zeros(n, dtype=torch.int64))
        log_pi = order_log_prob(look, by, glimpses(off), 1)[0]
        total += float(log_pi.detach().exp())
        expected = expected + log_pi.exp() * loss[first, second]
        surrogate = surrogate + log_pi.exp().detach() * (loss[first, second] - 0.3) * log_pi
    assert total == pytest.approx(1.0, abs=1e-6)
    exact, estimated = (torch.autograd.grad(each, scores, retain_graph=True)[0] for each in (expected, surrogate))
    torch.testing.assert_close(exact, estimated, rtol=0, atol=1e-6)


@pytest.mark.system("saccader", rung="works")
def test_picks_lie_in_the_group_that_decides(off: str, effect: Effect) -> None:
    """Whether a molecule has a nitro group, told by two picks; off: all atoms."""
    smiles = [str(text) for text in builtin.nci().smiles if parse_smiles(str(text)).mol is not None]
    has = np.array([parse_smiles(text).mol.HasSubstructMatch(NITRO) for text in smiles])
    inside, chance, right = [], [], []
    for seed in (31, 32, 33):
        rng = np.random.default_rng(seed)
        rows = np.concatenate([rng.permutation(np.flatnonzero(has))[:250], rng.permutation(np.flatnonzero(~has))[:350]])
        held, learnt = np.split(rng.permutation(rows), [120])
        table = make_table(
            [smiles[i] for i in learnt], targets=(Target("nitro", "binary"),), y=has[learnt].astype(float)
        )
        params = {"d_hidden": 32, "glimpses": glimpses(off)}
        how = {"epochs": 30, "batch_size": 32, "learning_rate": 3e-3, "threads": 1, "seed": seed}
        model = Model(
            GraphMethod("hard_subgraphs", params, objective="saccader", **how).fit(table), targets=table.targets
        )
        value = model.predict([smiles[i] for i in held]).value[:, 0]
        right.append(float(((value > 0.5) == has[held]).mean()))
        found = molgraph.explain(model, [smiles[i] for i in held if has[i]], by="glimpses")
        for k, text in enumerate(found.smiles):
            mol = Chem.MolFromSmiles(text)
            group = {atom for match in mol.GetSubstructMatches(NITRO) for atom in match}
            own = found.values[found.values["molecule"] == k]
            chance.append(len(group) / mol.GetNumAtoms())
            inside.append(float(own.loc[own["pick"] > 0, "atom"].isin(group).mean()))
    assert np.mean(right) >= 0.95, "the picks must tell"
    effect("share of picks in the nitro group", [np.mean(inside)], at_least=0.9,
           beside={"random picks": [np.mean(chance)], "accuracy": right})  # fmt: skip
