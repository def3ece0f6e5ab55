"""The time promise: no function of a molecule takes long, ordinary molecules are not slowed, processes end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors as rd

from molgraph.chem import bounded, estate
from molgraph.chem.bounded import TooHardError, is_hard
from molgraph.chem.descriptors import MAX_PATHS, NAMES, beyond, rdkit_descriptors
from molgraph.chem.descriptors200 import NAMES_200, descriptors_200
from molgraph.chem.fingerprints import avalon_counts
from molgraph.chem.identity import identities_of
from molgraph.chem.molfile import read_records
from molgraph.chem.parallel import map_molecules
from molgraph.chem.scaffold import scaffolds
from molgraph.chem.smiles import parse_smiles
from molgraph.data.featurize import featurize
from molgraph.data.read import read_table
from molgraph.data.splits import split_table
from molgraph.data.table import make_table
from tests.hard_molecules import complete, grid, peptide, regular, worst

CHAIN = "C" * 500


def loop(text: str) -> int:
    while "C" in text:
        pass
    return len(text)


def crash(_: str) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def pid(_: str) -> int:
    return os.getpid()


@pytest.mark.slow
def test_a_call_ends_and_the_next_one_is_answered() -> None:
    start = time.process_time()
    found = map_molecules(loop, [CHAIN, "N" * 600, "O"], lambda text, reason: -1, seconds=0.2)
    assert found == [-1, 600, 1] and time.process_time() - start < 1
    with pytest.raises(TooHardError, match=r"0\.2 s"):
        bounded.bounded(loop, CHAIN, seconds=0.2)
    with pytest.raises(TooHardError, match="crashes"):
        bounded.bounded(crash, CHAIN)
    assert bounded.bounded(pid, CHAIN) not in (os.getpid(), None)


def test_a_worker_that_was_ended_from_outside_is_replaced() -> None:
    first = bounded.bounded(pid, CHAIN)
    os.kill(first, signal.SIGKILL)
    bounded._worker.process.wait()  # type: ignore[union-attr]
    assert bounded.bounded(pid, CHAIN) != first


def test_forked_processes_have_their_own_worker_and_it_ends_with_them() -> None:
    mine = bounded.bounded(pid, CHAIN)
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        theirs = pool.submit(bounded.bounded, pid, CHAIN).result()
        assert theirs != mine
    assert bounded.bounded(pid, CHAIN) == mine
    until = time.monotonic() + 10
    while Path(f"/proc/{theirs}").exists() and Path(f"/proc/{theirs}/stat").read_text().split()[2] != "Z":
        assert time.monotonic() < until, "left behind"
        time.sleep(0.05)


def test_ordinary_molecules_start_no_process() -> None:
    code = """
