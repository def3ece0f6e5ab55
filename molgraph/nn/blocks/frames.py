"""Average an encoder over the frames of a geometry, so that it may read coordinates and stays invariant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn import relations
from molgraph.nn.block import BlockOption
from molgraph.nn.encoder import Encoded, Encoder, Rows
from molgraph.nn.segment import segment_mean

UNIT = 2.0  # angstrom: coordinates over it are of the size of other features
WIDTH = 7  # x, y, z, xy, yz, zx and xyz


class Frames(BlockOption):
    """Coordinates in the frames of their own principal axes beside the features of atoms; the mean over all frames.

    Puny et al. 2022, "Frame Averaging for Invariant and Equivariant Network Design", section 3.1: the frames of a
    geometry X are its centre and the eigenvectors of ``(X - 1t')'(X - 1t')`` with all signs, and
    ``1/|F| sum_F phi(F^-1 X)`` is invariant for any network phi. Here phi is the encoder, which reads the coordinates
    in a frame, and their products xy, yz, zx and xyz, as seven more features of each atom. (The mean over the signs of
    an odd function of a coordinate is 0; without the products a network has to learn them first.)

    A geometry two of whose principal moments are equal (methane, benzene) has no unique axes: then predictions change a
    little with its orientation. Axes are constants to the gradient, so that forces lack the part that turns them.
    """

    key = "frames"
    chiral: ClassVar[bool]

    @classmethod
    def missing(cls, encoder: type[Encoder], spec: InputSpec) -> str:
        """Positions of atoms, and features beside which the coordinates stand."""
        if encoder.by_code:
            return "reads the elements of atoms, and no other features of them"
        return "reads graphs without positions" if spec.missing(("atom", "atom.position")) else ""

    def widen(self, spec: InputSpec) -> InputSpec:
        """Atoms with seven more features."""
        return replace(spec, widths={**spec.widths, "atom": spec.width("atom") + WIDTH})

    def around(self, call: Callable[..., Encoded], batch: GraphBatch, rows: bool) -> Encoded:
        """The mean of the encoder's answers over the frames: 8, or 4 where mirror images are kept apart."""
        answers = [call(with_coordinates(batch, pose), rows=rows) for pose in self.coordinates(batch)]
        share = 1 / len(answers)
        return Encoded(
            share * torch.stack([pose.graphs for pose in answers]).sum(0),
            tuple(_mean_rows([pose.rows[i] for pose in answers]) for i in range(len(answers[0].rows))),
            {name: torch.stack([a.penalties[name] for a in answers]).mean() for name in answers[0].penalties},
            tuple(share * torch.stack(layer).sum(0) for layer in zip(*(pose.layers for pose in answers), strict=True)),
        )

    def coordinates(self, batch: GraphBatch) -> Iterator[Float[Tensor, "n_atoms 3"]]:
        """The coordinates of all atoms in each of their geometry's frames, in angstrom."""
        positions, members = batch["atom"].arrays["position"], relations.members(batch)
        centred = positions - segment_mean(positions, members).index_select(0, members.target)
        axes = self.axes(centred, batch)
        along = torch.einsum("ni,nij->nj", centred, axes.index_select(0, members.target))
        for signs in product((1.0, -1.0), repeat=2 if self.chiral else 3):
            yield along * along.new_tensor([*signs, signs[0] * signs[1]][:3])

    def axes(self, centred: Float[Tensor, "n_atoms 3"], batch: GraphBatch) -> Float[Tensor, "g 3 3"]:
        """The principal axes of each geometry in columns; of determinant 1 where mirror images are kept apart."""
        with torch.no_grad():
            members = relations.members(batch)
            outer = (centred.unsqueeze(2) * centred.unsqueeze(1)).reshape(-1, 9).double()
            _, axes = torch.linalg.eigh(segment_mean(outer, members).reshape(-1, 3, 3))
            if self.chiral:
                axes = axes * torch.linalg.det(axes).sign()[:, None, None]
            return axes.to(centred.dtype)


def with_coordinates(batch: GraphBatch, coordinates: Float[Tensor, "n_atoms 3"]) -> GraphBatch:
    """The batch with coordinates and their products as seven more features of each atom."""
    x = coordinates.to(batch.features("atom").dtype) / UNIT
    products = x * x.roll(-1, dims=1)
    table = torch.cat([batch.features("atom"), x, products, x.prod(dim=1, keepdim=True)], dim=1)
    return batch.with_level("atom", code=torch.arange(len(table), device=table.device), table=table)


def _mean_rows(rows: list[Rows]) -> Rows:
    return replace(rows[0], h=torch.stack([frame_rows.h for frame_rows in rows]).mean(0))


CARD = SystemCard(
    "frame-averaging",
    left_out="equivariant outputs; frames of permutations of graphs",
    off="-s params.frames=none",
    beside=("the encoder without coordinates",),
    command="molgraph train dataset:gdb7_3d -m schnet -s params.frames=se3",
    modules=("molgraph.nn.block",),
)


@register(
    "block",
    "se3",
    tags=("frames",),
    systems=(CARD,),
    summary="coordinates in 4 frames: invariant under rotation and translation, mirror images stay apart",
    paper="Puny et al. 2022, ICLR",
)
class RotationFrames(Frames):
    """Frames of SE(3): four, of determinant 1, so that mirror images may have different predictions."""

    chiral = True


@register(
    "block",
    "e3",
    tags=("frames",),
    summary="coordinates in 8 frames: invariant under rotation, translation and reflection",
    paper="Puny et al. 2022, ICLR",
)
class ReflectionFrames(Frames):
    """Frames of E(3): eight, so that mirror images have one prediction."""

    chiral = False
