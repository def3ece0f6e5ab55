"""DeepDTA: convolutions over the letters of a protein or the characters of a SMILES text."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

from torch import nn

from molgraph.base.ranges import Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn.encoder import Encoded, Encoder
from molgraph.nn.sequence import embedded_tokens
from molgraph.nn.sequences.convolution import Convolutions, Window


@register(
    "encoder",
    "deepdta",
    systems=(
        SystemCard("deepdta"),
        SystemCard(
            "mt-dti",
            left_out="the pretrained transformer of SMILES; the protein's side, the data and the index of pairs stand",
            off="tokens",
            beside=("drugs' means and proteins' means",),
            modules=("molgraph.nn.sequences.convolution", "molgraph.evaluate.measures"),
            part=True,
        ),
    ),
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
        window: Window = 8,
        max_tokens: Annotated[int, Range(1, 100_000)] = 1200,
    ) -> None:
        super().__init__()
        if window < 1 or max_tokens < 1:
            raise ValueError(f"window is {window} and max_tokens {max_tokens}: both are 1 or more")
        self.max_tokens = max_tokens
        self.embed = nn.Linear(spec.width("token"), d_embed, bias=False)
        widths = (d_embed, n_filters, 2 * n_filters, 3 * n_filters)
        self.convolutions = Convolutions(widths, window)
        self.d_out = 3 * n_filters

    def forward(self, batch: GraphBatch, *, rows: bool = False) -> Encoded:
        """Encode a batch of sequences."""
        return Encoded(self.convolutions(*embedded_tokens(batch, self.embed, self.max_tokens)).amax(dim=1))
