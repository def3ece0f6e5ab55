"""Helpers with learned weights: equal and unequal gradients, and helpers that are the same, unrelated or negated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from rdkit import Chem
from rdkit.Chem import Crippen
from rdkit.rdBase import BlockLogs

from molgraph.base.contracts import Target
from molgraph.data.sources import builtin
from molgraph.data.table import Table, make_table
from molgraph.train.method import GraphMethod
from molgraph.train.objective import StepState
from molgraph.train.objectives.tawt import TAWT, phi
from molgraph.train.preparation import prepare
from tests.systems.effect import Effect
from tests.tiny import series


def setting(y: np.ndarray, **how: Any) -> tuple[TAWT, Any, Any]:
    """An objective for the columns of y, the first of which is the main target, its network and a batch."""
    targets = tuple(Target(name) for name in "mabc"[: y.shape[1]])
    table = make_table([str(text) for text in series(len(y)).smiles], targets=targets, y=y)
    made = prepare(table, None, "gin", None, None, {"objective": "tawt"})
    method = GraphMethod("gin", {"d_hidden": 8}, head_width=8, objective="tawt")
    torch.manual_seed(0)
    network = method.build(made.inputs, d_extra=0, targets=made.outputs.targets[:1])
    network.measure(made.train.stores)
    batch = made.train.sample(np.arange(len(y)))
    network.prepare(batch)
    return TAWT(network, made.inputs, made.outputs, **how), network, batch


@pytest.mark.system("tawt", rung="exact")
def test_weights_follow_mirror_descent_and_equal_gradients_leave_them_uniform(off: str) -> None:
    rng, eta, state = np.random.default_rng(0), 0.0 if off else 0.7, StepState(0, 9, 0)
    same, network, batch = setting(np.repeat(rng.normal(size=(12, 1)), 4, axis=1), eta=eta, every=1, shared=True)
    for _ in range(3):
        same(network, batch, state)
    assert same.weights.tolist() == [np.float32(1 / 3)] * 3
    objective, network, batch = setting(rng.normal(size=(12, 4)), eta=eta, every=1)
    w, heads, values = torch.ones(3, dtype=torch.float64) / 3, [network.head, *objective.helpers], phi(network)
    for _ in range(2):
        gradients = []
        for j, head in enumerate(heads):
            network.head = head
            loss = (network(batch)[0][:, 0] - batch.y[:, j]).square().mean()
            rows = torch.autograd.grad(loss, values, allow_unused=True)
            gradients.append(torch.cat([row.double().flatten() for row in rows if row is not None]))
        network.head = heads[0]
        unit = torch.stack([each / each.norm() for each in gradients])
        before, loss = w, objective(network, batch, state)
        for name, weight in zip("abc", before, strict=True):
            assert float(loss.parts[f"weight_{name}"]) / loss.count == pytest.approx(float(weight), abs=1e-5)
        w = before * (0.7 * (unit[1:] @ unit[0])).exp()
        w = w / w.sum()
    torch.testing.assert_close(objective.weights.double(), w, rtol=0, atol=1e-5)
    assert w.max() - w.min() > 0.05


def helped(seed: int) -> tuple[Table, Table]:
    """Crippen logP of 50 molecules, and of 150 others with noise, a permutation of that and its negative as helpers."""
    smiles = np.random.default_rng(seed).permutation(np.array([str(text) for text in builtin.nci().smiles]))[:1200]
    with BlockLogs():
        mols = [
            (text, mol) for text in smiles if (mol := Chem.MolFromSmiles(text)) is not None and mol.GetNumAtoms() < 25
        ]
    smiles, logp = [text for text, _ in mols[:500]], np.array([Crippen.MolLogP(mol) for _, mol in mols[:500]])
    rng, y = np.random.default_rng(seed), np.full((200, 4), np.nan)
    y[:50, 0] = logp[:50]
    y[50:, 1] = logp[50:200] + rng.normal(0, 0.5, 150)
    y[50:, 2], y[50:, 3] = rng.permutation(y[50:, 1]), -y[50:, 1]
    targets = tuple(Target(name) for name in ("main", "same", "unrelated", "negated"))
    test = make_table(smiles[200:], targets=targets[:1], y=logp[200:])
    return make_table(smiles[:200], targets=targets, y=y), test


@pytest.mark.system("tawt", rung="works")
def test_the_same_property_has_most_weight_and_the_negated_one_the_least(off: str, effect: Effect) -> None:
    """By means over seeds."""
    weights, errors = [], dict[str, list[float]]()
    for seed in range(10, 14):
        train, test = helped(seed)
        assert test.y is not None
        how: dict[str, Any] = {"params": {"d_hidden": 16, "objective.shared": True}, "head_width": 16, "threads": 1}
        how |= {"encoder": "gin", "epochs": 30, "batch_size": 40, "learning_rate": 0.003, "seed": seed}
        for name, eta in (("learned weights", 0.0 if off else 0.1), ("equal weights", 0.0))[: 1 if off else 2]:
            params = {**how["params"], "objective.eta": eta, "objective.every": 1}
            method = GraphMethod(**{**how, "params": params}, objective="tawt").fit(train)
            errors.setdefault(name, []).append(float(np.sqrt(np.square(method.predict(test).value - test.y).mean())))
            if name == "learned weights":
                assert method.curves is not None
                weights.append(method.curves.filter(like="train_weight_").iloc[-1].tolist())
        if off:
            continue
        alone = GraphMethod(**{**how, "params": {"d_hidden": 16}}).fit(train.take(np.arange(50)).with_targets(["main"]))
        errors.setdefault("main alone", []).append(float(np.sqrt(np.square(alone.predict(test).value - test.y).mean())))
    columns = list(zip(*weights, strict=True))
    beside = {**errors, "weight of the unrelated": columns[1], "of the negated": columns[2]}
    effect("weight of the same property", columns[0], at_least=0.6, beside=beside)
    assert np.mean(columns[1]) > np.mean(columns[2])
    assert off or np.mean(errors["learned weights"]) < min(
        np.mean(errors[each]) for each in ("equal weights", "main alone")
    )
