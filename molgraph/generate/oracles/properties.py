"""Oracles that RDKit computes: drug-likeness, lipophilicity, synthetic accessibility, size, counts, alerts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from molgraph.base.registry import register
from molgraph.chem.alerts import alerts_of
from molgraph.chem.quality import measure
from molgraph.chem.smiles import why_unreadable
from molgraph.generate.oracles.oracle import Oracle, Scores


class Property(Oracle):
    """An oracle that is a property of ``molgraph.chem.quality`` by its own name."""

    free = True

    def score(self, smiles: Sequence[str]) -> Scores:
        """The property of each SMILES."""
        return Scores(*measure(self.name, smiles))


def _property(
    name: str, scale: float, summary: str, meaning: str, *, better: int = 1, step: float = 0.0, paper: str = ""
) -> None:
    """Register the oracle of a property; ``meaning`` is its docstring."""
    attrs = {"__doc__": meaning, "__module__": __name__, "name": name, "better": better, "scale": scale, "step": step,
           "unit": name == "qed"}  # fmt: skip
    register("oracle", name, summary=summary, paper=paper)(type(name, (Property,), attrs))


_property(
    "qed", 0.2, "drug-likeness, 0 to 1", "The geometric mean of eight desirability functions, as RDKit weighs them.",
    paper="Bickerton et al. 2012, Nat. Chem. 4:90",
)  # fmt: skip
_property(
    "logp", 1.5, "lipophilicity by atoms", "Crippen's logP, a sum of contributions of atoms.",
    paper="Wildman and Crippen 1999",
)  # fmt: skip
_property(
    "sa", 1.0, "synthetic accessibility, 1 (easy) to 10 (hard); lower is better",
    "Synthetic accessibility: how rare the fragments are, and how complex the whole.",
    better=-1, paper="Ertl and Schuffenhauer 2009",
)  # fmt: skip
_property(
    "penalized_logp", 2.0, "logP - SA - atoms of rings beyond six",
    "``logP - SA - cycle`` in the units of its terms, as in the JT-VAE's constrained optimisation.",
    paper="Gomez-Bombarelli 2018",
)  # fmt: skip
_property(
    "penalized_logp_zinc", 2.0, "penalized logP, each term scaled by ZINC-250k",
    "``penalized_logp``, each term with mean 0 and deviation 1 over ZINC-250k, as in published top-3 lists.",
    paper="Kusner et al. 2017",
)  # fmt: skip
_property("mw", 60.0, "molecular weight, g/mol", "The average molecular weight.")
_property(
    "tpsa", 25.0, "polar surface, square angstrom", "The topological polar surface area, by fragments of N and O.",
    paper="Ertl et al. 2000, J. Med. Chem. 43:3714",
)  # fmt: skip
for _name, _scale, _summary, _meaning in (
    ("hbd", 1.0, "number of hydrogen bond donors", "How many donors of hydrogen bonds, as RDKit counts them."),
    ("hba", 1.5, "number of hydrogen bond acceptors", "How many acceptors of hydrogen bonds, as RDKit counts them."),
    (
        "rotatable_bonds",
        2.0,
        "number of rotatable bonds",
        "How many bonds turn, without amide bonds and those of rings.",
    ),
    ("rings", 1.0, "number of rings", "How many rings are in the smallest set."),
    ("heavy_atoms", 4.0, "number of atoms other than hydrogen", "How many atoms, without hydrogens."),
    ("charge", 1.0, "sum of formal charges", "The sum of the formal charges."),
):
    _property(_name, _scale, _summary, _meaning, step=1.0)


@register("oracle", "alerts", summary="number of PAINS and BRENK alerts; lower is better", paper="Brenk et al. 2008")
class Alerts(Oracle):
    """How many distinct structural alerts a molecule sets off."""

    name, better, scale, step = "alerts", -1, 1.0, 1.0

    def score(self, smiles: Sequence[str]) -> Scores:
        """The number of alerts of each SMILES."""
        reason = np.array([why_unreadable(text) for text in smiles], dtype=object)
        value = np.array([len(matches) for matches in alerts_of(smiles)], dtype=np.float64)
        return Scores(np.where(reason == "", value, np.nan), reason)
