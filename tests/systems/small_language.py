"""A library of made molecules, and a small language model that writes them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from molgraph.chem.identity import canonical_smiles
from molgraph.chem.quality import measure
from molgraph.data.table import make_table
from molgraph.generate.language import LanguageGenerator

RINGS = ("c1ccc({})cc1", "c1ccc({})nc1", "c1cc({})cs1", "C1CCC({})CC1", "C1CCN({})CC1", "c1cccc({})c1", "C1CC1{}",
         "C1CN({})CCO1")  # fmt: skip
ENDS = ("C", "CC", "CO", "O", "N", "F", "Cl", "CCCC", "OC(=O)", "NC(=O)", "CS", "CNC(=O)", "CC(C)", "OCC", "N#CC")
TAILS = ("C", "CCCC", "F", "OC", "C(=O)O", "C(N)=O", "SC", "CS(C)(=O)=O", "CCO", "CCCCCC", "N(C)C", "C#N")
LIBRARY = [f"{end}{ring.format(tail)}" for ring in RINGS for end in ENDS for tail in TAILS]


@functools.cache
def model(condition: tuple[str, ...] = (), shuffled: bool = False) -> LanguageGenerator:
    """A recurrent network that was trained on the library."""
    made = LanguageGenerator(d_embedding=16, d_hidden=64, n_layers=1, max_length=40, epochs=12, batch_size=32,
                             learning_rate=5e-3, condition=condition, threads=1)  # fmt: skip
    return made.fit(make_table(LIBRARY))


def values(smiles: list[str], name: str = "qed") -> np.ndarray:
    """float64 [n], a property; NaN of what is no molecule."""
    out = np.full(len(smiles), np.nan)
    ok = [row for row, each in enumerate(canonical_smiles(smiles)) if not each.reason]
    out[ok] = measure(name, [smiles[row] for row in ok]).value
    return out


def run(search: Any, steps: int, score: Any, n: int = 64, seed: int = 0, **how: Any) -> list[np.ndarray]:
    """Ask and tell; the scores of each batch, NaN of what is no molecule."""
    search.begin(how.pop("generator", None) or model(), seed=seed, **how)
    told = []
    for step in range(steps):
        texts = search.ask(n, step).smiles
        told.append(score(texts))
        search.tell(texts, told[-1])
    return told


def drawn(search: Any, n: int = 500, seed: int = 99) -> list[str]:
    """Texts of the trained copy."""
    with search.agent.at_work():
        return list(search.agent.texts(search.agent.draw(n, seed)))
