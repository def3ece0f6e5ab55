"""Featurising: one graph an entry, the same features from both backends, chemprop's layout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from rdkit import Chem, RDConfig
from torch_geometric.data import Data

from molgraph.base.errors import NotInstalledError, UnknownNameError
from molgraph.chem import parallel
from molgraph.data import featurize_cuik
from molgraph.data.feature_layout import D_ATOM, D_BOND, OLDER, atom_keys, atom_keys_of, atom_rows, check_layout
from molgraph.data.featurize import featurize
from molgraph.data.graph_store import GraphStore
from molgraph.data.pyg import from_pyg
from molgraph.data.sources import builtin

NASTY = Path(__file__).resolve().parent.parent / "nasty.tsv"
needs_cuik = pytest.mark.skipif(bool(featurize_cuik.missing()), reason=featurize_cuik.missing() or "present")

# what the text-driven short cuts of the RDKit backend could get wrong
TRICKY = [
    "[2H]O[2H]", "[13CH4]", "[300C]", "[0CH4]", "[1*]C", "*", "[238U]", "C[C@H](N)O", "C[C@@H](N)O",
    "F[P@TB1](Cl)(Br)(I)C", "N->B", "B<-N", "[NH3]->[Pt]", "C$C", "C~C", "[U]$[U]", "[Fe]12345C6C1C2C3C4C56",
    "C1=CC=CN->[Zn]1", "F/C=C/F", "F\\C=C/F", "C1CCCCCC/C=C\\1", "CC=C=CC", "O=N(=O)c1ccccc1",
    "[O-][N+](=O)c1ccccc1", "[CH3]", "[CH2]", "[Na+].[Cl-]", "[H+]", "[H][H]", "[H-]", "[He]", "[Og]",
    "c1ccc2c(c1)ccc1ccccc12", "c1cc[se]c1", "c1cc[te]c1", "[O-]Cl(=O)(=O)=O", "FS(F)(F)(F)(F)F", "C |^1:0|",
    "C[C@H](F)Cl |&1:1|", "CC |$;R1$|", " CCO", "CCO ", "\tCCO", "[CH3:7][CH2:3][OH:1]", "Cl[Pt](Cl)(N)N", "C[Hg]C",
    "[Cu+2].[O-]S(=O)(=O)[O-]", "OC[PH](CO)(CO)CO", "[C-4]", "[C+5]", "C:C", "c1:c:c:c:c:c1C:C", "c1ccccc1:C",
    "b1ccccc1", "n1cccc1C", "CC(C)=[N+]=[N-]", "[nH]1cccc1",
]  # fmt: skip


STEREO = [
    "C[C@H]1CC[C@@H](C)CC1",
    "C[C@H]1CC[C@H](C)CC1",
    "C[C@H](O)[C@H](O)[C@@H](C)O",
    "C[S@](=O)c1ccccc1",
    "C[C@](F)(Cl)Br",
]


def nci() -> list[str]:
    lines = Path(RDConfig.RDDataDir, "NCI", "first_5K.smi").read_text().splitlines()
    return [line.split()[0] for line in lines if line.strip()]


def assert_same(a: GraphStore, b: GraphStore) -> None:
    assert a.featuriser == b.featuriser
    assert list(a.status) == list(b.status) and list(a.reason) == list(b.reason)
    assert a.levels.keys() == b.levels.keys() and a.tables.keys() == b.tables.keys()
    for name, table in a.tables.items():
        assert table.tobytes() == b.tables[name].tobytes()
    for name, level in a.levels.items():
        np.testing.assert_array_equal(level.offsets, b.levels[name].offsets)
        assert level.arrays.keys() == b.levels[name].arrays.keys()
        for field, values in level.arrays.items():
            np.testing.assert_array_equal(values, b.levels[name].arrays[field])
            assert values.dtype == b.levels[name].arrays[field].dtype


@pytest.fixture(scope="module")
def nci_store() -> GraphStore:
    return featurize(nci(), backend="rdkit")


@needs_cuik
@pytest.mark.parametrize("which", ["tricky", "nasty"])
def test_both_backends_agree_to_the_bit(which: str) -> None:
    nasty = [line.split("\t")[0] for line in NASTY.read_text(encoding="utf-8").splitlines()[1:]]
    smiles = TRICKY if which == "tricky" else nasty
    assert_same(featurize(smiles, backend="cuik"), featurize(smiles, backend="rdkit"))
    for text in smiles:  # alone as in company
        assert_same(featurize([text], backend="cuik"), featurize([text], backend="rdkit"))


@needs_cuik
def test_both_backends_agree_on_all_of_nci(nci_store: GraphStore) -> None:
    assert_same(featurize(nci(), backend="cuik"), nci_store)


@pytest.mark.slow
@pytest.mark.data
@needs_cuik
@pytest.mark.parametrize("name", ["lipo", "bbbp", "hiv"])
def test_both_backends_agree_on_datasets(name: str) -> None:
    import pandas as pd

    folder = Path(os.environ["MOLGRAPH_DATA"], name)
    path = next(p for p in sorted(folder.rglob("*.csv*")) if "smiles" in pd.read_csv(p, nrows=1).columns)
    smiles = pd.read_csv(path, nrows=4000)["smiles"].astype(str).tolist()
    assert_same(featurize(smiles, backend="cuik"), featurize(smiles, backend="rdkit"))


def test_features_are_rdkits_answers(nci_store: GraphStore) -> None:
    """An oracle that asks RDKit everything, atom by atom and bond by bond."""
    elements = [*range(1, 37), 53]
    hybrids = ["S", "SP", "SP2", "SP2D", "SP3", "SP3D", "SP3D2"]
    orders = ["SINGLE", "DOUBLE", "TRIPLE", "AROMATIC"]

    def one_hot(choice: object, choices: list) -> list[int]:
        hot = [0] * (len(choices) + 1)
        hot[choices.index(choice) if choice in choices else -1] = 1
        return hot

    smiles = TRICKY + nci()[::25]
    store = featurize(smiles, backend="rdkit", version=OLDER)
    atom, bond = store.levels["atom"], store.levels["bond"]
    for i, text in enumerate(smiles):
        mol = Chem.MolFromSmiles(text) if store.status[i] == "ok" else Chem.Mol()
        rows = store.tables["atom"][atom.arrays["code"][atom.offsets[i] : atom.offsets[i + 1]]]
        assert len(rows) == mol.GetNumAtoms()
        for a, row in zip(mol.GetAtoms(), rows, strict=True):
            want = one_hot(a.GetAtomicNum(), elements) + one_hot(a.GetTotalDegree(), list(range(6)))
            want += one_hot(a.GetFormalCharge(), [-1, -2, 1, 2, 0]) + one_hot(int(a.GetChiralTag()), list(range(4)))
            want += one_hot(a.GetTotalNumHs(), list(range(5))) + one_hot(str(a.GetHybridization()), hybrids)
            want += [int(a.GetIsAromatic())]
            assert row[:-1].tolist() == want, text
            assert row[-1] == np.float32(a.GetMass()) / np.float32(100), text
        part = slice(bond.offsets[i], bond.offsets[i + 1])
        assert bond.offsets[i + 1] - bond.offsets[i] == 2 * mol.GetNumBonds()
        source, target, reverse = (bond.arrays[name][part] for name in ("source", "target", "reverse"))
        assert (np.diff(target) >= 0).all()
        assert (source[reverse] == target).all() and (target[reverse] == source).all()
        for s, t, row in zip(source, target, store.tables["bond"][bond.arrays["code"][part]], strict=True):
            b = mol.GetBondBetweenAtoms(int(s), int(t))
            kinds = one_hot(str(b.GetBondType()), orders)[:-1]
            flags = [int(b.GetIsConjugated()), int(b.IsInRing())]
            assert row.tolist() == [0, *kinds, *flags, *one_hot(int(b.GetStereo()), list(range(6)))], text


def test_chiral_columns_are_cip_codes_and_all_else_is_as_in_the_older_version() -> None:
    """RDKit's legacy codes; where it gives none (1,4-dimethylcyclohexane) the columns tell cis from trans."""
    smiles = [*TRICKY, *STEREO, *nci()[::25], *map(str, builtin.chembl2321810().smiles)]
    store, older = featurize(smiles), featurize(smiles, version=OLDER)
    assert (store.featuriser, older.featuriser) == ("v2.2", "v2.1")
    chiral = slice(51, 56)
    rows, before = (each.tables["atom"][each.levels["atom"].arrays["code"]] for each in (store, older))
    np.testing.assert_array_equal(np.delete(rows, chiral, 1), np.delete(before, chiral, 1))
    tags, raw = rows[:, chiral].argmax(1), before[:, chiral].argmax(1)
    np.testing.assert_array_equal(np.isin(tags, (1, 2)), np.isin(raw, (1, 2)))
    np.testing.assert_array_equal(tags[~np.isin(tags, (1, 2))], raw[~np.isin(raw, (1, 2))])
    atoms = [
        a for t, ok in zip(smiles, store.status == "ok", strict=True) if ok for a in Chem.MolFromSmiles(t).GetAtoms()
    ]
    codes = [a.GetProp("_CIPCode") if a.HasProp("_CIPCode") else "" for a in atoms]
    known = [(code, tag) for code, tag in zip(codes, tags.tolist(), strict=True) if code and tag in (1, 2)]
    assert {*known} == {("R", 1), ("S", 2)} and len(known) > 8


