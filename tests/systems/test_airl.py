"""Adversarial inverse reinforcement learning: its shaping, a grid whose reward is known, and a simulated chemist."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from molgraph.generate.oracles.airl import BITS, Discriminator, Steps, describe
from tests.systems.effect import Effect

GAMMA, SEEDS = 0.9, 5
#: 5 x 6 cells, and the cell that each of four moves leads to
GRID = np.array(
    [
        [max(y - 1, 0) * 6 + x, min(y + 1, 4) * 6 + x, y * 6 + max(x - 1, 0), y * 6 + min(x + 1, 5)]
        for y in range(5)
        for x in range(6)
    ]
)
GROUPS = (("F", "Cl", "C", "CO", "N", "N#C"), ("F", "Cl", "C", "OC", "N", "C#N"), ("F", "Cl", "C", "OC", "N", "C#N"))
PLACES = [*product(range(6), repeat=3)]
SERIES = [f"{GROUPS[0][a]}c1cc({GROUPS[1][b]})cc(NC(=O)C{GROUPS[2][c]})c1" for a, b, c in PLACES]
EDITS = np.array(
    [[PLACES.index((*at[:k], v, *at[k + 1 :])) for k, v in product(range(3), range(6)) if v != at[k]] for at in PLACES]
)


def soft_policy(reward: np.ndarray, after: np.ndarray) -> np.ndarray:
    """float64 [states, actions], ``exp(Q - V)`` of soft value iteration."""
    value = np.zeros(len(reward))
    for _ in range(500):
        q = reward[:, None] + GAMMA * value[after]
        value = np.log(np.exp(q - q.max(axis=1, keepdims=True)).sum(axis=1)) + q.max(axis=1)
    return np.asarray(np.exp(q - value[:, None]))


def learned(x: np.ndarray, after: np.ndarray, expert: tuple[np.ndarray, np.ndarray], **how: bool) -> np.ndarray:
    """float64 [states], ``g`` from an expert's steps against some random ones from each of their states."""
    (s, t), rng = expert, np.random.default_rng(0)
    same = s.repeat(2 if len(x) == 30 else 8)
    other = after[same, rng.integers(after.shape[1], size=len(same))]
    log_pi = np.full(len(same), -np.log(after.shape[1]), np.float32)
    steps = Steps(x[s], x[t], log_pi[: len(s)]), Steps(x[same], x[other], log_pi)
    fit = {"ridge": 1e-5, "steps": 1000} if len(x) == 30 else {}  # until it converges
    return Discriminator(x.shape[1], GAMMA, **how).fit(*steps, **fit).rewards(x)


@pytest.mark.system("airl", rung="exact")
def test_the_shaping_telescopes_along_any_path(off: str) -> None:
    """``sum_t gamma^t (gamma h(s_t+1) - h(s_t)) = gamma^T h(s_T) - h(s_0)``; the twin's shaping has no discount."""
    net = Discriminator(6, 1.0 if off else GAMMA).double()
    torch.nn.init.normal_(net.h.weight)
    path = torch.randn(21, 6, dtype=torch.float64)
    powers = GAMMA ** torch.arange(20, dtype=torch.float64)
    total = (powers * net.shaping(path[:-1], path[1:])).sum()
    ends = net.h(path[[0, 20]])[:, 0]
    assert total.item() == pytest.approx((GAMMA**20 * ends[1] - ends[0]).item(), abs=1e-6)
    f = net(path[:-1], path[1:]) - net.g(path[:-1])[:, 0]
    assert torch.allclose(f, net.shaping(path[:-1], path[1:]))


