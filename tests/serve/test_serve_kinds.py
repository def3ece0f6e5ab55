"""Models that read several columns, or predict values of atoms, answer in the same form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import molgraph
from tests.tiny import SMALL

pytest.importorskip("fastapi")
from molgraph.serve import answers
from molgraph.serve.calls import Call

OPTIONS = SMALL["params"] | {"descriptors": "none"}


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """A model of two columns and one of atoms, loaded in this process."""
    folder = tmp_path_factory.mktemp("kinds")
    rows = [("C" * n + "O", [0.1 * n] * n + [-1.0], n % 7) for n in range(1, 31)]
    frame = {"smiles": [s for s, _, _ in rows], "charge": [json.dumps(q) for _, q, _ in rows]}
    frame |= {"x": [str(n) for n in range(30)], "y": [y for *_, y in rows]}
    brief = {"epochs": 1, "split": "random", "baseline": False}
    models = {
        "atoms": molgraph.train(frame, smiles="smiles", targets=["charge:atom"], params=OPTIONS, **brief),
        "both": molgraph.train(frame, targets=["y"], features=["x"], model="linear", split="random", baseline=False),
    }
    paths = {name: str(Path(made.model.save(folder / f"{name}.mgm"))) for name, made in models.items()}
    return answers.prepare({"models": paths, "running": {"threads": 1}, "measured": None, "explain": "auto"})


def rows(model: str, **given: Any) -> tuple[int, Any]:
    (reply,) = answers.answer([Call("predict", model, given)])
    return reply.status, json.loads(b"[%b]" % reply.body)


def test_values_of_atoms_are_lists(described: list[dict[str, Any]]) -> None:
    status, (one, other) = rows("atoms", smiles=["CCO", "C(C"])
    assert status == 200 and len(one["charge"]) == 3 and (other["charge"], other["status"]) == (None, "unreadable")
    assert [model["explainer"] for model in described] == ["", ""]


def test_a_model_of_several_columns_asks_for_them(described: list[dict[str, Any]]) -> None:
    assert [each["column"] for each in described[1]["reads"]] == ["smiles", "x"]
    status, (said,) = rows("both", smiles=["CCO"])
    assert status == 422 and "smiles (molecule), x (number)" in said["error"]["message"]
    status, found = rows("both", columns={"x": ["1", 2.5, None], "smiles": ["CCO", "CC", "CN"], "id": ["a", "b", "c"]})
    assert status == 200 and [(row["id"], row["status"]) for row in found] == [
        ("a", "ok"),
        ("b", "ok"),
        ("c", "missing"),
    ]
