"""BagNet for molecules: contributions sum to the prediction, depend on surroundings alone, and resemble Crippen's."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from molgraph.base.contracts import Target
from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.data.sources import builtin
from molgraph.data.table import Table, make_table
from molgraph.explain.contributions import contributions
from molgraph.explain.explanation import read_molecules
from molgraph.explain.occlusion import hide_atoms, interaction_index
from molgraph.models.additive import Additive
from molgraph.models.graphgps import GraphGPS
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from tests.systems.effect import Effect
from tests.tiny import series

HIDDEN = "perceptron(n_layers=2)"  # the usual head, with which a prediction is no sum


def fitted(kind: str, readout: str, *, head: str = "perceptron", epochs: int = 3) -> GraphMethod:
    table = series(60)
    assert table.y is not None
    if kind == "binary":
        y = (table.y > np.median(table.y)).astype(float)
        table = make_table(list(table.smiles), targets=(Target("active", "binary"),), y=y)
    params = {"d_hidden": 16, "reduce": readout}
    return GraphMethod("additive", params, head=head, epochs=epochs, batch_size=16, threads=1, seed=3).fit(table)


@pytest.mark.system("bagnet", rung="exact")
@pytest.mark.parametrize("readout", ["sum", "mean"])
@pytest.mark.parametrize("kind", ["regression", "binary"])
def test_contributions_sum_to_the_prediction(off: str, kind: str, readout: str) -> None:
    """Off: a hidden layer behind the sum, of which each atom's share is what it gives alone."""
    method = fitted(kind, readout, head=HIDDEN if off else "perceptron")
    model = Model(method, targets=method.ready().outputs.targets)
    smiles = [str(text) for text in series(20, 60).smiles] + ["C", "CCO.CCN"]
    texts, batch, _ = read_molecules(model, smiles)
    value = model.predict(list(texts)).value[:, 0]
    predicted = np.log(value / (1 - value)) if kind == "binary" else value
    if off:
        head, outputs = method.ready().network.head, method.ready().outputs
        with torch.no_grad():
            h = next(rows.h for rows in method.ready().network.encoder(batch, rows=True).rows if rows.level == "atom")
            each = head(h)[:, 0].double().numpy() * outputs.scale[0]
        sizes = batch["atom"].offsets.diff().numpy() if readout == "mean" else np.ones(batch.n_graphs)
        total = np.bincount(batch.graph_of("atom").numpy(), each) / sizes + outputs.mean[0]
    else:
        found = contributions(method.ready(), batch)
        assert np.abs(found.atoms).max() > 1e-3, "they are not all zero"
        total = np.bincount(batch.graph_of("atom").numpy(), found.atoms) + found.base
    np.testing.assert_allclose(total, predicted, rtol=0, atol=1e-6 * max(1.0, np.abs(predicted).max()))


@pytest.mark.system("bagnet", rung="exact")
@pytest.mark.parametrize("radius", [0, 1, 3])
def test_an_atom_beyond_the_radius_changes_a_state_by_exactly_zero(off: str, radius: int) -> None:
    """Within the radius it does change it; off: one layer of a network whose atoms also hear all others."""
    store = featurize(["CCCCCCCCCO", "OCc1ccc(cc1)-c1ccncc1", "CC(=O)NCCCCN"])
    torch.manual_seed(1)
    if off:
        encoder = GraphGPS(store.spec, d_hidden=16, depth=1).eval()
    else:
        encoder = Additive(store.spec, radius=radius, d_hidden=32, distinct=False).eval()
    batch = collate(store, np.arange(3))
    ends = batch.source.numpy(), batch.target.numpy()
    far = shortest_path(csr_array((np.ones(batch.n_bonds), ends), shape=(batch.n_atoms,) * 2), unweighted=True)
    table = torch.cat([batch["atom"].table, torch.zeros_like(batch["atom"].table[:1])])  # type: ignore[index, arg-type]

    def states(code: torch.Tensor) -> torch.Tensor:
        changed = batch.with_level("atom", table=table, code=code)
        with torch.no_grad():
            return next(rows.h for rows in encoder(changed, rows=True).rows if rows.level == "atom")

    plain = states(batch["atom"].code)
    for atom in range(batch.n_atoms):
        code = batch["atom"].code.clone()
        code[atom] = len(table) - 1
        change = (states(code) - plain).abs().amax(1).numpy()
        assert (change[far[atom] > radius] == 0).all()
        assert (change[far[atom] <= radius] > 0).mean() > 0.9


