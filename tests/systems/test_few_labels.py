"""Heads in closed form for few labels: their equations against libraries, and assays of Tox21 that were held out."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.metrics import adjusted_rand_score, balanced_accuracy_score, roc_auc_score
from torch import Tensor, nn

import molgraph
from molgraph.base.contracts import Target
from molgraph.chem.fingerprints import morgan
from molgraph.data.cluster_tasks import cluster_tasks, partitions
from molgraph.data.read import read_table
from molgraph.data.table import make_table
from molgraph.nn.closed_form import prototype_head, ridge_head
from molgraph.train.objective import StepState
from molgraph.train.objectives.ridge import Ridge
from molgraph.train.outputs import Outputs
from tests.systems.effect import Effect
from tests.tiny import series, small

HELD_OUT = ("SR-HSE", "SR-MMP", "SR-p53")
SHOTS, EPISODES, SEEDS = 10, 50, (0, 1, 2)


def states(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(n, d)))


@pytest.mark.system("prototypical-networks", rung="exact")
def test_outputs_are_negative_squared_distances_up_to_a_constant(off: str) -> None:
    h, query = states(12, 5), states(7, 5, 1)
    classes = torch.arange(12) % 3
    weight, bias = prototype_head(h, nn.functional.one_hot(classes, 3).double(), spread=False)
    raw = query @ weight.T + (0 if off else bias)
    means = torch.stack([h[classes == k].mean(dim=0) for k in range(3)])
    expected = -torch.cdist(query, means).square()
    torch.testing.assert_close(raw.log_softmax(dim=1), expected.log_softmax(dim=1), atol=1e-5, rtol=0)


@pytest.mark.system("prototypical-networks", rung="exact")
def test_the_metric_of_an_identity_covariance_is_euclidean(off: str) -> None:
    signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 3).double()  # of covariance 1 around 0
    h = torch.cat([signs, signs + 3]) * (torch.tensor([1.0, 5.0, 1.0]) if off else 1.0)
    one_hot = nn.functional.one_hot(torch.arange(16) // 8, 2).double()
    for each, other in zip(prototype_head(h, one_hot, 0.7), prototype_head(h, one_hot), strict=True):
        torch.testing.assert_close(each, other, atol=1e-6, rtol=1e-6)


@pytest.mark.system("prototypical-networks", rung="exact")
def test_fine_tuning_sets_the_head_to_the_prototypes_and_leaves_the_encoder(off: str, tmp_path: Path) -> None:
    y = (np.arange(60) % 3 == 0).astype(float)[:, None]
    table = make_table([*series(60).smiles], targets=(Target("active", "binary"),), y=y)
    start = molgraph.pretrain(table, model="dmpnn", params={"d_hidden": 8}, epochs=1).save(tmp_path / "start.mgm")
    how = {"encoder": "dmpnn", "init": str(start), "params": {}, "head_layers": 1, "epochs": 1}
    fitted = small(**how, callback="ridge" if off else "prototypes").fit(table).ready().network
    h = torch.from_numpy(molgraph.embed(molgraph.load(start), table).value).double()
    weight, bias = prototype_head(h, torch.from_numpy(np.concatenate([1 - y, y], axis=1)))
    torch.testing.assert_close(fitted.head.layers[-1].weight.double(), weight[1:] - weight[:1], atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(fitted.head.layers[-1].bias.double(), bias[1:] - bias[:1], atol=1e-3, rtol=1e-3)


@cache
def tox21() -> Any:
    """The table, and a third of its rows that no encoder learns from."""
    table = read_table("dataset:tox21", on_error="keep")
    table = table.take(np.flatnonzero(table.ok))
    held = np.random.default_rng(0).random(len(table)) < 1 / 3
    return table, held


def encoder(seed: int, objective: str | None) -> Any:
    """Vectors of the rows that were held out, by an encoder of nine assays, or one without training."""
    table, held = tox21()
    seen = table.take(np.flatnonzero(~held))
    names = [each.name for each in seen.targets if each.name not in HELD_OUT]
    how: dict[str, Any] = {"model": "dmpnn", "params": {"d_hidden": 64}, "seed": seed, "threads": 1}
    if objective is None:
        made = molgraph.pretrain(
            seen.take(np.arange(300)), objective="masked-atoms", epochs=1, learning_rate=1e-12, **how
        )
    else:
        made = molgraph.pretrain(seen, targets=names, objective=objective, epochs=6, **how)
    return np.nan_to_num(molgraph.embed(made, table.take(np.flatnonzero(held))).value)  # 0 where there is no carbon


def episodes(score: Any) -> float:
    """Mean ROC AUC over episodes of the assays that were held out: 10 actives and 10 inactives, then all others."""
    table, held = tox21()
    rows, rng, areas = table.take(np.flatnonzero(held)), np.random.default_rng(1), list[float]()
    for name in HELD_OUT:
        y = rows.y[:, [each.name for each in rows.targets].index(name)]
        for _ in range(EPISODES):
            support = np.concatenate([rng.choice(np.flatnonzero(y == k), SHOTS, replace=False) for k in (0.0, 1.0)])
            query = np.setdiff1d(np.flatnonzero(~np.isnan(y)), support)
            areas.append(float(roc_auc_score(y[query], score(support, y[support], query))))
    return float(np.mean(areas))


def by_prototypes(x: np.ndarray, mahalanobis: float = 0.0) -> Any:
    h = torch.from_numpy(x).double()

    def score(support: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
        one_hot = nn.functional.one_hot(torch.from_numpy(y).long(), 2).double()
        weight, bias = prototype_head(h[support], one_hot, mahalanobis)
        return ((h[query] @ weight.T + bias) @ torch.tensor([-1.0, 1.0]).double()).numpy()

    return score


@cache
def by_fingerprints() -> dict[str, list[float]]:
    """Nearest neighbour and forest on fingerprints, in the same episodes."""
    table, held = tox21()
    x = morgan([str(text) for text in table.take(np.flatnonzero(held)).smiles]).x.astype(np.float32)
    ones = x.sum(axis=1)

    def nearest(support: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
        both = x[query] @ x[support].T
        tanimoto = both / np.maximum(ones[query][:, None] + ones[support] - both, 1)
        return tanimoto[:, y == 1].max(axis=1) - tanimoto[:, y == 0].max(axis=1)

    def forest(support: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
        trees = RandomForestClassifier(50, random_state=0).fit(x[support], y)
        return np.asarray(trees.predict_proba(x[query])[:, 1])

    return {"nearest neighbour": [episodes(nearest)], "forest": [episodes(forest)]}


@pytest.mark.data
@pytest.mark.system("prototypical-networks", rung="works")
def test_assays_that_were_held_out_are_learned_from_twenty_molecules(off: str, effect: Effect) -> None:
    random = [episodes(by_prototypes(encoder(seed, None))) for seed in SEEDS]
    learned = random if off else [episodes(by_prototypes(encoder(seed, "prototypes"))) for seed in SEEDS]
    gain = [a - b for a, b in zip(learned, random, strict=True)]
    beside = {"prototypes": learned, "random weights": random, **by_fingerprints()}
    effect("ROC AUC of 10 + 10 molecules above random weights'", gain, at_least=0.01, beside=beside)


@cache
def vectors(n: int = 3000) -> tuple[list[str], np.ndarray]:
    """Molecules of NCI's list that differ, and 32 components of their fingerprints."""
    table = read_table("builtin:nci")
    texts = [str(text) for text in table.take(np.flatnonzero(table.ok)[:n]).smiles]
    return texts, TruncatedSVD(32, random_state=0).fit_transform(morgan(texts, counts=True).x.astype(np.float32))


