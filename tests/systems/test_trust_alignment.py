"""Alignment of models: linear ones, a model and itself, rises to first order, and the choice of a control by it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from molgraph.auxiliary.random_forest import RandomForest
from molgraph.data.sources import builtin
from molgraph.generate import auto_control
from molgraph.generate.auto_control import choose_control
from molgraph.generate.oracles.read_oracle import read_oracle
from molgraph.train.alignment import Alignment, Gradients, by_edits, by_gradients
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.training_molecules import molecule_hashes
from tests.systems.effect import Effect
from tests.tiny import series


@cache
def network(seed: int) -> Gradients:
    """A small network, and 200 molecules that it did not learn from."""
    how = {"epochs": 2, "threads": 1, "batch_size": 32, "head_width": 32}
    encoder, params = (("gin", {"depth": 2, "d_hidden": 16}), ("dmpnn", {"d_hidden": 32}))[seed % 2]
    method = GraphMethod(encoder, params, seed=seed, **how).fit(series(100))
    return Gradients(method.ready(), series(200, 200))


class Plane(Gradients):
    """Answers that are linear in the sums of the atoms' features."""

    weight: Tensor

    def answer(self, rows: Tensor) -> Tensor:
        total = torch.zeros(self.batch.n_graphs, dtype=rows.dtype)
        return total.index_add(0, torch.from_numpy(self.graph), rows @ self.weight.to(rows.dtype))


@pytest.mark.system("gradient-alignment-transferability", rung="exact")
def test_linear_models_are_aligned_by_the_cosine_of_their_weights(off: str) -> None:
    """To 1e-6, by gradients and by all edits of one feature; off: a model and a third."""
    rng, source, planes = np.random.default_rng(2), network(0), []
    for _ in range(3):
        made = Plane.__new__(Plane)
        made.__dict__ |= vars(source)
        made.weight = torch.from_numpy(rng.normal(size=source.batch.features("atom").shape[1]))
        planes.append(made)
    u, v = (each.weight.numpy() for each in planes[:2])
    wanted = u @ v / np.sqrt((u @ u) * (v @ v))
    found = by_gradients(planes[0], planes[2 if off else 1])
    np.testing.assert_allclose(found.cosine, wanted, atol=1e-6)
    np.testing.assert_allclose(by_edits(u[None], v[None]).cosine, wanted, atol=1e-9)


@pytest.mark.system("gradient-alignment-transferability", rung="exact")
def test_a_model_is_aligned_with_itself_and_rises_by_the_length_of_its_gradient(off: str) -> None:
    """R = 1 to 1e-6, and a rise of eps S to 2% of its mean; off: beside another model."""
    one = network(1)
    found = by_gradients(one, network(3) if off else one, 1e-3)
    np.testing.assert_allclose(found.cosine, 1, atol=1e-6)
    np.testing.assert_allclose(found.expected, 1e-3 * found.size, rtol=1e-6)
    assert np.abs(found.measured - found.expected).mean() < 0.02 * found.expected.mean()


@pytest.mark.system("gradient-alignment-transferability", rung="works")
def test_the_rise_of_another_model_is_that_of_first_order(off: str, effect: Effect) -> None:
    """Correlation over 200 molecules of five pairs of networks; off: without R, the rise of an aligned model."""
    found, without = [], []
    for seed in range(20, 25):
        made = by_gradients(network(seed), network(seed + 1), 1e-3)
        plain = float(np.corrcoef(1e-3 * made.other_size, made.measured)[0, 1])
        found.append(plain if off else float(np.corrcoef(made.expected, made.measured)[0, 1]))
        without.append(plain)
    effect("correlation of expected and measured rises", found, at_least=0.95, beside={"eps S alone": without})


@pytest.mark.system("gradient-alignment-transferability", rung="works")
def test_the_control_that_is_chosen_learnt_from_other_molecules(
    off: str, effect: Effect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a second forest on the oracle's molecules and one on others; off: all alignments are 0."""
    if off:
        nothing = Alignment(*np.zeros((5, 1)))
        monkeypatch.setattr(auto_control, "by_edits", lambda one, other: nothing)
    right, table = [], builtin.chembl2321810()
    for seed in (30, 31, 32):
        order = np.random.default_rng(seed).permutation(len(table))
        parts = {"oracle": (order[:150], 0), "a_twin": (order[:150], 1), "other": (order[150:300], 2)}
        for name, (rows, number) in parts.items():
            own = table.take(np.sort(rows))
            method = RandomForest(n_estimators=20, seed=number, threads=1).fit(own)
            model = Model(method, targets=own.targets, trained_on=np.unique(molecule_hashes(own)))
            model.save(tmp_path / f"{name}.mgm")
        files = f"auto({tmp_path / 'a_twin.mgm'}, {tmp_path / 'other.mgm'})"
        note = choose_control(files, read_oracle(str(tmp_path / "oracle.mgm")), seed=seed).note
        right.append(float("other.mgm, whose" in note))
    effect("share of seeds in which the control knows other molecules", right, at_least=1)