def test_chiral_columns_do_not_hear_atom_maps() -> None:
    mapped = [
        "[CH3:1][C@@H:2]([NH2:3])[C:4](=[O:5])[OH:6]",
        "[CH3:1][C@H:2]([CH3:4])[OH:3]",
        "[CH3:1]/[CH:2]=[CH:3]/C",
        "[H:9][C@](C)(N)O",
    ]
    plain = ["[CH3][C@@H]([NH2])[C](=[O])[OH]", "[CH3][CH]([CH3])[OH]", "[CH3]/[CH]=[CH]/C", "[H][C@](C)(N)O"]
    assert_same(featurize(mapped), featurize(plain))


def test_layout_is_chemprops() -> None:
    chemprop = pytest.importorskip("chemprop")
    atoms = chemprop.featurizers.atom.MultiHotAtomFeaturizer.v2()
    bonds = chemprop.featurizers.bond.MultiHotBondFeaturizer()
    assert (len(atoms), len(bonds)) == (D_ATOM, D_BOND)
    for text in TRICKY:
        store = featurize([text], version=OLDER)
        if store.status[0] != "ok":
            continue
        mol = Chem.MolFromSmiles(text)
        ours = store.tables["atom"][store.levels["atom"].arrays["code"]]
        np.testing.assert_allclose(ours, [atoms(a) for a in mol.GetAtoms()], rtol=1e-6)
        theirs = sorted(tuple(map(int, bonds(b))) for b in mol.GetBonds() for _ in range(2))
        mine = store.tables["bond"][store.levels["bond"].arrays["code"]]
        assert sorted(tuple(map(int, row)) for row in mine) == theirs, text


