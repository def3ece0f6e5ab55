"""Classes by a few labelled molecules: matching networks with refinement, and the embedding space transformation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import molgraph
from molgraph.base.contracts import Target
from molgraph.data.table import Table, make_table
from molgraph.nn.closed_form import ClassSpread, prototype_head
from molgraph.nn.matching_network import MatchingNetwork
from tests.systems.effect import Effect
from tests.systems.test_few_labels import HELD_OUT, SEEDS, by_fingerprints, episodes, states, tox21
from tests.tiny import series, small


def started(folder: Path, objective: str, callback: str) -> tuple[Any, Any, Tensor, Table]:
    """A model that started from an encoder of that objective; the encoder's network, states of the rows, and these."""
    y = (np.arange(60) % 3 == 0).astype(float)[:, None]
    table = make_table([*series(60).smiles], targets=(Target("active", "binary"),), y=y)
    start = molgraph.pretrain(table, model="dmpnn", params={"d_hidden": 8}, objective=objective, epochs=1)
    path = start.save(folder / f"{objective}.mgm")
    how = {"encoder": "dmpnn", "init": str(path), "params": {}, "head_layers": 1, "epochs": 1}
    fitted = small(**how, callback=callback).fit(table)
    return fitted, start.method.ready().network, torch.from_numpy(molgraph.embed(start, table).value), table  # type: ignore[attr-defined]


