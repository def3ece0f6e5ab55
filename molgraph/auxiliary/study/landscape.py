"""Draw the loss of a network around its weights, along random directions that are scaled to each filter's norm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from molgraph.base.errors import BadValueError
from molgraph.base.ranges import Count, Positive, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.systems import SystemCard
from molgraph.data.standardise import standardise
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.subject_model import judged
from molgraph.study.weight_space import Weights, WeightSpace, graph_method_of

SAME, OTHER, FACTOR = 1e-4, 0.1, 10.0  # relative differences of the controls; by which a layer is scaled
Losses = Callable[[Mapping[str, Tensor]], float]


def direction(weights: Mapping[str, Tensor], seed: int, *, normalise: bool = True) -> Weights:
    """A random direction, whose parts for each filter have the length of the filter's weights.

    Li et al. 2018, "Visualizing the loss landscape of neural nets", section 4: ``d_ij <- d_ij / ||d_ij|| ||theta_ij||``
    for filter j of layer i, a row of a matrix [out, in]. Biases, norms and other vectors stay where they are.

    Args:
        weights: by name; matrices float [out, in], or of more dimensions, whose first are filters.
        seed: of the Gaussian numbers.
        normalise: whether lengths are the filters'; else all are those of the Gaussian numbers.
    """
    rng, found = torch.Generator().manual_seed(seed % 2**63), {}
    for name, value in weights.items():
        if value.dim() < 2 or not value.is_floating_point():
            found[name] = torch.zeros_like(value)
            continue
        d = torch.randn(value.shape, generator=rng).to(value.dtype)
        if normalise:
            inner = tuple(range(1, value.dim()))
            d *= value.norm(dim=inner, keepdim=True) / d.norm(dim=inner, keepdim=True).clamp(min=1e-12)
        found[name] = d
    return found


def moved(weights: Mapping[str, Tensor], *steps: tuple[float, Weights]) -> Weights:
    """``theta + sum of share * direction``."""
    return {name: value + sum(a * d[name] for a, d in steps if a) for name, value in weights.items()}


def grid(loss: Losses, weights: Weights, at: np.ndarray, one: Weights, two: Weights) -> np.ndarray:
    """float64 [n, n]: the loss at ``theta + a one + b two``, a row for each b and a column for each a of float [n]."""
    return np.array([[loss(moved(weights, (float(a), one), (float(b), two))) for a in at] for b in at])


@register(
    "study",
    "landscape",
    summary="a picture of the loss around a network's weights, and how fast it rises",
    paper="Li et al. 2018, NeurIPS",
    systems=(
        SystemCard(
            "filter-normalised-loss-surface",
            left_out="paths of the training on its principal directions; images",
            off="'landscape(normalise=false)'",
            beside=("directions that are not normalised",),
            command="molgraph study landscape builtin:chembl2321810 -m 'gin(depth=2, epochs=9)' -o surface.csv",
            modules=("molgraph.study.weight_space",),
        ),
    ),
)
class LandscapeStudy(Study):
    """A row for each point of a plane through a network's weights: the steps along two directions, and the loss.

    Li et al. 2018, "Visualizing the loss landscape of neural nets": the directions are random, with each filter's part
    as long as the filter's weights, so that a step of 1 changes all layers alike, and networks that compute the same
    have the same picture. Losses are those of rows that the network did not learn from. ``-m`` is a file or a name.
    Controls: two networks that compute the same with layers of other scales, by normalised directions and by others.

    Args:
        n: points along each direction, an odd number.
        span: of the steps, on both sides.
        directions: further ones, along which the rise at half of the span is measured.
        normalise: whether directions have the filters' lengths.
        rows: of the table that are used, at most, drawn at random.
        epochs: of a network that is named, at most.

    Raises:
        BadValueError: an even n.
        UnsupportedError: a model that is no graph network of numbers or two classes.
    """

    needs = ("data", "graph_model")
    small = MappingProxyType({"n": 5, "directions": 2, "rows": 120, "epochs": 2})

    def __init__(
        self,
        *,
        n: Annotated[int, Range(3, 201)] = 21,
        span: Positive = 1.0,
        directions: Count = 10,
        normalise: bool = True,
        rows: Annotated[int, Range(20, 1_000_000)] = 1000,
        epochs: Count = 20,
    ) -> None:
        if n % 2 == 0:
            raise BadValueError(f"n is {n}", hint="an odd number has the model in the middle")
        self.n, self.span, self.directions, self.normalise = n, span, directions, normalise
        self.rows, self.epochs = rows, epochs

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Compute the plane, then the rise along further directions."""
        found = judged(subject, rows=self.rows, epochs=self.epochs, seed=seed)
        table = standardise(found.test, found.model.standardiser)
        space = WeightSpace(graph_method_of(found.model), table.take(np.flatnonzero(table.ok)), found.target)
        weights, at = space.weights, np.linspace(-self.span, self.span, self.n)

        def loss(there: Mapping[str, Tensor]) -> float:
            return float(space.losses_at(there).double().mean())

        def random(*words: Any) -> Weights:
            return direction(weights, derive(seed, "direction", *words), normalise=self.normalise)

        plane, middle = grid(loss, weights, at, random(0), random(1)), loss(weights)
        step = self.span / 2
        rises = np.array([loss(moved(weights, (step, random(2, i)))) - middle for i in range(self.directions)])
        error = rises.std(ddof=1) / np.sqrt(len(rises)) if len(rises) > 1 else np.nan
        gaps = [rescaled_gap(seed, normalise=each) for each in (True, False)]
        columns = {"first": np.tile(at, self.n), "second": np.repeat(at, self.n), "loss": plane.ravel()}
        low = float(plane.min())
        return Findings(
            f"Loss around {found.model.name}: {len(space.y):,} new rows of {found.target.name}",
            f"The loss is {middle:.3f} at the model and {low:.3f} at the lowest point of the plane; at a step of "
            f"{step:g} it rises by {rises.mean():.3g} ± {error:.2g} (standard error over {len(rises)} directions, "
            f"seed {seed}).",
            pd.DataFrame(columns),
            Control("equal networks, normalised", f"one picture within {SAME:g}", f"{gaps[0]:.2g}", gaps[0] < SAME),
            Control("equal networks, not normalised", f"differ by more than {OTHER:.0%}", f"{gaps[1]:.0%}",
                    gaps[1] > OTHER),
            lambda form: _drawn(at, plane, form),
            found.notes,
        )  # fmt: skip


