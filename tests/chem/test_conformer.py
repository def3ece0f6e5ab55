"""Conformers: the same for a seed whatever the company, with hydrogens, within a time, or a reason; kept by content."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import rdDistGeom, rdForceFieldHelpers

from molgraph.chem import conformer
from molgraph.chem.conformer import Conformers, make_conformers

SMILES = ["CCO", "c1ccccc1O", "N[C@@H](C)C(=O)O", "CCO", "[Na+].[Cl-]", "[He]", "C"]


def same(a: list[Conformers], b: list[Conformers]) -> bool:
    pairs = list(zip(a, b, strict=True))
    return all(x.positions.tobytes() == y.positions.tobytes() and x.reason == y.reason for x, y in pairs)


def test_a_conformer_is_rdkits_own_with_hydrogens() -> None:
    mol = Chem.AddHs(Chem.MolFromSmiles(SMILES[2]))
    params = rdDistGeom.ETKDGv3()
    params.randomSeed, params.enableSequentialRandomSeeds = 7_000, True
    rdDistGeom.EmbedMultipleConfs(mol, 3, params)
    plain = [each.GetPositions() for each in mol.GetConformers()]
    rdForceFieldHelpers.MMFFOptimizeMoleculeConfs(mol)
    for relax, wanted in (("none", plain), ("mmff", [each.GetPositions() for each in mol.GetConformers()])):
        (found,) = make_conformers(SMILES[2:3], n=3, seed=7, relax=relax)  # type: ignore[arg-type]
        assert found.numbers.tolist() == [atom.GetAtomicNum() for atom in mol.GetAtoms()] and found.relaxed == relax
        np.testing.assert_allclose(found.positions, wanted, atol=1e-3)
        assert np.ptp(found.positions, axis=0).max() > 0.1, "conformers of one seed differ"


def test_company_order_and_processes_do_not_matter_and_a_seed_does() -> None:
    found = make_conformers(SMILES, n=2)
    assert same(found[::-1], make_conformers(SMILES[::-1], n=2, workers=2)) and not any(each.reason for each in found)
    assert same(found[1:2], make_conformers(SMILES[1:2], n=2))
    (more,) = make_conformers(SMILES[1:2], n=3)
    assert more.positions[:2].tobytes() == found[1].positions.tobytes()
    assert not same(found[:1], make_conformers(SMILES[:1], n=2, seed=1))
    assert not same(found[:1], make_conformers(SMILES[:1], n=2, relax="uff"))


def test_what_has_no_conformer_has_a_reason_and_no_positions() -> None:
    hard = "C" * 300  # embedding it takes minutes
    started = time.perf_counter()
    found = make_conformers(["C(", "", "*CC", "[U]C", hard], seconds=1)
    assert time.perf_counter() - started < 20
    words = ("Parse Error", "no molecule", "no parameters", "no parameters", "longer than")
    for each, word in zip(found, words, strict=True):
        assert each.positions.shape == (0, 0, 3) and not len(each.numbers) and word in each.reason
    (bare,) = make_conformers(["*CC"], relax="none")
    assert bare.relaxed == "none" and bare.numbers[0] == 0 and not bare.reason


def test_molecules_without_parameters_of_mmff_are_relaxed_by_uff() -> None:
    (found,) = make_conformers(["CB(O)O"])
    assert found.relaxed == "uff" and not found.reason


def test_conformers_are_kept_by_content_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "folder" / "kept.sqlite"
    odd = [*SMILES, "*CC", "C" * 300]
    found = make_conformers(odd, cache=path, seconds=1)
    made: list[str] = []
    own = conformer.conformers_of
    monkeypatch.setattr(conformer, "conformers_of", lambda text, **how: (made.append(text), own(text, **how))[1])
    assert same(found, make_conformers(odd, cache=path, seconds=1))
    assert made == ["C" * 300], "what took too long is tried again; what cannot be embedded is known"
    make_conformers(SMILES[:1], cache=path, seed=1)
    make_conformers(SMILES[:1], cache=path, n=2)
    assert made[1:] == ["CCO", "CCO"]
    with sqlite3.connect(path) as base:
        base.execute("UPDATE conformers SET xyz = x'00'")
    base.close()
    assert same(found[:1], make_conformers(SMILES[:1], cache=path))
    path.write_bytes(b"no database" * 1000)
    assert same(found[:1], make_conformers(SMILES[:1], cache=path))
