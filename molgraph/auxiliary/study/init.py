"""Measure what random labels teach the first layer of a perceptron, and whether weights drawn that way train faster."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch

from molgraph.base.ranges import Count, Range, Width
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.nn.covariance_init import covariance_weights, misalignment, transfer, weight_covariance
from molgraph.study.descriptor_rows import descriptor_rows
from molgraph.study.small_perceptron import Perceptron, make_perceptron, train_perceptron
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject

FEWEST = 40  # rows


def aligned(network: Perceptron, data: np.ndarray, scale: np.ndarray, seed: int) -> Perceptron:
    """The network with first-layer weights drawn along the eigenvectors of the data, of the norm that it has."""
    w = network.first.weight
    weights = covariance_weights(len(w), data, scale, float(w.detach().norm()), seed)
    with torch.no_grad():
        w.copy_(torch.from_numpy(weights))
    return network


@register(
    "study",
    "init",
    summary="whether weights along the data's own directions train faster than random ones",
    paper="Maennel et al. 2020, NeurIPS",
    systems=(
        SystemCard(
            "weight-data-covariance-alignment",
            left_out="convolutions and deeper layers; how specialised neurons make transfer negative",
            off="'init(pretrain=false)'",
            beside=("random weights of equal norm",),
            command="molgraph study init dataset:esol -o init.csv",
            modules=(
                "molgraph.nn.covariance_init",
                "molgraph.study.small_perceptron",
                "molgraph.study.descriptor_rows",
            ),
        ),
    ),
)
class InitStudy(Study):
    """A row for each repeat: misalignment before and after random labels, and steps to a loss from three starts.

    Maennel et al. 2020: trained on random labels, the covariance of first-layer weights takes the eigenvectors of the
    data's, and only its eigenvalues are learnt, ``f(sigma)``. Drawing weights from ``N(0, V f(Lambda)^2 V')`` then
    gives most of what starting from the trained weights gives. The perceptron reads the first principal components of
    RDKit's descriptors, turned at random so that no direction is an axis. ``aligned`` weights are such draws of the
    norm of the random ones, ``fine_tuned`` the first layer that learnt the shuffled labels, scaled to that norm.
    Controls: a covariance with the data's eigenvectors has misalignment 0, and one without has more.

    Args:
        components: principal components.
        width: hidden units.
        steps: of each training.
        goal: the loss that steps are counted to, as a share of the variance of the labels.
        repeats: draws of weights and of shuffled labels.
        rows: that are used, at most, drawn at random.
        pretrain: whether ``f`` is of weights that learnt random labels, else of the first ones.

    Raises:
        LabelError: no target of rows, or fewer than 40 labelled molecules.
    """

    small = MappingProxyType({"steps": 60, "repeats": 2, "rows": 100, "components": 6, "width": 32})

    def __init__(
        self,
        *,
        components: Annotated[int, Range(2, 64)] = 20,
        width: Width = 256,
        steps: Count = 600,
        goal: Annotated[float, Range(0, 1, above=True)] = 0.2,
        repeats: Count = 5,
        rows: Annotated[int, Range(FEWEST, 1_000_000)] = 600,
        pretrain: bool = True,
    ) -> None:
        self.components, self.width, self.steps, self.goal = components, width, steps, goal
        self.repeats, self.rows, self.pretrain = repeats, rows, pretrain

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Learn shuffled labels, draw weights, and count steps."""
        every, labels, target, notes = descriptor_rows(subject, rows=self.rows, fewest=FEWEST, seed=seed)
        x, y = turned_components(every, self.components, seed), (labels - labels.mean()) / max(labels.std(), 1e-12)
        rows = [self.repeat(x, y, derive(seed, "repeat", i)) for i in range(self.repeats)]
        frame = pd.DataFrame(rows)
        mean = frame.mean()
        words = (
            f"Random labels bring the misalignment from {mean['before']:.2f} to {mean['after']:.2f}. "
            f"To {self.goal:.0%} of the variance random weights take {mean['random']:.0f} steps, aligned ones "
            f"{mean['aligned']:.0f}, fine-tuned ones "
            f"{mean['fine_tuned']:.0f} (means of {len(frame)}; {self.steps + 1} is never)."
        )
        data = weight_covariance(x)
        v = np.linalg.eigh(data)[1]
        scale = np.linspace(1, 3, len(data))
        q = np.linalg.qr(generator(seed, "turn").normal(size=data.shape))[0]
        shared, other = (misalignment((u * scale) @ u.T, data) for u in (v, v @ q))
        return Findings(
            f"First-layer weights for {target.name}: {len(x):,} rows", words, frame,
            Control("a covariance of other eigenvectors", "above 0.1", f"{other:.2f}", other > 0.1),
            Control("a covariance of equal eigenvectors", "0", f"{shared:.1g}", abs(shared) < 1e-8),
            notes=tuple(notes),
        )  # fmt: skip

    def repeat(self, x: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Any]:
        """One draw: misalignment before and after, and steps from each start."""
        data, shuffled = weight_covariance(x), generator(seed, "labels").permutation(y)
        network = make_perceptron(x.shape[1], self.width, seed)
        first = network.first.weight.detach().numpy().copy()
        if self.pretrain:
            train_perceptron(network, x, shuffled, self.steps)
        last = network.first.weight.detach().numpy().copy()
        starts = {name: make_perceptron(x.shape[1], self.width, derive(seed, "new")) for name in ("random", "aligned")}
        aligned(starts["aligned"], data, transfer(last, data), seed)
        starts["fine_tuned"] = make_perceptron(x.shape[1], self.width, derive(seed, "new"))
        with torch.no_grad():
            weight = starts["fine_tuned"].first.weight
            weight.copy_(torch.from_numpy(last * (float(weight.norm()) / np.linalg.norm(last))))
        steps = {name: train_perceptron(start, x, y, self.steps).steps_to(self.goal) for name, start in starts.items()}
        before, after = (misalignment(weight_covariance(w), data) for w in (first, last))
        return {"before": before, "after": after, **steps}


def turned_components(x: np.ndarray, d: int, seed: int) -> np.ndarray:
    """float64 [n, d]: the first principal components, of mean variance 1, turned by a random orthogonal matrix."""
    u, s, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    z = (u * s)[:, :d]
    z /= np.sqrt((z**2).mean())
    return np.asarray(z @ np.linalg.qr(generator(seed, "components").normal(size=(z.shape[1],) * 2))[0])
