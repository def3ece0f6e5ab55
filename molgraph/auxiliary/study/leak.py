"""Estimate the mutual information of vectors with scaffolds or a target, in bits, by a neural network (MINE)."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from sklearn.linear_model import LogisticRegression, RidgeCV
from torch import Tensor, nn

from molgraph.base.ranges import Count, Width
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.embed.labelled import About, Labelled, labelled_vectors
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.train.runtime import torch_settings

BATCH, RATE, KEEP, CHECK = 256, 1e-3, 0.99, 25  # pairs of a step; Adam; of the moving average; steps between checks
PRODUCTS, CHEAP, SHARES = 20, 4, (0.5, 0.2)  # shuffles of test and of validation pairs; train and validation shares
NATS = float(np.log(2))  # of a bit
TOY, RHO, CONTROL = 3_000, 0.9, 800  # pairs of the controls, their correlation, and steps of training


def donsker_varadhan(joint: Float[Tensor, " n"], product: Float[Tensor, " m"]) -> Float[Tensor, ""]:
    """``E_P[T] - log E_Q[exp T]``, a lower bound of the divergence of P from Q, in nats.

    Donsker and Varadhan 1983; Belghazi et al. 2018, "Mutual Information Neural Estimation", equation 5. It is reached
    by ``T = log dP/dQ`` plus any constant, and it is 0 where T is constant.

    Args:
        joint, product: values of T for samples of P (pairs that belong together) and of Q (shuffled ones).

    Example:
        >>> float(donsker_varadhan(torch.ones(3), torch.ones(5)).abs() < 1e-6)
        1.0
    """
    return joint.mean() - (product.logsumexp(0) - float(np.log(len(product))))


class Critic(nn.Module):
    """T(x, y): a perceptron of two hidden layers that begins as the constant 0."""

    def __init__(self, d_x: int, d_y: int, d_hidden: int) -> None:
        super().__init__()
        last = nn.Linear(d_hidden, 1)
        nn.init.zeros_(last.weight), nn.init.zeros_(last.bias)
        hidden = (nn.Linear(d_x + d_y, d_hidden), nn.ELU(), nn.Linear(d_hidden, d_hidden), nn.ELU())
        self.net = nn.Sequential(*hidden, last)

    def forward(self, x: Float[Tensor, "n dx"], y: Float[Tensor, "n dy"]) -> Float[Tensor, " n"]:
        """The statistic of each pair."""
        return self.net(torch.cat([x, y], dim=1))[:, 0]


class Estimate(NamedTuple):
    """Mutual information in nats on rows that were held out, its standard error, and steps of training."""

    nats: float
    error: float
    steps: int


def mine(
    x: np.ndarray, y: np.ndarray, *, steps: int = 1500, d_hidden: int = 64, seed: int = 0, seconds: float = SECONDS
) -> Estimate:
    """The Donsker-Varadhan bound on the mutual information of x and y by a trained critic, on held-out rows.

    Belghazi et al. 2018, algorithm 1. The logarithm makes gradients of batches biased: as in section 3.2, the
    denominator of ``E_Q[grad T exp T] / E_Q[exp T]`` is a moving average over steps. Half of the rows train, 20% choose
    the step, and the estimate is taken on the others; where no step is better than the constant critic, it is 0.

    Args:
        x, y: float [n, d_x], [n, d_y], row beside row.
        steps: of Adam, in batches of 256 pairs.
        d_hidden: width of the critic.
        seed: of the division, the weights and the batches.
        seconds: of CPU time.
    """
    n, end = len(x), time.process_time() + seconds
    order = generator(seed, "mine").permutation(n)
    cuts = np.cumsum([max(round(share * n), 2) for share in SHARES])
    train, valid, test = (torch.from_numpy(rows) for rows in np.split(order, cuts))
    a, b = (_scaled(array, order[: cuts[0]]) for array in (x, y))
    with torch_settings(1, derive(seed, "mine")):
        critic = Critic(a.shape[1], b.shape[1], d_hidden)
        optimiser = torch.optim.Adam(critic.parameters(), RATE)
        best, kept, average, done = 0.0, {k: v.clone() for k, v in critic.state_dict().items()}, 1.0, 0
        for step in range(1, steps + 1):
            rows = train[torch.randint(len(train), (BATCH,))]
            others = train[torch.randint(len(train), (BATCH,))]
            joint, product = critic(a[rows], b[rows]), critic(a[rows], b[others])
            average = KEEP * average + (1 - KEEP) * float(product.detach().exp().mean())
            optimiser.zero_grad()
            (product.exp().mean() / average - joint.mean()).backward()
            nn.utils.clip_grad_norm_(critic.parameters(), 1.0)
            optimiser.step()
            if step % CHECK == 0 or step == steps:
                value, done = _bound(critic, a, b, valid, CHEAP)[0], step
                if value > best:
                    best, kept = value, {k: v.clone() for k, v in critic.state_dict().items()}
                if time.process_time() > end:
                    break
        critic.load_state_dict(kept)
        return Estimate(*_bound(critic, a, b, test), done)


@torch.no_grad()
def _bound(critic: Critic, a: Tensor, b: Tensor, rows: Tensor, products: int = PRODUCTS) -> tuple[float, float]:
    """The bound on some rows, against several cyclic shifts of them, and its standard error."""
    joint = critic(a[rows], b[rows])
    shifts = np.unique(np.linspace(1, len(rows) - 1, min(products, len(rows) - 1)).astype(int))
    product = torch.cat([critic(a[rows], b[rows.roll(int(shift))]) for shift in shifts])
    ratio = (product - product.logsumexp(0)).exp() * len(product)
    error = (joint.var() / len(joint) + ratio.var() / len(rows)) ** 0.5
    return float(donsker_varadhan(joint, product)), float(error)


def _scaled(x: np.ndarray, rows: np.ndarray) -> Tensor:
    """In standard deviations of some rows; a column that is constant there is 0."""
    mean, spread = x[rows].mean(axis=0), x[rows].std(axis=0)
    scaled = np.where(spread > 1e-9, (x - mean) / np.where(spread > 1e-9, spread, 1.0), 0.0)
    return torch.from_numpy(scaled.clip(-10, 10).astype(np.float32))


@register(
    "study",
    "leak",
    summary="how many bits about scaffolds or a target the vectors of an encoder hold",
    paper="Belghazi et al. 2018, ICML",
    systems=(
        SystemCard(
            "mine",
            left_out="the uses in training: generators that keep information, and the information bottleneck",
            off="leak(steps=1)",
            beside=("shuffled labels", "a linear model's bound"),
            command="molgraph study leak dataset:esol -m encoder.mgm -o leak.csv",
            modules=("molgraph.embed.labelled",),
        ),
    ),
)
class Leak(Study):
    """Mutual information of vectors and a label, in bits, by the Donsker-Varadhan bound on held-out rows.

    Data are vectors as ``molgraph embed`` writes them, or molecules with the file of an encoder (``-m``). Beside stand
    the entropy of the label, the bound of a linear model (what it predicts better than the frequencies), and the
    estimate for shuffled labels. Controls: two Gaussian variables with a correlation of 0.9, which share 1.20 bits, and
    the same in shuffled order. An estimate is a lower bound, and needs some thousand rows to be a close one.

    Args:
        about: ``scaffold``, or ``target``: the first target of the table.
        classes: scaffolds that are classes of their own, the most frequent ones.
        steps: of training.
        d_hidden: width of the critic.
    """

    reads = "vectors"
    small = MappingProxyType({"steps": 100, "classes": 3})

    def __init__(
        self, *, about: About = "scaffold", classes: Count = 12, steps: Count = 1500, d_hidden: Width = 64
    ) -> None:
        self.about, self.classes, self.steps, self.d_hidden = about, classes, steps, d_hidden

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Estimate four times: the labels, shuffled ones, and both controls."""
        model = None if subject.model is None else subject.fitted()
        rows = labelled_vectors(subject.data, model, subject.columns, self.about, self.classes)
        y = np.eye(len(rows.classes))[rows.y.astype(int)] if rows.classes else rows.y[:, None]
        rng = generator(seed, "leak")
        a = rng.standard_normal((TOY, 1))
        b = RHO * a + (1 - RHO**2) ** 0.5 * rng.standard_normal((TOY, 1))
        pairs = ((rows.x, y), (rows.x, rng.permutation(y)), (a, b), (a, rng.permutation(b)))
        how: dict[str, Any] = {"d_hidden": self.d_hidden, "seed": seed, "seconds": seconds / 4}
        steps = (self.steps, self.steps, CONTROL, 100)
        ours, shuffled, planted, none = (mine(*p, steps=n, **how) for p, n in zip(pairs, steps, strict=True))
        linear, entropy = linear_bits(rows, seed), rows.entropy
        frame = pd.DataFrame(
            [(rows.about, ours.nats / NATS, ours.error / NATS, linear, entropy),
             ("shuffled", shuffled.nats / NATS, shuffled.error / NATS, np.nan, entropy)],
            columns=["about", "bits", "se", "linear", "entropy"],
        ).replace(np.inf, np.nan)  # fmt: skip
        share = f" of its {entropy:.2f}" if np.isfinite(entropy) else ""
        words = (
            f"The vectors hold at least {ours.nats / NATS:.2f}{share} bits about {rows.about}; a linear model reads "
        )
        true, limit = -0.5 * np.log2(1 - RHO**2), max(0.03, 2 * none.error / NATS)
        notes = [f"{rows.left_out:,} rows without a vector or a label are left out"] * bool(rows.left_out)
        notes += [f"{ours.steps} of {self.steps} steps: more take more time"] * (ours.steps < self.steps)
        got, nothing = planted.nats / NATS, none.nats / NATS
        return Findings(
            f"Information about {rows.about} in {len(rows.x):,} vectors of width {rows.x.shape[1]}",
            f"{words}reads {linear:.2f}, and shuffled labels give {shuffled.nats / NATS:.2f}.",
            frame,
            Control("Gaussians with a correlation of 0.9", f"{true:.2f} bits", f"{got:.2f}", abs(got - true) < 0.2),
            Control("the same in shuffled order", "0 bits", f"{nothing:.2f}", abs(nothing) <= limit),
            notes=tuple(notes),
        )