import sys
from molgraph.chem import bounded
from molgraph.chem.descriptors200 import descriptors_200
from molgraph.chem.scaffold import scaffolds
from molgraph.data.featurize import featurize
smiles = ["CC(C)Cc1ccc(cc1)C(C)C(=O)O", "C12C3C4C1C5C2C3C45", "CC(=O)[O-].[Na+]", sys.argv[1]] * 5
descriptors_200(smiles), scaffolds(smiles), featurize(smiles)
assert bounded._worker is None
"""
    steroid = (
        "C[C@]12CC[C@H]3[C@@H](CCC4=CC(=O)CC[C@]34C)[C@@H]1CC[C@@H]2OC(=O)CCCCCCCCCCCCCCCCCCCC(=O)NCCCCCCCCCC(=O)O"
    )
    subprocess.run([sys.executable, "-c", code, steroid], check=True)


@pytest.mark.parametrize(
    "text", [peptide(15), grid(16, 16), ".".join(["CC(=O)[O-]"] * 60), "C" * 300, regular(220, 3, 1)], ids=len
)
def test_large_molecules_have_the_states_that_rdkits_distances_give(text: str, monkeypatch) -> None:
    mol = Chem.MolFromSmiles(text)
    assert mol.GetNumAtoms() > estate._LARGE or len(text) < 500
    found = estate.estate_indices(mol)
    monkeypatch.setattr(estate, "_LARGE", 10**6)
    assert found.tobytes() == estate.estate_indices(mol).tobytes()


def test_paths_are_counted_as_rdkit_finds_them() -> None:
    for degree in (3, 4, 6):
        mol = Chem.MolFromSmiles(regular(40, degree, degree, "[U]"))
        n = {k: len(Chem.FindAllPathsOfLengthN(mol, k, useBonds=True)) for k in (2, 3, 4)}
        left_out = beyond(mol)
        for k, count in n.items():
            if count > MAX_PATHS:
                assert f"Chi{k}v" in left_out
            if count < MAX_PATHS / 2:
                assert f"Chi{k}v" not in left_out


def test_unusual_molecules_keep_every_descriptor_that_is_quick() -> None:
    texts = [complete(10), worst()["star of 300"], peptide(20), CHAIN]
    found = rdkit_descriptors([*texts, "CCO"])
    assert found.ok.all()
    column = {name: i for i, name in enumerate(found.names)}
    lacking = [{name for name in NAMES if np.isnan(row[column[name]])} for row in found.x]
    assert "Chi4v" in lacking[0] and {"Chi2v", "Kappa2"} <= lacking[1] and not lacking[2] and not lacking[4]
    mol = Chem.MolFromSmiles(texts[2])
    for name in ("Chi4v", "Kappa3", "TPSA", "LabuteASA", "MolWt"):
        want = np.float32(getattr(rd, f"Calc{name}")(mol) if name != "MolWt" else rd._CalcMolWt(mol))
        assert found.x[2, column[name]] == want
    many = descriptors_200([CHAIN + "C" * 50, "CCO"])
    at = {name: many.x[0, NAMES_200.index(name)] for name in ("BertzCT", "BalabanJ", "Ipc", "qed")}
    assert many.ok.all() and np.isnan([at["BertzCT"], at["BalabanJ"], at["Ipc"]]).all() and np.isfinite(at["qed"])


@pytest.mark.slow
def test_what_takes_too_long_has_a_reason() -> None:
    ladder = worst()["ladder of n"]
    assert "takes longer than 0.5 s to read" in parse_smiles(ladder).reason
    assert featurize(["CCO", ladder]).status.tolist() == ["ok", "unreadable"]
    assert "takes longer" in avalon_counts([complete(14)]).reasons[0]
    assert "1600 atoms" in rdkit_descriptors(["C" * 1_600]).reasons[0]
    assert identities_of(["CCO", ladder])[1].reason and not identities_of([complete(20)])[0].reason
    found = scaffolds(["C" * 3_000, peptide(220)], chiral=False)
    assert list(found.values) == ["", ""] and not found.reasons[0]


def test_a_split_leaves_out_a_molecule_whose_scaffold_takes_too_long() -> None:
    rows = ["CCO", "c1ccccc1", "C1CCCCC1", "CCCC", "c1ccncc1", "C1CC1", worst()["ladder of n"], complete(12)]
    split = split_table(make_table(rows), "scaffold/balanced", fractions=(0.5, 0.25, 0.25))
    assert [left.row for left in split.left_out] == [6] and split.sizes["left_out"] == 1


def test_a_record_of_a_file_is_read_within_the_limit() -> None:
    mol = Chem.MolFromSmiles(grid(2, 60, "n"), sanitize=False)
    block = Chem.MolToMolBlock(mol, kekulize=False).splitlines()
    found = list(read_records([*block, "$$$$", *Chem.MolToMolBlock(Chem.MolFromSmiles("CCO")).splitlines(), "$$$$"]))
    assert "takes longer than" in found[0].reason and found[1].smiles == "CCO"


def test_tables_of_unusual_molecules_are_read(tmp_path: Path) -> None:
    path = tmp_path / "hard.smi"
    path.write_text("".join(f"{text} m{i}\n" for i, text in enumerate(worst().values())))
    assert read_table(path).ok.all()


def test_short_texts_are_no_unusual_ones() -> None:
    assert not is_hard("C" * 100) and is_hard("C" * 401) and is_hard(complete(10)) and not is_hard("CC(=O)N" * 50)
