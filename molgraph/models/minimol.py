"""MiniMol: sixteen GINE layers with a virtual node, on atoms that know their place in the molecule's spectrum."""

from __future__ import annotations

from itertools import pairwise
from types import MappingProxyType
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import INNER_LIMIT, Probability, Range, Width
from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_places import N_EIGEN, N_STEPS
from molgraph.data.graph_store import InputSpec
from molgraph.nn import relations
from molgraph.nn.atom_encoder import AtomEncoder
from molgraph.nn.norms import make_norms
from molgraph.nn.propagate import propagate
from molgraph.nn.virtual_node import VirtualNode

D_PLACE, D_ATOM, D_BOND = 32, 128, 168  # widths that the paper's network has at every size


@register(
    "encoder",
    "minimol",
    summary="GINE with a virtual node and spectral places of atoms; its published weights load by name",
    paper="Kläser et al. 2024, arXiv:2404.14986; GINE: Hu et al. 2020, ICLR",
    line=(
        "atoms",
        "bonds; members",
        "ReLU of the sum with the bond",
        "skip + perceptron",
        "max",
        "3,300 tasks at once",
    ),
)
class MiniMol(AtomEncoder):
    """The network of MiniMol, a foundation model of 10 million weights.

    Kläser et al. 2024, "MiniMol: A Parameter-Efficient Foundation Model for Molecular Learning", and the package
    minimol 1.3.5: an atom begins as ``MLP([p, x])``, where ``p`` is the sum of a DeepSet of the 8 lowest eigenvalues of
    the Laplacian with the atom's numbers in their eigenvectors, and of a perceptron of the returns of 16 random walks.
    Then, ``depth`` times, ``h <- h + GELU(norm(MLP(h + sum_u ReLU(h_u + W e_uv))))`` and ``h <- h + W g`` with a
    virtual node ``g <- g + GELU(norm(W (g + mean_v h_v log n)))``; the skip leads past what the virtual node adds, and
    the last layer has neither. The maximum over the atoms is the molecule's vector.

    ``molgraph embed minimol library.smi -o vectors.csv`` and ``molgraph finetune minimol table.csv -t y`` start from
    the published weights, trained on 6 million molecules and 3,300 tasks of biology and quantum mechanics
    (``molgraph.train.minimol_weights``).

    Use it as published, for vectors of molecules and to start from; from scratch it is a large network for a table.
    Known limits: the published weights know no handedness, so mirror images have one vector until it is fine-tuned. An
    eigenvector has no sign of its own and, where eigenvalues are equal, no direction: theirs is what LAPACK gives for
    the atoms in canonical order. Other signs change the published vector by 0.2% in the median and 1% at most of 208
    molecules, whose nearest other molecule was 50% away.

    Args:
        spec: what the graphs hold.
        d_hidden: width of an atom's state.
        d_last: width after the last layer, which is that of the molecule's vector.
        depth: layers.
        norm: a registered norm, behind each layer.
        dropout: probability of dropping a value while training; 0.02 in the paper.
        readout: rows to graph, a registered readout.
    """

    small = MappingProxyType({"d_hidden": 8, "d_last": 8, "depth": 2, "norm": "none", "readout": "mean"})
    needs = ("atom", "bond", "atom.place")
    reads = ("molecule",)
    featurisers = MappingProxyType({"molecule": "graphium"})

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 336,
        d_last: Width = 512,
        depth: Annotated[int, Range(1, INNER_LIMIT)] = 16,
        norm: str = "layer",
        dropout: Probability = 0.0,
        readout: str = "max",
    ) -> None:
        super().__init__()
        self.eigen = nn.Sequential(nn.Linear(2, 64), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
        self.eigen_sum = nn.Linear(64, D_PLACE)
        self.walks = nn.Sequential(
            nn.LayerNorm(N_STEPS), *_normed(N_STEPS, 64), nn.ReLU(), *_normed(64, D_PLACE), nn.ReLU()
        )
        width = D_PLACE + spec.width("atom")
        self.embed = nn.Sequential(*_normed(width, 256), nn.ReLU(), *_normed(256, D_ATOM))
        self.embed_bonds = nn.Sequential(*_normed(spec.width("bond"), 128), nn.ReLU(), *_normed(128, D_BOND))
        widths = [D_ATOM, *[d_hidden] * (depth - 1), d_last]
        self.layers = nn.ModuleList(_Layer(*pair) for pair in pairwise(widths))
        self.nodes = nn.ModuleList(VirtualNode(d_hidden) for _ in range(depth - 1))
        self.norms = make_norms(norm, widths[1:])
        self.dropout = nn.Dropout(dropout)
        self.read_by(readout, d_last)

    def states(self, batch: GraphBatch) -> Float[Tensor, "n_atoms d"]:
        """The atoms' states after the last layer."""
        members, features = relations.members(batch), batch.features("atom")
        place = batch["atom"].arrays["place"].to(features.dtype)
        values, vectors, walks = place.split([N_EIGEN, N_EIGEN, N_STEPS], dim=1)
        spectrum = self.eigen_sum(self.eigen(torch.stack([values, vectors], dim=2)).sum(dim=1))
        h = self.embed(torch.cat([spectrum + self.walks(walks), features], dim=1))
        kinds = self.embed_bonds(batch["bond"].table)  # bonds are of a few kinds
        node, before = h.new_zeros(batch.n_graphs, 1), None
        for t, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            h = self.dropout(nn.functional.gelu(norm(layer(h, kinds, batch), members)))
            if t < len(self.nodes):
                before = h = h if before is None else h + before
                h, node = self.nodes[t](h, node, members)
        return h


class _Layer(nn.Module):
    """``MLP(h_v + sum_u ReLU(h_u + W e_uv))``."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.of_bond = nn.Linear(D_BOND, d_in)
        self.mlp = nn.Sequential(*_normed(d_in, d_in), nn.GELU(), nn.Linear(d_in, d_out))

    def forward(
        self, h: Float[Tensor, "n d_in"], kinds: Float[Tensor, "k d_bond"], batch: GraphBatch
    ) -> Float[Tensor, "n d_out"]:
        """float [n, d_in], and the batch with a row for each kind of bond, to [n, d_out]."""
        e = self.of_bond(kinds).index_select(0, batch["bond"].code)
        return self.mlp(h + propagate(h, relations.bonds(batch), edge_rows=e, message=_gine))


def _normed(d_in: int, d_out: int) -> tuple[nn.Linear, nn.LayerNorm]:
    return nn.Linear(d_in, d_out), nn.LayerNorm(d_out)


def _gine(source: Tensor, target: Tensor | None, bond: Tensor) -> Tensor:
    return (source + bond).relu()
