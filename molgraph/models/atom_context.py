"""DeepVS: encode a docked pose by the nearest ligand and protein atoms of each ligand atom, then a maximum."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.chem.complexes import OTHER
from molgraph.data.batch import GraphBatch
from molgraph.data.featurize_geometry import N_ELEMENTS
from molgraph.data.graph_store import InputSpec
from molgraph.nn.atom_contexts import contexts
from molgraph.nn.encoder import Encoded, Encoder
from molgraph.nn.segment import segment_max

CHARGE_STEP, DISTANCE_STEP, FAR = 0.05, 0.3, 5.1  # of the paper; the farthest distance in angstrom
SCALE = 0.1  # of the embeddings at the start: with those of 1 the first steps saturate the tanh
N_CHARGES, N_DISTANCES = round(2 / CHARGE_STEP) + 1, round(FAR / DISTANCE_STEP) + 1


@register(
    "encoder",
    "atom_context",
    tags=("3d",),
    systems=(
        SystemCard(
            "deepvs",
            left_out="its docking programs and DUD's charges: charges are Gasteiger's",
            off="-s params.k_p=0",
            beside=("ligand alone",),
            command="molgraph train dataset:pdbbind_complexes -m atom_context --epochs 2",
            modules=("molgraph.data.featurize_complex", "molgraph.evaluate.screening"),
        ),
    ),
    summary="nearest atoms of each ligand atom, in ligand and protein, and their maximum: for docked poses",
    paper="Pereira, Caffarena and dos Santos 2016, J. Chem. Inf. Model. 56:2495",
    line=("ligand atoms", "nearest atoms", "embeddings side by side", "linear + tanh", "maximum", "supervised"),
)
class AtomContext(Encoder):
    """``u_a = tanh(W z_a + b)``, and the maximum of each channel over the ligand's atoms a.

    Pereira et al. 2016, "Boosting docking-based virtual screening with deep learning", equations 1 to 3: ``z_a`` holds,
    side by side, the embeddings of the types, charges and distances of the ``k_c`` nearest atoms of the ligand, itself
    first, and of the ``k_p`` nearest atoms of the protein, whose amino acids are embedded too. A charge is that of its
    bin of 0.05 from -1 to 1. A distance is embedded by its place between two of the grid's points, 0.3 angstrom apart
    from 0 to 5.1, where the paper takes one of them: so its slope is known. Where there are fewer atoms than places,
    the rest have an embedding of their own.

    Use it for docked poses and crystallised complexes (a mol block with a PDB text after it, in a column named by
    ``--geometry``), and with ``k_p=0``, when it does not see the protein, to learn how much of a score is the ligand's.
    Known limits: the protein is seen through its atoms next to the ligand alone. A geometry without a ligand is read as
    if its atoms were one, by a model that learned from such; one that learned from complexes marks the row.

    Args:
        spec: what the graphs hold.
        k_c: nearest atoms of the ligand, the atom itself among them (the paper: 6).
        k_p: nearest atoms of the protein (the paper: 2).
        d_embed: width of each embedding (the paper: 200).
        n_filters: width of an atom's state (the paper: 400).
    """

    reads = ("geometry",)
    by_code = True
    needs = ("atom", "atom.position", "atom.residue", "atom.charge")
    featurisers = MappingProxyType({"geometry": "complex"})
    small = MappingProxyType({"d_embed": 4, "n_filters": 8})

    def __init__(
        self,
        spec: InputSpec,
        *,
        k_c: Annotated[int, Range(1, 64)] = 6,
        k_p: Annotated[int, Range(0, 64)] = 2,
        d_embed: Width = 32,
        n_filters: Width = 128,
    ) -> None:
        super().__init__()
        self.k_c, self.k_p = k_c, k_p
        self.types = nn.Embedding(N_ELEMENTS + 1, d_embed)  # row 0 stands for no atom, as in the others
        self.charges = nn.Embedding(N_CHARGES + 1, d_embed)
        self.distances = nn.Embedding(N_DISTANCES + 1, d_embed)
        self.residues = nn.Embedding(OTHER + 1, d_embed) if k_p else None
        for table in filter(None, (self.types, self.charges, self.distances, self.residues)):
            nn.init.normal_(table.weight, std=SCALE)
        self.linear = nn.Linear((3 * (k_c + k_p) + k_p) * d_embed, n_filters)
        self.d_out = n_filters

    def prepare(self, batch: GraphBatch) -> None:
        """Find the contexts ahead."""
        contexts(batch, self.k_c, self.k_p)

    def forward(self, batch: GraphBatch, *, rows: bool = False) -> Encoded:
        """Encode a batch of complexes."""
        centre, near, members = contexts(batch, self.k_c, self.k_p)
        arrays, there = batch["atom"].arrays, near >= 0
        place = near.clamp(min=0)
        at, kind = arrays["position"].to(self.linear.weight.dtype), batch["atom"].code
        square = (at[place] - at[centre].unsqueeze(1)).square().sum(2)
        same = (square == 0).to(square.dtype)
        distance = (square + same).sqrt() - same  # whose slope at 0 is 0
        charge = ((arrays["charge"][place].clamp(-1, 1) + 1) / CHARGE_STEP).round().long()
        pieces = [
            self.types((kind[place] + 1) * there),
            self.charges((charge + 1) * there),
            self._between(distance) * there.unsqueeze(2) + self.distances.weight[0] * ~there.unsqueeze(2),
        ]
        if self.residues is not None:
            protein = place[:, self.k_c :]
            pieces.append(self.residues(arrays["residue"][protein].long() * there[:, self.k_c :]))
        z = torch.cat([piece.flatten(1) for piece in pieces], dim=1)
        return Encoded(segment_max(self.linear(z).tanh(), members))

    def _between(self, distance: Float[Tensor, "n k"]) -> Float[Tensor, "n k d"]:
        """The embedding of each distance, on the line between those of its two neighbours on the grid."""
        steps = (distance / DISTANCE_STEP).clamp(max=N_DISTANCES - 1)
        below = steps.detach().floor().clamp(max=N_DISTANCES - 2)
        share, row = (steps - below).unsqueeze(2), below.long() + 1
        return self.distances(row) * (1 - share) + self.distances(row + 1) * share