@cache
def grid(seed: int, shaped: bool) -> tuple[float, float]:
    """Pearson's r of ``g`` and the reward, and the return of the plan by ``g`` without each cell's best move."""
    rng, cells = np.random.default_rng(seed), np.arange(30)
    reward = rng.random(30) ** 3
    policy = soft_policy(5 * reward, GRID)
    s = rng.integers(30, size=20_000)
    a = (policy[s].cumsum(axis=1) < rng.random(len(s))[:, None]).sum(axis=1).clip(0, 3)
    g = learned(np.eye(30, dtype=np.float32), GRID, (s, GRID[s, a]), shaped=shaped)
    blocked = policy.argmax(axis=1)

    def plan(x: np.ndarray) -> float:
        value = np.zeros(30)
        for _ in range(500):
            q = x[:, None] + GAMMA * value[GRID]
            q[cells, blocked] = -np.inf
            value = q.max(axis=1)
        moves = np.eye(30)[GRID[cells, q.argmax(axis=1)]]
        return float(np.linalg.solve(np.eye(30) - GAMMA * moves, reward).mean())

    return float(np.corrcoef(g, reward)[0, 1]), plan(g) / plan(reward)


@pytest.mark.system("airl", rung="works")
def test_g_is_the_reward_of_a_grid(off: str, effect: Effect) -> None:
    """30 cells, 20,000 moves of an expert; the twin has no h."""
    values = [grid(seed, not off)[0] for seed in range(SEEDS)]
    beside = {"without h": [grid(seed, False)[0] for seed in range(SEEDS)]}
    effect("Pearson's r of g and the reward", values, at_least=0.9, beside=beside)


@pytest.mark.system("airl", rung="works")
def test_plans_by_g_hold_where_other_moves_are_blocked(off: str, effect: Effect) -> None:
    """The best move of each cell is blocked; the twin has no h."""
    values = [grid(seed, not off)[1] for seed in range(SEEDS)]
    beside = {"without h": [grid(seed, False)[1] for seed in range(SEEDS)]}
    effect("return of the plan by g as a share of the optimal one", values, at_least=0.95, beside=beside)


@cache
def chemist(seed: int, how: str) -> float:
    """Spearman's rho of ``g`` and a hidden reward of 216 analogues, from 400 edits of a chemist who plans ahead."""
    rng = np.random.default_rng(seed)
    each = rng.normal(size=(3, 6))
    reward = np.array([sum(each[k, at[k]] for k in range(3)) for at in PLACES]) + 0.3 * rng.normal(size=216)
    policy = soft_policy((reward - reward.mean()) / reward.std(), EDITS)
    s, t = list[int](), list[int]()
    while len(s) < 400:
        here = int(rng.integers(216))
        for _ in range(4):
            s.append(here)
            here = int(EDITS[here, rng.choice(EDITS.shape[1], p=policy[here])])
            t.append(here)
    steps = (np.array(t), np.array(s)) if how == "reversed" else (np.array(s), np.array(t))
    if how == "shuffled":
        steps = steps[0], rng.permutation(steps[1])
    if how == "random":
        steps = steps[0], EDITS[steps[0], rng.integers(EDITS.shape[1], size=len(s))]
    assert describe(SERIES).shape == (216, BITS)
    g = learned(describe(SERIES), EDITS, steps, shaped=how != "without h")
    return float(spearmanr(g, reward)[0])


@pytest.mark.system(
    "airl",
    rung="works",
    twins=("random", "reversed"),
    null="of 400 edits the reward is read off how often each molecule comes, with the molecules after shuffled as well",
)
def test_the_hidden_reward_of_a_chemist_ranks_a_series(off: str, effect: Effect) -> None:
    """The twins are edits at random, and those of the chemist from after to before.

    What counts is the gain over the same edits with the molecules after shuffled.
    """
    every = {how: [chemist(seed, how) for seed in range(3)] for how in (off, "without h", "shuffled")}
    gain = (np.array(every[off]) - every["shuffled"]).tolist()
    beside = {how or "rho": values for how, values in every.items()}
    effect("Spearman's rho with a hidden reward, above that of shuffled edits", gain, at_least=0.05, beside=beside)
