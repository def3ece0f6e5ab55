"""Measure the noise of policy-gradient estimates of a language model, by batch size: cosines, variance, signal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import LARGEST, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.chem.identity import canonical_smiles
from molgraph.generate.estimators.estimator import Episodes, make_estimator
from molgraph.generate.oracles.read_oracle import read_oracle
from molgraph.generate.policy import TOGETHER, Policy
from molgraph.generate.searches.written import Unit
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject

OUTCOMES, DRAWS = 200, 100  # of the control with a known gradient
CLOSE = 0.05  # of its cosines to theory
CHANCE = 0.2  # cosine of two estimates without a signal


class Agreement(NamedTuple):
    """How far several estimates of one gradient agree.

    Args:
        pairwise: mean cosine of two estimates.
        to_reference: mean cosine to a gradient of many more texts.
        signal: unbiased estimate of the squared length of the gradient.
        noise: the trace of an estimate's covariance.
    """

    pairwise: float
    to_reference: float
    signal: float
    noise: float

    @property
    def expected(self) -> float:
        """The cosine of two estimates that their signal and noise stand for."""
        return max(self.signal, 0.0) / (max(self.signal, 0.0) + self.noise + 1e-300)


def agreement(estimates: np.ndarray, reference: np.ndarray) -> Agreement:
    """Of float64 [repeats, d] independent estimates, beside the gradient float64 [d].

    Ilyas et al. 2020, section 3.1. With the gradient ``g`` and the covariance ``S`` of one text, two estimates from n
    texts each have about the cosine ``|g|^2 / (|g|^2 + tr S / n)``.

    Example:
        >>> found = agreement(np.array([[1.0, 1.0], [1.0, -1.0]]), np.array([1.0, 0.0]))
        >>> round(found.pairwise, 2), round(found.to_reference, 2), found.signal, found.noise
        (0.0, 0.71, 0.0, 2.0)
    """
    products, n = estimates @ estimates.T, len(estimates)
    lengths = np.sqrt(np.diag(products)) + 1e-300
    apart = ~np.eye(n, dtype=bool)
    cosines = (products / np.outer(lengths, lengths))[apart]
    to_reference = estimates @ reference / (lengths * (np.linalg.norm(reference) + 1e-300))
    noise = ((estimates - estimates.mean(axis=0)) ** 2).sum() / (n - 1)
    return Agreement(float(cosines.mean()), float(to_reference.mean()), float(products[apart].mean()), float(noise))


def bandit_agreement(n: int, seed: int) -> tuple[Agreement, float]:
    """How estimates of a softmax's gradient from n draws each agree, and the cosine by its exact terms."""
    rng = generator(seed, "bandit")
    p = np.exp(rng.normal(size=OUTCOMES))
    p, f = p / p.sum(), rng.normal(size=OUTCOMES)
    gain = f - p @ f
    g = p * gain
    trace = float(p @ (gain**2 * (1 - 2 * p + p @ p)) - g @ g)  # of gain (e_x - p)
    counts = rng.multinomial(n, p, size=DRAWS)
    weighed = counts * gain / n
    estimates = weighed - weighed.sum(axis=1, keepdims=True) * p
    return agreement(estimates, g), float(g @ g / (g @ g + trace / n))


class Rewarded:
    """Texts of a language model with their rewards, and the gradients that estimators make of them.

    Args:
        policy: the model.
        objective: an oracle, as ``molgraph optimise`` reads it.
    """

    def __init__(self, policy: Policy, objective: str) -> None:
        self.policy, self.oracle, self.unit = policy, read_oracle(objective), Unit()

    def draw(self, n: int, seed: int) -> tuple[list[list[int]], np.ndarray]:
        """The codes of n texts, and their scores; NaN of what is no molecule."""
        codes = self.policy.draw(n, seed)
        written = canonical_smiles(self.policy.texts(codes))
        distinct = [*dict.fromkeys(molecule.smiles for molecule in written if not molecule.reason)]
        known = dict(zip(distinct, self.oracle.score(distinct).value.tolist(), strict=True)) if distinct else {}
        score = np.array([np.nan if molecule.reason else known[molecule.smiles] for molecule in written])
        self.unit.widen(score)
        return codes, score

    def gradient(self, name: str, codes: Sequence[list[int]], reward: np.ndarray) -> np.ndarray:
        """float64 [d], the gradient of the expected reward by all weights, as the estimator of that name has it."""
        estimator = make_estimator(name)
        if estimator.distinct:
            raise UnsupportedError(f"{name} takes distinct texts, and this study draws independent ones")
        estimator.begin(self.policy.network.scores.in_features)
        estimator.to(self.policy.device)
        tokens = self.policy.tokens(codes)
        log_mu = tokens.log_p.detach()
        rewards = torch.from_numpy(reward).to(log_mu)
        loss = estimator(Episodes(tokens.log_p, log_mu, log_mu, tokens.mask, rewards, tokens.states.detach()))
        slopes = torch.autograd.grad(loss, [*self.policy.network.parameters()], allow_unused=True)
        return -torch.cat([slope.flatten() for slope in slopes if slope is not None]).double().cpu().numpy()


