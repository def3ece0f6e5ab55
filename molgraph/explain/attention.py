"""Colour atoms by the attention weights of a readout, and audit whether they explain the prediction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.explain.answers import explained_columns, reads_atom_features, target_place
from molgraph.explain.attention_audit import Audit, audit
from molgraph.explain.explainer import Attribution, Explainer
from molgraph.explain.feature_path import FeaturePath
from molgraph.explain.occlusion import answers_without_atoms
from molgraph.nn.attention_readouts import AttentionReadout
from molgraph.train.inference import FittedNetworks


@register(
    "explainer",
    "attention",
    summary="atoms by the weights of an attention readout; with audit=true, whether these explain the prediction",
    paper="Jain and Wallace 2019, NAACL; Wiegreffe and Pinter 2019, EMNLP",
    systems=(
        SystemCard(
            "attention-audit",
            left_out="attention over neighbours in the layers; recurrent networks of texts",
            off="attention(audit=false)",
            beside=("gradient with leave-one-out",),
            command="molgraph train dataset:esol -m gin -s params.readout=self_attentive -o attentive.mgm && "
            "molgraph explain attentive.mgm library.smi --by 'attention(audit=true)' -o audit.csv",
            modules=("molgraph.explain.attention_audit",),
        ),
    ),
    command="molgraph train dataset:esol -m attentivefp -o attentive.mgm && "
    "molgraph explain attentive.mgm CCO --audit attention",
)
class Attention(Explainer):
    """Each atom has the weight that the readout gives it, mean over heads and rounds; the largest is full blue.

    Weights show what the readout sums, and need not be what the prediction hangs on. With ``audit`` each molecule has
    three measures of Jain and Wallace 2019, "Attention is not Explanation": ``tau_gradient`` and
    ``tau_leave_one_out``, the rank agreement of the weights with gradients (of the values, the weights held) and with
    the change without each atom, beside ``tau_reference``, the agreement of these two with each other; ``permuted``,
    how far the answer moves where weights are permuted; and ``jsd``, the divergence (at most ln 2) of the most
    different weights that were found with an answer within ``eps``, which take the part ``moved`` from the three atoms
    of the largest weights. Weights with low taus, or with others far away that predict the same, explain nothing by
    themselves. Distances are of probabilities (total variation), or in the standard deviations of a number.

    Args:
        audit: whether the measures are made.
        eps: the distance that an answer under other weights may have.
        target: its name; the model's first if empty. Of several classes the likeliest is audited.
    """

    reads, model = "attention readout over atoms", "attentivefp"
    whole_model = True

    def __init__(
        self, *, audit: bool = False, eps: Annotated[float, Range(0, 1, above=True)] = 0.01, target: str = ""
    ) -> None:
        self.audit, self.eps, self.target = audit, eps, target

    def can_read(self, encoder: Any) -> bool:
        """Whether it is a graph network whose readout weighs atoms by attention."""
        if not reads_atom_features(encoder):
            return False
        return isinstance(getattr(encoder.method.ready().network.encoder, "readout", None), AttentionReadout)

    def explain(self, encoder: Any, batch: GraphBatch, smiles: Sequence[str]) -> Attribution:
        """The weights, and the audit."""
        fitted, place = encoder.method.ready(), target_place(encoder, self.target)
        ends = [*pairwise(batch["atom"].offsets.tolist())]
        fine = [i for i, (a, b) in enumerate(ends) if b > a]
        columns = explained_columns(encoder, encoder.predict([*smiles]).value, self.target)
        frame = pd.DataFrame({"molecule": batch.graph_of("atom").numpy()})
        frame["atom"] = frame.groupby("molecule").cumcount()
        frame["value"] = 0.0
        drawings: list[tuple[int, dict[str, Any]]] = [(i, {}) for i in range(len(smiles))]
        captions, notes = [""] * len(smiles), ["the weights of the readout, which need not explain the prediction"]
        if fine:
            path = FeaturePath(fitted, [smiles[i] for i in fine], [columns[i] for i in fine], place)
            with _weights(_readout(fitted)) as weights:
                path.answers(path.x, torch.ones(1))
            mean = torch.cat(weights, dim=1).mean(dim=1).double().numpy()
            frame["value"] = mean
            for i in fine:
                shares = mean[slice(*ends[i])]
                drawings[i] = (i, {"groups": [0] * len(shares), "shares": (shares / shares.max()).tolist()})
                captions[i] = f"{smiles[i]}: weights {shares.min():.2g} to {shares.max():.2g}"
        if self.audit and fine:
            audits = self._audited(encoder, path, [smiles[i] for i in fine], [columns[i] for i in fine], weights)
            for name in Audit._fields:
                frame[name] = frame["molecule"].map({i: getattr(a, name) for i, a in zip(fine, audits, strict=True)})
            for i, audit in zip(fine, audits, strict=True):
                taus = f"tau {audit.tau_gradient:.2f} with gradients, {audit.tau_leave_one_out:.2f} with leave-one-out"
                captions[i] += f", {taus}, permuted {audit.permuted:.2g}, divergence {audit.jsd:.2f} of {np.log(2):.2f}"
            notes += _summary(audits, self.eps)
        return Attribution("atom", frame, drawings, captions, tuple(notes), tuple(columns))

    def _audited(
        self, model: Any, path: FeaturePath, smiles: Sequence[str], columns: Sequence[int], own: Sequence[Tensor]
    ) -> list[Audit]:
        """The audit of each molecule."""
        fitted, widths = path.fitted, [values.shape[1] for values in own]
        number = fitted.outputs.targets[path.place].kind == "regression"

        def answers(weights: Tensor) -> Tensor:
            with _weights(_readout(fitted), weights.split(widths, dim=1)):
                score = path.answers(path.x, torch.ones(1))[0]
            if number:
                return score[:, None] / float(fitted.outputs.scale[path.place])
            return torch.stack([score.sigmoid(), (-score).sigmoid()], dim=1)

        x = {name: value.clone().requires_grad_() for name, value in path.x.items()}
        with torch.enable_grad(), _weights(_readout(fitted), [values.detach() for values in own]):
            (slope,) = torch.autograd.grad(path.answers(x, torch.ones(1)).sum(), [x["atom"]])
        gradients = (slope * path.x["atom"]).sum(dim=1).abs().double().numpy()
        sizes = np.bincount(path.graph_of["atom"].numpy(), minlength=path.n)
        masks = {i: [(), *((a,) for a in range(n))] for i, n in enumerate(sizes)}
        outputs = answers_without_atoms(model, smiles, masks, columns)
        changes = np.concatenate([np.abs(values[0] - values[1:]) for values in outputs.values()])
        return audit(answers, torch.cat([*own], dim=1), path.graph_of["atom"], gradients, changes, eps=self.eps)


def _readout(fitted: FittedNetworks) -> AttentionReadout:
    """The readout of an encoder that the explainer reads."""
    readout = fitted.network.encoder.readout
    assert isinstance(readout, AttentionReadout)
    return readout


@contextmanager
def _weights(readout: AttentionReadout, given: Sequence[Tensor] | None = None) -> Iterator[list[Tensor]]:
    """Inside, each softmax of the readout is the next of ``given``, if any; the list holds the weights that were used.

    Float [atoms, heads] each: a readout is asked once a round, and once for each view of an encoder of several.
    """
    used: list[Tensor] = []

    def change(weights: Tensor) -> Tensor:
        used.append(weights if given is None else given[len(used)])
        return used[-1]

    readout.change = change
    try:
        yield used
    finally:
        readout.change = None


def _summary(made: Sequence[Audit], eps: float) -> list[str]:
    """The sentences on all molecules."""
    mean = pd.DataFrame(made).mean()
    return [
        f"Kendall's tau of the weights {mean['tau_gradient']:.2f} with gradients, {mean['tau_leave_one_out']:.2f} with "
        f"leave-one-out, which agree with each other by {mean['tau_reference']:.2f}",
        f"permuted weights move the answer by {mean['permuted']:.3g}; weights at a divergence of {mean['jsd']:.2f} (of "
        f"{np.log(2):.2f}) move it by less than {eps:g}, and take {mean['moved']:.0%} from the three largest atoms",
    ]
