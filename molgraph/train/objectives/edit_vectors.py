"""Edit vectors: pretrain an encoder so that the same edit of two molecules changes their vectors in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import NotNegative, Positive
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.train.edit_labels import EditLabels, EditPairs
from molgraph.train.inputs import Input
from molgraph.train.network import Network, check_one_encoder
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.samples import Sample, Samples


@register(
    "objective",
    "edit-vectors",
    systems=(
        SystemCard(
            "cpv",
            left_out="the policy and its imitation; the sum of vectors of consecutive edits holds by itself, for they "
            "are differences, so of the homomorphism loss the part that compares products is kept",
            off="masked-atoms",
            beside=("the encoder without training", "chance"),
            command="molgraph pretrain dataset:bace -m dmpnn --objective edit-vectors -o encoder.mgm",
            modules=("molgraph.train.edit_labels", "molgraph.train.row_groups", "molgraph.chem.matched_pairs"),
        ),
    ),
    summary="the same change of a group is the same vector in every molecule",
    paper="Devin et al. 2019, NeurIPS",
)
class EditVectors(Objective):
    """Differences of molecules' vectors that stand for edits, learned from matched molecular pairs of the corpus.

    Devin et al. 2019, "Plan Arithmetic: Compositional Plan Vectors for Multi-Task Control": tasks are vectors that are
    the same wherever the task is done, and that add up. Here the task is an edit, ``A[*:1] >> B[*:1]``, the pairs of
    molecules are cut by rdMMPA (``train.edit_labels``), and the vector of an edit is ``v = z(after) - z(before)``, z
    being the state that the encoder gives. A batch has pairs of edits in two contexts each, and the loss of a pair is
    the paper's triplet margin loss twice:

    - ``mean_n max(0, |v - v'| - |v - v_n| + margin)``, v' being the same edit in another context and v_n another edit
      (the paper's pair loss),
    - ``product`` times ``mean_n max(0, |z(before) + v' - z(after)| - |z(before) + v' - z_n| + margin)``, z_n being
      another molecule of the batch: the vector of one series, added to a molecule of another, leads to its product.

    Args:
        network: its one encoder is trained.
        inputs: the one column of molecules that it reads.
        margin: of both, in the unit of the states.
        product: weight of the second.

    Raises:
        UsageError: the network reads several columns, or no molecules. LabelError: no edit occurs in two contexts.
    """

    labelled = False

    def __init__(
        self, network: Network, inputs: Sequence[Input], *, margin: Positive = 1.0, product: NotNegative = 1.0
    ) -> None:
        super().__init__()
        check_one_encoder(network, inputs, "edit-vectors learns one encoder")
        if inputs[0].kind != "molecule":
            words = f"edits are those of molecules, and {inputs[0].column!r} holds a {inputs[0].kind}"
            raise UnsupportedError(words, hint="name a column of SMILES")
        self.margin, self.product = margin, product

    @classmethod
    def row_labels(cls, **_: Any) -> EditLabels:
        """The cuts of molecules."""
        return EditLabels()

    def sampler(self, samples: Samples, batch_size: int, *, judged: bool = False) -> EditPairs:
        """Pairs of pairs."""
        return EditPairs(samples, max(batch_size // 4, 2), required=not judged)

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the pairs of a batch, whose rows are before, after, before, after of each edit."""
        assert batch.graphs is not None
        encoded = network.encoder(batch.parts[0].batch)
        z = encoded.graphs.float().reshape(-1, 2, 2, encoded.graphs.shape[1])  # [edit, context, before or after, d]
        v = z[:, :, 1] - z[:, :, 0]
        edit = torch.arange(len(z), device=z.device).repeat_interleave(2)
        same = triplets(v.flatten(0, 1), v.flip(1).flatten(0, 1), v.flatten(0, 1), edit[:, None] == edit, self.margin)
        reached = (z[:, :, 0] + v.flip(1)).flatten(0, 1)
        rows = batch.graphs.reshape(-1, 2)
        mask = rows[:, 1:] == batch.graphs[None, :]  # the product, which is no negative of itself
        product = triplets(reached, z[:, :, 1].flatten(0, 1), z.flatten(0, 2), mask, self.margin)
        losses = {"same": same.sum(), "product": self.product * product.sum()}
        return Loss(losses["same"] + losses["product"], len(same), losses).with_penalties(encoded.penalties)


def triplets(anchor: Tensor, positive: Tensor, others: Tensor, excluded: Tensor, margin: float) -> Tensor:
    """float [n]: the mean over the negatives of ``max(0, |anchor - positive| - |anchor - negative| + margin)``.

    Args:
        anchor, positive: float [n, d].
        others: float [m, d].
        excluded: bool [n, m], those that are no negatives.
        margin: of the distances.
    """
    near = (anchor - positive).square().sum(dim=1).add(1e-12).sqrt()
    far = (anchor[:, None] - others[None]).square().sum(dim=2).add(1e-12).sqrt()
    kept = ~excluded
    return (F.relu(near[:, None] - far + margin) * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1)