def linear_bits(rows: Labelled, seed: int) -> float:
    """The bits by which a linear model predicts held-out labels better than their frequencies; 0 where it is worse.

    A lower bound too (Barber and Agakov 2003): the entropy less the cross-entropy, or for numbers that of a Gaussian.
    """
    order = generator(seed, "linear").permutation(len(rows.y))
    cut = round(0.7 * len(order))
    train, test = order[:cut], order[cut:]
    x = _scaled(rows.x, train).numpy()
    if not rows.classes:
        guess = RidgeCV(np.logspace(-2, 4, 13)).fit(x[train], rows.y[train]).predict(x[test])
        plain = ((rows.y[test] - rows.y[train].mean()) ** 2).mean()
        return max(float(0.5 * np.log2(plain / max(((rows.y[test] - guess) ** 2).mean(), 1e-12))), 0.0)
    n = len(rows.classes)
    counts = np.bincount(rows.y[train].astype(int), minlength=n) + 1.0
    if np.count_nonzero(counts > 1) < 2:
        return 0.0
    model = LogisticRegression(C=0.1, max_iter=300).fit(x[train], rows.y[train].astype(int))
    shares = np.full((len(test), n), 1e-9)
    shares[:, model.classes_] = model.predict_proba(x[test])
    shares = 0.99 * shares + 0.01 * counts / counts.sum()
    place = np.arange(len(test)), rows.y[test].astype(int)
    return max(float(np.log2(shares[place]).mean() - np.log2((counts / counts.sum())[place[1]]).mean()), 0.0)
