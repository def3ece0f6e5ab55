"""The profile of a target, and what the audit says of odd cells, outliers, cliffs and replicates."""

from __future__ import annotations

import numpy as np
import pytest

import molgraph
from molgraph.base.contracts import Target
from molgraph.data.audit import audit
from molgraph.data.profile import BINS, cliffs, decades_of, draw, robust_z, similar_pairs
from molgraph.data.replicates import find_replicates
from molgraph.data.sources.builtin import nci
from molgraph.data.table import make_table

LONG = "CCCCCCCCCCCCCCCC"


@pytest.fixture(scope="module")
def found():
    smiles = ["CCO", "OCC", "CCN", LONG + "O", LONG + "CO", *(f"c1ccccc1{'C' * n}" for n in range(1, 20)), "C(C"]
    y = ["5.0", "5.4", "1,5", "2.0", "9.0", *(f"{5 + n / 100}" for n in range(18)), "99", ">7"]
    return molgraph.audit({"smiles": smiles, "y": y, "c": ["1", "0"] * 12 + ["1"]}, targets=["y", "c"])


def test_the_audit_describes_each_target_and_counts_odd_cells(found) -> None:
    rows = {f.kind: (f.rows + 1).tolist() for f in found.findings if f.kind.endswith(" in y")}
    assert rows.pop("outlier in y")[0] == 24 and 24 in rows.pop("cliff in y")
    assert rows == {
        "contradiction in y": [1, 2],
        "decimal comma in y": [3],
        "qualifier in y": [25],
    }
    y, c = found.targets
    assert (y.n, y.missing, y.low, y.high, y.noise_df) == (23, 2, 2.0, 99.0, 1) and len(y.histogram) == BINS
    assert y.noise == pytest.approx(0.4 / np.sqrt(2)) and c.classes == {"0": 12, "1": 13}
    text, html = found.text(80), found._repr_html_()
    for shown in (text, html):
        assert "y (regression): 23 values, 2 missing" in shown and y.histogram in shown and "1 13 (52.0%)" in shown
    assert max(map(len, text.splitlines())) <= 80
    assert found.target_frame().set_index("target").loc["y", "high"] == 99.0
    assert set(found.to_frame()["finding"]) >= {"qualifier in y", "outlier in y"}


def test_ids_that_are_row_numbers_again_are_not_shown(found) -> None:
    assert "id" not in found._columns
    assert "id" in audit(make_table(["CCO", "C(C"], ids=["a", "b"]))._columns


def test_a_wide_range_is_judged_by_its_logarithms() -> None:
    y = np.logspace(-1, 5, 60)
    found = audit(make_table([f"{'C' * n}O" for n in range(1, 61)], targets=(Target("IC50"),), y=y))
    assert not any(f.kind.startswith("outlier") for f in found.findings)
    assert "6.0 decades" in found.text() and "--log" in found.text()
    assert decades_of(np.array([0.0, 1e9])) == 0.0


def test_cliffs_are_those_of_all_pairs() -> None:
    table = molgraph.read_table("builtin:chembl2321810").take(np.arange(300))
    rng = np.random.default_rng(0)
    y = rng.normal(size=300)
    pairs = similar_pairs(table.smiles, np.arange(300))
    from rdkit import Chem, DataStructs
    from rdkit.Chem import rdFingerprintGenerator

    make = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    prints = [make.GetFingerprint(mol) if (mol := Chem.MolFromSmiles(s)) else None for s in table.smiles]
    expected = set()
    for i in range(300):
        for j in range(i + 1, 300):
            if prints[i] is not None and prints[j] is not None:
                alike = DataStructs.TanimotoSimilarity(prints[i], prints[j]) >= 0.85
                if alike and abs(y[i] - y[j]) > 2 * y.std():
                    expected.add((i, j))
    made = cliffs(Target("y"), y, pairs)
    assert {(c.first, c.second) for c in made} == expected and expected
    apart = [abs(y[c.first] - y[c.second]) for c in made]
    assert apart == sorted(apart, reverse=True)


def test_replicates_are_those_that_the_audit_finds() -> None:
    smiles = [*nci().smiles[:400], "OCC", "CCO", "[Na+].CC[O-]", "CCO.OC(=O)C(O)C(O)C(=O)O", "C(C", "C(C", "", "OCC.Cl"]
    table = make_table(smiles, targets=(Target("y"),), y=np.arange(len(smiles)) % 3.0)
    quick, slow = find_replicates(table), audit(table, workers=1)
    assert sorted(quick.rows) == sorted(slow.finding("duplicate").rows)
    assert sorted(quick.rows[quick.contradictory]) == sorted(slow.finding("contradiction in y").rows)


@pytest.mark.parametrize("values", [[3.0], [0.0, 0.0], [5.0, 5.0, 5.0, 9.0], [-1e308, 1e308], [5e-324, 0.0]])
def test_small_and_strange_samples(values: list[float]) -> None:
    y = np.array(values)
    with np.errstate(over="ignore"):
        assert len(draw(y)) == BINS and not np.isnan(robust_z(y)).any()
