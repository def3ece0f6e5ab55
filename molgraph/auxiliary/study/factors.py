"""Find how many independent factors of vectors differ between scaffolds or classes, by a volume-preserving flow."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from molgraph.base.errors import LabelError
from molgraph.base.ranges import Count, Range, Width
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.embed.labelled import About, labelled_vectors
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.train.runtime import torch_settings

BATCH, RATE, CLAMP = 256, 3e-3, 2.0  # rows of a step; Adam; largest log scale before the mean is taken off
LARGE, BETWEEN = 0.2, 0.2  # of the largest deviation; of the variance of a factor that lies between classes
TOY = 2_000  # rows of a control


class IncompressibleFlow(nn.Module):
    """An invertible map of constant volume: coupling layers whose log scales sum to zero.

    Sorrenson, Rother and Köthe 2020, "Disentanglement by nonlinear ICA with general incompressible-flow networks
    (GIN)", section 3: ``y1 = x1, y2 = x2 exp(s(x1)) + t(x1)`` with ``s_D = -sum_{i<D} s_i``, so that
    ``log |det J| = 0``, behind a fixed permutation in each block; no volume can be gained, and directions of noise keep
    their small deviation. It has nothing to do with the graph isomorphism network.

    Args:
        d: width, at least 3.
        blocks: of two couplings, so that each half changes the other.
        d_hidden: width of the networks of s and t.
        incompressible: whether the log scales sum to zero; else it is RealNVP (Dinh et al. 2017).
    """

    orders: Tensor

    def __init__(self, d: int, blocks: int, d_hidden: int, *, incompressible: bool = True) -> None:
        super().__init__()
        self.half, self.incompressible = d // 2, incompressible
        orders = [torch.randperm(d) for _ in range(2 * blocks)]
        self.register_buffer("orders", torch.stack(orders))
        self.nets = nn.ModuleList(_net(self.half, 2 * (d - self.half), d_hidden) for _ in orders)

    def forward(self, x: Float[Tensor, "n d"]) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
        """The factors of vectors, and ``log |det J|``."""
        volume = x.new_zeros(len(x))
        for order, net in zip(self.orders, self.nets, strict=True):
            x = x[:, order]
            first, second = x[:, : self.half], x[:, self.half :]
            scale, shift = self._scales(net, first)
            x = torch.cat([first, second * scale.exp() + shift], dim=1)
            volume = volume + scale.sum(dim=1)
        return x, volume

    def inverse(self, z: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """The vectors of factors."""
        for order, net in zip(self.orders.flip(0), [*self.nets][::-1], strict=True):
            first, second = z[:, : self.half], z[:, self.half :]
            scale, shift = self._scales(net, first)
            z = torch.cat([first, (second - shift) * (-scale).exp()], dim=1)[:, order.argsort()]
        return z

    def _scales(self, net: nn.Module, first: Tensor) -> tuple[Tensor, Tensor]:
        scale, shift = net(first).chunk(2, dim=1)
        scale = CLAMP * torch.tanh(scale / CLAMP)
        if self.incompressible:
            scale = torch.cat([scale[:, :-1], -scale[:, :-1].sum(dim=1, keepdim=True)], dim=1)
        return scale, shift


def _net(d_in: int, d_out: int, d_hidden: int) -> nn.Sequential:
    last = nn.Linear(d_hidden, d_out)
    nn.init.zeros_(last.weight), nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(d_in, d_hidden), nn.ReLU(), nn.Linear(d_hidden, d_hidden), nn.ReLU(), last)


class ClassGaussians(nn.Module):
    """``p(z | class)``: a diagonal Gaussian with a learned mean and deviation for each class."""

    def __init__(self, classes: int, d: int) -> None:
        super().__init__()
        self.mean, self.log_sd = nn.Parameter(torch.zeros(classes, d)), nn.Parameter(torch.zeros(classes, d))

    def fit(self, z: Float[Tensor, "n d"], of: Int[Tensor, " n"]) -> None:
        """Begin with the moments of each class: else the flow first trades deviations, which costs it nothing."""
        for c in of.unique().tolist():
            rows = z[of == c]
            self.mean.data[c] = rows.mean(dim=0)
            self.log_sd.data[c] = rows.std(dim=0, unbiased=False).clamp(min=1e-3).log()

    def loss(self, z: Float[Tensor, "n d"], of: Int[Tensor, " n"]) -> Float[Tensor, ""]:
        """Minus the log density, without its constant, divided by the width."""
        log_sd = self.log_sd[of]
        return (log_sd + 0.5 * ((z - self.mean[of]) * (-log_sd).exp()) ** 2).mean()


class Factors(NamedTuple):
    """Factors of rows in the order of their deviation, the largest first.

    Args:
        z: float64 [n, d].
        sd: float64 [d]: the deviation of each within classes and between them together.
        between: float64 [d]: the share of the variance that lies between classes.
        steps: of training.
    """

    z: np.ndarray
    sd: np.ndarray
    between: np.ndarray
    steps: int

    @property
    def count(self) -> int:
        """Factors with a fifth of the largest deviation, a fifth of whose variance lies between classes."""
        return int(((self.sd >= LARGE * self.sd[0]) & (self.between >= BETWEEN)).sum())


def fit_factors(
    x: np.ndarray, classes: np.ndarray, *, steps: int, blocks: int = 4, d_hidden: int = 48, seed: int = 0,
    seconds: float = SECONDS, incompressible: bool = True,
) -> Factors:  # fmt: skip
    """Train a flow on ``-log p(f(x) | class)`` and sort its factors.

    Args:
        x: float [n, d], of one scale.
        classes: int [n].
        steps: of Adam, in batches of 256 rows.
        blocks, d_hidden, incompressible: of the flow.
        seed: of permutations, weights and batches.
        seconds: of CPU time.
    """
    end, n = time.process_time() + seconds, len(x)
    rows, of = torch.from_numpy(x.astype(np.float32)), torch.from_numpy(classes.astype(np.int64))
    with torch_settings(1, derive(seed, "gin-flow")):
        flow = IncompressibleFlow(x.shape[1], blocks, d_hidden, incompressible=incompressible)
        prior = ClassGaussians(int(of.max()) + 1, x.shape[1])
        with torch.no_grad():
            prior.fit(flow(rows)[0], of)
        optimiser = torch.optim.Adam([*flow.parameters(), *prior.parameters()], RATE)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
        done = 0
        while done < steps and time.process_time() < end:
            chosen = torch.randint(n, (BATCH,))
            z, volume = flow(rows[chosen])
            optimiser.zero_grad()
            (prior.loss(z, of[chosen]) - volume.mean() / x.shape[1]).backward()
            nn.utils.clip_grad_norm_([*flow.parameters(), *prior.parameters()], 5.0)
            optimiser.step()
            schedule.step()
            done += 1
        with torch.no_grad():
            z = flow(rows)[0].double().numpy()
    sd = z.std(axis=0)
    means = np.stack([z[classes == c].mean(axis=0) for c in np.unique(classes)])
    counts = np.unique(classes, return_counts=True)[1][:, None]
    between = ((means - z.mean(axis=0)) ** 2 * counts).sum(axis=0) / n / np.maximum(sd**2, 1e-12)
    order = np.argsort(-sd, kind="stable")
    return Factors(z[:, order], sd[order], between[order], done)


@register(
    "study",
    "factors",
    summary="how many independent factors of vectors differ between scaffolds or classes",
    paper="Sorrenson et al. 2020, ICLR",
    systems=(
        SystemCard(
            "gin-flow",
            left_out="images; the way of a single factor back into molecules",
            off="factors(incompressible=false)",
            beside=("principal components", "RealNVP"),
            command="molgraph study factors dataset:esol -m encoder.mgm -o factors.csv",
            modules=("molgraph.embed.labelled",),
        ),
    ),
)
class FactorStudy(Study):
    """Factors of vectors given their class, sorted by deviation: those that differ between classes come first.

    Data are vectors as ``molgraph embed`` writes them, or molecules with the file of an encoder (``-m``); the flow acts
    on their first principal components. A factor counts that has a fifth of the largest deviation, and a fifth of whose
    variance lies between classes. Controls: two factors of five classes in six dimensions, bent by a fixed map, and the
    same rows with shuffled classes.

    Args:
        by: ``scaffold``, or ``target``: classes of the first target; numbers are cut into five classes.
        classes: scaffolds that are classes of their own.
        components: principal components, at most.
        steps: of training.
        d_hidden: width of the flow's networks.
        incompressible: whether the volume is kept; without, deviations say nothing.
    """

    reads = "vectors"
    small = MappingProxyType({"steps": 150, "classes": 3, "components": 4})

    def __init__(
        self,
        *,
        by: About = "scaffold",
        classes: Count = 12,
        components: Annotated[int, Range(3, 256)] = 16,
        steps: Count = 1500,
        d_hidden: Width = 48,
        incompressible: bool = True,
    ) -> None:
        self.by, self.classes, self.components, self.steps = by, classes, components, steps
        self.d_hidden, self.incompressible = d_hidden, incompressible

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Fit three times: the vectors, and both controls."""
        model = None if subject.model is None else subject.fitted()
        rows = labelled_vectors(subject.data, model, subject.columns, self.by, self.classes)
        edges = np.unique(np.quantile(rows.y, [0.2, 0.4, 0.6, 0.8]))
        groups = rows.y.astype(int) if rows.classes else np.searchsorted(edges, rows.y)
        components = principal(rows.x, self.components)
        if components.shape[1] < 3:
            raise LabelError("the vectors have fewer than three dimensions", hint="give wider vectors")
        how: dict[str, Any] = {"d_hidden": self.d_hidden, "seed": seed, "seconds": seconds / 3}
        ours = fit_factors(components, groups, steps=self.steps, incompressible=self.incompressible, **how)
        x, _, of = bent_toy(TOY, 6, seed)
        planted = fit_factors(x, of, steps=600, **how)
        none = fit_factors(x, generator(seed, "shuffled").permutation(of), steps=100, **how)
        spread = components.std(axis=0)
        frame = pd.DataFrame(
            {"factor": np.arange(1, len(ours.sd) + 1), "sd": ours.sd, "between": ours.between, "component_sd": spread}
        )
        notes = [f"{rows.left_out:,} rows without a vector or a label are left out"] * bool(rows.left_out)
        notes += [f"{ours.steps} of {self.steps} steps: more take more time"] * (ours.steps < self.steps)
        d, n = components.shape[1], len(np.unique(groups))
        return Findings(
            f"Factors of {len(rows.x):,} vectors, {d} principal components, by {n} classes of {rows.about}",
            f"{ours.count} of {d} factors differ between the classes of {rows.about}; the first has "
            f"{ours.between[0]:.0%} of its variance between them.",
            frame,
            Control("two bent factors in six dimensions", "2 factors", f"{planted.count}", planted.count == 2),
            Control("the same with shuffled classes", "0 factors", f"{none.count}", none.count == 0),
            notes=tuple(notes),
        )  # fmt: skip


