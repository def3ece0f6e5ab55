"""Prune the attention heads of least importance to the loss."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor

from molgraph.base.contracts import Method
from molgraph.base.errors import BadValueError, UnsupportedError
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.compress.compressor import Compressor
from molgraph.compress.retrain import Retrain, graph_method, rates_of, retrain
from molgraph.data.table import Table
from molgraph.nn.removable import Heads, keep_units
from molgraph.train.further import labelled_samples
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.objective import StepState
from molgraph.train.rebuild import rebuilt
from molgraph.train.runtime import torch_settings

ROWS = 64  # of a batch


@register(
    "compressor",
    "heads",
    summary="removes attention heads in the order of their importance to the loss",
    paper="Michel et al. 2019, NeurIPS",
    systems=(
        SystemCard(
            "attention-head-importance-and-pruning",
            left_out="all heads of a layer at once; heads of readouts and joiners; translation and BERT",
            off="'heads(0.5, by=random)'",
            beside=("heads removed at random",),
            command="molgraph train dataset:adme_sol -m graphgps -o gps.mgm && "
            "molgraph compress gps.mgm dataset:adme_sol --how heads -o pruned.mgm",
            modules=("molgraph.nn.removable", "molgraph.models.graphgps", "molgraph.models.grover"),
        ),
    ),
)
class RemoveHeads(Compressor):
    """Take the least important heads out of a network with attention of several heads, such as graphgps and grover.

    Michel, Levy and Neubig 2019, "Are Sixteen Heads Really Better than One?", section 2.3 and equation 2: with a factor
    ``xi_h = 1`` on what head h gives, ``I_h`` is the mean over molecules of ``|dL / dxi_h|``, L2-normalised in each
    layer (``head_importance``). Queries, keys, values and output weights of a head that is removed leave the file.

    Args:
        fraction: of all heads that go; one of each attention stays in any case.
        by: ``importance``, or ``random`` to compare with.
        retrain: ``lr_rewind`` trains on at the last learning rates, ``finetune`` at the last one; ``none``: not at all.
        rewind: the share of the training's epochs that this takes.
    """

    source = "graphgps(d_hidden=8, walk=4, depth=2)"
    small = MappingProxyType({"fraction": 0.5})

    def __init__(
        self,
        fraction: Annotated[float, Range(0, 1, above=True, below=True)] = 0.5,
        *,
        by: Literal["importance", "random"] = "importance",
        retrain: Retrain = "lr_rewind",
        rewind: Annotated[float, Range(0, 1, above=True)] = 0.25,
    ) -> None:
        self.fraction, self.by, self.retrain, self.rewind = fraction, by, retrain, rewind

    def compress(self, model: Model, table: Table, valid: Table, seed: int) -> Method:
        """The network with fewer heads, trained on."""
        method = graph_method(model, "attention heads")
        heads = attentions(method)
        rates = [] if self.retrain is None else rates_of(method, self.rewind, self.retrain)
        if self.by == "random":
            rng = generator(seed, "heads")
            scores = [torch.from_numpy(rng.random(layer.units.n)) for layer in heads]
        else:
            scores = head_importance(method, table)
        result = with_heads(method, heads_left(scores, self.fraction))
        return retrain(result, table, valid, rates, seed=derive(seed, "heads")) if rates else result


def attentions(method: GraphMethod) -> tuple[Heads, ...]:
    """The heads of each attention of a network's encoder.

    Raises:
        UnsupportedError: it has none, or not one for each of its layers.
    """
    encoder = method.ready().network.encoder
    heads = encoder.attention_heads()
    if not heads:
        words = f"the encoder {method.encoder} has no attention heads"
        raise UnsupportedError(words, hint="choose graphgps or grover, or remove hidden units: --how magnitude")
    if (method.params or {}).get("stack", "none") != "none":
        words = f"heads of {method.encoder} cannot be removed beside params.stack={(method.params or {})['stack']}"
        raise UnsupportedError(words, hint="remove layers instead: --how 'depth(2)'")
    return tuple(Heads(layer.units.within("encoder"), f"encoder.{layer.output}", layer.level) for layer in heads)


def head_importance(method: GraphMethod, table: Table) -> list[Tensor]:
    """The importance of each head, of each attention in turn: ``E_x |xi_h . dL(x) / dxi_h|`` at ``xi_h = 1``.

    Michel et al. 2019, equation 2. As ``xi_h`` multiplies what the head gives at every row, its derivative is the sum
    over the molecule's rows of ``Att_h . dL / dAtt_h``: one backward pass for all heads. Normalised to L2 norm 1 in
    each attention.

    Args:
        method: fitted, of one encoder with attention heads.
        table: labelled rows.
    """
    network, heads = method.ready().network, attentions(method)
    inputs: list[Tensor] = [torch.zeros(0)] * len(heads)

    def keep(place: int) -> Any:
        def hook(module: Any, args: tuple[Tensor, ...]) -> None:
            inputs[place] = args[0]

        return hook

    hooks = [network.get_submodule(item.output).register_forward_pre_hook(keep(i)) for i, item in enumerate(heads)]
    totals = [torch.zeros(item.units.n) for item in heads]
    try:
        with torch_settings(method.threads, 0):
            samples, objective = labelled_samples(method, table)
            for first in range(0, len(samples), ROWS):
                sample = samples.sample(np.arange(first, min(first + ROWS, len(samples))))
                network.prepare(sample)
                loss = objective(network, sample, StepState(0, 1, 0, training=False)).total
                gradients = torch.autograd.grad(loss, inputs)
                batch = sample.parts[0].batch
                for total, item, x, gradient in zip(totals, heads, inputs, gradients, strict=True):
                    rows = (x * gradient).detach().unflatten(1, (item.units.n, -1)).sum(2)
                    graphs = rows.new_zeros(batch.n_graphs, item.units.n).index_add(0, batch.graph_of(item.level), rows)
                    total += graphs.abs().sum(0)
    finally:
        for hook in hooks:
            hook.remove()
    return [total / total.norm().clamp(min=torch.finfo(total.dtype).tiny) for total in totals]


def heads_left(scores: Sequence[Tensor], fraction: float) -> list[list[int]]:
    """Which heads of each attention stay where the lowest scores of all go, and one of each attention stays.

    Raises:
        BadValueError: none could go.

    Example:
        >>> heads_left([torch.tensor([0.1, 0.2]), torch.tensor([0.9, 0.8])], 0.5)
        [[1], [0]]
    """
    left = [[*range(len(values))] for values in scores]
    total = sum(map(len, left))
    lowest = sorted((float(score), i, h) for i, values in enumerate(scores) for h, score in enumerate(values))
    for _, i, h in lowest:
        if total - sum(map(len, left)) < round(fraction * total) and len(left[i]) > 1:
            left[i].remove(h)
    if sum(map(len, left)) == total:
        words = f"no head can be removed: {fraction:g} of {total} heads, of which each attention keeps one"
        raise BadValueError(words, hint="choose a larger fraction, or a model with more heads")
    return left


def with_heads(method: GraphMethod, left: Sequence[Sequence[int]]) -> GraphMethod:
    """A fitted method whose attentions have these heads alone; those that stay give what they gave."""
    heads = attentions(method)
    params = {**(method.params or {}), "kept_heads": ",".join(str(len(item)) for item in left)}
    weights = keep_units(
        method.ready().network.state_dict(), [(item.units, kept) for item, kept in zip(heads, left, strict=True)]
    )
    note = f"{sum(map(len, left))} of {sum(item.units.n for item in heads)} attention heads left, one or more in each"
    return rebuilt(method, weights, note, params=params)
