"""Draw the bonds of molecules by the norm of the state that a trained graph network gives each of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import torch

from molgraph.api.drawn import HEIGHT, SHOWN, WIDTH, Drawn, read_molecules
from molgraph.base.errors import UsageError
from molgraph.base.printable import count, printable
from molgraph.chem.draw import draw_molecule
from molgraph.models.rfm import RFM
from molgraph.train.model import Model


@dataclass(frozen=True, repr=False)
class DrawnSalience(Drawn):
    """Molecules with the salience of their bonds; within a molecule the least is white, the largest orange.

    Args:
        bonds: a row a bond: ``molecule`` (its number), ``atom`` and ``other`` (numbers of its ends in the molecule, the
            smaller first) and ``norm``, the larger of both directions.
    """

    bonds: pd.DataFrame

    @property
    def captions(self) -> tuple[str, ...]:
        """Each SMILES, with the least and largest norm of its bonds."""
        ends = self.bonds.groupby("molecule")["norm"].agg(["min", "max"])
        said = {i: f", norm {least:.3g} to {most:.3g}" for i, least, most in ends.itertuples()}
        return tuple(text + said.get(i, "") for i, text in enumerate(super().captions))

    def __repr__(self) -> str:
        head = f"DrawnSalience of {count(len(self.smiles), 'molecule')}; save('salience.html') draws them"
        lines = [head]
        for i, text in enumerate(super().captions[:SHOWN]):
            own = self.bonds[self.bonds["molecule"] == i].nlargest(3, "norm")
            said = ", ".join(f"{a}-{b} {norm:.3g}" for _, a, b, norm in own.itertuples(index=False))
            told = f"largest: {said}" if said else "" if self.reasons[i] else "no bonds"
            lines.append(f"  {text}  {told}".rstrip())
        return printable("\n".join([*lines, "  ..."] if len(self.smiles) > SHOWN else lines))


def draw_salience(
    model: Model | str | os.PathLike[str],
    smiles: str | Sequence[str],
    *,
    block: Literal["encoder", "core", "decoder"] = "encoder",
) -> DrawnSalience:
    """Draw bonds by the norm of the state that an ``rfm`` model gives them.

    Tacchetti et al. 2019, "Relational Forward Models for Multi-Agent Learning", read the norm of an edge's activation
    as its salience. It is a heuristic: where the bonds that decide a label were planted, the norm after the encoder
    block found them (ROC AUC 0.98) if their own two atoms decide; if their surroundings do, no block was reliable (0.63
    to 0.81, differing between seeds), while an ablation was (0.94; pipelines/rfm/SALIENCE.md). Compare a model that was
    not trained.

    Args:
        model: a model of the encoder ``rfm``, or the path of its file.
        smiles: one molecule, or several.
        block: after which block of the network the states are taken.

    Raises:
        UsageError: a model of another kind, or an unknown block.

    Example:
        >>> import molgraph
        >>> model = molgraph.train("builtin:chembl2321810", model="rfm", epochs=1, baseline=False).model
        >>> found = molgraph.draw_salience(model, ["CCO", "not a molecule"])
        >>> found.bonds[["molecule", "atom", "other"]].values.tolist()
        [[0, 0, 1], [0, 1, 2]]
    """
    if block not in (known := ("encoder", "core", "decoder")):
        raise UsageError(f"rfm has no block {block!r}", hint=f"choose one of {', '.join(known)}")
    refusal = {"what": "has no states of bonds to draw", "hint": "train one that has: molgraph train -m rfm"}
    encoder, texts, batch, reasons = read_molecules(model, smiles, RFM, **refusal)
    assert isinstance(encoder, RFM)
    with torch.no_grad():
        norm = encoder.states(batch)[block].edges.norm(dim=1)
    graph = batch.graph_of("bond")
    first = batch["atom"].offsets[graph]
    ends = torch.stack([batch.source - first, batch.target - first]).sort(dim=0).values
    columns = {"molecule": graph.numpy(), "atom": ends[0].numpy(), "other": ends[1].numpy(), "norm": norm.numpy()}
    bonds = pd.DataFrame(columns).groupby(["molecule", "atom", "other"], as_index=False).max()
    drawn = []
    for i, text in enumerate(texts):
        own = bonds[bonds["molecule"] == i]
        least, most = (own["norm"].min(), own["norm"].max()) if len(own) else (0.0, 1.0)
        shares = (own["norm"] - least) / max(most - least, np.finfo(np.float32).tiny)
        marked = dict(zip(zip(own["atom"], own["other"], strict=True), shares, strict=True))
        drawn.append(draw_molecule(text, width=WIDTH, height=HEIGHT, bonds=marked))
    return DrawnSalience(texts, tuple(drawn), reasons, bonds)
