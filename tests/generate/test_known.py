"""Searches that begin from molecules whose values are known: fewer calls, and every row that is left out is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import molgraph
from molgraph.base.errors import EmptyError, LabelError, MissingOptionError
from molgraph.chem.quality import measure
from molgraph.data.sources import builtin
from molgraph.generate.known import read_known, value_known
from molgraph.generate.oracles.calls import OracleCalls
from molgraph.generate.oracles.read_oracle import read_oracle
from molgraph.generate.run_search import run_search
from molgraph.generate.searches.search import make_search
from molgraph.train.model import Model
from tests.latent import NearestMolecule, latent_generator

QUICK = {"ascent": {"paths": 10, "heads": 1}, "bayes": {"restarts": 16, "steps": 15}, "cyclegan": {"steps": 200}}


@pytest.fixture(scope="module")
def space() -> NearestMolecule:
    return latent_generator(builtin.chembl2321810(), d=4)


def far(smiles: str) -> float:
    """How far along one axis of the space a molecule lies."""
    return far.place[smiles]  # type: ignore[attr-defined]


@pytest.fixture
def poor(space: NearestMolecule, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """A table of 100 molecules, none of them from the upper fifth of the axis."""
    value = space.points[:, 0]
    monkeypatch.setattr(far, "place", dict(zip(space.smiles, value, strict=True)), raising=False)
    rows = np.random.default_rng(0).permutation(np.flatnonzero(value < np.quantile(value, 0.8)))[:100]
    return pd.DataFrame({"smiles": space.smiles[rows], "far": value[rows]})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bayes", "ascent", "cyclegan"])
def test_known_molecules_save_calls(space: NearestMolecule, poor: pd.DataFrame, name: str) -> None:
    """20 calls that begin from poor molecules find better ones than 20 that begin from nothing."""
    best = {}
    for begin in (True, False):
        calls = OracleCalls(read_oracle(far), 20)
        told = value_known(calls, read_known(poor, calls.oracle)) if begin else None
        run_search(space, calls, make_search(name, initial=100, **QUICK[name]), known=told, batch=10, seed=2)
        values = np.array([one.total for one in calls.scored.values()])
        best[begin] = np.sort(values)[-5:].mean()
        assert len(values) == 20 and not (begin and set(poor["smiles"]) & set(calls.scored))
    assert best[True] > best[False] + 0.3 and best[True] > poor["far"].max(), best


def test_sampling_draws_the_same_whatever_is_known(space: NearestMolecule, poor: pd.DataFrame) -> None:
    drawn = []
    for table in (poor, poor.head(1)):
        calls = OracleCalls(read_oracle(far), 60)
        told = value_known(calls, read_known(table, calls.oracle))
        run_search(space, calls, make_search("sampling"), known=told, diversity=0.0, seed=2)
        drawn.append([text for text in calls.scored if text not in set(poor["smiles"])])
    n = min(map(len, drawn))
    assert drawn[0][:n] == drawn[1][:n] and n > 20


def test_rows_are_told_or_counted(space: NearestMolecule) -> None:
    smiles = [str(text) for text in space.smiles[:6]]
    rows = [*smiles, smiles[0], "C(C", "", smiles[5]]
    frame = pd.DataFrame({"smiles": rows, "qed": [0.1, 0.2, None, 0.4, 0.5, None, 0.3, 0.9, 0.9, None]})
    calls = OracleCalls(read_oracle("qed,sa<4"), 5)
    told = value_known(calls, read_known(frame, calls.oracle))
    sa = measure("sa", smiles).value
    guide = np.array([0.2, 0.2, 0.4, 0.5]) - calls.oracle.scale * np.maximum(sa[[0, 1, 3, 4]] - 4, 0)
    assert np.allclose(told.score, guide), "the mean of two rows; the bound counts"
    search = make_search("sampling")
    search.begin(space, known=(told.smiles, told.score))
    assert np.allclose(search.z, space.points[[0, 1, 3, 4]]) and search.n_known == 4
    assert "4 known molecules" in told.note(4) and "qed of the table; sa computed, not counted as calls" in told.note(4)
    assert "2 that cannot be read, 2 that repeat a molecule, 2 without a value" in told.note(4)
    assert "1 that the generator cannot encode" in told.note(3)
    assert calls.left == 5 and calls.score([smiles[1]])[0].total == 0.2 and calls.left == 5, "no call is made"
    for bad in (frame.assign(qed=np.nan), frame.iloc[[7, 8]], frame.iloc[:0]):
        with pytest.raises(EmptyError):
            value_known(calls, read_known(bad, calls.oracle)).note(0)
    with pytest.raises(MissingOptionError, match="'far'"):
        read_known(frame, read_oracle(far))
    with pytest.raises(LabelError, match=r"row 1: .*'a'"):
        read_known(frame.assign(qed=[*"abcabcabca"]), read_oracle("qed"))


def test_a_table_of_measurements_from_a_file(space: NearestMolecule, tmp_path: Path) -> None:
    """Measured values stand for a property model's; the table is what results are compared with."""
    table = builtin.chembl2321810()
    frame = pd.DataFrame({"smiles": table.smiles, "pActivity": table.y[:, 0]}).iloc[:40]
    frame.to_csv(tmp_path / "a.csv", index=False)
    molgraph.train(table.take(np.arange(100)), model="knn", split="random", baseline=False).model.save(
        tmp_path / "assay.mgm"
    )
    how = {"search": "ascent", "budget": 15, "batch": 5, "params": {"paths": 4}, "journal": tmp_path / "journal"}
    where = (Model(space, targets=()), f"{tmp_path}/assay.mgm")
    found = molgraph.optimise(*where, known=tmp_path / "a.csv", max_distance=0.9, **how)
    assert found.notes[0].startswith("40 known molecules") and "assay of the table" in found.notes[0]
    frame = found.to_frame()
    assert len(frame) == 15 and len(found.best_so_far["sampling"]) == 15 and (frame["known_similarity"] < 1).all()
    again = molgraph.optimise(*where, known=tmp_path / "a.csv", max_distance=0.9, **how)
    pd.testing.assert_frame_equal(again.to_frame(), frame)
