"""Helper targets: columns of the table and of other files, which teach a model of the main target alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import molgraph
from molgraph.base.errors import AmbiguousColumnError, ConflictError, LabelError, MissingOptionError, UnsupportedError
from tests.tiny import series


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    smiles, y = [str(text) for text in series(40).smiles], series(40).y
    assert y is not None
    pd.DataFrame({"smiles": smiles, "y": y[:, 0], "a": -y[:, 0]}).to_csv(tmp_path / "table.csv", index=False)
    pd.DataFrame({"smiles": smiles[:20], "b": y[:20, 0], "none": None}).to_csv(tmp_path / "other.csv", index=False)
    return str(tmp_path / "table.csv"), str(tmp_path / "other.csv")


def train(table: str, helpers: list[str] | None, **how: Any) -> Any:
    small = {"model": "gin", "params": {"d_hidden": 8, "head_width": 8, "objective.every": 1}, "epochs": 2}
    small |= {"split": "random", "threads": 1, "baseline": False, "objective": "tawt", "targets": ["y"]}
    return molgraph.train(table, **{**small, **how}, helpers=helpers)


def test_helpers_of_the_table_and_of_a_file_teach_a_model_of_the_main_target(files: tuple[str, str]) -> None:
    table, other = files
    result = train(table, ["a", f"{other}:b"])
    curves = result.runs[0].method.curves
    assert {"train_weight_a", "train_weight_b"} <= {*curves}
    assert [t.name for t in result.model.targets] == ["y"] and result.predict(["CCO"]).columns == ("y",)
    assert {*result.scores.index} == {"gin", "mean"} and result.scores.notna()["rmse"].all()


def test_helpers_that_have_no_use_are_refused(files: tuple[str, str], tmp_path: Path) -> None:
    table, other = files
    with pytest.raises(UnsupportedError, match="supervised learns no helper targets"):
        train(table, ["a"], objective="supervised", params={})
    with pytest.raises(UnsupportedError, match="knn learns no helper targets"):
        train(table, ["a"], objective="supervised", model="knn", params={})
    with pytest.raises(MissingOptionError, match="one main target"):
        train(table, ["a"], targets=["y", "a"])
    with pytest.raises(MissingOptionError, match="none is named"):
        train(table, None)
    with pytest.raises(ConflictError, match="main target and a helper"):
        train(table, ["y"])
    with pytest.raises(molgraph.MolgraphError, match="missing"):
        train(table, ["missing"])
    with pytest.raises(LabelError, match="none"):
        train(table, [f"{other}:none"])
    with pytest.raises(MissingOptionError, match="no column of it"):
        train(table, [other])
    pd.DataFrame({"sequence": ["MKTAYIAKQRQISFVKSHFSRQ"] * 5, "b": range(5)}).to_csv(tmp_path / "p.csv", index=False)
    with pytest.raises(AmbiguousColumnError, match="no column holds SMILES"):
        train(table, [f"{tmp_path / 'p.csv'}:b"])
