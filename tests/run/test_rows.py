"""What a training says of its table: labelled rows, merged duplicates, columns that are not read."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import molgraph
from molgraph.base.contracts import Target
from molgraph.base.errors import AmbiguousColumnError
from molgraph.base.seeds import generator
from molgraph.data.curate import curate
from molgraph.data.table import make_table


def proteins(n: int, length: int = 80) -> list[str]:
    return ["".join(generator(i, "protein").choice(list("ACDEFGHIKLMNPQRSTVWY"), length)) for i in range(n)]


def pairs(column: list[str]) -> pd.DataFrame:
    n = len(column)
    return pd.DataFrame({"drug": ["C" * (i % 9 + 1) + "O" for i in range(n)], "Protein": column, "Y": np.arange(n) / 3})


def test_a_column_of_proteins_is_read_or_left_out_by_name() -> None:
    frame, options = pairs(proteins(30)), {"targets": ["Y"], "model": "mean", "split": "random", "baseline": False}
    with pytest.raises(AmbiguousColumnError, match="Protein") as caught:
        molgraph.train(frame, **options)
    assert "--sequence Protein" in caught.value.hint and "--input drug" in caught.value.hint
    assert molgraph.train(frame, inputs=["drug"], **options).table.entities[0].name == "drug"
    (note,) = [n for n in molgraph.train(pairs(proteins(30, 25)), **options).table.notes if "Protein" in n]
    assert "looks like" in note and "--sequence" in note
    same = molgraph.train(pairs(proteins(1) * 30), **options)  # one protein for all says nothing
    drugs = molgraph.train(
        frame.assign(Protein=["C" * (i + 30) + "OCNSF" for i in range(30)]), smiles="drug", **options
    )
    assert not any("Protein" in note for note in (*same.table.notes, *drugs.table.notes))


def test_rows_without_labels_are_counted_apart(caplog: pytest.LogCaptureFixture) -> None:
    frame = pd.DataFrame({"smiles": ["C" * (i + 1) for i in range(40)], "y": [*range(30), *[np.nan] * 10]})
    with caplog.at_level(logging.INFO, logger="molgraph"):
        result = molgraph.train(frame, targets=["y"], model="mean", split="random")
    (line,) = [r.getMessage() for r in caplog.records if r.getMessage().startswith("split ")]
    card = result.model.card
    assert card.n_train + card.n_valid + card.n_test == 30
    assert f"{card.n_train} train" in line and "10 without a label" in line


@pytest.mark.parametrize(
    ("values", "warned"),
    [([10, 1000, 50, 60, 70], True), ([5.0, 8.5, 6.1, 6.0, 6.2], True), ([5.0, 5.1, 6.1, 7.0, 8.2], False)],
)
def test_values_far_apart_are_merged_with_a_warning(values: list[float], warned: bool) -> None:
    table = make_table(["CCO", "OCC", "CCN", "CCCN", "CCCCN"], targets=(Target("y"),), y=values)
    made = curate(table)
    assert bool(made.apart) is warned and made.table.y[0, 0] == np.mean(values[:2])
    assert ("--tolerance" in made.apart and f"{values[0]:g} and {values[1]:g}" in made.apart) is warned
    assert not curate(table, tolerance=0.01).apart  # such labels are out


def test_the_advice_on_decimal_commas_can_be_followed(tmp_path: Path) -> None:
    path = tmp_path / "mixed.csv"
    cells = [*(f"{i}.{i}" for i in range(1, 20)), *(f'"{i},5"' for i in range(1, 11))]
    path.write_text("smiles,y\n" + "\n".join(f"{'C' * (i + 1)}O,{cell}" for i, cell in enumerate(cells)))
    found = molgraph.audit(path, targets=["y"]).finding("decimal comma in y")
    assert len(found) == 10 and "--decimal ," in found.meaning
    assert len(molgraph.audit(path, targets=["y"], decimal=",").finding("unreadable")) == 0
    result = molgraph.train(path, targets=["y"], decimal=",", model="mean", split="random")
    assert result.table.ok.all() and result.table.y[-1, 0] == 10.5 and result.table.y[0, 0] == 1.1
    path.write_text('smiles,y\nC,1.500\nCC,"2,5"\nCCC,3.250\n')  # the points may part thousands: no advice to read them
    assert "--decimal" not in molgraph.audit(path, targets=["y"]).finding("decimal sign in y").meaning
