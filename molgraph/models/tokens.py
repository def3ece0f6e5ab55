"""Tokens of SMILES, SELFIES or a protein, read by any sequence layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.errors import BadValueError
from molgraph.base.parts import make_part
from molgraph.base.ranges import Probability, Range, Width
from molgraph.base.registry import get, register
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn.encoder import Encoded, Encoder, Rows
from molgraph.nn.penalties import Penalties, add_penalties
from molgraph.nn.relation import Relation, row_offsets
from molgraph.nn.sequence import embedded_tokens, make_sequence


@register(
    "encoder",
    "tokens",
    command="molgraph train dataset:esol -m 'tokens(sequence=s4, tokens=selfies)' --epochs 10",
    summary="a sequence layer (s4, gru, attention, convolution, ...) over tokens of SMILES, SELFIES or proteins",
    paper="Goh et al. 2017, arXiv:1712.02034; layers: molgraph models --kind sequence",
    line=("tokens", "tokens before, or a window", "sequence layer", "by layer", "mean", "supervised"),
)
class Tokens(Encoder):
    """A registered sequence layer over embedded tokens, and a readout of its states.

    Goh et al. 2017, "SMILES2Vec: An Interpretable General-Purpose Deep Neural Network for Predicting Chemical
    Properties": ``readout_t h_t`` with ``h = sequence(W x)``. A generator writes with the same layers
    (``train-generator -m language``).

    Use it for proteins and for long molecules such as peptides, or to compare sequence layers. Known limits: on small
    tables of small molecules a graph model is better; what stands after ``max_tokens`` is not read; a token that no
    training molecule has says nothing.

    Args:
        spec: what the sequences hold.
        sequence: a registered sequence layer with its settings, such as ``s4(d_state=16)``.
        tokens: of molecules: ``smiles``, ``selfies``, ``smiles_characters``, or another featuriser of tokens.
        d_embed: width of a token's embedding.
        d_hidden: width of a token's state.
        n_layers: layers of the sequence layer.
        dropout: probability of dropping a value between layers while training.
        readout: tokens to sequence, a registered readout.
        max_tokens: tokens that are read of a sequence.

    Raises:
        UsageError: an unknown layer, readout or featuriser.
    """

    reads = ("molecule", "sequence")
    needs = ("token",)
    featurisers = MappingProxyType({"molecule": "smiles"})
    small = MappingProxyType({"d_embed": 8, "d_hidden": 8, "n_layers": 1})

    def __init__(
        self,
        spec: InputSpec,
        *,
        sequence: str = "s4",
        tokens: str = "smiles",
        d_embed: Width = 64,
        d_hidden: Width = 128,
        n_layers: Annotated[int, Range(1, 16)] = 2,
        dropout: Probability = 0.0,
        readout: str = "mean",
        max_tokens: Annotated[int, Range(1, 100_000)] = 1200,
    ) -> None:
        super().__init__()
        self.max_tokens = max_tokens
        self.embed = nn.Linear(spec.width("token"), d_embed, bias=False)
        self.sequence = make_sequence(sequence, d_embed, d_hidden, n_layers, dropout)
        self.readout = make_part("readout", readout, d_hidden)
        self.d_out, self.d_tokens = self.readout.d_out, d_hidden  # no ``d_rows``: a token is no atom

    @classmethod
    def featuriser(cls, kind: str, params: Mapping[str, Any]) -> str:
        """That of ``tokens`` for molecules."""
        if kind != "molecule" or "tokens" not in params:
            return super().featuriser(kind, params)
        name = str(params["tokens"])
        if (other := get("featuriser", name).kind) != kind:
            words = f"{name} makes tokens of another kind of entity: {other}"
            raise BadValueError(words, hint="choose smiles or selfies")
        return name

    def states(
        self,
        batch: GraphBatch,
        further: Float[Tensor, "m d_embed"] | None = None,
        beside: Float[Tensor, "n t d_embed"] | None = None,
    ) -> tuple[Float[Tensor, "n t d"], Bool[Tensor, "n t"]]:
        """The states of the tokens that are read, zeros behind them, and the mask of the tokens.

        Args:
            batch: texts; codes from ``1 + width of a token's features`` on are those of ``further``.
            further: the embeddings of m more tokens, such as the sentinels of an objective.
            beside: what is added to the embeddings.
        """
        return self.penalised_states(batch, further, beside)[:2]

    def penalised_states(
        self,
        batch: GraphBatch,
        further: Float[Tensor, "m d_embed"] | None = None,
        beside: Float[Tensor, "n t d_embed"] | None = None,
    ) -> tuple[Float[Tensor, "n t d"], Bool[Tensor, "n t"], Penalties]:
        """The same, and the penalties of the sequence layers."""
        x, mask = embedded_tokens(batch, partial(self._embedded, further), self.max_tokens)
        states, penalties = self.sequence.penalised(x if beside is None else x + beside, mask)
        return states, mask, penalties

    def _embedded(
        self, further: Float[Tensor, "m d_embed"] | None, table: Float[Tensor, "rows width"]
    ) -> Float[Tensor, "_ d_embed"]:
        if further is None:
            return self.embed(table)
        return torch.cat([F.pad(self.embed(table), (0, 0, 0, 1 + table.shape[1] - len(table))), further])

    def forward(self, batch: GraphBatch, *, rows: bool = False) -> Encoded:
        """Encode a batch of sequences; with ``rows`` the states of the tokens that are read too."""
        states, mask, added = self.penalised_states(batch)
        encoded = self.read(states, mask, rows=rows)
        return replace(encoded, penalties=add_penalties([added, encoded.penalties]))

    def read(self, states: Float[Tensor, "n t d"], mask: Bool[Tensor, "n t"], *, rows: bool = False) -> Encoded:
        """Read out the states of tokens; with ``rows`` they are given too."""
        h, counts = states[mask], mask.sum(dim=1)
        index = torch.arange(len(h), device=h.device)
        graphs, penalties = self.readout(h, Relation(index, row_offsets(counts), len(h), len(counts)))
        token_rows = (Rows("token", h, torch.nonzero(mask)[:, 0]),) if rows else ()
        return Encoded(graphs, token_rows, penalties)
