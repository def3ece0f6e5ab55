"""Pretrain a GIN by arch2vec on molecules without labels, and compare its vectors with those of a supervised GIN.

    MOLGRAPH_DATA=... python pipelines/arch2vec/run.py      # writes results.json and RESULTS.md beside it

Two expectations of Yan et al. 2020 (NeurIPS): distances between the vectors follow the similarity of molecules better
than those of an encoder that was trained for a property, and Bayesian optimisation on the frozen vectors finds one of
the best molecules of a pool in fewer queries than chance. The supervised encoder learned logP of the same molecules.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.stats import spearmanr

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

import molgraph  # noqa: E402
from molgraph.base.contracts import Target  # noqa: E402
from molgraph.base.paths import atomic_write  # noqa: E402
from molgraph.base.prediction import Prediction  # noqa: E402
from molgraph.chem.fingerprints import morgan  # noqa: E402
from molgraph.chem.quality import measure  # noqa: E402
from molgraph.chem.tanimoto import tanimoto  # noqa: E402
from molgraph.data.datasets import load_dataset  # noqa: E402
from molgraph.data.table import make_table  # noqa: E402
from molgraph.train.model import Model  # noqa: E402
from pipelines.arch2vec.pool_search import search_pool  # noqa: E402

TRAINED, HELD, PAIRS = 10_000, 2_000, 1_000
POOL, BEST, RUNS = 1_000, 10, 20
PARAMS: dict[str, Any] = {"d_hidden": 64, "depth": 4}
HOW: dict[str, Any] = {"model": "gin", "epochs": 5, "threads": 1, "split": "random", "fractions": (0.95, 0.05, 0.0)}


class Reached(Exception):
    """One of the pool's best molecules has been asked for."""


def encoders(smiles: list[str]) -> dict[str, Model]:
    """Three of one shape: without labels, supervised by logP, and untrained."""
    logp = measure("logp", smiles).value[:, None]
    table = make_table(smiles, targets=(Target("logp"),), y=logp)
    untrained = {**HOW, "epochs": 1, "learning_rate": 1e-12}
    return {
        "arch2vec": molgraph.pretrain(smiles, objective="arch2vec", params=PARAMS, **HOW),
        "supervised by logP": molgraph.train(table, params=PARAMS, baseline=False, **HOW).model,
        "untrained": molgraph.pretrain(smiles, objective="arch2vec", params=PARAMS, **untrained),
    }


def vectors_of(model: Model, smiles: list[str]) -> np.ndarray:
    """The encoder's vector of each molecule."""
    found = molgraph.embed(model, smiles)
    assert isinstance(found, Prediction)
    return found.value


def agreement(vectors: np.ndarray, prints: np.ndarray, distance: str) -> float:
    """Spearman correlation of the distance of vectors with the Tanimoto distance, over pairs of row i and row i + n."""
    x, y = vectors[:PAIRS], vectors[PAIRS:]
    if distance == "cosine":
        x, y = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (x, y))
    apart = 1 - np.array([tanimoto(prints[[i]], prints[[i + PAIRS]])[0, 0] for i in range(PAIRS)])
    return float(spearmanr(np.linalg.norm(x - y, axis=1), apart)[0])


def queries(vectors: np.ndarray, value: np.ndarray, how: Literal["bayesian", "random"], seed: int) -> int:
    """How many molecules of the pool are asked for until one of the best has been."""
    top, asked = np.sort(value)[-BEST], 0

    def oracle(row: int) -> float:
        nonlocal asked
        asked += 1
        if value[row] >= top:
            raise Reached
        return float(value[row])

    try:
        search_pool(vectors, oracle, len(value), how=how, seed=seed)
    except Reached:
        return asked
    raise AssertionError("a search of the whole pool meets its best molecules")


def page(found: dict[str, Any]) -> str:
    """The results as markdown."""
    lines = ["# arch2vec: vectors of molecules learned without labels", ""]
    lines += ["Written by `python pipelines/arch2vec/run.py`. GINs of one shape, trained on the same "]
    lines[-1] += f"{TRAINED:,} molecules of ZINC-250k for {HOW['epochs']} epochs."
    lines += ["", f"Spearman correlation with Tanimoto distance, {PAIRS:,} held-out pairs:", ""]
    lines += ["| encoder | Euclidean distance | cosine distance |", "|---|---|---|"]
    lines += [f"| {name} | {each['euclidean']} | {each['cosine']} |" for name, each in found["spearman"].items()]
    lines += ["", f"Queries until one of the {BEST} most soluble of {POOL:,} molecules of ESOL, {RUNS} runs:", ""]
    lines += ["| search | median | quartiles |", "|---|---|---|"]
    for name, each in found["queries"].items():
        low, median, high = (float(q) for q in np.percentile(each, [25, 50, 75]))
        lines += [f"| {name} | {median:g} | {low:g} to {high:g} |"]
    return "\n".join([*lines, ""])


def main() -> None:
    table = load_dataset("zinc250k").table
    pick = np.random.default_rng(0).permutation(len(table))[: TRAINED + HELD]
    smiles = [str(text).strip() for text in table.smiles[pick]]
    esol = load_dataset("esol").table
    pool = esol.take(np.random.default_rng(1).permutation(len(esol))[:POOL])
    assert pool.y is not None
    value, prints = pool.y[:, 0], morgan(smiles[TRAINED:]).x
    found: dict[str, Any] = {"spearman": {}, "queries": {}}
    for name, model in encoders(smiles[:TRAINED]).items():
        held = vectors_of(model, smiles[TRAINED:])
        found["spearman"][name] = {each: round(agreement(held, prints, each), 3) for each in ("euclidean", "cosine")}
        print(name, found["spearman"][name], flush=True)
        vectors = vectors_of(model, pool.smiles.tolist())
        found["queries"][f"Bayesian, {name}"] = [queries(vectors, value, "bayesian", seed) for seed in range(RUNS)]
        print(name, found["queries"][f"Bayesian, {name}"], flush=True)
    found["queries"]["random"] = [queries(np.zeros((POOL, 1)), value, "random", seed) for seed in range(RUNS)]
    for file_name, text in (("results.json", json.dumps(found, indent=1) + "\n"), ("RESULTS.md", page(found))):
        with atomic_write(HERE / file_name, "w") as file:
            file.write(text)
    print(page(found))


if __name__ == "__main__":
    main()
