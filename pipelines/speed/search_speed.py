"""Time sampling of the language model without its savings, and the share of a search that is its oracle.

The peer of sampling is how the model drew before: in single precision, every text computed on until the longest of its
128 has ended. The share of a search is that of its wall time that is spent inside an oracle of 10 ms a molecule.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import torch
from timing import cpu_seconds, in_turn

import molgraph
from molgraph.base.seeds import generator
from molgraph.generate.next_token import draw_codes
from molgraph.generate.oracles.calls import OracleCalls
from molgraph.generate.oracles.oracle import FunctionOracle
from molgraph.generate.oracles.read_oracle import read_oracle
from molgraph.generate.run_search import run_search
from molgraph.generate.searches.search import make_search
from molgraph.train.runtime import torch_settings

DRAWS, BLOCK, ROUNDS, BUDGET, ORACLE = 1_024, 128, 5, 512, 0.01
SEARCHES = ("graph-ga", "reinvent", "genetic-gfn")


def search_speed() -> dict[str, dict[str, Any]]:
    """Rows of sampling and of searches."""
    return {**sampling(), **{f"{name}: share of wall time in the oracle": share(name) for name in SEARCHES}}


def sampling() -> dict[str, dict[str, Any]]:
    """Texts a second of one core."""
    model = molgraph.load("prior", threads=1).method
    assert model.fitted is not None
    network = model.fitted.network

    def before() -> None:
        with torch_settings(1), torch.inference_mode():
            for start in range(0, DRAWS, BLOCK):
                draw_codes(network, generator(0, "sample", start // BLOCK).random((BLOCK, model.max_length)), 1.0)

    own, peer = in_turn([partial(model.sample, DRAWS), before], ROUNDS, cpu_seconds)
    row = {"molgraph": DRAWS / own, "peer": DRAWS / peer, "peer_name": "every text to the end of the longest, float32"}
    return {"sampling of the language model, one core": {**row, "unit": "texts/s", "ratio": peer / own, "floor": 3.0}}


def share(name: str) -> dict[str, Any]:
    """The wall time in the oracle as a share of all."""
    spent: list[float] = []

    def slow(smiles: str) -> float:
        start = time.perf_counter()
        time.sleep(ORACLE)
        spent.append(time.perf_counter() - start)
        return float(np.clip(len(smiles) / 60, 0, 1))

    search = make_search(name)
    loaded = molgraph.load(search.default_model) if search.default_model else None
    start = time.perf_counter()
    calls = OracleCalls(read_oracle(FunctionOracle(slow, "slow")), BUDGET)
    run_search(None if loaded is None else loaded.method, calls, search)
    whole, inside = time.perf_counter() - start, sum(spent)
    row = {"molgraph": len(calls.scored) / whole, "peer": len(calls.scored) / inside, "peer_name": "the oracle alone"}
    return {**row, "unit": "molecules/s", "ratio": inside / whole, "floor": 0.9}
