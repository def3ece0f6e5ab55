"""Intervals hold what they promise, sets too; the domain knows its training molecules; the file keeps all of it."""

from __future__ import annotations

import numpy as np
import pytest

import molgraph
from molgraph.base.contracts import Target
from molgraph.base.errors import BadValueError, UnsupportedError
from molgraph.train.confidence.calibration import Calibration
from molgraph.train.confidence.intervals import Intervals
from molgraph.train.modelfile import load_model

SERIES = "builtin:chembl2321810"


@pytest.fixture(scope="module")
def result():
    return molgraph.train(SERIES, model="linear", split="random", fractions=(0.6, 0.2, 0.2))


def test_intervals_cover_exchangeable_rows_near_and_far():
    rng = np.random.default_rng(3)
    distance = rng.uniform(0, 1, 6000)
    y = rng.normal(size=6000) * (0.2 + 2 * distance)  # far molecules are predicted worse
    held, new = slice(0, 2000), slice(2000, 6000)
    made = Intervals.of((Target("y"),), y[held, None], np.zeros((2000, 1)), distance[held], None)
    for coverage in (0.5, 0.8, 0.9):
        inside = np.abs(y[new]) <= made.half_widths(coverage, distance[new], None, 4000)[:, 0]
        assert inside.mean() == pytest.approx(coverage, abs=0.025)
        for quarter in np.array_split(np.argsort(distance[new]), 4):
            assert inside[quarter].mean() == pytest.approx(coverage, abs=0.06)
    plain = Intervals.of((Target("y"),), y[held, None], np.zeros((2000, 1)), None, None)
    far = np.argsort(distance[new])[-1000:]
    inside = np.abs(y[new]) <= plain.half_widths(0.9, None, None, 4000)[:, 0]
    assert inside[far].mean() < 0.84, "without the distance they hold too little far away"


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_sets_hold_each_class_as_often_as_promised(kind):
    rng = np.random.default_rng(5)
    k, n = 2 if kind == "binary" else 3, 12_000
    y = rng.choice(k, n, p=[0.9, 0.1] if k == 2 else [0.6, 0.3, 0.1])
    logits = np.eye(k)[y] * 1.5 + rng.normal(size=(n, k))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    value, target = (p[:, 1:], Target("y", kind)) if k == 2 else (p, Target("y", kind, classes=("0", "1", "2")))
    half = n // 2
    made = Intervals.of((target,), y[:half, None].astype(float), value[:half], None, None)
    sets = made.sets(target, 0, value[half:], 0.9)
    for c in range(k):
        rows = y[half:] == c
        assert np.mean([str(c) in text.split("|") for text in sets[rows]]) == pytest.approx(0.9, abs=0.04)


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_overconfident_probabilities_are_calibrated_and_right_ones_stay(kind):
    rng = np.random.default_rng(7)
    k, n = 2 if kind == "binary" else 3, 8_000
    logits = rng.normal(size=(n, k)) * 1.5
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1)
    sharp = p**3 / (p**3).sum(axis=1, keepdims=True)
    target = Target("y", kind, classes=() if k == 2 else ("a", "b", "c"))

    def loss(p):
        return -np.log(p[np.arange(len(p)), y[half:]]).mean()

    def calibrated(value):
        own = value[:, 1:] if k == 2 else value
        made = Calibration.of((target,), y[:half, None].astype(float), own[:half])
        again = Calibration.from_arrays(made.arrays())
        found = np.column_stack(list(again.probabilities((target,), own[half:]).values()))
        return np.column_stack([1 - found, found]) if k == 2 else found

    half = n // 2
    assert (
        loss(calibrated(sharp)) == pytest.approx(loss(p[half:]), abs=0.005)
        and loss(sharp[half:]) > loss(p[half:]) + 0.1
    )
    assert calibrated(p) == pytest.approx(p[half:], abs=0.03)
    few = Calibration.of((target,), y[:9, None].astype(float), (p[:, 1:] if k == 2 else p)[:9])
    assert few.probabilities((target,), p[:, 1:] if k == 2 else p) == {}


def test_predict_gives_interval_grade_and_nearest_molecule(result):
    known = str(result.table.take(result.split.train).smiles[0])
    frame = result.predict([known, "CC(=O)Oc1ccccc1C(=O)O", "[Zn+2].CCO", "C" * 900, "oops"]).to_frame()
    target = result.model.targets[0].name
    assert frame["distance"][0] == 0 and frame["domain"][0] == "inside" and frame["domain"][1] != "inside"
    row = result.table.take(result.split.train)
    assert frame["nearest_id"][0] == row.ids[0] and frame["nearest"][0] == known
    assert frame[f"nearest_{target}"][0] == pytest.approx(row.y[0, 0])
    assert (frame[f"{target}_low"] < frame[target]).tolist()[:2] == [True, True]
    assert frame["status"].tolist()[3:] == ["failed", "unreadable"] and "heavy atoms" in frame["reason"][3]


