"""Compute RDKit's two-dimensional descriptors of SMILES, NaN where one has no value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rdkit import Chem
from rdkit.Chem import MolSurf
from rdkit.Chem import rdMolDescriptors as rd
from rdkit.Chem.EState import EState_VSA

from molgraph.chem.bounded import ALONE, TooHardError, bounded, is_hard
from molgraph.chem.estate import estate_indices
from molgraph.chem.parallel import map_texts
from molgraph.chem.smiles import parse_smiles, quiet

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
_SINGLE: dict[str, Callable[[Chem.Mol], float]] = {
    "MolWt": rd._CalcMolWt,
    "TPSA": rd.CalcTPSA,
    "LabuteASA": rd.CalcLabuteASA,
    "FractionCSP3": rd.CalcFractionCSP3,
    "HeavyAtomCount": Chem.Mol.GetNumHeavyAtoms,
    "NHOHCount": rd.CalcNumLipinskiHBD,
    "NOCount": rd.CalcNumLipinskiHBA,
    "NumHAcceptors": rd.CalcNumHBA,
    "NumHDonors": rd.CalcNumHBD,
    "NumHeteroatoms": rd.CalcNumHeteroatoms,
    "NumRotatableBonds": rd.CalcNumRotatableBonds,
    "NumAmideBonds": rd.CalcNumAmideBonds,
    "RingCount": rd.CalcNumRings,
    "NumHeterocycles": rd.CalcNumHeterocycles,
    "NumAromaticRings": rd.CalcNumAromaticRings,
    "NumAromaticCarbocycles": rd.CalcNumAromaticCarbocycles,
    "NumAromaticHeterocycles": rd.CalcNumAromaticHeterocycles,
    "NumAliphaticRings": rd.CalcNumAliphaticRings,
    "NumAliphaticCarbocycles": rd.CalcNumAliphaticCarbocycles,
    "NumAliphaticHeterocycles": rd.CalcNumAliphaticHeterocycles,
    "NumSaturatedRings": rd.CalcNumSaturatedRings,
    "NumSaturatedCarbocycles": rd.CalcNumSaturatedCarbocycles,
    "NumSaturatedHeterocycles": rd.CalcNumSaturatedHeterocycles,
    "NumSpiroAtoms": rd.CalcNumSpiroAtoms,
    "NumBridgeheadAtoms": rd.CalcNumBridgeheadAtoms,
    "HallKierAlpha": rd.CalcHallKierAlpha,
    "Kappa1": rd.CalcKappa1,
    "Kappa2": rd.CalcKappa2,
    "Kappa3": rd.CalcKappa3,
    **{f"Chi{i}v": getattr(rd, f"CalcChi{i}v") for i in range(5)},
}
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
    made = map_texts(_compute, smiles, label="descriptors", workers=workers, pays_from=PARALLEL_FROM)
    return described(made, NAMES)


def described(made: Sequence[tuple[Sequence[float] | np.ndarray, str]], names: tuple[str, ...]) -> Descriptors:
    """Descriptors of rows and reasons; NaN for what is no number in float32."""
    x = np.array([row for row, _ in made], dtype=np.float64).reshape(len(made), len(names))
    x[~(np.abs(x) < np.finfo(np.float32).max)] = np.nan
    reasons = np.array([reason for _, reason in made], dtype=object)
    return Descriptors(x.astype(np.float32), names, reasons == "", reasons)


def _compute(smiles: Sequence[str]) -> list[tuple[np.ndarray, str]]:
    x = np.full((len(smiles), len(NAMES)), np.nan)
    reasons = np.full(len(smiles), "", dtype=object)
    rows: list[int] = []
    atoms: list[np.ndarray] = []
    first = len(_SINGLE) + len(_CHARGE_BINS)
    with quiet():
        for i, text in enumerate(smiles):
            try:
                reasons[i], found = bounded(_described, text, seconds=ALONE) if is_hard(text) else _described(text)
            except TooHardError as error:
                reasons[i], found = f"{error} to describe", None
            if found is not None:
                x[i, : first + 2], values = found
                atoms.append(values)
                rows.append(i)
    if rows:
        x[rows, first + 2 :] = _from_atoms(atoms)
    return list(zip(x, reasons, strict=True))


def _described(text: str) -> tuple[str, tuple[list[float], np.ndarray] | None]:
    """Why a text is not described; or the values of its molecule, and those of its atoms."""
    mol, reason = parse_smiles(text)
    if mol is None:
        return reason, None
    if mol.GetNumAtoms() > MAX_ATOMS:
        return f"{mol.GetNumAtoms()} atoms; descriptors are computed for up to {MAX_ATOMS}", None
    left_out = beyond(mol)
    values = [function(mol) if name not in left_out else np.nan for name, function in _SINGLE.items()]
    atoms, sums = _atom_values(mol)
    return "", ([*values, *rd.PEOE_VSA_(mol), *sums], atoms)


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


def _atom_values(mol: Chem.Mol) -> tuple[np.ndarray, np.ndarray]:
    """[4, atoms] log P, refractivity, area and E-state of each atom; the molecule's log P and refractivity."""
    # hydrogens count in the sums (Wildman and Crippen 1999); with them added, the atoms' own values stay the same
    crippen = np.array(rd._CalcCrippenContribs(Chem.AddHs(mol)))
    area = rd._CalcLabuteASAContribs(mol)[0]
    n = mol.GetNumAtoms()
    return np.stack([crippen[:n, 0], crippen[:n, 1], area, estate_indices(mol)]), crippen.sum(axis=0)


def _from_atoms(atoms: list[np.ndarray]) -> np.ndarray:
    """[molecules, ...] extremes of the E-states and the binned sums, for all molecules at once."""
    sizes = np.array([a.shape[1] for a in atoms])
    starts = np.cumsum(sizes) - sizes
    values = np.concatenate(atoms, axis=1)
    graph_of = np.repeat(np.arange(len(atoms)), sizes)
    state, size = values[_STATE], np.abs(values[_STATE])
    extremes = [f.reduceat(v, starts) for v in (state, size) for f in (np.maximum, np.minimum)]
    out = [np.stack(extremes, axis=1)]
    for _, bins, by, what in _BINNED:
        k = len(bins) + 1
        place = graph_of * k + np.searchsorted(bins, values[by], side="right")
        out.append(np.bincount(place, weights=values[what], minlength=len(atoms) * k).reshape(-1, k))
    return np.concatenate(out, axis=1)
