"""The invariance study: firing at a fixed rate against its integral, and models whose answers are known."""

from __future__ import annotations

from copy import deepcopy
from itertools import product

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm

import molgraph
from molgraph.base.contracts import Target
from molgraph.chem.variants import variant
from molgraph.data.feature_layout import ATOM_BLOCKS, CHIRAL, D_ATOM
from molgraph.data.table import Table, make_table
from molgraph.embed.firing import firing, judge
from molgraph.train.make_method import make_method
from molgraph.train.model import Model
from tests.systems.characters import Characters
from tests.systems.effect import Effect

GROUPS = ("O", "N", "F", "Cl", "Br", "C#N", "CC", "C=C", "S", "OC")


@pytest.mark.system("invariance-audit", rung="exact")
@pytest.mark.parametrize("rho", [0.0, 0.8])
@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_firing_of_correlated_units_is_the_integral_of_the_normal(off: str, rho: float, rate: float) -> None:
    """``P(b > t | a > t)`` with ``P(a > t) = rate``; a constant unit is none; off: a threshold of zero."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((8000, 16))
    z = rho * x + np.sqrt(1 - rho**2) * rng.standard_normal(x.shape)
    how = {"rate": rate, "top": 1000, "threshold": "zero" if off else "rate"}
    rows = np.arange(len(x))
    fired = (x[:, 0] > np.quantile(x[:, 0], 1 - rate)).mean()
    assert abs(fired - rate) < 1e-3
    # the cut lies within half of the rate and one and a half times it: the integral at both ends
    ends = []
    for share in (0.5 * rate, 1.5 * rate):
        t = norm.isf(share)
        ends.append(multivariate_normal.cdf([-t, -t], cov=[[1, rho], [rho, 1]]) / share)
    got = firing(x, z, rows, **how)
    assert min(ends) - 0.03 <= got.mean <= max(ends) + 0.03, (got, ends)
    assert firing(x, x, rows, **how).mean == 1.0
    assert firing(np.full_like(x, 3.0), np.full_like(x, 3.0), rows, **how).units == 0
    assert judge(np.full_like(x, 3.0), np.full_like(x, 3.0), rows, **how).word == "degenerate"


def chiral(n: int) -> Table:
    """Molecules with one stereocentre, and a number to learn."""
    pairs = [f"{a}[C@{'@' * (i % 2)}H](C){'C' * k}{b}" for i, (a, b) in enumerate(product(GROUPS, GROUPS)) if a != b
             for k in (2, 3)][:n]  # fmt: skip
    y = np.array([[len(text) % 7 + 2.0 * ("@@" in text)] for text in pairs])
    return make_table(pairs, targets=(Target("y"),), y=y)


def net(name: str, table: Table, seed: int) -> Model:
    method = make_method(name, epochs=3, head_width=8, batch_size=32, threads=1, seed=seed + 100)
    return Model(method.fit(table), targets=table.targets)


def changed(model: Model, *, blind: bool) -> Model:
    """The net without the columns of chirality in its weights, or with biases alone in its encoder."""
    made = deepcopy(model)
    start = sum(ATOM_BLOCKS[:CHIRAL])
    with torch.no_grad():
        for weights in made.method.ready().network.encoders[0].parameters():  # type: ignore[attr-defined]
            if weights.ndim == 2 and not blind:
                weights.zero_()
            elif weights.ndim == 2 and weights.shape[1] == D_ATOM:
                weights[:, start : start + ATOM_BLOCKS[CHIRAL]] = 0
    return made


@pytest.mark.system("invariance-audit", rung="works")
def test_models_with_known_answers_are_judged_right(off: str, effect: Effect) -> None:
    """A graph net, one without chirality, one of biases alone, a net of characters; off: a threshold of zero."""
    right, stereo, order = [], [], []
    for seed in (11, 12, 13):
        table = chiral(100)
        gin = net("gin(d_hidden=16, depth=2)", table, seed)
        models = {
            "gin": gin,
            "blind": changed(gin, blind=True),
            "constant": changed(gin, blind=False),
            "characters": Model(Characters().fit(table), targets=table.targets, standardiser="none"),
        }
        words = dict[tuple[str, str], str]()
        for name, model in models.items():
            threshold = "zero" if off else "rate"
            study = f"invariance(n=80, variants=1, threshold={threshold})"
            found = molgraph.study(study, table, model=model, seed=seed)
            assert found.sound, found
            rows = found.frame.set_index("change")
            words |= {(name, change): rows.loc[change, "it_is"] for change in ("order", "stereo")}
            if name == "gin":
                order.append(float(rows.loc["order", "firing"]))
                stereo.append(float(rows.loc["stereo", "firing"]))
            if name == "blind":
                assert off or rows.loc["stereo", "firing"] == 1.0
        known = {
            ("gin", "order"): "ignored", ("gin", "stereo"): "seen", ("blind", "order"): "ignored",
            ("blind", "stereo"): "ignored", ("constant", "order"): "degenerate", ("constant", "stereo"): "degenerate",
            ("characters", "order"): "seen",
        }  # fmt: skip
        right.append(float(np.mean([words[key] == word for key, word in known.items()])))
    assert off or (min(order) == 1.0 and max(stereo) < 1.0), (order, stereo)
    beside = {"firing under order": order, "under stereo": stereo}
    effect("share of known answers", right, at_least=1.0, beside=beside)


def test_a_variant_of_nothing_is_none() -> None:
    rng = np.random.default_rng(0)
    assert [variant("stereo", text, rng) for text in ("", "C(", "CCO", "C" * 3000)] == [""] * 4