@register(
    "study",
    "policy-gradient",
    summary="how many texts a batch needs before the policy gradient of a language model is more than noise",
    paper="Ilyas et al. 2020, ICLR",
    systems=(
        SystemCard(
            "policy-gradient-diagnostics",
            left_out="the value network against the true value, and the landscape of the surrogate along a step",
            beside=("a softmax with a known gradient", "shuffled rewards"),
            modules=("molgraph.generate.policy", "molgraph.generate.estimators.reinforce"),
        ),
    ),
    command="molgraph study policy-gradient -m prior -o gradient.csv",
)
class PolicyGradient(Study):
    """Cosines, signal and noise of gradient estimates from batches of several sizes.

    Ilyas et al. 2020: at usual sizes two estimates agree little. Where the signal of a size is below its noise, larger
    batches help a search; where it is above and the search still stands still, the reward is to blame. Controls: a
    softmax over 200 outcomes has the cosines of its exact gradient, and shuffled rewards leave no signal.

    Args:
        objective: what texts are scored by, as ``molgraph optimise --oracle`` reads it.
        estimator: of the gradient, beside ``reinforce`` without a baseline.
        sizes: texts of a batch.
        repeats: batches of each size.
        reference: texts of the gradient that estimates are compared with.
    """

    needs = ("fitted",)
    reads = "texts"
    small = {"sizes": (8, 32), "repeats": 8, "reference": 128}  # noqa: RUF012 # settings of trials

    def __init__(
        self,
        *,
        objective: str = "qed",
        estimator: str = "reinforce",
        sizes: Sequence[int] = (16, 64, 256),
        repeats: Annotated[int, Range(3, 1000)] = 12,
        reference: Annotated[int, Range(8, LARGEST)] = 2048,
    ) -> None:
        self.objective, self.estimator, self.sizes = objective, estimator, tuple(sizes)
        self.repeats, self.reference = repeats, reference

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Draw, score and differentiate."""
        model = subject.fitted()
        language: Any = model.method
        if not hasattr(language, "log_prob"):
            hint = "train one: molgraph train-generator CORPUS -m language"
            raise UnsupportedError(f"{model.kind} is no language model", hint=hint)
        started, scored = time.process_time(), Rewarded(Policy(language), self.objective)
        with scored.policy.at_work():
            reference, batches = self._draws(scored, seed, started + seconds / 2)
            rows, seen = [], []
            for size in self.sizes:
                for name in dict.fromkeys((self.estimator, "reinforce(baseline=zero)")):
                    gradients = np.stack([scored.gradient(name, c[:size], r[:size]) for c, r in batches])
                    seen.append(agreement(gradients, reference))
                    rows.append({"texts": size, "estimator": name, **seen[-1]._asdict(), "expected": seen[-1].expected})
            size, rng = max(self.sizes), generator(seed, "shuffled")
            mixed = [(c[:size], rng.permutation(r[:size])) for c, r in batches]
            chance = agreement(np.stack([scored.gradient("reinforce", *one) for one in mixed]), reference)
        frame = pd.DataFrame(rows)
        best = frame[(frame["estimator"] == self.estimator) & (frame["texts"] == size)].iloc[0]
        enough = best["noise"] * size / best["signal"] if best["signal"] > 0 else np.inf
        exact = [bandit_agreement(n, seed) for n in (10, 100, 1000)]
        gap = max(abs(estimate.pairwise - known) for estimate, known in exact)
        words = f"about {enough:,.0f} texts" if np.isfinite(enough) else f"far more than {size:,} texts"
        figures = f"{best['pairwise']:.2f}, and {best['to_reference']:.2f} to that of {self.reference:,} texts"
        none = Control(
            "shuffled rewards", f"a cosine of 0 +- {CHANCE}", f"{chance.pairwise:.2f}", abs(chance.pairwise) < CHANCE
        )
        return Findings(
            f"Policy gradient of {model.name} by {self.objective}",
            f"Two estimates from {size:,} texts each have the cosine {figures}; signal and noise are equal at {words}.",
            frame,
            Control("a softmax with a known gradient", f"cosines within {CLOSE}", f"within {gap:.3f}", gap < CLOSE),
            none,
            None,
            () if len(batches) == self.repeats else (f"{len(batches)} of {self.repeats} batches, for want of time",),
        )  # fmt: skip

    def _draws(self, scored: Rewarded, seed: int, until: float) -> tuple[np.ndarray, list[tuple[Any, np.ndarray]]]:
        """The gradient of many texts, and scored batches of the largest size; at least three."""
        size = max(self.sizes)
        codes, score = scored.draw(self.reference, derive(seed, "reference"))
        reward = scored.unit(score)
        parts = [slice(start, start + TOGETHER) for start in range(0, len(codes), TOGETHER)]
        slopes = [scored.gradient("reinforce", codes[part], reward[part]) for part in parts]
        batches = list[tuple[Any, np.ndarray]]()
        for turn in range(self.repeats):
            if turn >= 3 and time.process_time() > until:
                break
            some, score = scored.draw(size, derive(seed, "batch", turn))
            batches.append((some, scored.unit(score)))
        return np.average(slopes, axis=0, weights=[len(codes[part]) for part in parts]), batches