def principal(x: np.ndarray, most: int) -> np.ndarray:
    """float64 [n, d]: the first principal components, divided by the deviation of the first one."""
    centred = x - x.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    kept = min(most, int((s > 1e-6 * max(s[0], 1e-12)).sum()))
    scores = (u * s)[:, :kept]
    return scores / max(scores[:, 0].std(), 1e-12) if kept else scores


def bent_toy(n: int, d: int, seed: int, classes: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors, their two true factors and classes: the paper's artificial data (section 4.1).

    Two Gaussian factors whose mean and deviation depend on the class, and ``d - 2`` of noise with a deviation of 0.01,
    behind an invertible random map of coupling layers.
    """
    rng = generator(seed, "bent toy")
    of = rng.integers(0, classes, n)
    centres, spread = rng.uniform(-4, 4, (classes, 2)), rng.uniform(0.4, 1.2, (classes, 2))
    true = centres[of] + spread[of] * rng.standard_normal((n, 2))
    z = np.concatenate([true, 0.01 * rng.standard_normal((n, d - 2))], axis=1)
    half = d // 2
    for _ in range(4):
        z = z[:, rng.permutation(d)]
        a, b = (rng.normal(size=(half, 16)) / half**0.5 for _ in range(2))
        c, e = (rng.normal(size=(16, d - half)) / 4 for _ in range(2))
        scale = 0.5 * np.tanh(np.tanh(z[:, :half] @ a / 2) @ c)
        z[:, half:] = z[:, half:] * np.exp(scale) + np.tanh(z[:, :half] @ b / 2) @ e
    return z / z.std(), true, of
