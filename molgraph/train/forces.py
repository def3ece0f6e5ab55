"""Forces on atoms: minus the gradient of a network's energy with respect to their positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from molgraph.base.errors import UnsupportedError
from molgraph.data.table import OK, Table
from molgraph.train.inference import FittedNetworks
from molgraph.train.inputs import Input, graph_of_rows, input_graphs, row_status
from molgraph.train.large_graphs import mark_large
from molgraph.train.references import counts_of, mark_unknown
from molgraph.train.runtime import resolve_device, torch_settings
from molgraph.train.samples import InputBatch, Sample, Samples


def with_gradient(sample: Sample) -> tuple[Sample, Tensor]:
    """The batch with positions to which a gradient can be taken, and these positions, float [n_atoms, 3].

    Relations that were made ahead are kept: they say which atoms are near, not how far.
    """
    (part,) = sample.parts
    batch, atoms = part.batch, part.batch["atom"]
    at = atoms.arrays["position"].detach().clone().requires_grad_()
    moved = replace(atoms, arrays={**atoms.arrays, "position": at})
    batch = replace(batch, levels={**batch.levels, "atom": moved})
    return Sample((InputBatch(batch, part.of_row),), sample.extra, sample.y, sample.weights), at


def forces_of(energy: Tensor, positions: Tensor, *, training: bool = False) -> Tensor:
    """``F = -dE/dr``, float [n_atoms, 3], of the energies of all graphs of a batch.

    Args:
        energy: float [g].
        positions: float [n_atoms, 3], from which the energies were computed.
        training: whether a loss of the forces is differentiated again.
    """
    (slope,) = torch.autograd.grad(energy.sum(), positions, create_graph=training, allow_unused=True)
    return torch.zeros_like(positions) if slope is None else -slope  # one atom alone hears nobody


def check_geometry(inputs: Sequence[Input], does: str) -> None:
    """Refuse a network that reads anything but one column of atoms in space; ``does`` begins with its name."""
    if len(inputs) != 1 or inputs[0].spec.missing(("atom.position",)):
        read = " and ".join(f"{input_.column} ({input_.kind})" for input_ in inputs)
        hint = "choose a model of atoms in space, such as schnet, and one column: --input COLUMN"
        raise UnsupportedError(f"{does} one column of atoms in space, and the model reads {read}", hint=hint)


def check_energy(fitted: FittedNetworks) -> None:
    """Refuse a network of which no one output is an energy."""
    check_geometry(fitted.inputs, "forces need a model of")
    targets = fitted.outputs.targets
    if not fitted.network.has_head or [(t.kind, t.level) for t in targets] != [("regression", "row")]:
        names = ", ".join(target.name for target in targets) if fitted.network.has_head else "none"
        words = f"forces are the gradient of one energy, and the model's targets are: {names}"
        raise UnsupportedError(words, hint="train it on one number of each geometry")


def energies_and_forces(
    fitted: FittedNetworks, sample: Sample, counts: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Energies float64 [g] and forces float64 [n_atoms, 3] of a batch, in the target's unit, and that per angstrom.

    ``counts``, float64 [g, elements], where the energy has a reference of each element.
    """
    with torch.inference_mode(False), torch.enable_grad():
        moving, at = with_gradient(sample)
        raw, _ = fitted.network(moving)
        scaled = fitted.network.head.values(raw)[0]
        forces = forces_of(scaled[:, 0], at).double().numpy(force=True) * fitted.outputs.scale[0]
        return fitted.outputs.values(scaled.numpy(force=True), counts)[:, 0], forces


def table_forces(fitted: FittedNetworks, table: Table, **running: Any) -> list[np.ndarray | None]:
    """The forces of each row of a table, float64 [n, 3]; None where a row cannot be read or is too large.

    Args:
        fitted: a network of one energy.
        table: with one column of geometries.
        running: ``device``, ``threads`` and ``predict_batch``, as a prediction has them.
    """
    graphs = mark_large(fitted.network, input_graphs(table, fitted.inputs))
    if (references := fitted.outputs.references) is not None:
        graphs = tuple(mark_unknown([references], fitted.inputs, graphs))
    counts = None if references is None else counts_of(fitted.inputs, graphs)
    status, _ = row_status(table, fitted.inputs, graphs)
    rows, graph, where = (
        np.flatnonzero(status == OK),
        graph_of_rows(graphs),
        resolve_device(running.get("device", "cpu")),
    )
    extra = fitted.descriptors.apply(table.features, table.feature_names)
    samples = Samples(tuple(cached.store for cached in graphs), graph, extra)
    forces: list[np.ndarray | None] = [None] * len(table)
    fitted.network.to(where)
    with torch_settings(running.get("threads")):
        for start in range(0, len(rows), size := running.get("predict_batch", 512)):
            piece = rows[start : start + size]
            sample = samples.sample(piece)
            fitted.network.prepare(sample)
            atoms = None if counts is None else counts[samples.graph[piece, 0]]
            ends = sample.parts[0].batch["atom"].offsets[1:-1].numpy()
            _, vectors = energies_and_forces(fitted, sample.to(where), atoms)
            for row, part in zip(piece, np.split(vectors, ends), strict=True):
                forces[row] = part
    return forces