def test_keys_and_rows_are_one_to_one() -> None:
    rng = np.random.default_rng(0)
    n = 5000
    keys = atom_keys_of(
        rng.integers(0, 119, n), rng.integers(0, 9, n), rng.integers(-5, 6, n), rng.integers(0, 9, n),
        rng.integers(0, 8, n), rng.integers(0, 8, n), rng.integers(0, 2, n), rng.uniform(0, 300, n),
    )  # fmt: skip
    rows = atom_rows(keys)
    np.testing.assert_array_equal(atom_keys(rows), keys)
    assert len(np.unique(keys)) == len({row.tobytes() for row in rows})


def test_rows_of_another_layout_are_refused() -> None:
    atoms, bonds = np.zeros((1, D_ATOM), np.float32), np.zeros((1, D_BOND), np.float32)
    atoms[0, [0, 38, 45, 51, 56, 62]] = 1
    check_layout(atoms, bonds)
    odd = atoms.copy()
    odd[0, [1, 38]] = 1, 0  # two elements and no degree: six ones all the same
    for wrong in ((odd, bonds), (atoms[:, 1:], bonds), (atoms, bonds + 2), (atoms, bonds[:, 1:])):
        with pytest.raises(ValueError, match="layout"):
            check_layout(*wrong)


@pytest.mark.parametrize("backend", ["cuik", "rdkit"])
def test_one_graph_an_entry_whatever_stands_there(backend: str) -> None:
    if backend == "cuik" and featurize_cuik.missing():
        pytest.skip(featurize_cuik.missing())
    smiles = ["CCO", "", "C1CC", "CN(C)(C)C", "c1cccc1", "foo", "", "C" * 300, "CN(C)(C)C", "O"] * 30
    store = featurize(smiles, backend=backend)
    assert len(store) == len(smiles)
    counts = np.diff(store.levels["atom"].offsets).reshape(30, 10)
    assert (counts == [3, 0, 0, 0, 0, 0, 0, 300, 0, 1]).all()
    np.testing.assert_array_equal(store.status == "ok", counts.ravel() > 0)
    assert all(bool(why) != (status == "ok") for status, why in zip(store.status, store.reason, strict=True))
    assert "valence" in store.reason[3] and "kekul" in store.reason[4] and "\n" not in "".join(store.reason)


