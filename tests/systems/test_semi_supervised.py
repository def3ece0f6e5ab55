"""Labels of some rows, and what is asked of the rows without."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from molgraph.nn.mutual_information import jsd_local_global
from molgraph.train.objective import StepState
from tests.train.test_semi_supervised import STEP, made


@pytest.mark.system("self-training", rung="exact")
def test_all_rows_learn_a_teachers_answers_and_the_teacher_is_the_average_of_the_students(off: str) -> None:
    _, network, objective, batch = made("mean-teacher", decay=0.9, weight=0.0 if off else 2.0, noise=0.0, ramp=0.8)
    first = [p.detach().clone() for p in network.parameters()]
    (own,) = objective.turns(network)
    with torch.no_grad():
        for parameter in own:
            parameter.add_(1.0)
    objective.after_step(network, StepState(0, 10, 0))
    assert all(torch.allclose(p, f + 1.0) for p, f in zip(network.parameters(), first, strict=True)), "alpha is 0"
    with torch.no_grad():
        for parameter in own:
            parameter.add_(1.0)
    objective.after_step(network, StepState(99, 100, 0))
    assert all(torch.allclose(p, f + 1.1) for p, f in zip(network.parameters(), first, strict=True)), "alpha is 0.9"
    found = objective(network, batch, STEP)
    raw, taught = objective.student(batch)[0], network(batch)[0]
    expected = (raw[:4] - batch.y[:4]).square().sum() + 4 * 2.0 * np.exp(-5 * 0.375**2) * (raw - taught).square().mean()
    torch.testing.assert_close(found.total, expected, rtol=1e-4, atol=1e-5)
    found.total.backward()
    assert all(p.grad is None for p in network.parameters()), "the teacher learns by averaging alone"
    judged = objective(network, batch, STEP._replace(training=False)).total
    torch.testing.assert_close(judged, (taught[:4] - batch.y[:4]).square().sum())


@pytest.mark.system("uda-tsa", rung="exact")
def test_answers_are_to_agree_under_noise(off: str) -> None:
    _, network, objective, batch = made("mean-teacher", weight=1.0, noise=0.0, ramp=0.5)
    assert objective(network, batch, STEP).parts["consistency"].item() == 0, "without noise they are one"
    objective.noise = 0.0 if off else 0.3
    torch.manual_seed(1)
    noisy = objective(network, batch, STEP).parts["consistency"]
    torch.manual_seed(1)
    answers = []
    for part in (objective.student, network):
        h = part.encoder(batch.parts[0].batch).graphs
        answers.append(part.head(h * (1 + 0.3 * torch.randn_like(h))))
    distance = (answers[0] - answers[1]).square().mean()
    torch.testing.assert_close(noisy, 4 * distance)


@pytest.mark.system("s4l", rung="exact")
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