def rescaled_gap(seed: int, *, normalise: bool) -> float:
    """The largest relative difference of the surfaces of two ReLU networks that compute the same.

    The second's first layer is 10 times as large, and its second layer a tenth of the first network's.
    """
    draws = torch.Generator().manual_seed(derive(seed, "rescaled") % 2**63)
    x, u, bias, v = (torch.randn(*shape, generator=draws, dtype=torch.float64)
                     for shape in ((64, 5), (8, 5), (8,), (1, 8)))  # fmt: skip
    y, at = x.sum(dim=1, keepdim=True), np.linspace(-0.5, 0.5, 5)

    def loss(w: Mapping[str, Tensor]) -> float:
        return float((torch.relu(x @ w["u"].T + w["bias"]) @ w["v"].T - y).square().mean())

    found = []
    for factor in (1.0, FACTOR):
        weights = {"u": factor * u, "bias": factor * bias, "v": v / factor}
        both = [direction(weights, derive(seed, "rescaled", i), normalise=normalise) for i in (0, 1)]
        found.append(grid(loss, weights, at, *both))
    return float((np.abs(found[1] - found[0]) / found[0]).max())


def _drawn(at: np.ndarray, plane: np.ndarray, form: str) -> bytes:
    from molgraph.evaluate.report_studies import surface  # with matplotlib

    return surface(at, plane, form)