def test_chains_that_fingerprints_cannot_tell_apart_are_at_the_edge_and_hydrocarbons_outside():
    chains = {"smiles": ["C" * n + end for n in range(8, 21) for end in ("", "O", "N")], "y": [*range(39)]}
    known = molgraph.train(chains, targets=["y"], model="linear", split="random", params={"n_bits": 256})
    grades = known.predict(["C" * 36, "C" * 36 + "O", "C" * 12]).to_frame()["domain"]
    assert grades.tolist()[2] == "inside" and "inside" not in grades.tolist()[:2]
    polar = {name: [cell for i, cell in enumerate(cells) if i % 3] for name, cells in chains.items()}
    unknown = molgraph.train(polar, targets=["y"], model="linear", split="random", params={"n_bits": 256})
    frame = unknown.predict(["CCCCCCCCCCCC", "c1ccccc1[C@@H](C)CC", "CCCCCCCCCCCCO", "CCCCl", "C[Si]C"]).to_frame()
    assert frame["domain"].tolist()[:3] == ["outside", "outside", "inside"]
    assert not unknown.model.confidence.references.hydrocarbons(["CCCCl", "CC[SiH2]C", "[Co]", "[Cl-]", "C[n+]"]).any()


def test_the_file_keeps_all_of_it(result, tmp_path):
    asked = ["CCO", "CC(=O)Oc1ccccc1C(=O)O", "oops"]
    again = load_model(result.save(tmp_path / "m.mgm"))
    assert again.predict(asked).to_frame().equals(result.predict(asked).to_frame())
    narrow = again.with_coverage(0.5).predict(asked).interval
    assert (narrow[1] - narrow[0] < np.subtract(*again.predict(asked).interval[::-1]))[:2].all()
    assert again.with_coverage(None).predict(asked).interval is None
    with pytest.raises(BadValueError):
        again.with_coverage(1.5)


def test_the_nearest_molecules_limit_is_told_from_a_value(tmp_path):
    smiles = ["C" * n + end for n in range(1, 21) for end in ("O", "N")]
    cells = [f">{n}" if n % 4 == 0 else f"{n}" for n in range(40)]
    made = molgraph.train(
        {"smiles": smiles, "y": cells}, targets=["y"], model="auto", params={"methods": ["linear"], "folds": 2},
        split="random", qualifiers="learn",
    )  # fmt: skip
    frame = load_model(made.save(tmp_path / "m.mgm")).predict(smiles).to_frame()
    text = frame["nearest_y_qualifier"] + frame["nearest_y"].astype(int).astype(str)
    assert text.tolist() == [cells[int(row)] for row in frame["nearest_id"]] and ">" in text.str.cat()


def test_a_private_model_keeps_no_molecule(tmp_path):
    private = molgraph.train(SERIES, model="linear", split="random", private=True)
    path = private.save(tmp_path / "m.mgm")
    found = load_model(path).predict(["CCO"])
    assert found.interval is not None and "nearest" not in found.extra and "domain" not in found.extra
    assert str(private.table.smiles[0]).encode() not in path.read_bytes()
    with pytest.raises(UnsupportedError):
        molgraph.train(SERIES, model="linear", split="random", fractions=(0.9, 0.0, 0.1)).model.with_coverage(0.8)


def test_coverage_is_measured_by_distance_on_the_test_part(result):
    frame = result.coverage.set_index("part")
    assert {"all", "nearest quarter", "farthest quarter"} <= {*frame.index}
    assert frame.loc["all", "n"] == len(result.test) and 0.6 <= frame.loc["all", "coverage"] <= 1
    assert "intervals of 90% hold" in result.verdict


def test_a_file_keeps_the_calibration(tmp_path):
    frame = molgraph.read_table(SERIES)
    table = {"smiles": frame.smiles, "active": (frame.y[:, 0] > np.median(frame.y[:, 0])).astype(int)}
    made = molgraph.train(table, targets=["active"], model="linear", split="random", fractions=(0.4, 0.4, 0.2))
    before = made.predict(["CCO", "oops"]).to_frame()
    assert 0 < before["active_calibrated"][0] < 1 and np.isnan(before["active_calibrated"][1])
    assert any("calibrated" in sentence for sentence in made.reliability)
    assert load_model(made.save(tmp_path / "m.mgm")).predict(["CCO", "oops"]).to_frame().equals(before)
