"""Compare how fast gradient descent, Bayes and a meta-learner learn each direction of descriptors from few labels."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Annotated

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import Ridge
from torch import Tensor, nn

from molgraph.base.errors import EmptyError
from molgraph.base.ranges import Count, Positive, Range, Width
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.systems import SystemCard
from molgraph.chem.smiles import parse_smiles
from molgraph.study.descriptor_rows import scaled_descriptors
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.train.runtime import torch_settings

FEWEST, TASKS, BATCH = 40, 400, 64  # rows; tasks of a curve; of a step of meta-training
SLOW = 0.5  # a mode is learnt once this share of its error is left


def descent_errors(s: np.ndarray, rate: float, steps: int) -> np.ndarray:
    """float64 [steps + 1, d]: ``(1 - rate s_k^2)^t``, the share of a mode's error that gradient descent leaves.

    Rabinowitz 2019, "Meta-learners' learning dynamics are unlike learners'", equation 3: with inputs of singular
    values ``s_k``, whole batches and weights that begin at 0.

    Example:
        >>> descent_errors(np.array([1.0, 0.5]), 0.5, 1).tolist()
        [[1.0, 1.0], [0.5, 0.875]]
    """
    return (1 - rate * np.asarray(s)[None] ** 2) ** np.arange(steps + 1)[:, None]


def half_life(errors: np.ndarray) -> np.ndarray:
    """float64 [d]: steps until half of each mode's error is left, between steps by a straight line in the logarithm.

    Args:
        errors: float64 [steps + 1, d], from 1 downwards; infinity where a half is never reached.
    """
    out = []
    for curve in np.maximum(np.asarray(errors, dtype=float).T, 1e-12):
        below = np.flatnonzero(curve <= SLOW)
        if not len(below) or not below[0]:
            out.append(math.inf if not len(below) else 0.0)
            continue
        i, (a, b) = int(below[0]), np.log(curve[below[0] - 1 : below[0] + 1])
        out.append(i - 1 + (a - math.log(SLOW)) / (a - b))
    return np.array(out)


def posterior_mean(x: np.ndarray, y: np.ndarray, noise: float) -> np.ndarray:
    """float64 [d]: ``(X'X + noise^2 I)^-1 X'y``, Bayes' weights for a prior N(0, I), which are those of a ridge."""
    return np.linalg.solve(x.T @ x + noise**2 * np.eye(x.shape[1]), x.T @ y)


class Tasks:
    """Linear tasks on modes: ``y = w x + noise`` with ``w ~ N(0, I)`` and ``x_k ~ N(0, s_k^2)``, row by row.

    Args:
        s: float64 [d].
        rows: of a task.
        noise: deviation.
    """

    def __init__(self, s: np.ndarray, rows: int, noise: float) -> None:
        self.s, self.rows, self.noise = torch.from_numpy(np.asarray(s, dtype=np.float32)), rows, noise

    def draw(self, n: int) -> tuple[Tensor, Tensor, Tensor]:
        """float32 [n, rows, d], [n, rows] and the weights [n, d], from torch's generator."""
        x, w = torch.randn(n, self.rows, len(self.s)) * self.s, torch.randn(n, len(self.s))
        return x, (x * w[:, None]).sum(2) + self.noise * torch.randn(n, self.rows), w


class MetaLearner(nn.Module):
    """A recurrent network that reads pairs and tells, after each, the value of any input by weights of its own.

    Args:
        d: modes.
        d_hidden: of the network.
    """

    def __init__(self, d: int, d_hidden: int) -> None:
        super().__init__()
        self.cell = nn.GRU(2 * d + 1, d_hidden, batch_first=True)
        self.weights = nn.Linear(d_hidden, d)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """float32 [n, rows + 1, d]: weights before the first pair and after each of x [n, rows, d] and y [n, rows]."""
        pairs = torch.cat([x, x * y[..., None], y[..., None]], dim=2)
        states, _ = self.cell(pairs)
        first = states.new_zeros(len(x), 1, states.shape[2])
        return self.weights(torch.cat([first, states], dim=1))


def meta_train(tasks: Tasks, steps: int, d_hidden: int, seed: int) -> MetaLearner:
    """Train it to predict the next row of tasks drawn anew at each step."""
    with torch_settings(1, derive(seed, "meta-learner")):
        network = MetaLearner(len(tasks.s), d_hidden)
        optimiser = torch.optim.Adam(network.parameters(), 5e-3)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(steps, 1))
        for _ in range(steps):
            x, y, _ = tasks.draw(BATCH)
            loss = ((network(x, y)[:, :-1] * x).sum(2) - y).square().mean()
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
        return network


def mode_errors(weights: np.ndarray, w: np.ndarray) -> np.ndarray:
    """float64 [rows + 1, d]: the mean squared error of each mode's weight as a share of its prior variance.

    Args:
        weights: float64 [n, rows + 1, d], estimates.
        w: float64 [n, d], the truth.
    """
    return ((weights - w[:, None]) ** 2).mean(axis=0) / (w**2).mean(axis=0)


