"""The public names are what they say at the first use and at every later one, whatever was imported in between."""

from __future__ import annotations

import inspect
import subprocess
import sys

import molgraph
import molgraph.train.model
from molgraph import api

TWICE = """
import molgraph
first = molgraph.train
assert callable(first) and molgraph.train is first
import molgraph.train.model
assert callable(molgraph.train) and molgraph.train.model.Model is not None
import molgraph.train.engine as engine
assert engine.Plan
for name in molgraph.__all__:
    assert getattr(molgraph, name) is getattr(molgraph, name), name
"""


def test_names_stay_what_they_are() -> None:
    done = subprocess.run([sys.executable, "-c", TWICE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_train_is_a_room_and_a_verb() -> None:
    assert inspect.signature(molgraph.train) == inspect.signature(api.train)
    frame = {"smiles": ["C" * n for n in range(1, 21)], "y": [float(n) for n in range(20)]}
    for _ in range(2):
        result = molgraph.train(frame, targets=["y"], model="mean", split="random")
        assert result.predict(["C"]).ok.all()
