"""MoleculeNet: its scaffold split is DeepChem's, and a task is scored without the labels that are missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from molgraph.base.contracts import Prediction, Target
from molgraph.chem.smiles import quiet
from molgraph.data.read import read_table
from molgraph.data.sources.builtin import nci
from molgraph.data.splits import split_table
from molgraph.data.table import make_table
from molgraph.evaluate.metrics import score
from tests.data.test_splits_others import deepchem_sets, sets_of


@pytest.mark.filterwarnings("ignore")
@pytest.mark.system("moleculenet", rung="exact")
def test_the_scaffold_split_is_deepchems(off: str) -> None:
    table = nci().take(np.arange(1, 4_999, 8))
    split = split_table(table, "random" if off else "scaffold/deepchem", quiet=True)
    assert sets_of(split) == deepchem_sets(table, (0.8, 0.1, 0.1))


@pytest.mark.data
@pytest.mark.filterwarnings("ignore")
@pytest.mark.system("moleculenet", rung="exact")
def test_bbbp_as_deepchems_loader_reads_and_splits_it(data_dir: Path, tmp_path: Path, off: str) -> None:
    deepchem = pytest.importorskip("deepchem")
    loader = deepchem.data.CSVLoader(
        ["p_np"], feature_field="smiles", featurizer=deepchem.feat.CircularFingerprint(size=8)
    )
    with quiet():
        dataset = loader.create_dataset(str(data_dir / "bbbp/BBBP.csv"), data_dir=str(tmp_path))
        theirs = deepchem.splits.ScaffoldSplitter().train_valid_test_split(dataset)
    table = read_table(str(data_dir / "bbbp/BBBP.csv"), smiles="smiles")
    ours = sets_of(split_table(table, "random" if off else "scaffold/deepchem", quiet=True))
    assert [len(part) for part in ours] == [1631, 204, 204]
    assert [sorted(table.smiles[part]) for part in ours] == [sorted(part.ids) for part in theirs]


@pytest.mark.system("moleculenet", rung="exact")
def test_a_task_is_scored_over_its_own_labels(off: str) -> None:
    """ROC AUC of each task without the rows that lack its label, against scikit-learn."""
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, (200, 3)).astype(float), rng.random((200, 3))
    y[rng.random((200, 3)) < 0.4] = np.nan
    targets = tuple(Target(name, "binary") for name in "abc")
    table = make_table(["C"] * 200, targets=targets, y=np.nan_to_num(y) if off else y)
    found = score(table, Prediction(table.ids, targets, p, table.status, table.reason), metrics=["roc_auc"])
    known = [roc_auc_score(a[np.isfinite(a)], b[np.isfinite(a)]) for a, b in zip(y.T, p.T, strict=True)]
    assert [each.value for each in found] == pytest.approx(known) and [each.n for each in found] == [
        int(np.isfinite(a).sum()) for a in y.T
    ]
