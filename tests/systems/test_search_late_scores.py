"""V-trace: its targets against n-step returns and enumeration, and gradients from texts of an older model."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from molgraph.generate.estimators.estimator import Episodes, Estimator
from molgraph.generate.estimators.reinforce import Reinforce
from molgraph.generate.estimators.vtrace import VTrace, at_the_end, v_trace
from tests.systems.effect import Effect


@pytest.mark.system("impala-v-trace", rung="exact")
def test_on_policy_targets_are_the_n_step_returns(off: str) -> None:
    """The twin's actions were drawn by another policy."""
    rng = torch.Generator().manual_seed(0)
    reward, values = (torch.randn((4, 7), generator=rng).double() for _ in range(2))
    mask = torch.arange(7) < torch.tensor([7, 3, 1, 5])[:, None]
    reward, gamma = reward * mask, 0.9
    ratio = torch.full((4, 7), -0.3 if off else 0.0).double()
    targets, advantages = v_trace(ratio, reward, values, mask, discount=gamma)
    for row, n in enumerate(mask.sum(dim=1).tolist()):
        for place in range(n):
            rest = sum(gamma ** (i - place) * float(reward[row, i]) for i in range(place, n))
            assert float(targets[row, place]) == pytest.approx(rest, abs=1e-6)
            assert float(advantages[row, place]) == pytest.approx(rest - float(values[row, place]), abs=1e-6)
    assert not targets[~mask].any() and not advantages[~mask].any()


@pytest.mark.system("impala-v-trace", rung="exact")
def test_the_recursion_is_the_papers_sum(off: str) -> None:
    """Espeholt et al. 2018, equation 1, term by term, with weights that are cut; the twin cuts none."""
    rng, n, gamma, rho, c, trace = torch.Generator().manual_seed(1), 6, 0.95, 1.2, 0.8, 0.9
    ratio, reward, values = (torch.randn((1, n), generator=rng).double() for _ in range(3))
    cut = {} if not off else {"rho": torch.inf, "c": torch.inf}
    mask = torch.ones(1, n, dtype=torch.bool)
    targets, _ = v_trace(ratio, reward, values, mask, **{"rho": rho, "c": c, "trace": trace, "discount": gamma, **cut})
    w, r, v = ratio.exp()[0].tolist(), reward[0].tolist(), [*values[0].tolist(), 0.0]
    for s in range(n):
        total = v[s]
        for t in range(s, n):
            before = float(torch.tensor([trace * min(c, w[i]) for i in range(s, t)]).double().prod())
            total += gamma ** (t - s) * before * min(rho, w[t]) * (r[t] + gamma * v[t + 1] - v[t])
        assert float(targets[0, s]) == pytest.approx(total, rel=1e-6)


class Task:
    """All 81 texts of four tokens out of three, with a policy and an older one that are tables of each text so far."""

    def __init__(self, seed: int, apart: float = 1.0) -> None:
        rng = torch.Generator().manual_seed(seed)
        self.texts = torch.cartesian_prod(*[torch.arange(3)] * 4)
        self.states = torch.stack([self.texts[:, :t] @ 3 ** torch.arange(t) + (3**t - 1) // 2 for t in range(4)], dim=1)
        self.pi = torch.randn((40, 3), generator=rng).double()
        self.mu = (self.pi + apart * torch.randn((40, 3), generator=rng)).log_softmax(1)
        self.reward = torch.rand(81, generator=rng).double()

    def log_p(self, logits: Tensor) -> Tensor:
        return logits.log_softmax(1)[self.states].gather(2, self.texts[:, :, None])[:, :, 0]

    def values(self) -> Tensor:
        """float [40], the exact value of each text so far."""
        p = self.log_p(self.pi).exp()
        rest = p.flip(1).cumprod(dim=1).flip(1)  # of the tokens from here on
        out = torch.zeros(40).double()
        for t in range(4):
            out.index_add_(0, self.states[:, t], rest[:, t] * self.reward)
        return out

    def gradient(self) -> Tensor:
        leaf = self.pi.clone().requires_grad_()
        return torch.autograd.grad(self.log_p(leaf).sum(dim=1).exp() @ self.reward, leaf)[0]

    def episodes(self, leaf: Tensor) -> Episodes:
        """All texts; the state's number is the only column of the states' first 40."""
        states = torch.nn.functional.one_hot(self.states, 40).double()
        mask = torch.ones(81, 4, dtype=torch.bool)
        return Episodes(self.log_p(leaf), self.log_p(self.mu), self.log_p(self.mu), mask, self.reward, states)


@pytest.mark.system("impala-v-trace", rung="exact")
def test_the_mean_target_of_an_older_policy_is_the_new_ones_value(off: str) -> None:
    """By enumeration, without a largest weight; the twin has the weights of the paper's default, 1."""
    task, most = Task(0), 1.0 if off else torch.inf
    old, new = task.log_p(task.mu), task.log_p(task.pi)
    mask = torch.ones(81, 4, dtype=torch.bool)
    guess = torch.randn((81, 4), generator=torch.Generator().manual_seed(1)).double()[0].expand(81, 4)
    targets, _ = v_trace(new - old, at_the_end(task.reward, mask), guess, mask, rho=most, c=most)
    mean = old.sum(dim=1).exp() @ targets[:, 0]
    assert float(mean) == pytest.approx(float(new.sum(dim=1).exp() @ task.reward), rel=1e-9)
    assert float(task.values()[0]) == pytest.approx(float(mean), rel=1e-9)


def estimated(task: Task, estimator: Estimator, *, n: int = 16, repeats: int = 200, seed: int = 0) -> Tensor:
    """float [repeats, 120]: gradients from n texts of the older policy each; a value of states is the exact one."""
    rng, chance, slopes = torch.Generator().manual_seed(seed), task.log_p(task.mu).sum(dim=1).exp(), []
    if isinstance(estimator, VTrace):
        estimator.begin(40)
        estimator.double()
        estimator.value_of.weight.data[0] = task.values()
    leaf = task.pi.clone().requires_grad_()
    for _ in range(repeats):
        rows = torch.multinomial(chance, n, replacement=True, generator=rng)
        some = Episodes(*(value[rows] for value in task.episodes(leaf)))
        slopes.append(-torch.autograd.grad(estimator(some), leaf)[0].flatten())
    return torch.stack(slopes)


@pytest.mark.system("impala-v-trace", rung="works")
def test_gradients_from_texts_of_an_older_model_point_the_right_way(off: str, effect: Effect) -> None:
    """Mean cosine of an estimate from 16 late texts to the exact gradient, and that of the mean of all estimates."""
    made = {"reinforce without weights": Reinforce(), "no largest weight": VTrace(rho=1e9, c=1e9), "vtrace": VTrace()}
    one: dict[str, list[float]] = {name: [] for name in made}
    mean: dict[str, list[float]] = {f"{name}, mean of 200": [] for name in made}
    for seed in range(5):
        task = Task(seed)
        exact = task.gradient().flatten()
        for name, estimator in made.items():
            slopes = estimated(task, estimator, seed=seed)
            one[name].append(float(torch.cosine_similarity(slopes, exact[None]).mean()))
            mean[f"{name}, mean of 200"].append(float(torch.cosine_similarity(slopes.mean(dim=0), exact, dim=0)))
    plain = one.pop("reinforce without weights")
    new = one.pop("vtrace")
    gains = [0.0 if off else a - b for a, b in zip(new, plain, strict=True)]
    beside = {"vtrace": new, "reinforce without weights": plain, **one, **mean}
    effect("cosine - reinforce's", gains, at_least=0.03, beside=beside)
