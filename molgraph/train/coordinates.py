"""Make coordinates of molecules from the distances that a model's distogram predicts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch

from molgraph.base import progress
from molgraph.base.errors import UnknownNameError, UnsupportedError
from molgraph.base.paths import write_whole
from molgraph.base.seeds import generator
from molgraph.chem.connectivity import has_bonds
from molgraph.chem.distance_geometry import DistancePotential, place_atoms
from molgraph.chem.mirror_image import block_of, choose_mirror
from molgraph.chem.molfile import write_record
from molgraph.data.batch import collate
from molgraph.data.standardise import standardise
from molgraph.data.table import OK, Table
from molgraph.nn.atom_pairs import MOST_ATOMS, atom_pairs
from molgraph.nn.distogram import DistogramHead
from molgraph.train.inference import FittedNetworks
from molgraph.train.inputs import input_column, input_graphs, row_status
from molgraph.train.runtime import torch_settings

PIECE = 64  # molecules whose distances are predicted together
PART = "distogram"


@dataclass(frozen=True)
class Conformations:
    """One conformer of each row's molecule.

    Args:
        ids, smiles: of each row; SMILES as they were read, whose order of atoms the positions have.
        positions: float64 [atoms, 3] of each row, in angstrom; no row where there is none.
        potential: float64 [rows], the negative log-likelihood of the distances for each pair; NaN where there is none.
        n_wrong: int64 [rows], stereo centres and double bonds that are other than the SMILES says.
        status, reason: of each row.
    """

    ids: np.ndarray
    smiles: np.ndarray
    positions: tuple[np.ndarray, ...]
    potential: np.ndarray
    n_wrong: np.ndarray
    status: np.ndarray
    reason: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_placed(self) -> int:
        """How many rows have a conformer."""
        return int((self.status == OK).sum())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an SD file with a record for each row, of no atoms where there is no conformer, hydrogens added."""
        if not os.fspath(path).endswith(".sdf"):
            raise UnknownNameError(f"cannot write {os.path.basename(os.fspath(path))!r}", hint="name a .sdf file")
        write_whole(path, "".join(self._records()).encode())

    def _records(self) -> Iterable[str]:
        for i in range(len(self)):
            ok = self.status[i] == OK
            fields = {"smiles": str(self.smiles[i]), "status": str(self.status[i]), "reason": str(self.reason[i])}
            fields["potential"] = f"{self.potential[i]:.4f}" if ok else ""
            block = block_of(str(self.smiles[i]), self.positions[i]) if ok else ""
            yield write_record(str(self.ids[i]), block, fields.items())


def place_molecules(
    fitted: FittedNetworks,
    table: Table,
    *,
    standardiser: str = "none",
    restarts: int = 6,
    seed: int = 0,
    threads: int | None = None,
) -> Conformations:
    """One conformer of each molecule: atoms placed by L-BFGS where the predicted distances are likeliest.

    Of the minima of several starts, and of their mirror images, which have the same distances, the one is taken that
    has most of the SMILES's stereochemistry, and of those the likeliest.

    Args:
        fitted: a network with a distogram among its parts.
        table: with a column of molecules.
        standardiser: by which the molecules are read, as in the training.
        restarts: starts of each molecule.
        seed: of the starts.
        threads: CPU threads.

    Raises:
        UnsupportedError: the network has no distogram.
    """
    if PART not in fitted.network.parts:
        hint = "pretrain one: molgraph pretrain LIBRARY -m dmpnn --objective distogram -o encoder.mgm"
        raise UnsupportedError("this model knows nothing of distances", hint=hint)
    clean = standardise(table, standardiser)
    (graphs,) = input_graphs(clean, fitted.inputs)
    status, reason = row_status(clean, fitted.inputs, [graphs])
    texts = input_column(clean, fitted.inputs).values
    sizes = np.diff(graphs.store.levels["atom"].offsets)
    for row in np.flatnonzero(status == OK):
        if (n := sizes[graphs.graph_of_row[row]]) > MOST_ATOMS:
            status[row], reason[row] = "too large", f"{n} atoms, of which {MOST_ATOMS} are placed at most"
    bonds = np.diff(graphs.store.levels["bond"].offsets)
    for row in np.flatnonzero(status == OK):
        if not bonds[graphs.graph_of_row[row]] and not has_bonds(str(texts[row])):
            status[row], reason[row] = "no conformer", "it has no bonds: single atoms and ions have no conformer"
    n = len(table)
    positions, potential, wrong = [np.zeros((0, 3))] * n, np.full(n, np.nan), np.zeros(n, np.int64)
    rows = np.flatnonzero(status == OK)
    head = fitted.network.parts[PART]
    assert isinstance(head, DistogramHead)
    with progress.bar("conformers", total=len(rows)) as bar:
        for start in range(0, len(rows), PIECE):
            piece = rows[start : start + PIECE]
            with torch_settings(threads), torch.inference_mode():
                predicted = _predicted(fitted, head, graphs.store, graphs.graph_of_row[piece])
            for row, (pairs, probabilities) in zip(piece, predicted, strict=True):
                size = int(sizes[graphs.graph_of_row[row]])
                energy = DistancePotential(pairs, probabilities, head.bins)
                minima = place_atoms(energy, size, generator(seed, "conformer", str(texts[row])), restarts=restarts)
                handed = [choose_mirror(str(texts[row]), minimum.positions) for minimum in minima]
                best = min(range(len(minima)), key=lambda k: (handed[k].n_wrong, minima[k].potential))
                positions[row], wrong[row] = handed[best].positions, handed[best].n_wrong
                potential[row] = minima[best].potential / max(pairs.shape[1], 1)
                if wrong[row]:
                    reason[row] = f"{wrong[row]} stereo centres or double bonds are other than the SMILES says"
                bar.advance()
    return Conformations(table.ids, texts, tuple(positions), potential, wrong, status, reason)


def _predicted(
    fitted: FittedNetworks, head: DistogramHead, store: object, graphs: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The pairs, int64 [2, p], of each graph and the probabilities of their bins, float64 [p, n]."""
    batch = collate(store, graphs)  # type: ignore[arg-type]
    fitted.network.encoder.prepare(batch)
    encoded = fitted.network.encoder(batch, rows=True)
    (h,) = (states.h for states in encoded.rows if states.level == "atom")
    pairs = atom_pairs(batch)
    shares = head(h, pairs).double().softmax(dim=1).cpu().numpy()
    ends = torch.stack([pairs.source, pairs.target]).cpu().numpy()
    offsets = batch["atom"].offsets.cpu().numpy()
    cuts = np.searchsorted(ends[0], offsets)
    return [(ends[:, a:b] - first, shares[a:b]) for first, a, b in zip(offsets, cuts, cuts[1:], strict=False)]
