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
from molgraph.nn.incompressible_flow import IncompressibleFlow
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.train.runtime import torch_settings

BATCH, RATE, DECAY, BLOCKS = 1000, 1e-2, 0.5, 4  # rows of a step; AdamW's settings; pairs of couplings
LARGE, BETWEEN = 0.1, 0.1  # of the largest deviation; of the variance of a factor that lies between classes
TOY, WIDE, FIXED = 4000, 10, 4  # rows, width and seed of the data of controls; the flow has the seed of the study
PRIOR = 5.0  # rows of the deviation of all classes that are added to each class
TRAIN, CHECK = 0.7, 25  # share of the rows to train on; steps between two looks at the rows for stopping


class Factors(NamedTuple):
    """Factors of rows in the order of their deviation, the largest first.

    Args:
        z: float64 [n, d].
        sd: float64 [d]: the deviation of each within classes and between them together.
        between: float64 [d]: the share of the variance of held-out rows that the means of their classes explain.
        gain: nats of log density for each held-out row above those of the vectors themselves.
        steps: of training.
    """

    z: np.ndarray
    sd: np.ndarray
    between: np.ndarray
    gain: float
    steps: int

    @property
    def count(self) -> int:
        """Factors with a tenth of the largest deviation, a tenth of whose variance lies between classes."""
        return int(((self.sd >= LARGE * self.sd[0]) & (self.between >= BETWEEN)).sum())


