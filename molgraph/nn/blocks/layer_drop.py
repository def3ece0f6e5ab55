"""Skip layers at random in training, so that the trained network can be cut to fewer layers (LayerDrop)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.errors import BadValueError
from molgraph.base.ranges import INNER_LIMIT, Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.atom_encoder import AtomEncoder
from molgraph.nn.blocks.stacks import Layer, Stack
from molgraph.nn.encoder import Encoder


@register(
    "block",
    "layer_drop",
    tags=("stack",),
    systems=(
        SystemCard(
            "layerdrop",
            left_out="attention heads and feed-forward layers dropped by themselves; rates learned by layer",
            off="-s params.stack=none",
            beside=("the network without dropped layers, cut alike",),
            command="molgraph train dataset:chembl2321810 -m gin -s 'params.stack=layer_drop(p=0.3)'",
            modules=("molgraph.nn.block", "molgraph.nn.atom_encoder", "molgraph.train.cut_depth"),
        ),
    ),
    summary="layers skipped at random in training, so that the network can be cut to fewer of them",
    paper="Fan et al. 2020, ICLR",
)
class LayerDrop(Stack):
    """Each layer is left out of a training step with probability ``p``, and its states stay as they were before it.

    Fan et al. 2020, "Reducing Transformer Depth on Demand with Structured Dropout", section 3: a network of n layers
    that is to be cut to r of them trains best at ``p = 1 - r / n``. In prediction all layers run, unscaled.
    ``train.cut_depth`` cuts a trained model; ``depth`` builds the network that is left then, without the weights of the
    other layers.

    Args:
        p: the probability of each layer, drawn for each batch.
        depth: layers that are kept; all of them if None.
        keep: which: ``every`` second, third, ... from the first on, as in section 3.2, or the ``first`` ones.
        residual: whether a layer's answer is added to the states before it, as those of transformers are; then leaving
            it out takes a term away. For gin, whose layers replace the states.
    """

    same_rows = False

    def __init__(
        self,
        p: Annotated[float, Range(0, 0.95)] = 0.3,
        depth: Annotated[int, Range(1, INNER_LIMIT)] | None = None,
        keep: Literal["every", "first"] = "every",
        residual: bool = False,
    ) -> None:
        super().__init__()
        self.p, self.depth, self.keep, self.residual = p, depth, keep, residual
        self.kept: frozenset[int] | None = None  # None: all

    def build(self, encoder: Encoder) -> str:
        """Take the weights of the layers that are not kept out of the encoder; one without a stack is refused."""
        if not isinstance(encoder, AtomEncoder) or not encoder.stacked:
            return "has no stack of layers of one width"
        if self.depth is None:
            return ""
        n = len(encoder.d_layers)
        self.kept = frozenset(kept_layers(n, self.depth, self.keep))
        for part in encoder.children():
            if isinstance(part, nn.ModuleList) and part and len(part) % n == 0:
                n_modules = len(part) // n  # consecutive modules of a layer
                for i in range(len(part)):
                    if i // n_modules not in self.kept:
                        part[i] = nn.Identity()
        return ""

    def run(
        self, layers: Sequence[Layer], h: Float[Tensor, "n d"], skips: Sequence[Layer] = ()
    ) -> list[Float[Tensor, "_ d"]]:
        """The states after each layer; those of a layer that is left out are the ones before it."""
        draw = self.training and self.p > 0
        dropped = (torch.rand(len(layers)) < self.p).tolist() if draw else [False] * len(layers)
        states = []
        for t, layer in enumerate(layers):
            out = dropped[t] or (self.kept is not None and t not in self.kept)
            before = (skips[t](h) if skips else h) if out or self.residual else None
            if before is None:
                h = layer(h)
            else:
                h = before if out else before + layer(h)
            states.append(h)
        return states


def kept_layers(n: int, depth: int, keep: str = "every") -> list[int]:
    """Which of n layers stay where ``depth`` of them do, the first layer being 0.

    Raises:
        BadValueError: more layers than there are.

    Example:
        >>> kept_layers(8, 4), kept_layers(8, 3), kept_layers(8, 3, "first")
        ([0, 2, 4, 6], [0, 2, 5], [0, 1, 2])
    """
    if depth > n:
        raise BadValueError(f"{depth} layers cannot be kept of {n}", hint=f"name a depth from 1 to {n}")
    return [i * n // depth for i in range(depth)] if keep == "every" else [*range(depth)]
