"""Contact map: graph convolution over the residues of a protein, or over a complex, along contacts in space."""

from __future__ import annotations

from types import MappingProxyType

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import Layers, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn import relations
from molgraph.nn.atom_encoder import AtomEncoder
from molgraph.nn.norms import make_norms
from molgraph.nn.propagate import propagate


@register(
    "encoder",
    "contact_map",
    tags=("3d",),
    systems=(
        SystemCard(
            "dual-graph-l-lp-r-network",
            left_out="the paper's own atom features and widths, which could not be verified; confidence of the output",
            off="schnet",
            beside=("ligand alone", "protein alone"),
            command="molgraph train dataset:pdbbind_complexes -m contact_map --epochs 2",
            modules=("molgraph.data.featurize_contacts",),
        ),
    ),
    summary="graph convolution along contacts: for proteins and complexes in space",
    paper="Morrone et al. 2020, J. Chem. Inf. Model. 60:4170",
    line=(
        "residues and atoms",
        "contacts",
        "product with weights of the distance",
        "skip + ReLU",
        "mean",
        "supervised",
    ),
)
class ContactMapEncoder(AtomEncoder):
    """``h_v <- h_v + ReLU(norm(W [h_v, sum_{u in N(v)} (E d_uv) * h_u]))`` over a contact map, ``depth`` times.

    Morrone et al. 2020, "Combining docking pose rank and structure with deep learning improves protein-ligand binding
    mode prediction over a baseline docking approach": the graph LP, whose nodes are those of the ligand and of the
    protein, joined where they are near in space. The graph L of the paper is a second column: ``dmpnn+contact_map``
    reads SMILES beside the complex, and the rank R of a docked pose is a column of features (``--feature rank``).
    ``d_uv`` is the distance's bin, as the featuriser ``contact_map`` has it. Rotation and translation change nothing.

    Use it for proteins with a structure, and for complexes. Known limits: a residue is one node, whatever its side
    chain does; distances alone are read, so that mirror images are one to it.

    Args:
        spec: what the graphs hold.
        d_hidden: width of a node's state.
        depth: number of rounds.
        norm: a registered norm.
        readout: rows to graph, a registered readout.
    """

    reads = ("geometry",)
    featurisers = MappingProxyType({"geometry": "contact_map"})
    small = MappingProxyType({"d_hidden": 8})

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 64,
        depth: Layers = 3,
        norm: str = "none",
        readout: str = "mean",
    ) -> None:
        super().__init__()
        self.embed = nn.Linear(spec.width("atom"), d_hidden, bias=False)
        self.distance = nn.ModuleList(nn.Linear(spec.width("bond"), d_hidden, bias=False) for _ in range(depth))
        self.layers = nn.ModuleList(nn.Linear(2 * d_hidden, d_hidden) for _ in range(depth))
        self.norms = make_norms(norm, [d_hidden] * depth)
        self.d_layers = (d_hidden,) * depth
        self.read_by(readout, d_hidden)

    def states(self, batch: GraphBatch) -> list[Float[Tensor, "n_nodes d"]]:
        """The nodes' states after each round, float [n_nodes, d]."""
        contacts, members = relations.bonds(batch), relations.members(batch)
        layers = [self.embed(batch.features("atom"))]
        for distance, layer, norm in zip(self.distance, self.layers, self.norms, strict=True):
            h = layers[-1]
            near = propagate(h, contacts, edge_rows=distance(batch.features("bond")), message=_weighted)
            layers.append(h + norm(layer(torch.cat([h, near.to(h.dtype)], dim=1)), members).relu())
        return layers[1:] or layers


def _weighted(source: Tensor, target: Tensor | None, weights: Tensor) -> Tensor:
    return source * weights
