"""InfoGraph: pretrain a graph encoder without labels by maximising mutual information."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from molgraph.base.ranges import NotNegative, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.mutual_information import JensenShannon
from molgraph.train.inputs import Input
from molgraph.train.network import Network, check_one_encoder
from molgraph.train.objective import Loss, Objective, StepState, check_penalties
from molgraph.train.samples import Sample


@register(
    "objective",
    "infograph",
    systems=(
        SystemCard(
            "infograph-infograph",
            off="masked-atoms",
            beside=("the encoder without training", "training from scratch"),
            command="molgraph pretrain dataset:chembl2321810 -m gin --objective infograph -o encoder.mgm",
            modules=("molgraph.nn.mutual_information",),
        ),
        SystemCard(
            "infomax-deep-infomax",
            left_out="corrupted graphs as negatives, other bounds, the prior of the states; images",
            off="masked-atoms",
            beside=("the encoder without training",),
            modules=("molgraph.nn.mutual_information",),
            part=True,
        ),
    ),
    summary="mutual information of each graph's vector with the states of its rows",
    paper="Sun et al. 2020, ICLR",
)
class InfoGraph(Objective):
    """Mutual information between a graph and its rows, for pretraining any encoder that gives states of rows.

    Sun et al. 2020, "InfoGraph: Unsupervised and Semi-supervised Graph-Level Representation Learning via Mutual
    Information Maximization", equations 3 and 4: the mean over graphs ``G``, and over the rows ``u`` of each, of
    ``softplus(-T(h_u, H(G)))`` plus the mean of ``softplus(T(h_u, H(G')))`` over the other graphs of the batch; the
    encoder's penalties are added. The paper's encoder is ``gin``: its rows have the states of all layers side by side.

    Use it where thousands of molecules or graphs have no labels. Known limits: no gain over the encoder's random
    weights was seen beyond the spread of seeds, on MUTAG 87.2% beside 87.8% (the paper: 89.0%), nor on three more TU
    sets; a fine-tuning of 80 labels was worse than one from scratch; batches of few graphs have few negatives.

    Batches are drawn anew in each epoch, so negatives change; a last batch of one graph joins the one before it. The
    loss is 2 log 2 where all scores are 0, and higher where untrained scores are large.

    Args:
        network: its one encoder is trained; it must give states of rows.
        inputs: the one column that it reads.
        d_score: width of the perceptrons whose product is the score T.
        penalties: the weights of the encoder's penalties by name; 1 if not given.

    Raises:
        UsageError: the network reads several columns, or its encoder gives no states of rows.
    """

    labelled = False
    least_rows = 2

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        *,
        d_score: Width = 128,
        penalties: Mapping[str, NotNegative] | None = None,
    ) -> None:
        super().__init__()
        self.penalties = penalties or {}
        check_one_encoder(network, inputs, "infograph learns one encoder")
        self.score = JensenShannon(network.encoder.d_rows, network.encoder.d_out, d_score)

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the graphs of a batch."""
        assert batch.weights is not None
        encoded = network.encoder(batch.parts[0].batch, rows=True)
        if state.training:
            check_penalties(self.penalties, encoded.penalties)
        rows, weights = encoded.rows[0], batch.weights[:, 0]
        losses = self.score(rows.h, encoded.graphs, rows.graph_of)
        return Loss((losses * weights).sum(), int((weights > 0).sum())).with_penalties(
            encoded.penalties, self.penalties
        )
