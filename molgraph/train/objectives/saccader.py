"""Train hard attention over atoms' surroundings in the three stages of Saccader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import NotNegative, Range
from molgraph.base.registry import register
from molgraph.nn.hard_attention import Look, PicksAtoms, order_log_prob
from molgraph.train.objective import Loss, StepState
from molgraph.train.objectives.supervised import Supervised
from molgraph.train.outputs import Outputs

EDGE = 1e-12


@register(
    "objective",
    "saccader",
    summary="hard attention in three stages: local answers, imitation of the best places, policy gradient",
    paper="Elsayed et al. 2019, NeurIPS",
    command="molgraph train dataset:tox21 -m hard_subgraphs --objective saccader",
)
class Saccader(Supervised):
    """The three stages of Elsayed et al. 2019, section 3.2, for ``hard_subgraphs``.

    First the losses of the mean over all atoms, which trains the local answers. Then the policy learns to visit atoms
    in the order in which their own answers are right: ``-sum_t log pi(v_t | v_1 ... v_(t-1))`` with ``v_t`` of the
    t-th lowest loss. Last the losses of sampled picks, and for the policy ``(L - L') grad log pi`` (REINFORCE), with
    the loss ``L'`` of the likeliest picks as baseline. Epochs of the first two stages are never kept.

    Args:
        outputs: which output columns belong to which target.
        local: share of the training that the first stage takes.
        imitate: that of the second.
        reinforce: weight of the policy gradient.
        penalties: as ``supervised`` has them.
    """

    def __init__(
        self,
        outputs: Outputs,
        *,
        local: Annotated[float, Range(0.0, 1.0)] = 0.4,
        imitate: Annotated[float, Range(0.0, 1.0)] = 0.3,
        reinforce: NotNegative = 1.0,
        penalties: Mapping[str, NotNegative] | None = None,
    ) -> None:
        super().__init__(outputs, penalties=penalties)
        self.local, self.imitate, self.reinforce = local, imitate, reinforce
        self.unused_parameters = True

    def turns(self, network: nn.Module) -> Sequence[Iterable[nn.Parameter]]:
        """All parameters; raises ``UnsupportedError`` for a model that picks no atoms."""
        encoder: Any = network.encoder
        if not isinstance(encoder, PicksAtoms) or not network.has_head or network.reads_atoms:
            words = "the objective saccader trains a model that picks atoms"
            raise UnsupportedError(words, hint="molgraph train DATA -m hard_subgraphs --objective saccader")
        return super().turns(network)

    def warming_up(self, state: StepState) -> bool:
        """Whether the policy is not yet trained by what its picks give."""
        return state.progress < self.local + self.imitate

    def forward(self, network: Any, batch: Any, state: StepState) -> Loss:
        """The loss of the stage; a validation part is judged by the likeliest picks."""
        encoder = network.encoder
        if not state.training or not encoder.glimpses:
            return super().forward(network, batch, state)
        if batch.extra is not None:
            raise UnsupportedError("saccader reads no descriptors", hint="leave descriptors out")
        graphs = batch.parts[0].batch
        look, weights = encoder.look(graphs), batch.weights
        count, row = int((weights > 0).sum()), batch.parts[0].of_row
        row = torch.arange(len(weights), device=weights.device) if row is None else row
        if state.progress < self.local:
            answer = network.head(encoder.mean_of(look.h, torch.ones_like(look.scores), graphs)[row], None)
            return Loss((self.losses(network, answer, batch) * weights).sum(), count)
        if state.progress < self.local + self.imitate:
            return Loss(-self._best_order(network, batch, look, row).sum(), count)
        gumbel = -(-torch.rand_like(look.scores).clamp(min=EDGE).log()).clamp(min=EDGE).log()
        drawn = look.scores.detach() + gumbel  # the highest are draws without replacement
        losses = [
            (self.losses(network, network.head(encoder.mean_of(look.h, share, graphs)[row], None), batch) * weights)
            for share in (
                encoder.picked(choice, look.graph_of).to(look.h.dtype) for choice in (drawn, look.scores.detach())
            )
        ]
        worse = (losses[0] - losses[1]).detach().sum(dim=1)
        log_pi = order_log_prob(look, drawn, encoder.glimpses, graphs.n_graphs)[row]
        return Loss(losses[0].sum() + self.reinforce * (worse * log_pi).sum(), count)

    def _best_order(self, network: Any, batch: Any, look: Look, row: Tensor) -> Tensor:
        """float [graphs]: the log-probability of visiting the atoms whose own answers are best."""
        graphs = batch.parts[0].batch
        row_of = torch.zeros(graphs.n_graphs, dtype=torch.int64, device=row.device)
        row_of[row] = torch.arange(len(row), device=row.device)
        with torch.no_grad():
            rows = row_of[look.graph_of]
            answers = network.head(look.h, None)
            loss = network.head.losses(answers, batch.y[rows]) * (batch.weights[rows] > 0)
        return order_log_prob(look, -loss.sum(dim=1), network.encoder.glimpses, graphs.n_graphs)