@pytest.mark.system("cactus", rung="exact")
def test_partitions_differ_by_their_metric_and_are_not_random(off: str) -> None:
    x = vectors()[1]
    once = partitions(x, 20, 3, scaling=0.0)
    assert adjusted_rand_score(once[0], once[1]) == adjusted_rand_score(once[1], once[2]) == 1
    several = partitions(x, 20, 4, scaling=0.0 if off else 1.0)
    agreement = np.mean([adjusted_rand_score(several[i], several[j]) for i in range(4) for j in range(i)])
    assert 0.05 < agreement < 0.95
    y = cluster_tasks(x, 6, clusters=20, number=3)
    assert set(np.unique(y[np.isfinite(y)])) == {0.0, 1.0}
    assert (np.minimum((y == 1).sum(axis=0), (y == 0).sum(axis=0)) >= 20).all()


@pytest.mark.system("cactus", rung="works")
def test_clusters_of_new_partitions_are_told_from_five_members(off: str, effect: Effect) -> None:
    """The encoder learns tasks of half of the molecules; those of the other half are clustered by another seed."""
    texts, x = vectors()
    tasks = cluster_tasks(x[:1500], 32, clusters=20, number=8, least=12)
    held = cluster_tasks(x[1500:], 20, clusters=20, number=8, least=12, seed=1)
    table = make_table(texts[:1500], targets=tuple(Target(f"t{i}", "binary") for i in range(32)), y=tasks)
    right = dict[str, list[float]](learned=[], random=[])
    for seed in SEEDS:
        how: dict[str, Any] = {"model": "dmpnn", "params": {"d_hidden": 64}, "seed": seed, "threads": 1}
        for name in right:
            learns = name == "learned" and not off
            how |= {"epochs": 6, "learning_rate": 1e-3} if learns else {"epochs": 1, "learning_rate": 1e-12}
            made = molgraph.pretrain(table, objective="prototypes", batch_size=16, **how)
            h, rng = np.nan_to_num(molgraph.embed(made, texts[1500:]).value), np.random.default_rng(2)
            scores = list[float]()
            for task in range(20):
                both = [np.flatnonzero(held[:, task] == k) for k in (0.0, 1.0)]
                support = np.concatenate([rng.choice(rows, 5, replace=False) for rows in both])
                query = np.setdiff1d(np.concatenate(both), support)
                raw = by_prototypes(h)(support, held[support, task], query)
                scores.append(float(balanced_accuracy_score(held[query, task], raw > 0)))
            right[name].append(float(np.mean(scores)))
    gain = [a - b for a, b in zip(right["learned"], right["random"], strict=True)]
    effect("balanced accuracy above random weights'", gain, at_least=0.02, beside=right)


