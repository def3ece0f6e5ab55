"""Compute RDKit's two-dimensional descriptors of SMILES, NaN where one has no value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from rdkit import Chem
from rdkit.Chem import MolSurf
from rdkit.Chem import rdMolDescriptors as rd
from rdkit.Chem.EState import EState_VSA

from molgraph.chem.bounded import ALONE
from molgraph.chem.estate import estate_indices
from molgraph.chem.parallel import map_molecules
from molgraph.chem.smiles import parse_smiles

PARALLEL_FROM = 4_000  # below this, starting processes costs more than they save
MAX_ATOMS = 1_500
#: RDKit's time grows with the square of the paths of n bonds that Chi_n (and Kappa_n for n > 1) counts: from so many on
#: these are NaN. No molecule of 100 bonds or fewer, three a pair of atoms, has them.
MAX_PATHS = 3_000
_FEW_BONDS = 70

# One C++ call a value. Left out of RDKit's list, on purpose: the 85 fragment counts (fr_*: Morgan bits say as
# much), qed, BertzCT, SPS, Ipc, AvgIpc, BalabanJ, Chi*n, Chi0, Chi1, Phi, the counts of electrons and
# FpDensity* (together they cost several times what is kept; Ipc also overflows float32), BCUT2D_* and
# *PartialCharge (an error, or no value, for metals), and counts of stereo centres (the graph models see no
# stereo either).
_OTHERWISE: dict[str, Callable[[Chem.Mol], float]] = {  # those whose function has another name than Calc...
    "MolWt": rd._CalcMolWt,
    "HeavyAtomCount": Chem.Mol.GetNumHeavyAtoms,
    "NHOHCount": rd.CalcNumLipinskiHBD,
    "NOCount": rd.CalcNumLipinskiHBA,
    "NumHAcceptors": rd.CalcNumHBA,
    "NumHDonors": rd.CalcNumHBD,
    "RingCount": rd.CalcNumRings,
}
_RINGS = ("Rings", "Carbocycles", "Heterocycles")
_NAMED = (
    *("MolWt", "TPSA", "LabuteASA", "FractionCSP3", "HeavyAtomCount", "NHOHCount", "NOCount", "NumHAcceptors"),
    *("NumHDonors", "NumHeteroatoms", "NumRotatableBonds", "NumAmideBonds", "RingCount", "NumHeterocycles"),
    *(f"Num{kind}{rings}" for kind in ("Aromatic", "Aliphatic", "Saturated") for rings in _RINGS),
    *("NumSpiroAtoms", "NumBridgeheadAtoms", "HallKierAlpha", "Kappa1", "Kappa2", "Kappa3"),
    *(f"Chi{i}v" for i in range(5)),
)
_SINGLE = {name: _OTHERWISE.get(name) or getattr(rd, f"Calc{name}") for name in _NAMED}
PATHS = {f"{name}{n}{kind}": n for name, kind in (("Chi", "v"), ("Chi", "n"), ("Kappa", "")) for n in (2, 3, 4)}
_CHARGE_BINS = tuple(f"PEOE_VSA{i}" for i in range(1, 15))

# Atoms' values summed by bins of another of their values: (name, bins, what is binned, what is summed).
_LOGP, _MR, _AREA, _STATE = range(4)
_BINNED: tuple[tuple[str, np.ndarray, int, int], ...] = (
    ("SlogP_VSA", np.array(MolSurf.logpBins), _LOGP, _AREA),
    ("SMR_VSA", np.array(MolSurf.mrBins), _MR, _AREA),
    ("EState_VSA", np.array(EState_VSA.estateBins), _STATE, _AREA),
    ("VSA_EState", np.array(EState_VSA.vsaBins), _AREA, _STATE),
)

NAMES: tuple[str, ...] = (
    *_SINGLE,
    *_CHARGE_BINS,
    *("MolLogP", "MolMR", "MaxEStateIndex", "MinEStateIndex", "MaxAbsEStateIndex", "MinAbsEStateIndex"),
    *(f"{name}{i}" for name, bins, *_ in _BINNED for i in range(1, len(bins) + 2)),
)


@dataclass(frozen=True)
class Descriptors:
    """Descriptors of a list of SMILES.

    Args:
        x: float32 [n, k]; NaN where a descriptor has no finite value, and in rows that could not be read.
        names: the k names, RDKit's own.
        ok: bool [n]: rows that could be read.
        reasons: object array [n]: one line where a row could not be read, else empty.
    """

    x: np.ndarray
    names: tuple[str, ...]
    ok: np.ndarray
    reasons: np.ndarray


def rdkit_descriptors(smiles: Sequence[str], *, workers: int | None = None) -> Descriptors:
    """RDKit's two-dimensional descriptors that are cheap and defined for every molecule (see ``NAMES``).

    Args:
        smiles: n molecules.
        workers: processes; None takes one a core. Few molecules are done in this process.

    Returns:
        Descriptors, one row for each SMILES, in order; the same for any number of workers.

    Example:
        >>> found = rdkit_descriptors(["CCO", "C(C"])
        >>> found.x.shape == (2, len(NAMES)), found.ok.tolist()
        (True, [True, False])
        >>> round(float(found.x[0, found.names.index("MolWt")]), 2)
        46.07
    """
    rows_of = partial(map_molecules, seconds=ALONE, label="descriptors", workers=workers, pays_from=PARALLEL_FROM)
    return described(rows_of(_row, smiles, _refused), NAMES)


def described(made: Sequence[tuple[Sequence[float] | np.ndarray, str]], names: tuple[str, ...]) -> Descriptors:
    """Descriptors of rows and reasons; NaN for what is no number in float32."""
    x = np.array([row for row, _ in made], dtype=np.float64).reshape(len(made), len(names))
    x[~(np.abs(x) < np.finfo(np.float32).max)] = np.nan
    reasons = np.array([reason for _, reason in made], dtype=object)
    return Descriptors(x.astype(np.float32), names, reasons == "", reasons)


def _refused(_: str, reason: str) -> tuple[Sequence[float], str]:
    return [np.nan] * len(NAMES), f"{reason} to describe"


def _row(text: str) -> tuple[Sequence[float], str]:
    """The values of a molecule, or the reason why it has none."""
    mol, reason = parse_smiles(text)
    if mol is not None and mol.GetNumAtoms() > MAX_ATOMS:
        reason = f"{mol.GetNumAtoms()} atoms; descriptors are computed for up to {MAX_ATOMS}"
    if mol is None or reason:
        return [np.nan] * len(NAMES), reason
    left_out = beyond(mol)
    values = [function(mol) if name not in left_out else np.nan for name, function in _SINGLE.items()]
    # hydrogens count in the sums (Wildman and Crippen 1999); with them added, the atoms' own values stay the same
    crippen = np.array(rd._CalcCrippenContribs(Chem.AddHs(mol)))
    logp, refractivity = crippen[: mol.GetNumAtoms()].T
    state = estate_indices(mol)
    atoms = logp, refractivity, np.array(rd._CalcLabuteASAContribs(mol)[0]), state
    values += [*rd.PEOE_VSA_(mol), *crippen.sum(axis=0)]
    values += [state.max(), state.min(), np.abs(state).max(), np.abs(state).min()]
    for _, bins, by, what in _BINNED:
        values += np.bincount(np.searchsorted(bins, atoms[by], side="right"), atoms[what], len(bins) + 1).tolist()
    return values, ""


def beyond(mol: Chem.Mol) -> frozenset[str]:
    """Names of descriptors that would have to look at more than ``MAX_PATHS`` paths.

    Example:
        >>> beyond(Chem.MolFromSmiles("CCO")), sorted(beyond(Chem.MolFromSmiles("[U]" + "(*)" * 90)))
        (frozenset(), ['Chi2n', 'Chi2v', 'Kappa2'])
    """
    n_atoms, n_bonds = mol.GetNumAtoms(), mol.GetNumBonds()
    if n_bonds < _FEW_BONDS and n_bonds <= 1.5 * n_atoms:
        return frozenset()
    ends = np.array([(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds()], dtype=np.int64)
    degree = np.bincount(ends.ravel(), minlength=n_atoms)
    onward = degree - 1  # the ways on from an atom that was reached by a bond
    a, b = ends.T
    # paths by their middle: an atom, a bond, an atom with two neighbours; a path that meets itself counts as well
    reached = np.bincount(a, onward[b], n_atoms) + np.bincount(b, onward[a], n_atoms)
    squares = np.bincount(a, onward[b] ** 2, n_atoms) + np.bincount(b, onward[a] ** 2, n_atoms)
    paths = {2: (degree * onward).sum() / 2, 3: (onward[a] * onward[b]).sum(), 4: (reached**2 - squares).sum() / 2}
    return frozenset(name for name, n in PATHS.items() if paths[n] > MAX_PATHS)
