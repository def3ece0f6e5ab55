"""Learn a vocabulary of atoms in their surroundings: an autoencoder of atoms whose latent vectors are codes."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from molgraph.base.errors import UnsupportedError
from molgraph.base.parts import make_part, read_part
from molgraph.base.registry import get, names
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn.code_bottleneck import CodeBottleneck
from molgraph.nn.relations import bonds
from molgraph.nn.ring_chains import ring_chains
from molgraph.nn.second_encoder import atom_states, second_encoder
from molgraph.nn.segment import gather_sum


class Tokens(NamedTuple):
    """The codes of a batch's atoms.

    Args:
        code: of each atom, or of its fragment and of it.
        loss: of each atom: what its features and its neighbours' are missed by, and the prices of the codes.
    """

    code: Int[Tensor, "n columns"]
    loss: Float[Tensor, " n"]


class AtomTokeniser(nn.Module):
    """``h_v -> code -> (x_v, sum_{u in N(v)} x_u)``: codes of atoms from which features are rebuilt.

    Van den Oord et al. 2017 on the states of a small encoder of molecules, as in Xia et al. 2023, "Mole-BERT:
    Rethinking Pre-training Graph Neural Networks for Molecules", ICLR. The loss of an atom is the squared error of
    both rows of features, beside the prices of its codes. Of two levels the groups are ring systems and chains.

    Args:
        quantiser: a registered bottleneck of codes with its settings, such as ``vq(512)``; each atom has one code.
        spec: what the graphs hold.
        encoder: a registered encoder with its settings, whose states of atoms are coded.
        d: width of a code's vector.

    Raises:
        UsageError: a bottleneck without codes, or an encoder without states of atoms.
    """

    def __init__(self, quantiser: str, spec: InputSpec, encoder: str, d: int = 32) -> None:
        super().__init__()
        if not get("bottleneck", read_part(quantiser, "bottleneck").name).discrete:
            able = ", ".join(f"{name}(512)" for name in names("bottleneck") if get("bottleneck", name).discrete)
            raise UnsupportedError(f"{quantiser} gives no codes of atoms", hint=f"choose one of {able}")
        self.encoder = second_encoder(encoder, spec, "a tokeniser has an encoder")
        width = spec.width("atom")
        self.quantiser: CodeBottleneck = make_part("bottleneck", quantiser, self.encoder.d_rows, d, None, 0, parts=1)
        self.decoder = nn.Sequential(nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, 2 * width))

    def forward(self, graphs: GraphBatch) -> Tokens:
        """Codes of the atoms of molecules in which nothing is masked."""
        codes = self.quantiser.quantise(atom_states(self.encoder(graphs, rows=True)), ring_chains(graphs))
        x = graphs.features("atom").float()
        wrong = (self.decoder(codes.z) - torch.cat([x, gather_sum(x, bonds(graphs))], dim=1)).square().sum(dim=1)
        return Tokens(codes.code, wrong + sum(price.sum(dim=1) for price in codes.prices.values()))
