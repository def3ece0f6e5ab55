"""Target-aware weighted training: learn a main target beside helper targets, whose weights are learned too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from molgraph.base.errors import LabelError, MissingOptionError, UnsupportedError
from molgraph.base.ranges import Count, NotNegative
from molgraph.base.recipe_keys import GradientDescent
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.penalties import add_penalties
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objective import Loss, Objective, StepState, check_penalties
from molgraph.train.objectives.supervised import Supervised
from molgraph.train.outputs import Outputs
from molgraph.train.samples import Sample


@register(
    "objective",
    "tawt",
    summary="a main target beside helper targets, weighted by how alike their gradients are",
    paper="Chen et al. 2022, ICLR",
    systems=(
        SystemCard(
            "tawt",
            left_out="the inverse Hessian, for which the paper takes a constant too; weights of single samples; "
            "training on the helpers first and on the main target after",
            off="-s params.objective.eta=0",
            beside=("equal weights", "the main target alone"),
        ),
    ),
    command="molgraph train dataset:tox21 -t NR-AhR --helper NR-ER --helper SR-ARE -m gin --objective tawt "
    "-s params.objective.every=1 -o model.mgm",
)
class TAWT(Objective):
    """``L_0(phi, f_0) + weight sum_t w_t L_t(phi, f_t)``: one encoder phi, a head f_t for each target, w on a simplex.

    Chen, Crammer, He, Roth and Su 2022, "Weighted training for cross-task learning", section 2 and algorithm 1, in the
    form of joint training. The weights minimise the main target's loss at the phi that they lead to; its gradient by
    w_t is taken as ``g_t = -cos(grad_phi L_0, grad_phi L_t)`` and followed by mirror descent,
    ``w_t <- w_t exp(-eta g_t) / sum_s w_s exp(-eta g_s)``. L_t is the mean loss of those rows of a batch that have the
    label. The first target is the main one, which validation judges and the model predicts; the heads of the helpers
    are left behind. The curves have the weights, ``train_weight_NAME``.

    Use it for a small assay with many auxiliary ones that may help or harm. Known limits: with a head of its own a
    helper of the opposite sign helps as well as the target itself; ``shared`` is for the same property measured
    elsewhere, where such a helper harms.

    Args:
        network: its head predicts the main target.
        inputs: what it reads.
        outputs: the main target and the helpers.
        weight: of all helpers together; the main target's is 1.
        eta: step of mirror descent; with 0 all helpers weigh the same.
        every: steps of training between two steps of the weights.
        shared: whether the helpers are learned by the main target's head: the same property, each on its own scale.
        penalties: the weights of the network's penalties by name; 1 if not given.

    Raises:
        UnsupportedError: targets of atoms or bonds; with ``shared``, helpers of another kind than the main target.
        LabelError: a helper has nothing to learn from in the training part.
    """

    helped = True
    scores: Tensor  # float [helpers], logarithms of the weights up to a constant

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        outputs: Outputs,
        *,
        weight: NotNegative = 1.0,
        eta: NotNegative = 0.1,
        every: Count = 10,
        shared: bool = False,
        penalties: Mapping[str, NotNegative] | None = None,
    ) -> None:
        super().__init__()
        main, *helpers = outputs.targets
        if outputs.level != "row":
            words = f"tawt weighs targets of rows, and {main.name} is one of each {outputs.level}"
            raise UnsupportedError(words, hint="leave the objective out")
        for helper in helpers:
            if helper.name in outputs.unlearned:
                words = f"the helper {helper.name} has nothing to learn from: {outputs.unlearned[helper.name]}"
                raise LabelError(words, hint="leave it out, or name another: --helper (in Python helpers=[...])")
            if shared and (helper.kind, helper.classes, helper.bounds) != (main.kind, main.classes, main.bounds):
                words = f"the head of {main.name} ({main.kind}) cannot learn the helper {helper.name} ({helper.kind})"
                raise UnsupportedError(words, hint="leave params.objective.shared out")
        self.supervised = Supervised(self.heads(outputs), penalties=penalties)
        self.valid_parts = self.supervised.valid_parts
        self.unused_parameters = self.supervised.unused_parameters
        self.names, self.weight, self.eta, self.every = [t.name for t in helpers], weight, eta, every
        make: Any = network.make_head
        self.helpers = nn.ModuleList([] if shared else [make((helper,)) for helper in helpers])
        self.register_buffer("scores", torch.zeros(len(helpers)))

    @classmethod
    def heads(cls, outputs: Outputs) -> Outputs:
        """The main target's columns alone."""
        main, names = outputs.targets[:1], {t.name for t in outputs.targets[:1]}
        if outputs.references is not None:
            words = "tawt has no value of each element for its helpers"
            raise UnsupportedError(words, hint="choose another head, such as params.head=perceptron")
        unlearned = {name: reason for name, reason in outputs.unlearned.items() if name in names}
        return replace(outputs, targets=main, mean=outputs.mean[:1], scale=outputs.scale[:1], unlearned=unlearned)

    def check_parts(self, how: GradientDescent, n_train: int, n_valid: int) -> None:
        """Refuse a fit without helpers."""
        if not self.names:
            hint = "name columns, or columns of other files: --helper B --helper other.csv:C"
            raise MissingOptionError("tawt weighs helper targets, and none is named", hint=hint)
        super().check_parts(how, n_train, n_valid)

    def turns(self, network: nn.Module) -> Sequence[Iterable[nn.Parameter]]:
        """All parameters; a network whose answer is changed after its head is refused."""
        head: Any = getattr(network, "head", network)
        if network._forward_hooks or head._forward_pre_hooks:
            words = "tawt gives the encoder's states to several heads, and the callback changes what one of them gives"
            raise UnsupportedError(words, hint="leave the callback or the objective out")
        return super().turns(network)

    @property
    def weights(self) -> Tensor:
        """float [helpers], which sum to 1."""
        return self.scores.softmax(0)

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """The weighted losses, for each row of the batch; in validation the main target's alone."""
        assert batch.y is not None and batch.weights is not None
        if not state.training:
            alone = copy(batch)
            alone.y, alone.weights = batch.y[:, :1], batch.weights[:, :1]
            return self.supervised(network, alone, state)
        encoded = network.encode(batch)
        penalties = add_penalties(output.penalties for output in encoded)
        check_penalties(self.supervised.penalties, penalties)
        heads, losses = [network.head, *(self.helpers or [network.head] * len(self.names))], []
        for j, head in enumerate(heads):
            weights = batch.weights[:, j : j + 1]
            raw = network.answer(encoded, batch, head)
            losses.append((head.losses(raw, batch.y[:, j : j + 1]) * weights).sum() / (weights > 0).sum().clamp(min=1))
        w, n = self.weights, len(batch.y)
        total = losses[0] + self.weight * (w * torch.stack(losses[1:])).sum()
        shown = {f"weight_{name}": value * n for name, value in zip(self.names, w, strict=True)}
        if self.eta and state.step % self.every == 0:
            known = (batch.weights > 0).any(0)
            self.scores += self.eta * cosines(losses, known, phi(network)).to(self.scores)
        return Loss(n * total, n, shown).with_penalties(penalties, self.supervised.penalties)


