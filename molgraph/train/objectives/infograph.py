"""InfoGraph: pretrain a graph encoder without labels by maximising mutual information."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import nn

from molgraph.base.errors import ConflictError
from molgraph.base.ranges import NotNegative, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.nn.corrupted_rows import jsd_corrupted
from molgraph.nn.mutual_information import JensenShannon
from molgraph.nn.prior_matching import PriorMatching
from molgraph.nn.stein_scores import Mige
from molgraph.train.adversary import perturbed
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
            left_out="the Donsker-Varadhan bound, which is the study's; images",
            off="infograph",
            beside=("the encoder without training",),
            command="molgraph pretrain dataset:chembl2321810 -m gin"
            " --objective 'infograph(negatives=corrupt, prior_weight=0.1)' -o encoder.mgm",
            modules=("molgraph.nn.mutual_information", "molgraph.nn.corrupted_rows", "molgraph.nn.prior_matching"),
        ),
        SystemCard(
            "mige",
            left_out="the information bottleneck; images",
            off="infograph",
            beside=("the exact derivative",),
            command="molgraph pretrain dataset:chembl2321810 -m gin --objective 'infograph(bound=mige)' -o encoder.mgm",
            modules=("molgraph.nn.stein_scores",),
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
        negatives: ``batch``, the other graphs' vectors; ``corrupt``, rows of a copy in which the features of all atoms
            of the batch have changed places (Velickovic et al. 2019, "Deep Graph Infomax").
        bound: ``jsd``, the Jensen-Shannon bound; ``mige``, the gradient of the mutual information of one random row of
            each graph with the graph (Wen et al. 2020), which has no bound to watch: the curves show the mutual
            information of normal variables with the same covariances, which no scores or negatives enter.
        prior_weight: of the match of the graphs' vectors with a uniform prior (Hjelm et al. 2019, "Deep InfoMax").
        penalties: the weights of the encoder's penalties by name; 1 if not given.

    Raises:
        UsageError: the network reads several columns, or its encoder gives no states of rows. ConflictError: negatives
            or a prior beside ``mige``.
    """

    labelled = False
    least_rows = 2

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        *,
        d_score: Width = 128,
        negatives: Literal["batch", "corrupt"] = "batch",
        bound: Literal["jsd", "mige"] = "jsd",
        prior_weight: NotNegative = 0.0,
        penalties: Mapping[str, NotNegative] | None = None,
    ) -> None:
        super().__init__()
        self.penalties, self.negatives, self.prior_weight = penalties or {}, negatives, prior_weight
        check_one_encoder(network, inputs, "infograph learns one encoder")
        if bound == "mige" and (negatives != "batch" or prior_weight):
            hint = "leave negatives and prior_weight out, or choose bound=jsd"
            raise ConflictError("mige has neither negatives nor a match with a prior", hint=hint)
        widths = network.encoder.d_rows, network.encoder.d_out
        self.mige = Mige(*widths) if bound == "mige" else None
        self.score: Any = JensenShannon(*widths, d_score) if self.mige is None else nn.Identity()
        self.prior = PriorMatching(d_score) if prior_weight else None
        self.unused_parameters = bool(prior_weight)

    def turns(self, network: nn.Module) -> Sequence[Iterable[nn.Parameter]]:
        """Encoder and score; then the discriminator of the prior, where there is one."""
        first = [*network.parameters(), *self.score.parameters()]
        return [first] if self.prior is None else [first, [*self.prior.parameters()]]

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the graphs of a batch."""
        assert batch.weights is not None
        encoded = network.encoder(batch.parts[0].batch, rows=True)
        if state.training:
            check_penalties(self.penalties, encoded.penalties)
        rows, weights, graphs = encoded.rows[0], batch.weights[:, 0], batch.parts[0].batch
        count = int((weights > 0).sum())
        if self.mige is not None:
            use, row = one_row(rows.graph_of, weights > 0, state)
            loss = self.mige(rows.h[row], encoded.graphs[use])
            return Loss(loss * count, count).with_penalties(encoded.penalties, self.penalties)
        summaries = self.score.psi(encoded.graphs)
        if self.prior is not None and state.turn:
            return Loss((self.prior.own_loss(summaries) * weights).sum(), count)
        if self.negatives == "corrupt":
            wrong = self.corrupted(network.encoder, graphs, state)
            losses = jsd_corrupted(self.score.phi(rows.h), self.score.phi(wrong), summaries, rows.graph_of)
        else:
            losses = self.score(rows.h, encoded.graphs, rows.graph_of)
        loss = Loss((losses * weights).sum(), count).with_penalties(encoded.penalties, self.penalties)
        if self.prior is None:
            return loss
        match = (self.prior.encoder_loss(summaries) * weights).sum() / max(count, 1)
        return loss.with_penalties({"prior": match}, {"prior": self.prior_weight})

    def corrupted(self, encoder: Any, graphs: GraphBatch, state: StepState) -> torch.Tensor:
        """float [rows, d]: the states of rows where the features of the batch's atoms have changed places."""
        draw = None if state.training else torch.Generator().manual_seed(0)
        code = graphs["atom"].code
        order = torch.randperm(len(code), generator=draw).to(code.device)
        with perturbed(encoder):
            rows: torch.Tensor = encoder(graphs.with_level("atom", code=code[order]), rows=True).rows[0].h
        return rows


def one_row(graph_of: torch.Tensor, use: torch.Tensor, state: StepState) -> tuple[torch.Tensor, torch.Tensor]:
    """The graphs to use that have rows, and a random row of each; the first in validation."""
    n = len(graph_of)
    rank = (torch.randperm(n) if state.training else torch.arange(n).flip(0)).to(graph_of.device)
    top = graph_of.new_full((len(use),), -1).scatter_reduce(0, graph_of, rank, "amax")
    graphs = (use & (top >= 0)).nonzero()[:, 0]
    return graphs, rank.argsort()[top[graphs]]
