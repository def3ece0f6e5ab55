"""Count factors of molecule vectors that differ between scaffolds or classes, by a normalizing flow (GIN)."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import pandas as pd

from molgraph.base.errors import LabelError
from molgraph.base.ranges import Count, Range, Width
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.systems import SystemCard
from molgraph.embed.factors import BETWEEN, LARGE, explained, fit_factors, held_out
from molgraph.embed.labelled import About, labelled_vectors
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject

TOY, WIDE, FIXED = 4000, 10, 4  # rows, width and seed of the data of controls; the flow has the seed of the study


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
            modules=("molgraph.embed.labelled", "molgraph.embed.factors", "molgraph.nn.incompressible_flow"),
        ),
    ),
)
class FactorStudy(Study):
    """Factors of vectors given their class, sorted by deviation; directions of noise come last.

    Data are vectors as ``molgraph embed`` writes them, or molecules with the file of an encoder (``-m``); the flow acts
    on their first principal components, which stand beside. A factor counts that has a tenth of the largest deviation,
    and a tenth of whose variance in held-out rows lies between classes. Controls: two factors of five classes in ten
    dimensions, bent by a fixed map, and the same rows with shuffled classes.
    The spectrum varies with the seed, so run several: of eight artificial sets and seeds, one had a ratio of deviations
    below 5, one a correlation with the true factors below 0.9, and one a count other than two.

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
        none = fit_factors(x, generator(seed, "shuffled").permutation(of), steps=min(self.steps, 100), **how)
        order, cut = held_out(len(parts), seed)
        frame = pd.DataFrame(
            {"factor": np.arange(1, len(ours.sd) + 1), "sd": ours.sd, "between": ours.between,
             "component_sd": parts.std(axis=0), "component_between": explained(parts[order], groups[order], cut),
             "gain": ours.gain}
        )  # fmt: skip
        linear = int(((frame["component_sd"] >= LARGE) & (frame["component_between"] >= BETWEEN)).sum())
        d, n = parts.shape[1], len(np.unique(groups))
        words = (
            f"{ours.differing} of {d} factors differ between the classes of {rows.about}, and {linear} of {d} "
            f"principal components; log density of held-out rows above that of components: {ours.gain:+.1f} nats a row."
        )
        controls = (
            Control("two bent factors in ten dimensions", "2 factors", f"{planted.differing}", planted.differing == 2),
            Control("the same with shuffled classes", "0 factors", f"{none.differing}", none.differing == 0),
        )
        notes = [f"{rows.left_out:,} rows without a vector or a label are left out"] * bool(rows.left_out)
        short = min(ours.steps, planted.steps)
        notes += [f"{short} of {self.steps} steps: more take more time"] * (short < self.steps)
        notes += ["the flow is no better than components in held-out rows: read those"] * (ours.gain <= 0)
        notes += ["a control does not hold: nothing can be read from these factors"] * (
            not all(control.holds for control in controls)
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
