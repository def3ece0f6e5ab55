"""The network: an encoder and a head; a batch of graphs (and descriptors of the rows) in, raw outputs out."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from molgraph.base import registry
from molgraph.base.errors import UsageError, nearest
from molgraph.data.graph_store import InputSpec
from molgraph.nn.encoder import Encoder, check_input
from molgraph.nn.perceptron import Perceptron
from molgraph.train.samples import Sample


class Network(nn.Module):
    """``head(encoder(graph), descriptors)``.

    Args:
        encoder: gives one state a graph.
        head: a perceptron on that state, beside the row's descriptors where there are any.
    """

    def __init__(self, encoder: Encoder, head: nn.Module) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head

    def forward(self, sample: Sample) -> tuple[Tensor, Tensor | None]:
        """Raw outputs, float [n, d_out], and the sum of the encoder's penalties where it has any."""
        encoded = self.encoder(sample.batch)
        state = encoded.graphs
        if sample.extra is not None:
            state = torch.cat([state, sample.extra.to(state.dtype)], dim=1)
        penalties = list(encoded.penalties.values())
        # a few rows: in single precision the head costs nothing, and bfloat16 would round what it answers
        with torch.autocast(state.device.type, enabled=False):
            out = self.head(state.to(torch.promote_types(state.dtype, torch.float32)))
        return out, torch.stack(penalties).sum() if penalties else None


def build_network(
    encoder: str,
    params: Mapping[str, Any],
    *,
    spec: InputSpec,
    d_extra: int,
    d_out: int,
    d_hidden: int = 300,
    n_layers: int = 2,
    dropout: float = 0.0,
) -> Network:
    """The network of a registered encoder; raises ``UsageError`` for parameters that the encoder does not take."""
    make = registry.get("encoder", encoder)
    check_input(make, spec, encoder)
    known = encoder_params(encoder)
    for name in params:
        if name not in known:
            raise UsageError(f"{encoder} has no parameter {name!r}", hint=nearest(name, known))
    try:
        body = make(spec, **params)
        head = Perceptron(body.d_out + d_extra, d_hidden, d_out, n_layers=n_layers, dropout=dropout)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(f"{encoder} cannot be built: {error}", hint=f"its parameters: {', '.join(known)}") from error
    return Network(body, head)


def encoder_params(encoder: str) -> tuple[str, ...]:
    """Names of an encoder's hyper-parameters."""
    signature = inspect.signature(registry.get("encoder", encoder).__init__)
    return tuple(name for name in signature.parameters if name not in ("self", "spec"))
