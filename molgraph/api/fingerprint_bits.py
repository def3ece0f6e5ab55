"""Explain a bit of a learned fingerprint by the fragments of molecules that activate it most."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import torch

from molgraph.api.drawn import HEIGHT, WIDTH, Drawn, read_molecules
from molgraph.base.errors import UsageError
from molgraph.base.printable import count, printable
from molgraph.chem.draw import draw_molecule
from molgraph.chem.environment import atom_environment
from molgraph.models.neural_fingerprint import NeuralFingerprint
from molgraph.nn.deduplicate import atom_rounds
from molgraph.train.model import Model

CANDIDATES = 20  # atoms that are looked at for each fragment asked for, as many have the same fragment


@dataclass(frozen=True, repr=False)
class DrawnFragments(Drawn):
    """Fragments that activate one bit of a fingerprint, most first, each marked in a molecule that has it.

    Args:
        bit: the bit.
        fragments: a row a drawing: ``fragment`` (SMILES from its centre), ``radius`` (of the fragment, in bonds),
            ``activation`` (0 to 1, what it adds to the bit), ``molecule`` (number of the drawn one), ``atom`` (its
            centre there).
    """

    bit: int
    fragments: pd.DataFrame

    @property
    def captions(self) -> tuple[str, ...]:
        """Each fragment with its radius and activation."""
        rows = self.fragments[["fragment", "radius", "activation"]].itertuples(index=False)
        return tuple(f"{fragment}, radius {radius}: {activation:.2f}" for fragment, radius, activation in rows)

    def __repr__(self) -> str:
        head = f"bit {self.bit}: {count(len(self.svgs), 'fragment')}; save('bit.html') draws them"
        return printable("\n".join([head, *(f"  {text}" for text in self.captions)]))


def explain_bit(
    model: Model | str | os.PathLike[str], bit: int, smiles: str | Sequence[str], *, top: int = 8
) -> DrawnFragments:
    """Show which fragments activate a bit of a ``neural_fingerprint`` most.

    Duvenaud et al. 2015, "Convolutional Networks on Graphs for Learning Molecular Fingerprints", section 5: layer L
    adds ``softmax(W_L r_a)`` of each atom a to the fingerprint, and r_a has seen the atoms within L bonds of a, so
    a fragment is an atom with all that lies within L bonds. A fragment that occurs several times is shown once, where
    it adds most; what surrounds it decides too at its rim.

    Args:
        model: a model of the encoder ``neural_fingerprint``, or the path of its file.
        bit: of the fingerprint, from 0.
        smiles: the molecules whose fragments are compared, such as those of the training table.
        top: fragments to show, at most.

    Raises:
        UsageError: a model of another kind, a bit that it has not, or fewer than one fragment asked for.

    Example:
        >>> import molgraph
        >>> options = {"model": "neural_fingerprint", "epochs": 1, "baseline": False}
        >>> model = molgraph.train("builtin:chembl2321810", **options).model
        >>> found = molgraph.explain_bit(model, 0, ["CCO", "c1ccccc1O"], top=2)
        >>> len(found.svgs), bool(found.fragments["activation"].is_monotonic_decreasing)
        (2, True)
    """
    refusal = {"what": "has no learned fingerprint", "hint": "train one: molgraph train -m neural_fingerprint"}
    encoder, texts, batch, _ = read_molecules(model, smiles, NeuralFingerprint, **refusal)
    assert isinstance(encoder, NeuralFingerprint)
    if not 0 <= bit < encoder.d_rows:
        raise UsageError(f"the fingerprint has no bit {bit}", hint=f"its bits are 0 to {encoder.d_rows - 1}")
    if top < 1:
        raise UsageError(f"top is {top}", hint="ask for 1 fragment or more")
    with torch.no_grad():
        rounds = atom_rounds(batch, encoder.n_rounds, distinct=False)
        added = torch.stack([share[:, bit] for _, _, share in encoder.layers(rounds)], dim=1)  # [n_atoms, depth]
    graph_of, first = batch.graph_of("atom"), batch["atom"].offsets
    best = added.flatten().topk(min(CANDIDATES * top, added.numel()))
    rows: dict[str, tuple[int, float, int, int]] = {}  # of each fragment, where it adds most
    drawn = []
    for activation, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
        atom, radius = place // encoder.n_rounds, place % encoder.n_rounds + 1
        molecule = int(graph_of[atom])
        centre = atom - int(first[molecule])
        fragment, reached, inside = atom_environment(texts[molecule], centre, radius)
        if fragment not in rows and len(rows) < top:
            rows[fragment] = (reached, activation, molecule, centre)
            drawn.append(draw_molecule(texts[molecule], width=WIDTH, height=HEIGHT, atoms=inside))
    columns = ["radius", "activation", "molecule", "atom"]
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("fragment").reset_index()
    shown = tuple(texts[i] for i in frame["molecule"])
    return DrawnFragments(shown, tuple(drawn), ("",) * len(shown), bit, frame)
