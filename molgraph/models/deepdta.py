"""DeepDTA: convolutions over the letters of a protein or the characters of a SMILES text."""

from __future__ import annotations

from itertools import pairwise
from types import MappingProxyType
from typing import Annotated

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from molgraph.base.ranges import Range, Width
from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn.encoder import Encoded, Encoder


@register(
    "encoder",
    "deepdta",
    system="deepdta",
    command="molgraph train dataset:davis -m deepdta --epochs 2",
    summary="convolutions over letters: of proteins, SMILES, or both (drug-target affinity)",
    paper="Oeztuerk, Oezguer and Ozkirimli 2018, Bioinformatics 34:i821",
    line=("tokens", "windows", "convolution", "ReLU", "maximum", "supervised"),
)
class DeepDTA(Encoder):
    """Three convolutions of growing width over embedded tokens, and their maximum over the sequence.

    Oeztuerk et al. 2018, "DeepDTA: deep drug-target binding affinity prediction", section 2.2: filters ``n, 2 n, 3 n``,
    windows of ``window`` tokens, global maximum. A table of drugs and proteins has one such encoder for each column.

    Use it for proteins beside molecules, which are read as their canonical SMILES. Known limits: what stands after
    ``max_tokens`` is not read.

    Args:
        spec: what the sequences hold.
        d_embed: width of a token's embedding.
        n_filters: filters of the first convolution.
        window: tokens that a filter sees (the paper: 4 to 8 for SMILES, 8 or 12 for proteins).
        max_tokens: tokens that are read of a sequence (the paper: 85 of a SMILES, 1,200 of a protein).
    """

    reads = ("molecule", "sequence")
    needs = ("token",)
    featurisers = MappingProxyType({"molecule": "smiles_characters"})
    small = MappingProxyType({"d_embed": 8, "n_filters": 4})

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_embed: Width = 128,
        n_filters: Width = 32,
        window: Annotated[int, Range(1, 64)] = 8,
        max_tokens: Annotated[int, Range(1, 100_000)] = 1200,
    ) -> None:
        super().__init__()
        if window < 1 or max_tokens < 1:
            raise ValueError(f"window is {window} and max_tokens {max_tokens}: both are 1 or more")
        self.max_tokens = max_tokens
        self.embed = nn.Linear(spec.width("token"), d_embed, bias=False)
        widths = (d_embed, n_filters, 2 * n_filters, 3 * n_filters)
        self.convolutions = nn.ModuleList(nn.Conv1d(a, b, window, padding=window // 2) for a, b in pairwise(widths))
        self.d_out = 3 * n_filters

    def forward(self, batch: GraphBatch, *, rows: bool = False) -> Encoded:
        """Encode a batch of sequences."""
        own = batch["token"]
        assert own.table is not None
        tokens = self.embed(own.table).index_select(0, own.code)
        if not len(tokens):  # no sequence that can be read
            return Encoded(tokens.new_zeros(batch.n_graphs, self.d_out) + 0 * tokens.sum())
        lengths = own.offsets.diff()
        texts = [each[: self.max_tokens] for each in tokens.split(lengths.tolist())]
        x = pad_sequence(texts, batch_first=True).transpose(1, 2)
        mask = (torch.arange(x.shape[2], device=x.device) < lengths.unsqueeze(1)).unsqueeze(1)
        for convolution in self.convolutions:
            x = torch.relu(convolution(x)[..., : mask.shape[2]]) * mask  # what lies beyond the end stays 0
        return Encoded(x.amax(dim=2))
