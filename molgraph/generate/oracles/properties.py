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


@register("oracle", "qed", summary="drug-likeness, 0 to 1", paper="Bickerton et al. 2012, Nat. Chem. 4:90")
class QED(Property):
    """The geometric mean of eight desirability functions, as RDKit weighs them."""

    name, scale = "qed", 0.2


@register("oracle", "logp", summary="lipophilicity by atoms", paper="Wildman and Crippen 1999")
class LogP(Property):
    """Crippen's logP, a sum of contributions of atoms."""

    name, scale = "logp", 1.5


@register(
    "oracle",
    "sa",
    summary="synthetic accessibility, 1 (easy) to 10 (hard); lower is better",
    paper="Ertl and Schuffenhauer 2009",
)
class SA(Property):
    """Synthetic accessibility: how rare the fragments are, and how complex the whole."""

    name, better, scale = "sa", -1, 1.0


@register("oracle", "penalized_logp", summary="logP - SA - atoms of rings beyond six", paper="Gomez-Bombarelli 2018")
class PenalizedLogP(Property):
    """``logP - SA - cycle`` in the units of its terms, as in the JT-VAE's constrained optimisation."""

    name, scale = "penalized_logp", 2.0


@register(
    "oracle", "penalized_logp_zinc", summary="penalized logP, each term scaled by ZINC-250k", paper="Kusner et al. 2017"
)
class PenalizedLogPZinc(Property):
    """``penalized_logp``, each term with mean 0 and deviation 1 over ZINC-250k, as in published top-3 lists."""

    name, scale = "penalized_logp_zinc", 2.0


@register("oracle", "mw", summary="molecular weight, g/mol")
class MolecularWeight(Property):
    """The average molecular weight."""

    name, scale = "mw", 60.0


@register("oracle", "tpsa", summary="polar surface, square angstrom", paper="Ertl et al. 2000, J. Med. Chem. 43:3714")
class TPSA(Property):
    """The topological polar surface area, by fragments of N and O."""

    name, scale = "tpsa", 25.0


@register("oracle", "hbd", summary="number of hydrogen bond donors")
class HBD(Property):
    """How many donors of hydrogen bonds, as RDKit counts them."""

    name, scale, step = "hbd", 1.0, 1.0


@register("oracle", "hba", summary="number of hydrogen bond acceptors")
class HBA(Property):
    """How many acceptors of hydrogen bonds, as RDKit counts them."""

    name, scale, step = "hba", 1.5, 1.0


@register("oracle", "rotatable_bonds", summary="number of rotatable bonds")
class RotatableBonds(Property):
    """How many bonds turn; amide bonds and those of rings are left out."""

    name, scale, step = "rotatable_bonds", 2.0, 1.0


@register("oracle", "rings", summary="number of rings")
class Rings(Property):
    """How many rings are in the smallest set."""

    name, scale, step = "rings", 1.0, 1.0


@register("oracle", "heavy_atoms", summary="number of atoms other than hydrogen")
class HeavyAtoms(Property):
    """How many atoms, without hydrogens."""

    name, scale, step = "heavy_atoms", 4.0, 1.0


@register("oracle", "charge", summary="sum of formal charges")
class Charge(Property):
    """The sum of the formal charges."""

    name, scale, step = "charge", 1.0, 1.0


@register("oracle", "alerts", summary="number of PAINS and BRENK alerts; lower is better", paper="Brenk et al. 2008")
class Alerts(Oracle):
    """How many distinct structural alerts a molecule sets off."""

    name, better, scale, step = "alerts", -1, 1.0, 1.0

    def score(self, smiles: Sequence[str]) -> Scores:
        """The number of alerts of each SMILES."""
        reason = np.array([why_unreadable(text) for text in smiles], dtype=object)
        value = np.array([len(found) for found in alerts_of(smiles)], dtype=np.float64)
        return Scores(np.where(reason == "", value, np.nan), reason)
