"""``rank``: the order is by the bad end of the interval, every row is there, and the advice has its reasons."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import molgraph
from molgraph.base.errors import BadValueError
from molgraph.cli.main import app

SERIES = "builtin:chembl2321810"


@pytest.fixture(scope="module")
def result() -> molgraph.run.result.TrainingResult:
    return molgraph.train(SERIES, model="linear", split="random", fractions=(0.5, 0.2, 0.3))


@pytest.fixture(scope="module")
def ideas(result) -> pd.DataFrame:
    """The test part, a training molecule, one of it twice, and one that cannot be read; in a random order."""
    table = result.table
    new, old = table.smiles[result.split.test], table.smiles[result.split.train][0]
    smiles = [*new, old, new[0], "C(("]
    ids = [*(f"IDEA-{i}" for i in range(len(new))), "OLD", "TWICE", "BAD"]
    return pd.DataFrame({"id": ids, "smiles": smiles}).sample(frac=1, random_state=3)


@pytest.mark.parametrize("want", ["high", "low", 6.0])
def test_the_order_is_by_the_bad_end_of_the_interval_and_no_row_is_lost(result, ideas, want) -> None:
    ranked = molgraph.rank(result.model, ideas, want=want, n=5)
    name = result.model.targets[0].name
    assert sorted(ranked["id"]) == sorted(ideas["id"]) and ranked["rank"].tolist() == [*range(1, len(ideas) + 1)]
    low, high = (ranked[f"{name}_{end}"].to_numpy()[:-1] for end in ("low", "high"))
    bad = {"high": -low, "low": high}.get(want, np.maximum(np.abs(low - 6), np.abs(high - 6)))
    assert (np.diff(bad) >= 0).all() and ranked["id"].iloc[-1] == "BAD" and "Parse" in ranked["why"].iloc[-1]
    advised = ranked[ranked["advice"] != ""]
    assert advised["advice"].value_counts().to_dict() == {"make": 5, "measure": 5}
    assert not {"OLD", "BAD"} & {*advised["id"]} and len({"TWICE", "IDEA-0"} & {*advised["id"]}) <= 1
    rows = ranked.set_index("id")
    assert "learnt from" in rows.loc["OLD", "why"] and rows.loc["OLD", "nearest"] and rows.loc["OLD", "nearest_id"]
    assert sorted("the molecule of" in rows.loc[each, "why"] for each in ("TWICE", "IDEA-0")) == [False, True]
    made = ranked[ranked["advice"] == "make"]
    assert (made["domain"] != "outside").all() and "bad end" in made["why"].iloc[0]


def test_logarithms_come_in_the_unit_of_the_values_too(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = molgraph.read_table(SERIES)
    pd.DataFrame({"smiles": table.smiles, "Ki": 10.0 ** table.y[:, 0]})[:200].to_csv("a.csv", index=False)
    made = molgraph.train("a.csv", targets=["Ki"], log=True, model="linear", split="random")
    made.save("m.mgm")
    pd.DataFrame({"Compound": ["A", "B"], "smiles": ["CCO", "c1ccccc1O"]}).to_csv("b.csv", index=False)
    call = ["rank", "m.mgm", "b.csv", "--id", "Compound", "--want", "low", "-n", "1", "-o", "list.xlsx"]
    done = CliRunner().invoke(app, call, prog_name="molgraph")
    assert done.exit_code == 0, done.output
    frame = pd.read_excel("list.xlsx")
    assert {*frame["id"]} == {"A", "B"} and np.allclose(np.log10(frame["Ki"]), frame["log10_Ki"])
    near = [
        molgraph.rank("m.mgm", "b.csv", want=value, target="Ki", n=1, id="Compound")["id"][0] for value in frame["Ki"]
    ]
    assert near == frame["id"].tolist()


def test_an_aim_that_no_target_has_is_refused(result) -> None:
    for how in ({"want": "best"}, {"target": "pKi"}):
        with pytest.raises(BadValueError, match=r"want|target"):
            molgraph.rank(result.model, ["CCO"], **how)
