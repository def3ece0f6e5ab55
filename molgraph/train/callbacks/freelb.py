"""FreeLB: adversarial training, whose loss is the mean along a few steps that perturb atoms' features to raise it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from copy import copy
from typing import Any

import torch
from torch import Tensor

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Count, NotNegative
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.nn.blocks.stacks import Reversible
from molgraph.train.adversary import each_atom, same_running_means, with_features
from molgraph.train.callback import Callback, Compute
from molgraph.train.objective import Loss, StepState

TINY = 1e-12


@register(
    "callback",
    "freelb",
    summary="learns from atoms' features that were moved to raise the loss; costs its steps times the training",
    paper="Zhu et al. 2020, ICLR",
    systems=(
        SystemCard(
            "freelb",
            left_out="embeddings of words: the features of atoms are moved, which the first layer embeds",
            off="--callback none",
            beside=("plain training with as many gradients",),
            modules=("molgraph.train.adversary",),
        ),
    ),
    command="molgraph train dataset:chembl2321810 -m gin --callback 'freelb(steps=3, eps=0.01)' --epochs 4",
)
class FreeLB(Callback):
    """``g = 1/K sum_t grad_w L(X + delta_t)``, ``delta_(t+1) = P(delta_t + rate grad_delta L / |grad_delta L|)``.

    Zhu et al. 2020, algorithm 1: each backward pass gives both gradients, so that K steps cost K times plain training;
    the weights move once, by the mean. Dropout's mask is the same in all steps. A molecule's ``delta``, of all its
    atoms, begins uniform and is kept within length ``eps`` by the projection P; the rate is ``2 eps / K``. Batch
    norms keep the running means of the first step. Validation and prediction see the features as they are.

    Known limits: it was no better than plain training with as many gradients on BBBP. Atoms that look alike are
    computed each by itself.

    Args:
        steps: K, gradients for each step of the weights.
        eps: the largest length of the change of a molecule's features, of which each atom has six or so that are 1.

    Raises:
        UnsupportedError: no column with features of atoms, or reversible layers, whose gradients cannot be had twice.
    """

    def __init__(self, *, steps: Count = 3, eps: NotNegative = 0.01) -> None:
        super().__init__()
        self.steps, self.eps = steps, eps

    def begin(self, network: Any) -> None:
        """Refuse layers whose backward pass adds to the weights' gradients by itself."""
        if any(isinstance(module, Reversible) for module in network.modules()):
            words = "freelb takes the gradient of each step apart, which reversible layers do not give"
            raise UnsupportedError(words, hint="leave -s params.stack=reversible out, or the callback")

    def loss(self, objective: Compute, network: Any, batch: Any, state: StepState) -> Loss:
        """The mean loss of the steps, with the mean of their gradients."""
        if not state.training:
            return objective(network, batch, state)
        moved = {i: part.batch for i, part in enumerate(batch.parts) if has_features(part.batch)}
        if not moved:
            raise UnsupportedError("freelb moves features of atoms, and none are read", hint="leave the callback out")
        delta = {i: self._first(graphs, state.step) for i, graphs in moved.items()}
        losses, slopes = list[Loss](), dict[Tensor, Tensor]()
        for step in range(self.steps):
            last = step + 1 == self.steps
            for value in delta.values():
                value.requires_grad_()
            draws, means = same_draws(network), same_running_means(network)
            with each_atom(network.encoders), nullcontext() if last else draws, means if step else nullcontext():
                loss = objective(network, perturbed_sample(batch, moved, delta), state)
            losses.append(loss)
            weights = leaves(loss.total, delta.values())
            gradients = torch.autograd.grad(loss.total, [*weights, *delta.values()], allow_unused=True)
            for weight, gradient in zip(weights, gradients, strict=False):
                if gradient is not None:
                    slopes[weight] = slopes.get(weight, 0) + gradient / self.steps
            with torch.no_grad():
                ascents = zip(delta.items(), gradients[len(weights) :], strict=True)
                delta = {i: self._next(moved[i], value, gradient) for (i, value), gradient in ascents}
        total = torch.stack([term.total.detach() for term in losses]).mean()
        linear = sum(((weight * slope).sum() for weight, slope in slopes.items()), torch.zeros_like(total))
        parts = {name: torch.stack([term.parts[name].detach() for term in losses]).mean() for name in losses[0].parts}
        return Loss(total + linear - linear.detach(), losses[0].count, parts)

    def _first(self, graphs: GraphBatch, step: int) -> Tensor:
        """float [n_atoms, width], uniform; each molecule's length is ``eps`` at most."""
        rows = graphs.features("atom")
        draw = torch.Generator(rows.device).manual_seed(derive(torch.initial_seed(), "freelb", step))
        uniform = 2 * torch.rand(rows.shape, generator=draw, device=rows.device) - 1
        numbers = (graphs["atom"].offsets.diff() * rows.shape[1]).index_select(0, graphs.graph_of("atom"))
        return uniform * (self.eps / numbers.unsqueeze(1).sqrt())

    def _next(self, graphs: GraphBatch, delta: Tensor, gradient: Tensor | None) -> Tensor:
        """The change after a step of length ``2 eps / K`` up the loss, within ``eps``."""
        if gradient is not None:
            delta = delta + 2 * self.eps / self.steps * gradient / lengths(graphs, gradient).clamp(min=TINY)
        return delta * (self.eps / lengths(graphs, delta).clamp(min=TINY)).clamp(max=1.0)


def lengths(graphs: GraphBatch, x: Tensor) -> Tensor:
    """float [n_atoms, 1]: the length of all of float [n_atoms, width] that belongs to an atom's molecule."""
    graph = graphs.graph_of("atom")
    squares = x.new_zeros(graphs.n_graphs).index_add(0, graph, x.square().sum(dim=1))
    return squares.sqrt().index_select(0, graph).unsqueeze(1)


def has_features(graphs: GraphBatch) -> bool:
    """Whether a batch's atoms have features."""
    return "atom" in graphs.levels and graphs["atom"].table is not None


def perturbed_sample(batch: Any, graphs: Mapping[int, GraphBatch], delta: Mapping[int, Tensor]) -> Any:
    """The batch with changes added to the features of the atoms of some columns."""
    parts = list(batch.parts)
    for i, graph in graphs.items():
        parts[i] = parts[i]._replace(batch=with_features(graph, graph.features("atom") + delta[i]))
    changed = copy(batch)
    changed.parts = tuple(parts)
    return changed


@contextmanager
def same_draws(network: Any) -> Iterator[None]:
    """In which random numbers such as dropout's are drawn that are drawn again after it."""
    devices = {value.device for value in network.parameters() if value.device.type == "cuda"}
    with torch.random.fork_rng(devices=[*devices]):
        yield


def leaves(total: Tensor, other: Any) -> list[Tensor]:
    """The tensors with gradients that a scalar was computed from, without some others."""
    seen, todo, tensors = set[Any](), [total.grad_fn], dict[int, Tensor]()
    left = {id(tensor) for tensor in other}
    while todo:
        node = todo.pop()
        if node in seen or node is None:
            continue
        seen.add(node)
        if (leaf := getattr(node, "variable", None)) is not None and id(leaf) not in left:
            tensors[id(leaf)] = leaf
        todo += [before for before, _ in node.next_functions]
    return [*tensors.values()]
