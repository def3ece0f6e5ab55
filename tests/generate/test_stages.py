"""Oracles in stages: parts that come in one after another, counted and resumed as one search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from molgraph import optimise
from molgraph.base import errors
from molgraph.generate.oracles.oracle import FunctionOracle
from molgraph.generate.oracles.read_oracle import read_oracle
from molgraph.generate.oracles.stages import Staged

ASKED: list[str] = []


def letters(smiles: str) -> float:
    """A slow oracle that notes what it is asked."""
    ASKED.append(smiles)
    return float(len(smiles))


def stages() -> dict[str, Any]:
    slow = {"letters": {"oracle": FunctionOracle(letters, "letters", version="1"), "transform": "ramp(0, 60)"}}
    first = {"oracle": "qed,sa=reverse_ramp(1,6)", "until": 0.62, "calls": 30}
    return {"combine": "product", "stage": [first, {"oracle": slow}]}


def searched(journal: Path | None = None, budget: int = 60) -> pd.DataFrame:
    how: dict[str, Any] = {"search": "graph-ga(population=10, initial=10)", "batch": 10, "compare": False, "seed": 1}
    found = optimise(oracle=stages(), budget=budget, start="CC(=O)Nc1ccc(O)cc1", journal=journal, **how)
    assert any("a stage ended" in note for note in found.notes)
    return found.to_frame()


def test_parts_come_in_one_after_another_and_all_calls_count() -> None:
    ASKED.clear()
    frame = searched()
    one, two = (frame[frame["stage"] == number] for number in (1, 2))
    assert len(two) and sorted(ASKED) == sorted(two["smiles"]), "the second stage's part is asked in that stage alone"
    assert frame["call"].is_unique and frame["call"].max() == 60 and one["call"].max() < two["call"].max()
    assert (
        one["letters"].isna().all() and (one["reason"] == "scored in stage 1 alone").all() and one["qed"].notna().all()
    )
    assert (two["reason"] == "").all() and frame["stage"].tolist() == [2] * len(two) + [1] * len(one)
    three = np.stack([two["qed"], np.clip((6 - two["sa"]) / 5, 0, 1), np.clip(two["letters"] / 60, 0, 1)])
    assert np.allclose(two["objective"], three.prod(axis=0) ** (1 / 3))
    again = len(frame["smiles"]) + 10 - 60
    assert frame["smiles"].is_unique and 0 <= again <= 10, "at most a batch was scored in both stages"


def test_a_search_in_stages_goes_on_exactly(tmp_path: Path) -> None:
    whole, journal = searched(tmp_path / "a"), tmp_path / "b"
    lines = (tmp_path / "a").read_text().splitlines()
    assert len(lines) == 61
    for kept in (8, 33, 58):
        journal.write_text("\n".join([*lines[: kept + 1], '{"smiles": "CC']) + "\n")
        pd.testing.assert_frame_equal(searched(journal), whole)
        assert sorted(journal.read_text().splitlines()) == sorted(lines)


@pytest.mark.parametrize(
    ("tables", "kind", "words"),
    [
        ([{"oracle": "qed"}, {"oracle": "sa<4"}], errors.MissingOptionError, "stage 1 has no end"),
        ([{"oracle": "qed", "calls": 5}, {}], errors.MissingOptionError, "stage 2 has no oracle"),
        ([{"oracle": "qed", "untl": 5}], errors.UnknownNameError, "untl"),
        ([{"oracle": "qed", "calls": 5}], errors.BadValueError, "last stage"),
        ([{"oracle": "product(qed)", "calls": 5}, {"oracle": "sa<4"}], errors.ConflictError, "product"),
    ],
)
def test_stages_that_make_no_sense(tables: Any, kind: type[errors.UsageError], words: str) -> None:
    with pytest.raises(kind, match=words):
        read_oracle({"stage": tables})


def test_stages_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "o.toml").write_text(
        "[[stage]]\nuntil = 0.5\ncalls = 100\n[stage.oracle.qed]\nweight = 2\n\n"
        '[[stage]]\noracle = "sa<4,logp=window(1,3)"\n'
    )
    found = read_oracle(tmp_path / "o.toml")
    assert isinstance(found, Staged) and found.words == "qed:2 then qed:2,sa<4,logp=window(1,3)"
    assert found.rules[0].until == 0.5 and found.rules[0].calls == 100 and found.content