@pytest.mark.system("bagnet", rung="exact")
@pytest.mark.parametrize("readout", ["sum", "mean"])
def test_changes_of_atoms_far_apart_add_up(off: str, readout: str) -> None:
    """An interaction index of 1.000; off: a hidden layer behind the sum."""
    made = fitted("regression", readout, head=HIDDEN if off else "perceptron", epochs=8).ready()
    found = [hide_atoms(made, text) for text in ("CCCCCCCCCCO", "CC(C)Cc1ccc(cc1)C(C)C(=O)NCCCO", "Cc1ccc(cc1)CCCCN")]
    assert sum(len(each.joint) for each in found) > 50
    gap = max(float(np.abs(each.apart - each.joint).max()) for each in found)
    assert interaction_index(found) > 0.9995 and gap < 1e-5, (interaction_index(found), gap)


@cache
def crippen(n: int, start: int) -> tuple[Table, tuple[np.ndarray, ...]]:
    """Molecules with Crippen's log P, and his contribution of each atom, its hydrogens' added."""
    smiles, parts = [], []
    for text in builtin.nci().smiles[start:]:
        mol = Chem.MolFromSmiles(str(text))
        if mol is None or not 8 <= mol.GetNumAtoms() <= 30 or "." in str(text):
            continue
        full = Chem.AddHs(mol)
        own = np.array(rdMolDescriptors._CalcCrippenContribs(full))[:, 0]
        each = own[: mol.GetNumAtoms()].copy()
        for atom in full.GetAtoms():
            if atom.GetAtomicNum() == 1 and atom.GetIdx() >= len(each):
                each[atom.GetNeighbors()[0].GetIdx()] += own[atom.GetIdx()]
        smiles.append(str(text)), parts.append(each)
        if len(smiles) == n:
            break
    y = np.array([[each.sum()] for each in parts])
    return make_table(smiles, targets=(Target("logp"),), y=y), tuple(parts)


def likeness(method: GraphMethod, table: Table, parts: tuple[np.ndarray, ...]) -> tuple[float, float]:
    """The correlation of contributions with Crippen's over all atoms, and the error of log P."""
    model = Model(method, targets=table.targets, standardiser="none")
    _, batch, reasons = read_molecules(model, [str(text) for text in table.smiles])
    assert not any(reasons) and table.y is not None
    found = contributions(method.ready(), batch)
    rmse = float(np.sqrt(((found.total - table.y[:, 0]) ** 2).mean()))
    return float(np.corrcoef(found.atoms, np.concatenate(parts))[0, 1]), rmse


@pytest.mark.system("bagnet", rung="works")
def test_contributions_to_log_p_resemble_crippens(off: str, effect: Effect) -> None:
    """Over the atoms of 150 other molecules, learned from sums alone; off: the labels are shuffled."""
    values, errors, untrained = [], [], []
    train, (held, parts) = crippen(500, 0)[0], crippen(150, 3000)
    assert train.y is not None
    for seed in (20, 21, 22):
        y = np.random.default_rng(seed).permutation(train.y) if off else train.y
        table = make_table(list(train.smiles), targets=train.targets, y=y)
        how = {"batch_size": 32, "threads": 1, "seed": seed}
        method = GraphMethod("additive", {"d_hidden": 64}, epochs=40, **how).fit(table)
        value, rmse = likeness(method, held, parts)
        values.append(value), errors.append(rmse)
        untrained.append(likeness(GraphMethod("additive", {"d_hidden": 64}, epochs=1, learning_rate=1e-9, **how)
                                  .fit(table), held, parts)[0])  # fmt: skip
    beside = {"untrained": untrained, "RMSE of log P": errors}
    effect("correlation with Crippen's contributions", values, at_least=0.6, beside=beside)
