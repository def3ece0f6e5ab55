"""Make conformers of molecules by RDKit's ETKDG, with hydrogens, relaxed by a force field, in parallel."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rdkit import Chem, rdBase
from rdkit.Chem import rdDistGeom, rdForceFieldHelpers

from molgraph.chem.bounded import TooHardError, bounded
from molgraph.chem.conformer_cache import ConformerCache, cache_keys
from molgraph.chem.parallel import map_molecules
from molgraph.chem.smiles import parse_smiles

Relax = Literal["mmff", "uff", "none"]
SECONDS = 10.0  # for all conformers of one molecule
STEPS = 200  # of a force field's minimiser, as many as RDKit's own
MANY = 150  # atoms from which on a call of RDKit may take seconds: such a molecule has a process that can be ended
MOST, MOST_SEEDS = 1_000, 2_000_000  # conformers of a molecule; seeds: RDKit's is their product, of 31 bits
PIECE, PAYS_FROM = 16, 64  # conformers that a process is asked for at once; from how many on processes pay
BLOCK = 4_096  # molecules after which what was made is written to the cache
TOO_LONG = "takes longer than"


@dataclass(frozen=True)
class Conformers:
    """The conformers of one molecule, or the reason why there is none.

    Args:
        numbers: uint8 [n], atomic numbers: the heavy atoms in the order of the SMILES, then the added hydrogens.
        positions: float32 [m, n, 3], angstrom; m is 0 where there is no conformer.
        relaxed: ``mmff``, ``uff`` or ``none``: the force field that relaxed them.
        reason: one line where there is no conformer, else empty.
    """

    numbers: np.ndarray
    positions: np.ndarray
    relaxed: str = "none"
    reason: str = ""


def make_conformers(
    smiles: Sequence[str],
    *,
    n: int = 1,
    relax: Relax = "mmff",
    seed: int = 0,
    seconds: float = SECONDS,
    workers: int | None = None,
    cache: Path | None = None,
) -> list[Conformers]:
    """Up to ``n`` conformers of each molecule, in order; each distinct SMILES once.

    ETKDG version 3 (Riniker and Landrum 2015, J. Chem. Inf. Model. 55:2562; Wang et al. 2020, 60:2044) on the molecule
    with all hydrogens, then at most 200 steps of MMFF94 or UFF. What ETKDG cannot embed from its usual start is tried
    once more from random coordinates. A molecule depends on its SMILES, the seed and RDKit's version alone, not on the
    others or on the number of processes.

    Args:
        smiles: texts.
        n: conformers of a molecule, up to 1,000; it may have fewer. Those of a smaller n are the first of a larger.
        relax: ``mmff`` (UFF for molecules for which MMFF94 has no parameters), ``uff`` or ``none``.
        seed: of the embedding, from 0 on.
        seconds: the time limit for each molecule.
        workers: processes; None for one a core where that pays.
        cache: a file that keeps conformers by content; None keeps none.

    Returns:
        One ``Conformers`` for each text; without any conformer where RDKit reads no molecule, ETKDG embeds none in
        time, or no force field has parameters for it.

    Example:
        >>> water, none = make_conformers(["O", "C("])
        >>> water.numbers.tolist(), water.positions.shape, none.positions.shape[0]
        ([8, 1, 1], (1, 3, 3), 0)
        >>> none.reason.startswith("SMILES Parse Error")
        True
    """
    texts = list(dict.fromkeys(smiles))
    store = None if cache is None else ConformerCache(cache)
    key_of = dict(zip(texts, cache_keys(texts, rdBase.rdkitVersion, str(n), relax, str(seed)), strict=True))
    known = {} if store is None else store.read(list(key_of.values()))
    conformers = {text: Conformers(*known[key]) for text, key in key_of.items() if key in known}
    rest = [text for text in texts if text not in conformers]
    embed = partial(conformers_of, n=n, relax=relax, seed=seed, seconds=seconds)
    how: dict[str, Any] = {"pays_from": max(PAYS_FROM // n, 2), "piece": max(PIECE // n, 1), "label": "conformers"}
    for first in range(0, len(rest), BLOCK):
        block = rest[first : first + BLOCK]
        results = dict(
            zip(block, map_molecules(embed, block, _refused, seconds=seconds, workers=workers, **how), strict=True)
        )
        conformers |= results
        if store is not None:  # a busy machine must not decide what is known, so what took too long is not kept
            kept = {key_of[text]: item for text, item in results.items() if TOO_LONG not in item.reason}
            store.write({key: (item.numbers, item.positions, item.relaxed, item.reason) for key, item in kept.items()})
    return [conformers[text] for text in smiles]


def conformers_of(text: str, *, n: int, relax: Relax, seed: int, seconds: float) -> Conformers:
    """The conformers of one SMILES."""
    parsed = parse_smiles(text)
    if parsed.mol is None:
        return _none(parsed.reason)
    if not parsed.mol.GetNumAtoms():
        return _none("a molecule of no atoms")
    mol, make = Chem.AddHs(parsed.mol), partial(_made, n=n, relax=relax, seed=seed, seconds=seconds)
    if mol.GetNumAtoms() < MANY:
        return make(mol)
    try:
        return bounded(make, mol, seconds=seconds)
    except (TooHardError, RuntimeError) as error:
        return _none(f"no conformer: {error}")


def _made(mol: Chem.Mol, *, n: int, relax: Relax, seed: int, seconds: float) -> Conformers:
    """The conformers of a molecule with hydrogens, in this process."""
    end = time.perf_counter() + seconds
    try:
        _embed(mol, n, seed, end)
        field = _relax(mol, relax, end)
    except (RuntimeError, ValueError) as error:
        return _none(f"no conformer: {' '.join(str(error).split())[:200]}")
    if time.perf_counter() > end:
        return _none(f"no conformer: {TOO_LONG} {seconds:g} s")
    numbers = np.array([atom.GetAtomicNum() for atom in mol.GetAtoms()], np.uint8)
    positions = np.array([conformer.GetPositions() for conformer in mol.GetConformers()], np.float32)
    if not np.isfinite(positions).all():
        return _none("no conformer: its positions are no finite numbers")
    return Conformers(numbers, positions, field)


def _embed(mol: Chem.Mol, n: int, seed: int, end: float) -> None:
    """Embed conformers from the usual start, or else from random coordinates; ``ValueError`` where neither does."""
    params = rdDistGeom.ETKDGv3()
    params.randomSeed, params.enableSequentialRandomSeeds = MOST * seed, True  # no two seeds have one in common
    for start in (False, True):
        params.useRandomCoords = start
        params.timeout = max(1, math.ceil(end - time.perf_counter()))
        rdDistGeom.EmbedMultipleConfs(mol, n, params)
        if mol.GetNumConformers() or time.perf_counter() > end:
            return
    raise ValueError("ETKDG embeds it in no way")


def _relax(mol: Chem.Mol, relax: Relax, end: float) -> str:
    """Relax all conformers that there is time for; the name of the force field."""
    if relax == "none" or mol.GetNumAtoms() == 1:
        return "none"
    properties = None
    if relax == "mmff" and (properties := rdForceFieldHelpers.MMFFGetMoleculeProperties(mol)) is None:
        relax = "uff"
    if relax == "uff" and not rdForceFieldHelpers.UFFHasAllMoleculeParams(mol):
        raise ValueError("MMFF94 and UFF have no parameters for its atoms; relax=none leaves it as embedded")
    for conformer in mol.GetConformers():
        if time.perf_counter() > end:
            break
        if properties is not None:
            field = rdForceFieldHelpers.MMFFGetMoleculeForceField(mol, properties, confId=conformer.GetId())
        else:
            field = rdForceFieldHelpers.UFFGetMoleculeForceField(mol, confId=conformer.GetId())
        field.Initialize()
        field.Minimize(maxIts=STEPS)
    return relax


def _none(reason: str) -> Conformers:
    """No conformer, and why."""
    return Conformers(np.zeros(0, np.uint8), np.zeros((0, 0, 3), np.float32), reason=reason)


def _refused(text: str, reason: str) -> Conformers:
    return _none(f"no conformer: {reason}")