def class_moments(z: Float[Tensor, "n d"], of: Int[Tensor, " n"], k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and variance of each class [k, d], and its share of the rows [k, 1].

    Five rows of the variance within all classes are added to each class, so that a class of a few rows cannot shrink.
    """
    member = nn.functional.one_hot(of, k).to(z.dtype)
    counts = member.sum(dim=0)[:, None]
    mean = member.T @ z / counts.clamp(min=1)
    square = (z - member @ mean) ** 2
    variance = (member.T @ square + PRIOR * square.mean(dim=0)) / (counts + PRIOR)
    return mean, variance.clamp(min=1e-8), counts / len(z)


def fit_factors(
    x: np.ndarray, classes: np.ndarray, *, steps: int, d_hidden: int = 48, seed: int = 0, seconds: float = SECONDS,
    incompressible: bool = True, unit: bool | None = None,
) -> Factors:  # fmt: skip
    """Train a flow on ``-log p(f(x) | class)``, and sort its factors.

    ``p(z | class)`` is a Gaussian with the mean and the deviations of the class in the batch, as in the authors' code,
    so that the loss is the mean log deviation. Factors can trade scale with each other at no cost; decay of the
    weights, which the paper does not have, keeps them near the scale of the vectors. The state is kept that describes
    rows for stopping best.

    Args:
        x: float [n, d], of one scale.
        classes: int [n].
        steps: of AdamW, in batches of 1,000 rows; the rate is 0.01, and a tenth of it after 60% of them.
        d_hidden, incompressible: of the flow.
        seed: of held-out rows, permutations, weights and batches.
        seconds: of CPU time.
        unit: whether the Gaussians have a deviation of 1, as they usually have where the volume is free, the default.
    """
    end, n, d = time.process_time() + seconds, *x.shape
    unit = not incompressible if unit is None else unit
    order, cut = held_out(n, seed)
    k = int(classes.max()) + 1
    rows, of = torch.from_numpy(x.astype(np.float32)), torch.from_numpy(classes.astype(np.int64))
    rows, of = rows[order], of[order]
    valid, test = slice(cut, (cut + n) // 2), slice((cut + n) // 2, n)
    with torch_settings(1, derive(seed, "gin-flow")):
        flow = IncompressibleFlow(d, BLOCKS, d_hidden, incompressible=incompressible)
        optimiser = torch.optim.AdamW(flow.parameters(), RATE, weight_decay=DECAY)
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, [int(0.6 * steps)])
        done, best, kept = 0, -float("inf"), flow.state_dict()
        while done < steps and time.process_time() < end:
            chosen = torch.randperm(cut)[:BATCH]
            if done % CHECK == 0 and (value := _density(flow, rows, of, cut, valid, k, unit)) > best:
                best, kept = value, {name: each.clone() for name, each in flow.state_dict().items()}
            z, volume = flow(rows[chosen])
            _, variance, share = class_moments(z, of[chosen], k)
            loss = (share * (variance if unit else variance.log())).sum() / 2 - volume.mean()
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
            optimiser.step()
            schedule.step()
            done += 1
        if _density(flow, rows, of, cut, valid, k, unit) <= best:
            flow.load_state_dict(kept)
        gain = _density(flow, rows, of, cut, test, k, unit) - _density(None, rows, of, cut, test, k, False)
        with torch.no_grad():
            z = flow(torch.from_numpy(x.astype(np.float32)))[0]
    factors = z.double().numpy()
    sd, between = factors.std(axis=0), explained(factors[order], classes[order], cut)
    rank = np.argsort(-sd, kind="stable")
    return Factors(factors[:, rank], sd[rank], between[rank], gain, done)


def held_out(n: int, seed: int) -> tuple[np.ndarray, int]:
    """Rows in random order, and where those end that are for training; half of the others say when to stop."""
    return generator(seed, "held-out rows").permutation(n), round(TRAIN * n)


@torch.no_grad()
def _density(flow: nn.Module | None, x: Tensor, of: Tensor, cut: int, rows: slice, k: int, unit: bool) -> float:
    """Mean log density of some rows, by the classes of rows before the cut, without its constant."""
    z, volume = (x, x.new_zeros(len(x))) if flow is None else flow(x)
    mean, variance, _ = class_moments(z[:cut], of[:cut], k)
    variance = torch.ones_like(variance) if unit else variance
    mean, variance = mean[of[rows]], variance[of[rows]]
    return float((volume[rows] - 0.5 * (variance.log() + (z[rows] - mean) ** 2 / variance).sum(dim=1)).mean())


def explained(z: np.ndarray, of: np.ndarray, cut: int) -> np.ndarray:
    """float64 [d]: R2 of the later half of the rows after the cut, predicted by means of classes before it."""
    test = (cut + len(z)) // 2
    first, last, center = z[:cut], z[test:], z[:cut].mean(axis=0)
    means = {c: first[of[:cut] == c].mean(axis=0) for c in np.unique(of[:cut])}
    guess = np.stack([means.get(c, center) for c in of[test:]])
    return 1 - ((last - guess) ** 2).mean(axis=0) / np.maximum(((last - center) ** 2).mean(axis=0), 1e-12)


@register(
    "study",
    "factors",
    summary="how many independent factors of vectors differ between scaffolds or classes",
    paper="Sorrenson et al. 2020, ICLR",
    systems=(
        SystemCard(
            "gin-flow",
            left_out="images; deviations as parameters of the classes, which began differently with each seed",
            off="factors(incompressible=false)",
            beside=("principal components", "RealNVP"),
            command="molgraph study factors dataset:esol -m encoder-descriptors -o factors.csv",
            modules=("molgraph.embed.labelled", "molgraph.nn.incompressible_flow"),
        ),
    ),
)
class FactorStudy(Study):
    """Factors of vectors given their class, sorted by deviation; directions of noise come last.

    Data are vectors as ``molgraph embed`` writes them, or molecules with the file of an encoder (``-m``); the flow acts
    on their first principal components, which stand beside. A factor counts that has a tenth of the largest deviation,
    and a tenth of whose variance in held-out rows lies between classes. Controls: two factors of five classes in ten
    dimensions, bent by a fixed map, and the same rows with shuffled classes.

    Args:
        about: ``scaffold``, or ``target``: classes of the first target; numbers are cut into five classes.
        classes: scaffolds that are classes of their own.
        components: principal components, at most.
        steps: of training.
        d_hidden: width of the flow's networks.
        incompressible: whether the volume is kept; else the deviation of every factor is near 1, and says nothing.
    """

    reads = "vectors"
    small = MappingProxyType({"steps": 60, "classes": 3, "components": 4})

    def __init__(
        self,
        *,
        about: About = "scaffold",
        classes: Count = 12,
        components: Annotated[int, Range(3, 256)] = 16,
        steps: Count = 800,
        d_hidden: Width = 48,
        incompressible: bool = True,
    ) -> None:
        self.about, self.classes, self.components, self.steps = about, classes, components, steps
        self.d_hidden, self.incompressible = d_hidden, incompressible

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Fit three times: the vectors, and both controls."""
        model = None if subject.model is None else subject.fitted()
        rows = labelled_vectors(subject.data, model, subject.columns, self.about, self.classes)
        edges = np.unique(np.quantile(rows.y, [0.2, 0.4, 0.6, 0.8]))
        groups = rows.y.astype(int) if rows.classes else np.searchsorted(edges, rows.y)
        parts = principal(rows.x, self.components)
        if parts.shape[1] < 3:
            raise LabelError("the vectors have fewer than three dimensions", hint="give wider vectors")
        how: dict[str, Any] = {"d_hidden": self.d_hidden, "seed": seed, "seconds": seconds / 3}
        how["incompressible"] = self.incompressible
        ours = fit_factors(parts, groups, steps=self.steps, **how)
        x, _, of = bent_toy(TOY, WIDE, FIXED)
        planted = fit_factors(x, of, steps=self.steps, **how)
        none = fit_factors(x, generator(seed, "shuffled").permutation(of), steps=100, **how)
        order, cut = held_out(len(parts), seed)
        frame = pd.DataFrame(
            {"factor": np.arange(1, len(ours.sd) + 1), "sd": ours.sd, "between": ours.between,
             "component_sd": parts.std(axis=0), "component_between": explained(parts[order], groups[order], cut)}
        )  # fmt: skip
        linear = int(((frame["component_sd"] >= LARGE) & (frame["component_between"] >= BETWEEN)).sum())
        d, n = parts.shape[1], len(np.unique(groups))
        words = f"{ours.count} of {d} factors differ between the classes of {rows.about}, and {linear} of {d} principal"
        words += f" components; the flow describes held-out rows by {ours.gain:+.1f} nats a row against components."
        controls = (
            Control("two bent factors in ten dimensions", "2 factors", f"{planted.count}", planted.count == 2),
            Control("the same with shuffled classes", "0 factors", f"{none.count}", none.count == 0),
        )
        notes = [f"{rows.left_out:,} rows without a vector or a label are left out"] * bool(rows.left_out)
        short = min(ours.steps, planted.steps)
        notes += [f"{short} of {self.steps} steps: more take more time"] * (short < self.steps)
        notes += ["the flow is no better than components in held-out rows: read those"] * (ours.gain <= 0)
        notes += ["a control does not hold: nothing can be read from these factors"] * (
            not all(each.holds for each in controls)
        )
        title = f"Factors of {len(rows.x):,} vectors, {d} principal components, by {n} classes of {rows.about}"
        return Findings(title, words, frame, *controls, notes=tuple(notes))


def principal(x: np.ndarray, most: int) -> np.ndarray:
    """float64 [n, d]: the first principal components, divided by the deviation of the first one."""
    u, s, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    kept = min(most, int((s > 1e-6 * max(s[0], 1e-12)).sum()))
    scores = (u * s)[:, :kept]
    return scores / max(scores[:, 0].std(), 1e-12) if kept else scores


def bent_toy(n: int, d: int, seed: int, classes: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors, their two true factors and classes: the paper's artificial data (section 4.1).

    Two Gaussian factors whose mean (-5 to 5) and deviation (0.5 to 3) depend on the class, and ``d - 2`` of noise with
    a deviation of 0.01, behind an invertible random map of coupling layers, which does not keep the volume.
    """
    rng = generator(seed, "bent toy")
    of = rng.integers(0, classes, n)
    centers, spread = rng.uniform(-5, 5, (classes, 2)), rng.uniform(0.5, 3, (classes, 2))
    true = centers[of] + spread[of] * rng.standard_normal((n, 2))
    z = np.concatenate([true, 0.01 * rng.standard_normal((n, d - 2))], axis=1)
    half = d // 2
    for _ in range(4):
        z = z[:, rng.permutation(d)]
        a, b = (rng.normal(size=(half, 16)) / half**0.5 for _ in range(2))
        c, e = (rng.normal(size=(16, d - half)) / 4 for _ in range(2))
        scale = 0.5 * np.tanh(np.tanh(z[:, :half] @ a / 2) @ c)
        z[:, half:] = z[:, half:] * np.exp(scale) + 1.5 * np.tanh(z[:, :half] @ b / 2) @ e
    return z / z.std(), true, of