@register(
    "study",
    "modes",
    summary="whether a learner of few labels learns all directions of descriptors at once, or large ones first",
    paper="Rabinowitz 2019",
    systems=(
        SystemCard(
            "mode-wise-learning-dynamics-of-meta-lear",
            left_out="frequencies of nonlinear functions, contextual bandits, and meta-learners of files",
            off="'modes(steps=1)'",
            beside=("gradient descent on rows", "Bayes' posterior mean"),
            command="molgraph study modes dataset:esol -o modes.csv",
        ),
    ),
)
class ModesStudy(Study):
    """A row for each mode: labels until half of its error is left, and the share left after all.

    Rabinowitz 2019: gradient descent learns large singular directions first, a meta-trained recurrent network learns
    all at about one rate, as Bayes' estimate under the tasks' prior does: it has learnt the prior. Modes are principal
    components of RDKit's descriptors of the molecules, tasks linear functions on them with weights from N(0, I). The
    learner ``descent`` takes a step on each row. Controls: the closed forms of gradient descent on whole batches, and
    of Bayes' weights as a ridge regression.

    Args:
        modes: principal components, the first and others of even spacing.
        labels: rows of a task.
        noise: deviation of labels.
        steps: of meta-training.
        d_hidden: of the recurrent network.
        rate: of gradient descent, as a share of the largest that is stable.

    Raises:
        EmptyError: fewer than 40 molecules.
    """

    small = MappingProxyType({"steps": 30, "d_hidden": 8})

    def __init__(
        self,
        *,
        modes: Annotated[int, Range(2, 16)] = 3,
        labels: Annotated[int, Range(2, 500)] = 30,
        noise: Positive = 0.1,
        steps: Count = 1500,
        d_hidden: Width = 64,
        rate: Annotated[float, Range(0, 1, above=True)] = 0.1,
    ) -> None:
        self.modes, self.labels, self.noise = modes, labels, noise
        self.steps, self.d_hidden, self.rate = steps, d_hidden, rate

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Meta-train, and learn many tasks by each learner."""
        table = subject.table()
        texts = [str(text) for text, ok in zip(table.smiles, table.ok, strict=True) if ok]
        texts = [text for text in texts if parse_smiles(text).mol is not None]
        if len(texts) < FEWEST:
            raise EmptyError(f"{len(texts)} molecules can be read, of {FEWEST} that are needed", hint="give more rows")
        s = np.linalg.svd(scaled_descriptors(texts), compute_uv=False)
        s = s[np.linspace(0, min(len(s) - 1, 4 * (self.modes - 1)), self.modes).round().astype(int)]
        s = s / s[0]
        curves = self.curves(s, seed)
        lives = {name: half_life(curve) for name, curve in curves.items()}
        left = {f"{name}_left": curve[-1] for name, curve in curves.items()}  # share of the error after all labels
        frame = pd.DataFrame({"mode": np.arange(1, len(s) + 1), "singular_value": s, **lives, **left})
        ratio = {
            name: float(life[-1] / max(life[0], 1e-9)) if math.isfinite(life[0]) else math.inf
            for name, life in lives.items()
        }
        words = (
            f"The last mode takes {ratio['descent']:.1f} times as many labels as the first by gradient descent, "
            f"{ratio['meta']:.1f} by a meta-trained network and {ratio['bayes']:.1f} by Bayes' estimate."
        )
        gap, ridge = descent_gap(s, seed), ridge_gap(s, self.noise, seed)
        return Findings(
            f"Modes of {len(texts):,} molecules", words, frame,
            Control("gradient descent on whole batches", "its closed form within 1e-6", f"{gap:.1g}", gap < 1e-6),
            Control("posterior means", "those of a ridge regression within 1e-8", f"{ridge:.1g}", ridge < 1e-8),
        )  # fmt: skip

    def curves(self, s: np.ndarray, seed: int) -> dict[str, np.ndarray]:
        """By learner: float64 [labels + 1, d], the share of each mode's error that is left."""
        tasks = Tasks(s, self.labels, self.noise)
        meta = meta_train(tasks, self.steps, self.d_hidden, seed)
        with torch_settings(1, derive(seed, "tasks")), torch.no_grad():
            x, y, w = tasks.draw(TASKS)
            guess = meta(x, y).double().numpy()
        a, b, truth = x.double().numpy(), y.double().numpy(), w.double().numpy()
        bayes, descent = np.zeros_like(guess), np.zeros_like(guess)
        rate = self.rate / max(float((s**2).sum()), 1e-12)
        for n in range(self.labels):
            error = b[:, n] - (descent[:, n] * a[:, n]).sum(axis=1)
            descent[:, n + 1] = descent[:, n] + 2 * rate * error[:, None] * a[:, n]
            bayes[:, n + 1] = [posterior_mean(p[: n + 1], q[: n + 1], self.noise) for p, q in zip(a, b, strict=True)]
        return {
            "descent": mode_errors(descent, truth),
            "meta": mode_errors(guess, truth),
            "bayes": mode_errors(bayes, truth),
        }


def descent_gap(s: np.ndarray, seed: int, steps: int = 40) -> float:
    """The largest difference of gradient descent on whole batches to ``descent_errors``."""
    d = len(s)
    q = np.linalg.qr(np.random.default_rng(derive(seed, "whole batches") % 2**32).normal(size=(4 * d, d)))[0]
    x, w, truth, errors = q * s, np.zeros(d), np.ones(d), [np.ones(d)]
    for _ in range(steps):
        w = w + 0.3 * x.T @ (x @ truth - x @ w)
        errors.append(truth - w)
    return float(np.abs(np.array(errors) - descent_errors(s, 0.3, steps)).max())


def ridge_gap(s: np.ndarray, noise: float, seed: int) -> float:
    """The largest difference of Bayes' weights to those of scikit-learn's ridge regression."""
    rng = np.random.default_rng(derive(seed, "ridge") % 2**32)
    x = rng.normal(size=(20, len(s))) * s
    y = x @ rng.normal(size=len(s)) + noise * rng.normal(size=20)
    ridge = Ridge(alpha=noise**2, fit_intercept=False, solver="cholesky").fit(x, y)
    return float(np.abs(ridge.coef_ - posterior_mean(x, y, noise)).max())
