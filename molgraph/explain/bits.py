"""Show the fragments of molecules that activate a bit of a learned fingerprint most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Protocol, runtime_checkable

import pandas as pd
from torch import Tensor

from molgraph.base.errors import BadValueError
from molgraph.base.ranges import LARGEST, Range
from molgraph.base.registry import register
from molgraph.chem.environment import atom_environment
from molgraph.data.batch import GraphBatch
from molgraph.explain.explainer import Attribution, Explainer

CANDIDATES = 20  # atoms that are looked at for each fragment asked for, as many have the same fragment


@runtime_checkable
class AddsBits(Protocol):
    """An encoder whose fingerprint is a sum over atoms and layers."""

    def atom_bits(self, batch: GraphBatch) -> Tensor:
        """Float [atoms, depth, length]: what each atom adds to each bit after each layer; layer L sees L bonds."""


@register(
    "explainer",
    "bits",
    summary="the fragments that a bit of a learned fingerprint stands for",
    paper="Duvenaud et al. 2015, NeurIPS, section 5",
    command="molgraph train dataset:chembl2321810 -m neural_fingerprint -o nfp.mgm && "
    "molgraph explain nfp.mgm CCO c1ccccc1O --by 'bits(bit=3)'",
)
class Bits(Explainer):
    """The fragments that add most to one bit, each marked in the molecule where it adds most.

    Duvenaud et al. 2015, "Convolutional Networks on Graphs for Learning Molecular Fingerprints", section 5: layer L
    adds ``softmax(W_L r_a)`` of each atom a to the fingerprint, and r_a has seen the atoms within L bonds of a, so
    a fragment is an atom with all that lies within L bonds. What surrounds it decides too at its rim. ``values`` has
    ``fragment`` (SMILES from its centre), ``radius``, ``value`` (0 to 1, its share of the bit), ``molecule``, ``atom``.

    Args:
        bit: of the fingerprint, from 0.
        top: fragments to show, at most.
    """

    reads, model = "learned fingerprint", "neural_fingerprint"

    def __init__(self, bit: int = 0, *, top: Annotated[int, Range(1, LARGEST)] = 8) -> None:
        self.bit, self.top = bit, top

    def can_read(self, encoder: Any) -> bool:
        """Whether its fingerprint is a sum over atoms."""
        return isinstance(encoder, AddsBits)

    def explain(self, encoder: Any, batch: GraphBatch, smiles: Sequence[str]) -> Attribution:
        """The fragments, most first."""
        parts = encoder.atom_bits(batch)
        n_bits, depth = parts.shape[2], parts.shape[1]
        if not 0 <= self.bit < n_bits:
            raise BadValueError(f"the fingerprint has no bit {self.bit}", hint=f"its bits are 0 to {n_bits - 1}")
        share = parts[:, :, self.bit]
        graph_of, first = batch.graph_of("atom"), batch["atom"].offsets
        best = share.flatten().topk(min(CANDIDATES * self.top, share.numel()))
        rows: dict[str, tuple[int, float, int, int]] = {}  # of each fragment, where it adds most
        drawings = []
        for value, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            atom, radius = place // depth, place % depth + 1
            molecule = int(graph_of[atom])
            centre = atom - int(first[molecule])
            fragment, reached, inside = atom_environment(smiles[molecule], centre, radius)
            if fragment not in rows and len(rows) < self.top:
                rows[fragment] = (reached, value, molecule, centre)
                drawings.append((molecule, {"atoms": inside}))
        frame = pd.DataFrame.from_dict(rows, orient="index", columns=["radius", "value", "molecule", "atom"])
        frame = frame.rename_axis("fragment").reset_index()
        captions = [f"{row.fragment}, radius {row.radius}: {row.value:.2f}" for row in frame.itertuples()]
        return Attribution("fragment", frame, drawings, captions)
