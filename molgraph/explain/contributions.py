"""Colour atoms by their contributions to a prediction that is the exact sum of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from molgraph.base.errors import UnsupportedError
from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.explain.answers import target_columns, target_place
from molgraph.explain.explainer import Attribution, Explainer, signed_shares
from molgraph.nn.readouts import Mean, NormReadout, Sum
from molgraph.train.inference import FittedNetworks
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.samples import InputBatch, Sample


class Contributions(NamedTuple):
    """A prediction taken apart.

    Args:
        atoms: float64 [atoms]: what each adds, in the target's units, or to the log-odds of a class.
        base: what the model predicts beside the atoms.
        total: float64 [molecules]: the network's own answer, in the same units.
        unit: of all of them, in words.
    """

    atoms: np.ndarray
    base: float
    total: np.ndarray
    unit: str


@torch.no_grad()
def contributions(fitted: FittedNetworks, batch: GraphBatch, target: int = 0) -> Contributions:
    """What each atom adds to the prediction of one that ``sums_atoms``.

    ``y = b + sum_v c_v``: ``c_v = s a_v w h_v`` for a linear head on a readout that weighs atom v by ``a_v`` (1 of a
    sum, ``1 / n`` of a mean), s the target's scale; for the head ``atomwise`` ``c_v`` is its perceptron's answer and
    the reference of the element.

    Raises:
        UnsupportedError: a target of several classes, whose scores are no sums.
    """
    network, outputs = fitted.network, fitted.outputs
    what = outputs.targets[target]
    if what.kind == "multiclass":
        words = f"{what.name!r} has several classes, whose probabilities are no sums"
        raise UnsupportedError(words, hint="explain a number or a target of two classes")
    column, sample = outputs.slices[target].start, Sample((InputBatch(batch, None),), None, None, None)
    encoded = network.encode(sample, rows=True)
    h = next(rows.h for rows in encoded[0].rows if rows.level == "atom")
    raw = network.answer(encoded, sample)[:, column].double().numpy()
    number = what.kind == "regression"
    scale, mean = (outputs.scale[target], outputs.mean[target]) if number else (1.0, 0.0)
    if network.reads_atoms:
        terms, base = network.head(h)[:, column].double().numpy(), 0.0
    else:
        layer, sizes = network.head.layers[0], batch["atom"].offsets.diff().double().numpy()
        readout: Any = network.encoder.readout
        norm = {Sum: 1.0, Mean: np.maximum(sizes, 1)}
        share = 1 / norm.get(type(readout), getattr(readout, "norm", 1.0))
        weight = np.broadcast_to(share, sizes.shape)[batch.graph_of("atom").numpy()]
        terms = weight * (h.double() @ layer.weight[column].double()).numpy()
        base = float(layer.bias[column])
    atoms, total = scale * terms, scale * raw + mean
    if outputs.references is not None:
        offsets = outputs.references.total(_elements(fitted, batch))[:, target]
        atoms, total = atoms + offsets, total + np.bincount(batch.graph_of("atom").numpy(), offsets, batch.n_graphs)
    return Contributions(atoms, scale * base + mean, total, what.name if number else f"log-odds of {what.name}")


def _elements(fitted: FittedNetworks, batch: GraphBatch) -> np.ndarray:
    """float64 [atoms, elements]: an atom and its hydrogens."""
    counts = fitted.inputs[0].featuriser.element_counts(batch.features("atom").numpy())
    return np.asarray(counts, dtype=np.float64)


def sums_atoms(model: Any) -> bool:
    """Whether a model's answer is a sum over the atoms of one molecule: by the head ``atomwise``, or a linear head."""
    if not isinstance(model, Model) or not isinstance(model.method, GraphMethod):
        return False
    fitted = model.method.ready()
    network, encoder = fitted.network, fitted.network.encoder
    if (
        not network.has_head
        or network.joiner is not None
        or network.level != "row"
        or fitted.descriptors.names
        or encoder.options
    ):
        return False
    linear = len(getattr(network.head, "layers", ())) == 1 and encoder.d_rows == encoder.d_out
    return network.reads_atoms or (linear and type(getattr(encoder, "readout", None)) in (Sum, Mean, NormReadout))


@register(
    "explainer",
    "contributions",
    summary="atoms by what each adds to a prediction that is their exact sum",
    paper="Brendel and Bethge 2019, ICLR, section 4.2",
    command="molgraph train dataset:esol -m additive -o additive.mgm && "
    "molgraph explain additive.mgm CCO --by contributions",
)
class ContributionsOfAtoms(Explainer):
    """Each atom has its contribution: blue (0) raises the prediction, orange (1) lowers it, paler where it is less.

    Brendel and Bethge 2019, "Approximating CNNs with Bag-of-local-Features models": no approximation of the model, but
    the model. It reads ``additive``, and every encoder under a linear head (``params.head_layers=1``) or the head
    ``atomwise``; but there an atom's state may depend on atoms anywhere, and its contribution with it. ``values`` has
    each atom's ``value`` in the target's units, or in log-odds.

    Args:
        target: its name; the model's first if empty.
    """

    reads, model = "contributions of atoms", "additive"
    whole_model = True
    rank = 1

    def __init__(self, *, target: str = "") -> None:
        self.target = target

    def can_read(self, encoder: Any) -> bool:
        """Whether the model's answer is a sum over atoms."""
        return sums_atoms(encoder)

    def explain(self, encoder: Any, batch: GraphBatch, smiles: Sequence[str]) -> Attribution:
        """The contributions, as ``contributions`` has them."""
        fitted = encoder.method.ready()
        terms = contributions(fitted, batch, target_place(encoder, self.target))
        graph, ends = batch.graph_of("atom").numpy(), [*pairwise(batch["atom"].offsets.tolist())]
        frame = pd.DataFrame({"molecule": graph, "value": terms.atoms})
        frame.insert(1, "atom", frame.groupby("molecule").cumcount())
        drawings, captions, gaps = [], [], [0.0]
        for i, (a, b) in enumerate(ends):
            part = terms.atoms[a:b]
            drawings.append((i, signed_shares(part)))
            words = f"{smiles[i]}: {terms.unit} {terms.total[i]:.3g} = {terms.base:.3g} {part.sum():+.3g} of its atoms"
            captions.append(words if b > a else "")
            gaps.append(abs(terms.total[i] - terms.base - part.sum()) if b > a else 0.0)
        notes = ("blue (0) raises it, orange (1) lowers it", f"contributions and base sum to it within {max(gaps):.1g}")
        columns = (target_columns(encoder, self.target)[0],) * len(ends)
        return Attribution("atom", frame, drawings, captions, notes, columns)
