"""Colour atoms by integrated gradients of a graph network with respect to the features of atoms and bonds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
import pandas as pd

from molgraph.base.ranges import NotNegative, Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.explain.answers import explained_columns, reads_atom_features, target_place, unit_of
from molgraph.explain.explainer import Attribution, Explainer, signed_shares
from molgraph.explain.feature_path import integrate
from molgraph.explain.fragility import KEPT, Fragility, fragility
from molgraph.explain.smooth import smoothed

SIZE = 0.05  # of the change that the attack may make, as a share of the size of the features
TOGETHER = 64  # molecules that are attacked together


@register(
    "explainer",
    "gradients",
    summary="atoms by integrated gradients of a network, which sum to its answer less that for zero features",
    paper="Sundararajan, Taly and Yan 2017, ICML; Dombrowski et al. 2019, NeurIPS",
    systems=(
        SystemCard(
            "explanation-manipulation-beta-smoothing",
            left_out="maps but gradients times features (integrated ones are not steadier with softplus); targets of "
            "the attack other than the reversed ranks",
            off="gradients(smooth=0)",
            beside=("ReLU",),
            command="molgraph train dataset:esol -m dmpnn -o assay.mgm && "
            "molgraph explain assay.mgm library.smi --by 'gradients(smooth=1)' -o atoms.csv",
            modules=("molgraph.explain.smooth", "molgraph.explain.fragility", "molgraph.explain.feature_path"),
        ),
    ),
    command="molgraph train dataset:esol -m dmpnn -o dmpnn.mgm && molgraph explain dmpnn.mgm CCO --by gradients",
)
class Gradients(Explainer):
    """Each atom has its share of the answer: blue (0) raises it, orange (1) lowers it, paler where it is less.

    Sundararajan, Taly and Yan 2017, "Axiomatic Attribution for Deep Networks", equation 1: the gradient, times the
    feature, averaged along the straight line from zero features to the molecule's own. The values of all atoms and
    bonds sum to the answer less that for zero features (completeness), which is checked for each molecule, and the path
    has more points where it fails. Half of a bond's value is given to each of its atoms. Descriptors and the graph stay
    as they are along the path. ``values`` has each atom's ``value`` in the target's units, or in log-odds; ``bonds``,
    the part of it that came from bonds; ``gap``, by how much the sum misses; and with ``fragility`` the molecule's own.

    Dombrowski et al. 2019, "Explanations can be manipulated and geometry is to blame": the gradients of a ReLU network
    jump, so that features can be found near the molecule's own with the same prediction and quite another map. Softplus
    with a small beta in the place of ReLU bounds that (their theorem 1: a map moves by ``beta C`` at most for each unit
    of distance), at the price that another network's gradients are shown: compare the deletion curves. That holds of
    the gradients at the molecule; the values along the path, which are means, moved no less with a beta of 1.

    Args:
        smooth: beta of the softplus that stands for each ReLU meanwhile; 0 keeps the ReLUs.
        fragility: whether each map is attacked too: 1 less the rank correlation of the atoms' values (of the gradients
            there, times the molecule's own features) after the worst change of features, of 5% of their size, that
            moves the prediction by less than 0.01 standard deviations or log-odds.
        tolerance: of the sum, as a share of the sum of sizes.
        target: its name; the model's first if empty. Of several classes the likeliest is explained.
    """

    reads, model = "atoms with features", "dmpnn"
    whole_model = True
    rank = 3

    def __init__(
        self,
        *,
        smooth: NotNegative = 0.0,
        fragility: bool = False,
        tolerance: Annotated[float, Range(0, 1, above=True)] = 0.005,
        target: str = "",
    ) -> None:
        self.smooth, self.fragility, self.tolerance, self.target = smooth, fragility, tolerance, target

    def can_read(self, encoder: Any) -> bool:
        """Whether it is a graph network that predicts molecules, from features of atoms."""
        return reads_atom_features(encoder)

    def explain(self, encoder: Any, batch: GraphBatch, smiles: Sequence[str]) -> Attribution:
        """The values."""
        fitted, place = encoder.method.ready(), target_place(encoder, self.target)
        ends = [*pairwise(batch["atom"].offsets.tolist())]
        fine = [i for i, (a, b) in enumerate(ends) if b > a]
        columns = explained_columns(encoder, encoder.predict([*smiles]).value, self.target)
        asked = fitted, [smiles[i] for i in fine], [columns[i] for i in fine], place
        with smoothed(self.smooth):
            results = integrate(*asked, self.tolerance)
        by_id = dict(zip(fine, results, strict=True))
        frame = pd.DataFrame({"molecule": batch.graph_of("atom").numpy()})
        frame["atom"] = frame.groupby("molecule").cumcount()
        for name in ("atoms", "bonds"):
            parts = [getattr(result, name) for result in results]
            frame["value" if name == "atoms" else name] = np.concatenate([np.zeros(0), *parts])
        frame["gap"] = frame["molecule"].map({i: result.gap for i, result in by_id.items()}).astype(float)
        unit, drawings, captions = unit_of(encoder, place), [], []
        for i, text in enumerate(smiles):
            part = by_id[i].atoms if i in by_id else np.zeros(0)
            drawings.append((i, signed_shares(part)))
            words = ""
            if i in by_id:
                words = f"{text}: {unit} {by_id[i].answer:.3g} = {by_id[i].base:.3g} {part.sum():+.3g} of its features"
            captions.append(words)
        gap = max((result.gap for result in results), default=0.0)
        notes = [
            "blue (0) raises it, orange (1) lowers it",
            f"values sum to the answer less that for zero features within {gap:.1g}",
        ]
        if self.fragility:
            moved = {i: result.moved for i, result in zip(fine, self._attacked(asked), strict=True)}
            frame["fragility"] = frame["molecule"].map(moved).astype(float)
            for i, result in moved.items():
                captions[i] += f", fragility {result:.2f}" if np.isfinite(result) else ""
            some = [result for result in moved.values() if np.isfinite(result)]
            words = f"where {SIZE:.0%} of the features moves and the prediction less than {KEPT} deviations or log-odds"
            notes.append(f"fragility (1 - rank correlation of the gradients) {np.mean(some or [np.nan]):.2f} {words}")
        if self.smooth:
            notes.append(f"of the network with softplus (beta {self.smooth:g}) in the place of ReLU")
        return Attribution("atom", frame, drawings, captions, tuple(notes), tuple(columns))

    def _attacked(self, asked: tuple[Any, ...]) -> list[Fragility]:
        """The fragility of each molecule, a few at a time."""
        fitted, texts, columns, place = asked
        fragilities: list[Fragility] = []
        for a in range(0, len(texts), TOGETHER):
            part = fitted, texts[a : a + TOGETHER], columns[a : a + TOGETHER], place
            fragilities += fragility(*part, beta=self.smooth, size=SIZE)
        return fragilities
