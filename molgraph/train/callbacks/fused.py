"""Fused: a small network whose layers attend to the atoms' states of a large frozen encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from molgraph.base.errors import BadValueError, UnsupportedError
from molgraph.base.parts import make_part
from molgraph.base.ranges import Count, Probability
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.nn.attention import attend_all
from molgraph.nn.blocks.stacks import Layer, Stack
from molgraph.nn.encoder import Encoded, Encoder
from molgraph.nn.head import Head
from molgraph.nn.size_groups import SizeGroups, size_groups
from molgraph.train.callback import Callback, Phase
from molgraph.train.callbacks.lp_ft import new_parameters

FUSED = "fused"  # its place among the network's parts


class Fused(Stack):
    """``h' = (layer(h) + attn(h, H_B)) / 2`` in each layer, H_B the frozen states of the atoms of the same molecule.

    In training a number U, uniform on [0, 1], is drawn for each layer and batch: below ``drop / 2`` the layer has the
    attention alone, above ``1 - drop / 2`` its own term alone, and otherwise the mean of both, as in prediction.

    Args:
        d_frozen: width of H_B.
        heads: of attention.
        drop: the probability that one of the two is left out.
    """

    def __init__(self, d_frozen: int, heads: int, drop: float) -> None:
        super().__init__()
        self.d_frozen, self.heads, self.drop = d_frozen, heads, drop
        self.frozen: Tensor | None = None  # H_B, float [n_atoms, d_frozen], of the batch that is encoded now
        self.groups: SizeGroups | None = None

    def build(self, encoder: Encoder) -> str:
        """Make the projections of each layer."""
        if not getattr(encoder, "stacked", False):
            return "has no stack of layers of one width"
        widths = encoder.d_layers
        if widths[0] % self.heads:
            words = f"the width {widths[0]} of {type(encoder).__name__}'s layers is not divided by {self.heads} heads"
            raise BadValueError(words, hint="choose another heads, as in fused(heads=1)")
        self.q = nn.ModuleList(nn.Linear(d, d) for d in widths)
        self.k, self.v = (nn.ModuleList(nn.Linear(self.d_frozen, d) for d in widths) for _ in range(2))
        self.out = nn.ModuleList(nn.Linear(d, d) for d in widths)
        return ""

    def around(self, call: Callable[..., Encoded], batch: GraphBatch, rows: bool) -> Encoded:
        """The encoder's pass, whose layers know which atoms are of one molecule."""
        self.groups = size_groups(batch)
        output = call(batch, rows=rows)
        self.groups = self.frozen = None
        return output

    def attention(self, t: int, h: Tensor) -> Tensor:
        """``attn(h, H_B)`` of layer t, float [n_atoms, d]."""
        assert self.frozen is not None and self.groups is not None
        projections = (self.q[t](h), self.k[t](self.frozen), self.v[t](self.frozen))
        q, k, v = (projection.unflatten(1, (self.heads, -1)) for projection in projections)
        return self.out[t](attend_all(q, k, v, self.groups).flatten(1))

    def run(self, layers: Sequence[Layer], h: Tensor, skips: Sequence[Layer] = ()) -> list[Tensor]:
        """The states after each layer, float [n_atoms, d] each."""
        states = []
        for t, layer in enumerate(layers):
            u = float(torch.rand(())) if self.training and self.drop else 0.5
            if u < self.drop / 2:
                h = self.attention(t, h)
            elif u > 1 - self.drop / 2:
                h = layer(h)
            else:
                h = (layer(h) + self.attention(t, h)) / 2
            states.append(h)
        return states