def lstm(cell: nn.LSTMCell, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """A step by its equations."""
    gates = x @ cell.weight_ih.T + cell.bias_ih + h @ cell.weight_hh.T + cell.bias_hh
    i, f, g, o = gates.chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def attention(query: Tensor, keys: Tensor) -> Tensor:
    """``softmax_j(cos(query, key_j))``, one by one."""
    cosines = [float(query @ key / query.norm() / key.norm()) for key in keys]
    weights = torch.tensor([np.exp(each) for each in cosines], dtype=query.dtype)
    return weights / weights.sum()


def by_equations(network: MatchingNetwork, h: Tensor, y: Tensor, query: Tensor, steps: int) -> Tensor:
    """The chance of each query to be active by the loops of iterative refinement."""
    g, f = ((x @ network.embed.weight.T + network.embed.bias).tanh() for x in (h, query))
    z, zero = g, torch.zeros(g.shape[1], dtype=g.dtype)
    at, of = [(zero, zero)] * len(f), [(zero, zero)] * len(g)
    for _ in range(steps):
        s = [attention(f[i] + at[i][0], z) @ z for i in range(len(f))]
        r = [attention(z[j] + of[j][0], g) @ g for j in range(len(g))]
        at = [lstm(network.query_lstm, s[i], *at[i]) for i in range(len(f))]
        of = [lstm(network.support_lstm, r[j], *of[j]) for j in range(len(g))]
        z = torch.stack(r)
    keys = torch.stack([g[j] + of[j][0] for j in range(len(g))])
    return torch.stack([attention(f[i] + at[i][0], keys) @ y for i in range(len(f))])


@pytest.mark.system("iterreflstm", rung="exact")
def test_refinement_is_its_equations_and_sees_no_order_in_the_support(off: str) -> None:
    torch.manual_seed(0)
    h, query, y = states(6, 5), states(7, 5, 1), (torch.arange(6) % 2).double()
    with torch.no_grad():
        for steps in (0, 3):  # without steps it is the plain matching network
            network = MatchingNetwork(5, steps=0 if off else steps, width=4).double()
            raw, order = network(h, y, query), torch.randperm(6)
            torch.testing.assert_close(network(h[order], y[order], query), raw, atol=1e-6, rtol=0)
            torch.testing.assert_close(raw.sigmoid(), by_equations(network, h, y, query, steps))


@pytest.mark.system("iterreflstm", rung="exact")
def test_fine_tuning_keeps_the_support_of_the_matching_network(off: str, tmp_path: Path) -> None:
    fitted, start, h, table = started(tmp_path, "matching", "prototypes" if off else "matching")
    assert table.y is not None
    with torch.no_grad():
        expected = start.parts["matching"](h.float(), torch.from_numpy(table.y[:, 0]).float(), h.float()).sigmoid()
    np.testing.assert_allclose(fitted.predict(table).value[:, 0], expected.numpy(), atol=1e-4)


def by_matching(seed: int, *, steps: int = 3, learns: bool = True) -> Any:
    """A matching network of nine assays, or one with random weights, on the rows that were held out."""
    table, held = tox21()
    seen, rows = table.take(np.flatnonzero(~held)), table.take(np.flatnonzero(held))
    names = [each.name for each in seen.targets if each.name not in HELD_OUT]
    how: dict[str, Any] = {"epochs": 6} if learns else {"epochs": 1, "learning_rate": 1e-12}
    params = {"d_hidden": 64, "objective.steps": steps}
    seen = seen if learns else seen.take(np.arange(300))
    made = molgraph.pretrain(
        seen, targets=names, objective="matching", model="dmpnn", params=params, seed=seed, threads=1, **how
    )
    x = torch.from_numpy(np.nan_to_num(molgraph.embed(made, rows).value)).float()
    network = made.method.ready().network.parts["matching"]  # type: ignore[attr-defined]

    @torch.no_grad()
    def score(support: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
        return np.asarray(network(x[support], torch.from_numpy(y).float(), x[query]))

    return score


@pytest.mark.data
@pytest.mark.system("iterreflstm", rung="works")
def test_assays_that_were_held_out_are_told_by_similarity_to_twenty_molecules(off: str, effect: Effect) -> None:
    random = [episodes(by_matching(seed, learns=False)) for seed in SEEDS]
    learned = random if off else [episodes(by_matching(seed)) for seed in SEEDS]
    plain = {} if off else {"matching network without refinement": [episodes(by_matching(SEEDS[0], steps=0))]}
    beside = {"refined": learned, **plain, "random weights": random, **by_fingerprints()}
    assert off or np.mean(learned) > by_fingerprints()["forest"][0]
    gains = [a - b for a, b in zip(learned, random, strict=True)]
    effect("ROC AUC of 10 + 10 molecules above that of random weights", gains, at_least=0.01, beside=beside)


@pytest.mark.system("shot-analysis-embedding-space-transforma", rung="exact")
def test_all_axes_change_no_distance_and_few_are_eigenvectors(off: str) -> None:
    h, classes = states(40, 6), torch.arange(40) % 4
    one_hot = nn.functional.one_hot(classes, 4).double()
    spread = ClassSpread(6).double()
    spread.add(h, one_hot)
    weight, bias = prototype_head(h @ spread.axes(6, 0.3), one_hot)
    torch.testing.assert_close(weight @ spread.axes(6, 0.3).T, prototype_head(h, one_hot)[0])
    torch.testing.assert_close(bias, prototype_head(h, one_hot)[1])
    groups = [h[classes == k].numpy() for k in range(4)]
    between = np.cov(np.stack([each.mean(axis=0) for each in groups]).T)
    matrix = between - (0 if off else 0.3) * np.mean([np.cov(each.T) for each in groups], axis=0)
    vectors = np.linalg.eigh(matrix)[1]
    axes = spread.axes(2, 0.3).numpy()
    np.testing.assert_allclose(np.abs(axes.T @ vectors[:, -2:]), np.eye(2), atol=1e-8)


@pytest.mark.system("shot-analysis-embedding-space-transforma", rung="exact")
def test_fine_tuning_measures_distances_along_the_axes_of_the_pretraining(off: str, tmp_path: Path) -> None:
    fitted, start, h, table = started(tmp_path, "prototypes", "prototypes" if off else "prototypes(est=2)")
    assert table.y is not None
    z = h.double() @ start.parts["class_spread"].double().axes(2, 0.1)
    centres = torch.stack([z[torch.from_numpy(table.y[:, 0] == k)].mean(dim=0) for k in (0, 1)])
    distances = torch.cdist(z, centres).square() / (z - z.mean(dim=0)).square().sum(dim=1).mean()
    expected = (-distances).softmax(dim=1)[:, 1]
    np.testing.assert_allclose(fitted.predict(table).value[:, 0], expected.numpy(), atol=1e-3)


@pytest.mark.system("shot-analysis-embedding-space-transforma", rung="works")
def test_one_shot_is_enough_along_the_axes_in_which_classes_differ(off: str, effect: Effect) -> None:
    """Gaussian classes differ in 5 of 50 directions and vary in the others; the axes are those of other classes."""
    gains, right = list[float](), dict[str, list[float]]()
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rotation = np.linalg.qr(rng.normal(size=(50, 50)))[0]

        def draw(classes: int, n: int, rng: np.random.Generator = rng, rotation: np.ndarray = rotation) -> Tensor:
            means = np.concatenate([rng.normal(size=(classes, 1, 5)) * 2, np.zeros((classes, 1, 45))], axis=2)
            return torch.from_numpy((means + rng.normal(size=(classes, n, 50)) * np.repeat([1, 2], [5, 45])) @ rotation)

        spread = ClassSpread(50).double()
        spread.add(draw(40, 30).flatten(0, 1), nn.functional.one_hot(torch.arange(40).repeat_interleave(30)).double())
        axes = {"raw": torch.eye(50).double(), "EST": torch.eye(50).double() if off else spread.axes(5, 0.1)}
        for k in (1, 20):
            scores: dict[str, list[float]] = {name: [] for name in axes}
            for _ in range(100):
                x = draw(5, k + 10)
                for name, v in axes.items():
                    support, query = (x[:, :k] @ v).flatten(0, 1), (x[:, k:] @ v).flatten(0, 1)
                    w, b = prototype_head(support, nn.functional.one_hot(torch.arange(5).repeat_interleave(k)).double())
                    guess = (query @ w.T + b).argmax(dim=1)
                    scores[name].append(float((guess == torch.arange(5).repeat_interleave(10)).double().mean()))
            for name, each in scores.items():
                right.setdefault(f"{name}, {k} shots", []).append(float(np.mean(each)))
        gains.append(right["EST, 1 shots"][-1] - right["raw, 1 shots"][-1])
    effect("accuracy of one shot of 5 classes above raw states'", gains, at_least=0.1, beside=right)
