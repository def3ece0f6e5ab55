"""stratified/deepchem: the same sets as DeepChem's own splitter; rows without a place say why."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from molgraph.base.contracts import Target
from molgraph.base.errors import BadValueError, MissingOptionError, UnknownNameError
from molgraph.data.splits import split_table
from molgraph.data.table import Table, make_table


def table_of(n: int, seed: int = 0) -> Table:
    y = np.random.default_rng(seed).normal(size=(n, 2)).round(1)  # ties: their order is DeepChem's too
    targets = (Target("a", "regression"), Target("b", "regression"))
    return make_table(["C" * (i + 1) for i in range(n)], targets=targets, y=y)


@pytest.mark.parametrize("fractions", [(0.8, 0.1, 0.1), (0.6, 0.2, 0.2), (0.7, 0.0, 0.3)])
@pytest.mark.parametrize(("task", "target"), [(0, None), (1, "b")])
def test_deepchem_sets(fractions: tuple[float, float, float], task: int, target: str | None) -> None:
    logging.getLogger("deepchem").setLevel(logging.ERROR)
    deepchem = pytest.importorskip("deepchem")
    table = table_of(87)
    split = split_table(table, "stratified/deepchem", fractions=fractions, seed=3, target=target)
    dataset = deepchem.data.NumpyDataset(X=np.zeros(87), y=table.y)
    train, valid, test = fractions
    theirs = deepchem.splits.SingletaskStratifiedSplitter(task).split(
        dataset, frac_train=train, frac_valid=valid, frac_test=test, seed=3
    )
    for mine, other in zip((split.train, split.valid, split.test), theirs, strict=True):
        assert mine.tolist() == sorted(other.astype(int).tolist())
    assert len(split.left_out) == 7
    largest = set(np.argsort(table.y[:, task])[80:].tolist())
    assert {out.row for out in split.left_out} == largest


def test_rows_without_a_value_say_so_and_the_parts_have_one_range() -> None:
    table = table_of(100)
    y = table.y.copy()
    y[5, 0] = np.nan
    split = split_table(make_table(list(table.smiles), targets=table.targets, y=y), "stratified/deepchem")
    assert {out.row: out.reason for out in split.left_out}[5] == "no value of a"
    assert split.sizes == {"train": 72, "valid": 9, "test": 9, "left_out": 10}
    assert abs(y[split.train, 0].mean() - y[split.test, 0].mean()) < 0.1


def test_what_it_cannot_do_is_refused() -> None:
    with pytest.raises(BadValueError, match=r"0\.75"):
        split_table(table_of(30), "stratified/deepchem", fractions=(0.75, 0.125, 0.125))
    with pytest.raises(MissingOptionError, match="target"):
        split_table(make_table(["C", "CC"]), "stratified/deepchem")
    with pytest.raises(UnknownNameError, match="'bb'"):
        split_table(table_of(30), "stratified/deepchem", target="bb")