class FusedNetwork(nn.Module):
    """The small encoder, which stands between the frozen one and the head.

    Args:
        encoder: whose one option is a ``Fused``.
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.seen: Tensor | None = None

    def ask(self, frozen: nn.Module, args: Any, kwargs: Any) -> Any:
        """Before the frozen encoder's pass: ask for the states of its atoms."""
        return args, kwargs | {"rows": True}

    def keep(self, frozen: nn.Module, args: Any, encoded: Encoded) -> None:
        """After it: encode the same batch, and keep the states of its graphs, float [g, d], for the head."""
        (fused,) = self.encoder.options
        fused.frozen = next(rows.h for rows in encoded.rows if rows.level == "atom").detach()
        self.seen = self.encoder(args[0]).graphs

    def read(self, head: nn.Module, args: Any) -> Any:
        """Before the head's pass: those states in the place of the frozen encoder's."""
        assert self.seen is not None
        state, self.seen = self.seen, None
        return state.to(args[0].dtype), *args[1:]


@register(
    "callback",
    "fused",
    summary="a small network learns, whose layers attend to the atoms' states of the frozen encoder",
    paper="Zhu et al. 2020, ICLR",
    systems=(
        SystemCard(
            "bert-fused-nmt",
            left_out="the decoder, which reads the frozen states too; the frozen states are computed in every epoch",
            off="linear-probe",
            beside=("the small network alone", "a random encoder"),
            modules=("molgraph.nn.attention",),
        ),
    ),
    command="molgraph pretrain dataset:nci --epochs 2 -o encoder.mgm && "
    "molgraph finetune encoder.mgm dataset:chembl2321810 --callback fused -o model.mgm",
)
class FusedModel(Callback):
    """The head reads a small encoder, which learns from random weights and attends to a frozen one in each layer.

    Zhu et al. 2020, "Incorporating BERT into neural machine translation", section 4: each layer is the mean of its own
    message passing and of attention over the frozen states of the same molecule's atoms, and drop-net leaves one of
    the two out at random in training (``Fused``).

    Use it where the pretrained encoder is too large to be fine-tuned, and its pooled state is too little. Known limits:
    the small encoder is one with layers of one width, and the frozen one is still computed in every epoch.

    Args:
        model: the small encoder with its settings, ``gin`` or ``inverted_residual``.
        heads: of attention, which divide the width of its layers.
        drop: drop-net's probability that a layer leaves out one of the two in a step; the paper's best is 1.
    """

    needs_start = True

    def __init__(self, *, model: str = "gin(d_hidden=64, depth=3)", heads: Count = 4, drop: Probability = 1.0) -> None:
        super().__init__()
        self.model, self.heads, self.drop = model, heads, drop

    def begin(self, network: Any) -> None:
        """Put the small encoder between the frozen one and the head.

        Raises:
            UnsupportedError: several columns, no states of atoms, a head that reads atoms, or an encoder that has no
                layers of one width.
        """
        frozen, head = network.encoder, network.head
        if len(network.encoders) > 1 or network.level != "row" or not isinstance(head, Head) or head.reads_atoms:
            hint = "choose one column of molecules and a head such as params.head=perceptron"
            raise UnsupportedError("fused encodes one column for a head of rows", hint=hint)
        spec = network.inputs[0].spec
        for option in frozen.options:
            spec = option.widen(spec)
        if not frozen.d_rows or not spec.widths.get("atom"):
            words = f"fused attends to the states of atoms, which {type(frozen).__name__} does not give"
            raise UnsupportedError(words, hint="choose an encoder that does, such as gin or dmpnn")
        small, fused = make_part("encoder", self.model, spec), Fused(frozen.d_rows, self.heads, self.drop)
        if lacking := fused.build(small):
            raise UnsupportedError(f"{self.model} {lacking}", hint="choose another: fused(model=gin)")
        small.block_options = nn.ModuleList([fused])
        network.parts[FUSED] = part = FusedNetwork(small)
        first = head.layers[0]
        assert isinstance(first, nn.Linear)
        head.layers[0] = nn.Linear(first.in_features - network.d_state + small.d_out, first.out_features)
        frozen.register_forward_pre_hook(part.ask, with_kwargs=True)
        frozen.register_forward_hook(part.keep)
        head.register_forward_pre_hook(part.read)

    def phases(self, network: Any) -> list[Phase]:
        """One phase, of what is new."""
        return [Phase(1.0, new_parameters(network, "fused"))]
