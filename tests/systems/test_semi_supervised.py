"""Labels of some rows, and what is asked of the rows without."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from molgraph.data.read import read_table
from molgraph.data.table import Table
from molgraph.nn.mutual_information import jsd_local_global
from molgraph.train.method import GraphMethod
from molgraph.train.objective import StepState
from molgraph.train.objectives.self_training import SelfTraining
from tests.systems.effect import Effect
from tests.train.test_semi_supervised import STEP, made


@pytest.mark.parametrize("threshold", [0.0, 2.0])
@pytest.mark.system("self-training", rung="exact")
def test_pseudo_labels_weigh_alpha_times_the_labels_and_there_are_none_above_1(threshold: float, off: str) -> None:
    """Running means of the normalised term; the teacher learns first and alone."""
    _, network, objective, batch = made("self-training", threshold=0.0, weight=3.0, teacher=0.5)
    objective.threshold = 0.0 if off else threshold
    if off:
        objective._ratio = lambda labels, pseudo: torch.tensor(1.0)
    first = objective(network, batch, StepState(4, 10, 0))
    first.total.backward()
    assert all(p.grad is None for p in network.parameters()), "the teacher learns alone"
    objective.zero_grad(set_to_none=True)
    labels, pseudo, terms = [], [], []
    for step in range(5, 10):
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(0.05 * step)
            raw, taught = network(batch)[0], objective.teacher.eval()(batch)[0]
        labels.append((raw[:4] - batch.y[:4]).square().mean())
        pseudo.append((raw[4:] - taught[4:]).square().mean())
        loss = objective(network, batch, StepState(step, 10, 0))
        assert loss.count == 4
        loss.total.backward()
        assert all(p.grad is None for p in objective.teacher.parameters()), "the teacher is frozen"
        terms.append(loss.total / 4 - labels[-1] / (1 + 3) if not threshold else loss.total / 4 - labels[-1])
    k = torch.arange(5)
    weights = 0.99 ** (4 - k) / (0.99 ** (4 - k)).sum()
    if threshold:
        torch.testing.assert_close(torch.stack(terms), torch.zeros(5), rtol=0, atol=1e-4)
    else:
        mean_labels, mean_pseudo = ((weights * torch.stack(each)).sum() for each in (labels, pseudo))
        running = terms[-1] / pseudo[-1] * mean_pseudo  # the term of a step with the mean loss
        torch.testing.assert_close(running, 3 * mean_labels / (1 + 3), rtol=1e-4, atol=1e-5)


def rmse(table: Table, objective: str, seed: int) -> float:
    """The error on 30% of the rows; of the others a seventh has labels, as many for every objective."""
    order = np.random.default_rng(seed).permutation(len(table))
    n, end = len(table) // 10, 7 * len(table) // 10
    y = table.y.copy()
    y[order[n:end]] = np.nan
    known, test = replace(table, y=y).take(order[:end]), table.take(order[end:])
    how: dict[str, Any] = {"params": {"d_hidden": 32, "depth": 2}, "head_width": 32, "epochs": 40, "batch_size": 32}
    method = GraphMethod(encoder="gin", objective=objective, seed=seed, **how).fit(known)
    return float(np.sqrt(np.mean((method.predict(test).value - test.y) ** 2)))


@pytest.mark.data
@pytest.mark.system("self-training", rung="works", null="a student learns no more of ESOL than its teacher knows")
def test_a_students_error_is_at_most_that_of_labels_alone(
    off: str, effect: Effect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ESOL with 10% of its labels, another 60% of its molecules without; the error on the other 30%."""
    table = read_table("dataset:esol")

    def errors(objective: str) -> list[float]:
        return [rmse(table, objective, seed) for seed in range(5)]

    labels = SelfTraining.pseudo_labels

    def shuffled(self: SelfTraining, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
        taught, confidence = labels(self, batch)
        return taught[torch.randperm(len(taught))], confidence

    alone = errors("supervised")
    if off:
        monkeypatch.setattr(SelfTraining, "pseudo_labels", shuffled)
    student = errors("self-training")
    shares = [a / b for a, b in zip(student, alone, strict=True)]
    effect("RMSE / of labels alone", shares, at_most=1.0, beside={"labels alone": alone, "student": student})


@pytest.mark.system("infograph-infograph", rung="exact")
def test_labels_and_a_task_of_all_rows_are_learned_at_once(off: str) -> None:
    _, network, objective, batch = made("infograph-star", weight=0.0, d_score=6)
    graphs = batch.parts[0].batch
    teacher = objective.teacher(graphs, rows=True)
    h, of = teacher.rows[0].h, teacher.rows[0].graph_of
    losses = jsd_local_global(objective.score.phi(h), objective.score.psi(teacher.graphs), of)
    supervised = (network.head(network.encoder(graphs).graphs)[:4] - batch.y[:4]).square().sum()
    if off:
        objective.score.register_forward_hook(lambda _, __, found: 0.0 * found)
    found = objective(network, batch, STEP)
    assert len(losses) == 8 and found.count == 4
    torch.testing.assert_close(found.total, supervised + 4 * losses.mean(), rtol=1e-4, atol=1e-4)
