"""Discrete bottleneck: replace each atom's state by one of a few learned symbols before the readout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.atom_encoder import AtomEncoder, Pooled, SharedStates
from molgraph.nn.block import BlockOption
from molgraph.nn.encoder import Encoder


def draw(logits: Float[Tensor, "n k"], temperature: float, hard: bool = True) -> Float[Tensor, "n k"]:
    """One-hot rows drawn from ``softmax(logits)`` by Gumbel noise, whose gradient is that of the soft ones.

    Jang et al. 2017, equation 2; straight-through in section 2.2.
    """
    return F.gumbel_softmax(logits, tau=temperature, hard=hard)


@register(
    "block",
    "symbols",
    tags=("symbols",),
    systems=(
        SystemCard(
            "emergent-discrete-communication",
            left_out="agents in a world, their reward, and goals predicted from what they say",
            off="-s params.symbols=none",
            beside=("states without symbols", "an encoder that was not trained"),
            command="molgraph train dataset:chembl2321810 -m gin -s 'params.symbols=symbols(16)'",
            modules=("molgraph.nn.block",),
        ),
    ),
    summary="each atom gives the readout one of a few symbols: a learned vocabulary of atom types",
    paper="Mordatch and Abbeel 2018, AAAI; Gumbel-softmax: Jang et al. 2017, ICLR",
)
class Symbols(BlockOption):
    """What the readout reads of an atom is one of ``n`` vectors, chosen by its state.

    Mordatch and Abbeel 2018, "Emergence of Grounded Compositional Language in Multi-Agent Populations": symbols drawn
    by Gumbel-softmax while training, the likeliest one in prediction; the penalty ``symbols`` rewards the symbols that
    are popular already, by ``-popularity * log((count + 1) / (all + n))``, so that the vocabulary stays small
    (section 5.1).

    Args:
        n: symbols.
        temperature: of the Gumbel-softmax.
        popularity: weight of the penalty of rare symbols.
    """

    key = "symbols"
    counts: Float[Tensor, " n"]

    def __init__(
        self,
        n: Annotated[int, Range(2, 4_096)] = 16,
        temperature: Annotated[float, Range(0, 100, above=True)] = 1.0,
        popularity: Annotated[float, Range(0, 1_000)] = 0.0,
    ) -> None:
        super().__init__()
        self.temperature, self.popularity = temperature, popularity
        self.register_buffer("counts", torch.zeros(n))

    def build(self, encoder: Encoder) -> str:
        """The logits and vectors of symbols; an encoder without states of atoms is refused."""
        if not isinstance(encoder, AtomEncoder):
            return "has no readout of the states of atoms"
        n = len(self.counts)
        self.speak, self.hear = nn.Linear(encoder.d_rows, n), nn.Linear(n, encoder.d_rows, bias=False)
        return ""

    def spoken(self, h: Float[Tensor, "rows d"]) -> Float[Tensor, "rows n"]:
        """The symbol of each row, one-hot."""
        logits = self.speak(h)
        if self.training:
            return draw(logits, self.temperature)
        return F.one_hot(logits.argmax(1), logits.shape[1]).to(h.dtype)

    def pool(self, call: Callable[[SharedStates], Pooled], found: SharedStates) -> Pooled:
        """The readout of the symbols' vectors."""
        h = found.h
        symbols = self.spoken(h)
        heard = self.hear(symbols)
        read = None if found.read is None else torch.cat([heard, found.read[:, heard.shape[1] :]], dim=1)
        graphs, penalties = call(found._replace(h=heard, read=read))
        if self.training:
            rarity = -((self.counts + 1) / (self.counts.sum() + len(self.counts))).log()
            cost = self.popularity * (symbols @ rarity.to(h.dtype)).mean() if len(h) else h.sum()
            penalties = {**penalties, "symbols": cost}
            self.counts.mul_(0.9).add_(symbols.detach().sum(0).to(self.counts.dtype))
        return graphs, penalties
