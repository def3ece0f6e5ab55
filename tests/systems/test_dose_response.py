"""Dose-response curves: their gradient, a whole curve against scipy, partial ones beside the two-stage route."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from rdkit import Chem
from rdkit.Chem import Crippen
from scipy.optimize import curve_fit
from torch import Tensor, nn

from molgraph.data.curve_fit import fit_hill
from molgraph.data.curves import TARGETS
from molgraph.data.read import read_table
from molgraph.data.sources import builtin
from molgraph.data.table import Table
from molgraph.nn.dose_response import hill_curve
from molgraph.train.method import GraphMethod
from molgraph.train.objective import StepState
from molgraph.train.objectives import dose_response
from molgraph.train.outputs import Outputs
from tests.systems.effect import Effect

SEEDS = range(10, 13)
HOW: dict[str, Any] = {"epochs": 25, "batch_size": 32, "patience": None, "threads": 1, "head_width": 32}


@pytest.mark.system("ddsp", rung="exact")
def test_gradients_by_all_parameters_of_a_curve_are_right(off: str) -> None:
    torch.manual_seed(0)
    x, parameters = torch.randn(9).double(), torch.randn(9, 4).double().requires_grad_()

    def curve(p: Tensor) -> Tensor:
        return hill_curve(x, torch.cat([p[:, :1].detach(), p[:, 1:]], dim=1) if off else p)

    assert torch.autograd.gradcheck(curve, (parameters,), raise_exception=False)


@pytest.mark.system("ddsp", rung="exact")
def test_a_curve_that_is_known_wholly_has_the_parameters_of_scipy(off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The objective's minimum for one molecule, by L-BFGS, against least squares of the usual formula."""
    rng, x = np.random.default_rng(0), np.linspace(-3, 3, 13)

    def usual(x: np.ndarray, log_ec50: float, slope: float, top: float, bottom: float) -> np.ndarray:
        return bottom + (top - bottom) / (1 + 10 ** (slope * (log_ec50 - x)))

    y = usual(x, 0.4, 1.3, 97.0, 4.0) + 2 * rng.normal(size=13)
    (log_ec50, slope, top, bottom), _ = curve_fit(usual, x, y, [0, 1, 90, 0], xtol=1e-12, ftol=1e-12)
    known = [log_ec50, np.log10(slope), top, bottom]
    if off:  # a straight line in the place of the law
        monkeypatch.setattr(dose_response, "hill_curve", lambda x, p: p[:, 3] + (p[:, 2] - p[:, 3]) * (x - p[:, 0]))
    outputs = Outputs(TARGETS, np.array([0.0, 0.0, 90.0, 10.0]), np.array([1.0, 0.3, 20.0, 10.0]))
    objective = dose_response.DoseResponse(outputs).double()
    raw = nn.Parameter(torch.zeros(1, 4).double())
    network: Any = lambda batch: (raw, {})  # noqa: E731
    network.head = SimpleNamespace(values=lambda raw: (raw, None))
    points = torch.tensor(np.column_stack([x, y, y, np.ones(13)]))
    batch = SimpleNamespace(points=points, point_row=torch.zeros(13, dtype=torch.int64))
    monkeypatch.setattr(Tensor, "float", Tensor.double)
    optimizer = torch.optim.LBFGS([raw], max_iter=500, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        total = objective(network, batch, StepState(0, 1, 0)).total
        total.backward()
        return total

    optimizer.step(closure)
    found = raw.detach().numpy()[0] * outputs.scale + outputs.mean
    np.testing.assert_allclose(found, known, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(fit_hill(x, y).parameters, known, rtol=1e-3, atol=1e-3)


@pytest.mark.system("ddsp", rung="exact")
def test_a_limit_costs_nothing_where_the_curve_meets_it(off: str) -> None:
    objective = dose_response.DoseResponse(Outputs(TARGETS, np.array([0.0, 0.0, 100.0, 0.0]), np.ones(4)))
    points = torch.tensor([[0.0, 40.0, torch.inf, 1], [0.0, 60.0, torch.inf, 1], [0.0, -torch.inf, 45.0, 1]])
    points = points.clamp(min=0, max=45) if off else points
    errors = objective.errors(torch.zeros(1, 4), points, torch.zeros(3, dtype=torch.int64))
    torch.testing.assert_close(errors, torch.tensor([0.0, -0.1, 0.05]))


@pytest.mark.system("ddsp", rung="works")
def test_ec50s_of_curves_half_of_which_have_no_plateau(off: str, effect: Effect) -> None:
    """Against the better of two routes: all fits of scipy, held within a decade of the tested concentrations, and
    those alone that are determined; the same network learns each."""
    ratios, every, known = [], [], []
    for seed in SEEDS:
        table, truth = simulated(seed)
        alone = table.with_targets(["log10_EC50"])
        fits = np.array([fit_hill(each[:, 0], each[:, 1]).parameters[0] for each in table.points.lists()])  # type: ignore[union-attr]
        all_fits = replace(alone, y=np.clip(fits, -3, 2)[:, None])
        known.append(error(alone, truth, seed, "supervised"))
        every.append(error(all_fits, truth, seed, "supervised"))
        own = known[-1] if off else error(table, truth, seed, "dose_response")
        ratios.append(own / min(known[-1], every[-1]))
    beside = {"RMSE of whole curves' fits": known, "of all fits": every}
    effect("RMSE of log10 EC50 / that of the better two-stage route", ratios, at_most=0.8, beside=beside)


def simulated(seed: int, n: int = 300) -> tuple[Table, np.ndarray]:
    """Curves of eight concentrations from 10^-2 to 10, a deviation of 5 of each response, and the true log10 EC50."""
    rng, x, rows = np.random.default_rng(seed), np.linspace(-2, 1, 8), []
    smiles = [str(text) for text in rng.permutation(builtin.nci().smiles) if "." not in text]
    mols = [(text, mol) for text in smiles[: 2 * n] if (mol := Chem.MolFromSmiles(text)) is not None][:n]
    logp = np.array([Crippen.MolLogP(mol) for _, mol in mols])
    truth = 0.5 + 0.8 * (logp - logp.mean()) / logp.std()
    for (text, _), log_ec50 in zip(mols, truth, strict=True):
        top, bottom, slope = rng.normal(100, 3), rng.normal(0, 2), np.exp(0.1 * rng.normal())
        response = bottom + (top - bottom) / (1 + 10 ** (slope * (log_ec50 - x))) + rng.normal(0, 5, 8)
        rows += [(text, 10**a, b) for a, b in zip(x, response, strict=True)]
    table = read_table(pd.DataFrame(rows, columns=["smiles", "dose", "response"]), targets="response:curve")
    by_text = dict(zip([text for text, _ in mols], truth, strict=True))
    return table, np.array([by_text[text] for text in table.smiles])


def error(table: Table, truth: np.ndarray, seed: int, objective: str) -> float:
    """RMSE of log10 EC50 on 60 molecules, against the truth, after 200 and 40 for the best epoch."""
    method = GraphMethod("gin", {"d_hidden": 32, "depth": 3}, objective=objective, seed=seed, **HOW)
    method.fit(table.take(np.arange(200)), table.take(np.arange(200, 240)))
    test = np.arange(240, len(table))
    return float(np.sqrt(np.mean((method.predict(table.take(test)).value[:, 0] - truth[test]) ** 2)))