def phi(network: nn.Module) -> list[nn.Parameter]:
    """The parameters of the representation that learn: all but the head's."""
    return [p for name, p in network.named_parameters() if p.requires_grad and not name.startswith("head.")]


def cosines(losses: Sequence[Tensor], known: Tensor, parameters: Sequence[nn.Parameter]) -> Tensor:
    """float [helpers]: of the angle between the gradients of the first loss and of each other one.

    Args:
        losses: of the main target, then of the helpers.
        known: bool [targets], whether the batch has a label of each; a helper without one has the others' mean.
        parameters: by which gradients are taken; all cosines are 0 where there are none.

    Example:
        >>> w = nn.Parameter(torch.tensor([1.0, 2.0]))
        >>> cosines([w[0], 2 * w[0], w[1], -w[0]], torch.ones(4, dtype=torch.bool), [w])
        tensor([ 1.,  0., -1.])
    """
    if not parameters or not known[0] or not known[1:].any():
        return torch.zeros(len(losses) - 1)
    rows, none = [], [torch.zeros_like(p) for p in parameters]
    for loss in losses:
        grads = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
        rows.append(torch.cat([(zero if g is None else g).flatten() for g, zero in zip(grads, none, strict=True)]))
    main, *others = torch.stack(rows)
    similarity = torch.cosine_similarity(main[None], torch.stack(others), dim=1)
    return similarity.where(known[1:], similarity[known[1:]].mean())