@pytest.mark.parametrize(("n", "d"), [(6, 11), (30, 4)])
@pytest.mark.system("learned-unsupervised-update-rule", rung="exact")
def test_the_ridge_head_is_scikit_learns_and_its_gradient_that_of_differences(n: int, d: int, off: str) -> None:
    h, y, penalty = states(n, d), states(n, 2, 1), torch.tensor(0.7, dtype=torch.float64)
    weight, bias = ridge_head(h, y, 0.0 if off else penalty)
    expected = SklearnRidge(alpha=0.7).fit(h.numpy(), y.numpy())
    np.testing.assert_allclose(weight.numpy(), expected.coef_, atol=1e-6)
    np.testing.assert_allclose(bias.numpy(), expected.intercept_, atol=1e-6)
    assert torch.autograd.gradcheck(ridge_head, (h.requires_grad_(), y.requires_grad_(), penalty.requires_grad_()))


class Weighed(nn.Module):
    """States of four pretext tasks, 16 numbers each, side by side and weighed."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(4))

    def encode(self, batch: Any) -> list[Any]:
        return [SimpleNamespace(penalties={})]

    def answer(self, encoded: Any, batch: Any) -> Tensor:
        return batch.x * (4 * self.weights.softmax(dim=0)).repeat_interleave(16)


def assays(rng: np.random.Generator, n_tasks: int) -> Any:
    """Linear assays of 48 molecules that depend on the second pretext task alone, 16 of them in the support."""
    x = torch.from_numpy(rng.normal(size=(48, 64)).astype(np.float32))
    slopes = torch.from_numpy(rng.normal(size=(16, n_tasks)).astype(np.float32)) / 4
    parts = torch.zeros(2, 48, n_tasks)
    parts[0, :16], parts[1, 16:] = 1, 1
    return SimpleNamespace(x=x, y=x[:, 16:32] @ slopes, weights=parts)


@pytest.mark.system("learned-unsupervised-update-rule", rung="works")
def test_weights_of_pretext_tasks_chosen_on_some_assays_serve_others(off: str, effect: Effect) -> None:
    outputs, shares, learned = Outputs((Target("y"),), np.zeros(1), np.ones(1)), list[float](), list[float]()
    for seed in range(5):
        rng, network = np.random.default_rng(seed), Weighed()
        objective = Ridge(network, (), outputs)  # type: ignore[arg-type]
        optimiser = torch.optim.Adam([*network.parameters(), *objective.parameters()], 0.05)
        for step in range(0 if off else 150):
            loss = objective(network, assays(rng, 4), StepState(step, 150, 0))
            optimiser.zero_grad()
            (loss.total / loss.count).backward()
            optimiser.step()
        held, plain = assays(np.random.default_rng(100 + seed), 40), Weighed()
        errors = [float(objective(each, held, StepState(0, 1, 0)).total.detach()) for each in (network, plain)]
        shares.append(errors[0] / errors[1])
        learned.append(network.weights.softmax(dim=0)[1].item())
    effect("squared error of new assays / by equal weights", shares, at_most=0.8, beside={"weight learned": learned})