def test_what_is_not_text_is_a_graph_with_a_reason() -> None:
    store = featurize(["C", None, float("nan"), 3, "C"])  # type: ignore[list-item]
    assert list(store.status) == ["ok", "unreadable", "unreadable", "unreadable", "ok"]
    assert all(store.reason[1:4])


def test_nothing_reaches_the_terminal() -> None:
    code = (
        "from molgraph.data.featurize import featurize\n"
        "for name in ('auto', 'rdkit'): featurize(['C1CC', 'CN(C)(C)C', 'foo', '[H+]'], backend=name)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "" and run.stderr == ""


def test_the_empty_list() -> None:
    store = featurize([])
    assert len(store) == 0 and store.tables["atom"].shape == (0, D_ATOM) and store.tables["bond"].shape == (0, D_BOND)


def test_no_atom_and_no_bond_at_all() -> None:
    assert featurize(["foo"]).tables["atom"].shape == (0, D_ATOM)
    assert featurize(["C"]).levels["bond"].offsets.tolist() == [0, 0]


def test_cut_into_chunks_or_not_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    part = nci()[:500]
    whole = featurize(part)
    monkeypatch.setattr(parallel, "PIECE", 7)
    assert_same(featurize(part), whole)


@pytest.mark.parametrize("backend", ["rdkit", pytest.param("cuik", marks=needs_cuik)])
def test_a_piece_of_more_atoms_than_16_bits_count(backend: str) -> None:
    n = 2**16 // 200 + 3
    one, many = featurize(["C" * 199 + "O"], backend=backend), featurize(["C" * 199 + "O"] * n, backend=backend)
    assert many.levels["atom"].offsets[-1] > 2**16
    for level, own in one.levels.items():
        for name, array in own.arrays.items():
            assert np.array_equal(np.tile(array, n), many.levels[level].arrays[name])


@pytest.mark.slow
def test_workers_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    smiles = [*nci()[:300], "", "CN(C)(C)C", "C" * 500]
    alone = featurize(smiles)
    monkeypatch.setattr(parallel, "PIECE", 100)
    assert_same(alone, featurize(smiles, workers=2))


def test_smallest_types(nci_store: GraphStore) -> None:
    for level in nci_store.levels.values():
        assert all(values.dtype == np.int16 for values in level.arrays.values())
    chain = torch.stack([torch.arange(16_999), torch.arange(1, 17_000)])
    long = from_pyg([Data(edge_index=torch.cat([chain, chain.flip(0)], 1), num_nodes=17_000)])
    assert long.levels["bond"].arrays["reverse"].dtype == np.int32
    assert int(long.levels["bond"].arrays["reverse"].max()) == 2 * 16_999 - 1


def test_isotopes_change_the_mass_alone() -> None:
    store = featurize(["[13CH4]", "C"])
    heavy, light = store.tables["atom"][store.levels["atom"].arrays["code"]]
    np.testing.assert_array_equal(heavy[:-1], light[:-1])
    assert heavy[-1] == pytest.approx(0.13003355) and light[-1] == pytest.approx(0.12011)


def test_a_backend_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(featurize_cuik, "missing", lambda: "cuik-molmaker-pin is not installed")
    with pytest.raises(NotInstalledError, match="cuik-molmaker-pin"):
        featurize(["C"], backend="cuik")
    assert featurize(["CC"]).levels["atom"].offsets.tolist() == [0, 2]
    with pytest.raises(UnknownNameError, match=r"(?s)'cuick'.*'cuik'"):
        featurize(["C"], backend="cuick")  # type: ignore[arg-type]
