"""SchNet: continuous filters of the distances between atoms in space."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import Annotated

from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.parts import make_part
from molgraph.base.ranges import INNER_LIMIT, Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn import relations
from molgraph.nn.atom_encoder import AtomEncoder
from molgraph.nn.basis import cosine_cutoff, safe_norm
from molgraph.nn.norms import make_norms
from molgraph.nn.perceptron import make_activation
from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation


@register(
    "encoder",
    "schnet",
    tags=("3d",),
    systems=(
        SystemCard(
            "schnet",
            left_out="crystals",
            off="-s params.cutoff_angstrom=0.1",  # no atom is nearer: what is left are contributions by element
            beside=("summed states", "composition alone"),
            command="molgraph train dataset:gdb7_3d -m schnet -s params.head=atomwise",
            modules=("molgraph.nn.heads.atomwise", "molgraph.train.references", "molgraph.nn.basis"),
        ),
        SystemCard(
            "siren",
            left_out="images, sounds and differential equations; the hypernetwork",
            off="-s params.activation=shifted_softplus",
            beside=("relu", "silu", "tanh"),
            command="molgraph train dataset:gdb7_3d -m schnet -s params.activation=siren",
            modules=("molgraph.nn.siren", "molgraph.nn.perceptron"),
        ),
    ),
    summary="continuous filters of distances: for atoms in space",
    paper="Schuett et al. 2018, J. Chem. Phys. 148:241722",
    line=("atoms", "radius", "continuous filter", "residual", "sum", "supervised"),
)
class SchNet(AtomEncoder):
    """Continuous-filter convolutions over all atoms within a radius.

    Schuett et al. 2018, "SchNet: a deep learning architecture for molecules and materials", section II:
    ``x_i <- x_i + W ssp(W sum_j (W x_j) * filter(d_ij))`` with ``filter(d) = ssp(W ssp(W basis(d))) cos_cutoff(d)`` and
    ``ssp(x) = ln(exp(x) / 2 + 1 / 2)``. Invariant under rotation, translation and reflection; smooth at the cutoff.

    Use it for energies and other sums over atoms, with ``params.head=atomwise``, the paper's sum of a contribution of
    each atom: two copies far apart then have twice the energy of one, which the usual head does not give. For numbers
    that do not grow with the molecule use ``params.readout=mean``, or ``set2set`` where a few atoms decide, as for
    orbital energies. With 2,400 molecules of QM9 and 15 epochs, atomisation energies were off by 6.6 kcal/mol with
    ``atomwise`` and 55.7 without, gaps by 617 meV with it, 539 by the sum and 552 by the mean. Known limits: it sees
    distances alone, so neighbourhoods whose distances agree are one to it, and mirror images are.

    Args:
        spec: what the graphs hold.
        d_hidden: width of an atom's state.
        depth: interaction blocks.
        cutoff_angstrom: radius within which atoms see each other.
        n_basis, basis: functions of a distance from 0 to the cutoff, and a registered basis; Gaussians in the paper.
        norm: a registered norm, of what each block adds; the paper has none.
        readout: rows to graph, a registered readout.
        activation: behind the linear layers, ``shifted_softplus`` (ssp) in the paper; ``siren``: sines.

    Raises:
        ValueError: a cutoff of 0, no block, an unknown activation. UsageError: an unknown norm, readout or basis.
    """

    reads = ("geometry",)
    stacked = True
    needs = ("atom", "atom.position")
    small = MappingProxyType({"d_hidden": 8, "n_basis": 8})

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 64,
        depth: Annotated[int, Range(1, INNER_LIMIT)] = 3,
        cutoff_angstrom: Annotated[float, Range(0, 100, above=True)] = 5.0,
        n_basis: Annotated[int, Range(2, INNER_LIMIT)] = 50,
        norm: str = "none",
        readout: str = "sum",
        activation: str = "shifted_softplus",
        basis: str = "gaussian",
    ) -> None:
        super().__init__()
        if not cutoff_angstrom > 0 or depth < 1:
            raise ValueError(f"cutoff_angstrom is {cutoff_angstrom} and depth {depth}: above 0, and 1 or more")
        self.cutoff = cutoff_angstrom
        self.embed = nn.Linear(spec.width("atom"), d_hidden, bias=False)
        self.basis = make_part("basis", basis, 0.0, cutoff_angstrom, n_basis)
        self.blocks = nn.ModuleList(_Block(d_hidden, self.basis.n, activation) for _ in range(depth))
        self.norms, self.d_layers = make_norms(norm, [d_hidden] * depth), (d_hidden,) * depth
        self.read_by(readout, d_hidden)

    def prepare(self, batch: GraphBatch) -> None:
        """Find the pairs within the cutoff ahead."""
        _ = relations.radius(batch, self.cutoff).transpose, relations.members(batch)

    def states(self, batch: GraphBatch) -> list[Float[Tensor, "n_atoms d"]]:
        """The atoms' states after each block, float [n_atoms, d]."""
        near, members = relations.radius(batch, self.cutoff), relations.members(batch)
        distance = safe_norm(relations.pair_vectors(near, batch["atom"].arrays["position"])).to(self.embed.weight.dtype)
        basis, fade = self.basis(distance), cosine_cutoff(distance, self.cutoff).unsqueeze(1)

        def layer(t: int, h: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
            return h + self.norms[t](self.blocks[t](h, near, basis, fade), members)

        return self.through([partial(layer, t) for t in range(len(self.blocks))], self.embed(batch.features("atom")))


class _Block(nn.Module):
    """One interaction block: what is added to the states."""

    def __init__(self, d: int, n_basis: int, activation: str) -> None:
        super().__init__()
        self.send = nn.Linear(d, d, bias=False)
        one, two = nn.Linear(n_basis, d), nn.Linear(d, d)
        bend = make_activation(activation, [one, two])
        self.filter = nn.Sequential(one, bend, two, bend)
        three, four = nn.Linear(d, d), nn.Linear(d, d)
        self.update = nn.Sequential(three, make_activation(activation, [three], first=False), four)

    def forward(
        self,
        h: Float[Tensor, "n d"],
        near: Relation,
        basis: Float[Tensor, "p n_basis"],
        fade: Float[Tensor, "p 1"],
    ) -> Float[Tensor, "n d"]:
        """float [n, d] to [n, d]."""
        return self.update(propagate(self.send(h), near, edge_rows=self.filter(basis) * fade, message=_filtered))


def _filtered(source: Tensor, target: Tensor | None, filters: Tensor) -> Tensor:
    return source * filters
