"""The study of pretraining: its probes and intervals are those of the libraries, and layers see as far as they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from scipy.stats import ttest_1samp
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import molgraph
from molgraph.auxiliary.study.pretraining import (
    STRENGTHS,
    TASK,
    UNTRAINED,
    Pretraining,
    interval,
    probe_score,
    with_gaps,
)
from molgraph.base.contracts import Target
from molgraph.base.errors import BadValueError, UnsupportedError
from molgraph.data.read import read_table
from molgraph.study.labelled_rows import first_target
from molgraph.study.study import Subject
from tests.tiny import series


@pytest.mark.system("ssl-limits-study", rung="exact")
def test_scores_and_intervals_are_those_of_the_libraries(off: str) -> None:
    """scikit-learn's pipeline and scipy's test; off: the gap is to the wrong repeat."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 4)) * [1, 5, 9, 0.1] + 3
    y = x @ [1, -1, 0.2, 3] + rng.normal(size=90)
    pipeline = make_pipeline(StandardScaler(), RidgeCV(STRENGTHS)).fit(x[:60], y[:60])
    assert probe_score(x[:60], y[:60], x[60:], y[60:], Target("y")) == pytest.approx(
        pipeline.score(x[60:], y[60:]), abs=1e-3
    )
    scores = rng.normal(size=(3, 2))
    rows = [{"encoder": name, "layer": "readout", "labels": 5, "repeat": r, "score": scores[r, i]}
            for r in range(3) for i, name in enumerate((UNTRAINED, TASK))]  # fmt: skip
    if off:
        rows = [{**row, "repeat": (row["repeat"] + (row["encoder"] == TASK)) % 3} for row in rows]
    row = with_gaps(pd.DataFrame(rows)).set_index("encoder").loc[TASK]
    bounds = ttest_1samp(scores[:, 1] - scores[:, 0], 0).confidence_interval(0.95)
    np.testing.assert_allclose([row["low"], row["high"]], [bounds.low, bounds.high])
    assert interval([1.0]) == (-np.inf, np.inf)


@pytest.mark.system("single-image-self-supervision-study", rung="exact")
def test_counts_of_neighbours_need_one_layer_and_rings_of_six_need_more(off: str) -> None:
    """The number of atoms of degree 3, in an untrained network; off: the probe reads the layer below."""
    table = read_table("dataset:esol")
    subject = Subject(table, "gin(depth=4, d_hidden=64, threads=1)")
    rows, _, _ = first_target(table, 800, 60, 0)
    study = Pretraining(corpora=(1,), labels=(100,), epochs=1, layers=True, pretrain=False, rows=800)
    vectors = study.vectors(subject, rows, study._library(), 0)[UNTRAINED]
    mols = [Chem.MolFromSmiles(str(text)) for text in rows.smiles]
    degree = np.array([sum(atom.GetDegree() == 3 for atom in mol.GetAtoms()) for mol in mols], dtype=float)
    six = np.array([sum(len(ring) == 6 for ring in mol.GetRingInfo().AtomRings()) for mol in mols], dtype=float)
    cut = 500

    def score(layer: str, y: np.ndarray) -> float:
        return probe_score(vectors[layer][:cut], y[:cut], vectors[layer][cut:], y[cut:], Target("y"))

    assert score("input" if off else "layer 1", degree) > 0.95
    assert score("layer 4", six) > score("layer 1", six)


def test_what_cannot_be_studied_is_refused() -> None:
    with pytest.raises(BadValueError, match="corpora"):
        molgraph.study("pretraining(corpora=())", series(80), model="gin")
    with pytest.raises(UnsupportedError, match="trained anew"):
        molgraph.study("pretraining", series(80), model="random_forest")
