"""The way from a messy table to a kept model, in the commands of docs/tables.md."""

from __future__ import annotations

import csv
import random
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem

import molgraph as mg
from molgraph.data.sources.builtin import chembl2321810
from tests.end_to_end.conftest import Run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tables.md"
HEAD = ["Compound", "SMILES", "IC50", "units", "Active", "Lab book", "Comment"]
QUICK = ("--epochs", "2", "-s", "params.d_hidden=16", "--threads", "1")  # the page's commands, sooner done


def story() -> list[list[str]]:
    """The words of each command of the page's section, without ``molgraph``."""
    page = PAGE.read_text("utf-8").split("## A messy table, from start to finish\n")[1]
    lines = page.split("```bash\n")[1].split("```")[0].splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines]


def comma(value: float) -> str:
    """A number as a spreadsheet of many countries writes it."""
    return f"{value:.6g}".replace(".", ",")


def messy_rows(n: int, random: random.Random) -> list[list[str]]:
    """Measured molecules with IC50 in two units, bounds, salts, and rows of what else tables hold."""
    frame = chembl2321810().to_frame().sample(n, random_state=0)
    rows = []
    for i, (smiles, activity) in enumerate(zip(frame["smiles"], frame["pActivity"], strict=True)):
        micro, bound, salt = i % 5 == 0, i % 23 == 7, i % 11 == 3
        value = 10 ** (9 - activity - 3 * micro)
        active = "Y" if activity > 6.8 else "N"
        own = [f"LB-{i % 9}/{i:03d}", 'said "weak"; repeat' if i % 7 == 0 else "ok, plate 2"]
        cell = f">{comma(value)}" if bound else comma(value)
        rows.append([f"{i:04d}", smiles + ".Cl" * salt, cell, "µM" if micro else "nM", active, *own])
    for i in (1, 2, 31, 41):  # measured again: the other unit, another way to write the molecule, 20% more
        smiles = Chem.MolToRandomSmilesVect(Chem.MolFromSmiles(rows[i][1]), 1, randomSeed=5)[0]
        value = 1.2 * float(rows[i][2].replace(",", ".")) / 1000
        rows.append([f"again {i}", smiles, comma(value), "uM", *rows[i][4:]])
    rows.append(["contradicts 4", rows[4][1], rows[4][2], rows[4][3], "YN"[rows[4][4] == "Y"], "", ""])
    rows += [
        [f"bad {i}", text, "12,5", "nM", "N", "", ""] for i, text in enumerate(["C1CC", "n.d.", "", "[Na+].[Cl-]"])
    ]
    rows += [["empty", "CCCCO", "", "nM", "N", "", "not measured"]]
    random.shuffle(rows)
    return rows


def write(path: Path, rows: list[list[str]], head: list[str]) -> pd.DataFrame:
    """Rows as a spreadsheet saves them: ``;`` between columns, a byte-order mark; and as they will be read."""
    with open(path, "w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file, delimiter=";").writerows([head, *rows])
    return pd.DataFrame(rows, columns=head)


@pytest.fixture
def raw(tmp_path: Path) -> dict[str, pd.DataFrame]:
    """The tables that the story begins with."""
    rows = messy_rows(190, random.Random(0))
    made = {"messy.csv": write(tmp_path / "messy.csv", rows[:150], HEAD)}
    made["later.csv"] = write(tmp_path / "later.csv", rows[150:], HEAD)
    library = [[row[0], row[1], row[2], row[5]] for row in rows[-25:]] + [["bad 9", "not a molecule", "", "shelf 3"]]
    return made | {"library.csv": write(tmp_path / "library.csv", library, ["Compound", "SMILES", "IC50", "Lab book"])}


@pytest.mark.slow
def test_the_readmes_story(run: Run, raw: dict[str, pd.DataFrame], tmp_path: Path) -> None:
    said: dict[str, str] = {}
    for words in story():
        quick = QUICK if words[0] == "train" else ()
        done = run(*words, *quick)
        assert done.returncode == 0, (words, done.stderr)
        said[" ".join(words)] = done.stdout + done.stderr
    messy, library = raw["messy.csv"], raw["library.csv"]
    _check_the_clean_table(messy, tmp_path)
    assert all((tmp_path / name).is_file() for name in ("ic50.mgm", "ic50.baseline.mgm", "later.html"))
    best = mg.load(tmp_path / "best.mgm")
    assert best.name in ("dmpnn", "random_forest") and not (tmp_path / "best.baseline.mgm").exists()
    assert any("is kept: RMSE" in note for note in best.card.notes) and best.card.units == {"log10_IC50": "log10(nM)"}
    assert mg.load(tmp_path / "active.mgm").targets[0].kind == "binary"
    (evaluated,) = (text for words, text in said.items() if words.startswith("evaluate"))
    scores = {row["metric"]: row["value"] for row in best.card.scores}
    assert f"{scores['rmse']:.3f}" in evaluated, "evaluate reads later.csv as train --test did"
    predicted = pd.read_csv(tmp_path / "predicted.csv", dtype=str, keep_default_na=False)
    assert predicted[list(library)].equals(library)  # the user's columns, verbatim
    good = predicted["status"] == "ok"
    assert predicted.loc[~good, "reason"].ne("").all() and predicted.loc[good, "log10_IC50"].ne("").all()
    assert predicted["Compound"].iloc[-1] == "bad 9" and not good.iloc[-1]
    assert (tmp_path / "predicted.sdf").read_text("utf-8").count("$$$$") == len(library)


def _check_the_clean_table(messy: pd.DataFrame, folder: Path) -> None:
    """One row a molecule, in nM; the user's columns as they stood; a reason for every row that went."""
    clean, why = (pd.read_csv(folder / name, dtype=str, keep_default_na=False) for name in ("clean.csv", "why.csv"))
    assert list(clean.columns) == HEAD and set(clean["units"]) == {"nM"}
    assert set(why.loc[why["action"].isin(["out", "merged"]), "row"].astype(int)) == {
        row + 1 for row, name in enumerate(messy["Compound"]) if name not in set(clean["Compound"])
    }
    expected = {"unreadable", "replicate", "no label", "no molecule"}
    assert why["reason"].ne("").all() and expected <= {reason.split(";")[0] for reason in why["reason"]}
    kept = messy.set_index("Compound").loc[clean["Compound"]].reset_index()
    own = ["Compound", "Active", "Lab book", "Comment"]
    assert clean[own].equals(kept[own])
    factor = kept["units"].map({"nM": 1.0, "uM": 1e3, "µM": 1e3})
    alone = ~kept["IC50"].str.startswith(">")
    expected = kept["IC50"].str.replace(",", ".").str.lstrip(">").astype(float) * factor
    given, right = clean["IC50"].astype(float)[alone], expected[alone]
    merged = clean.index[alone].isin(clean.index[clean["Compound"].isin(_merged_into(why, messy))])
    assert np.allclose(given[~merged], right[~merged], rtol=1e-9) and not np.allclose(given[merged], right[merged])


def _merged_into(why: pd.DataFrame, messy: pd.DataFrame) -> set[str]:
    """Names of the rows that other rows were merged into."""
    rows = why.loc[why["action"] == "merged", "kept_row"].astype(int)
    return set(messy["Compound"].iloc[rows - 1])
