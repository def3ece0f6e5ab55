"""Write the golden model files and graph stores of this version that are not there yet; none is ever written again.

python -m tests.golden.make

``0.1.0-store-without-index`` was written by commit 673ca24, of the standardised questions: its stores hold molecules
and do not say which arrays are row numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import molgraph
from molgraph.base.contracts import Generator, PredictsGraphs, Target
from molgraph.base.packed import Packed
from molgraph.chem.atom_order import kinds_of
from molgraph.data.graph_cache import graphs_of, save_store
from molgraph.data.graph_values import Graph
from molgraph.data.table import Entities, Table, make_table
from molgraph.train.card import ModelCard
from molgraph.train.make_method import make_method
from molgraph.train.model import Model
from tests.tiny import SMALL, mixed, series

FOLDER = Path(__file__).parent
QUESTIONS = ("CCO", "CC(=O)Oc1ccccc1C(=O)O", "C[N+](C)(C)CCO", "CC(=O)[O-].[Na+]", "[2H]C", "[Fe]", "oops", "")
PROTEINS = ("MKTAYIAKQRQISFVKSHFSRQ", "GIVEQCCTSICSLYQLENYCN", "mkt ay*", "X", "ACDEFGHIKLMNPQRSTVWY", "MKJ", "MK", "")
METHODS = {
    "dmpnn": ("dmpnn", {"d_hidden": 8, **{k: v for k, v in SMALL.items() if k != "params"}}),
    "mpnn": ("mpnn", {"d_hidden": 8, "d_edge": 8, **{k: v for k, v in SMALL.items() if k != "params"}}),
    "forest": ("random_forest", {"n_estimators": 3, "n_bits": 64}),
    "mean": ("mean", {}),
    "knn": ("knn", {"n_bits": 64}),
    "linear": ("linear", {"n_bits": 64}),
    "svm": ("svm", {"n_bits": 64}),
    "gp": ("gp", {"n_bits": 64, "steps": 5}),
    "xgboost": ("xgboost", {"n_estimators": 3, "max_depth": 3, "n_bits": 64}),
    "maplight": ("maplight", {"iterations": 3, "depth": 3, "n_bits": 64}),
    "ensemble": ("ensemble", {"method": "dmpnn", "n": 2, "params": {"d_hidden": 4, "head_width": 4, "epochs": 1}}),
    "charges": ("dmpnn", {"d_hidden": 8, "head_width": 8, "epochs": 2}),
    "graphs": ("gin", {"d_hidden": 8, "head_width": 8, "epochs": 2}),
}


def charges(n: int = 48) -> Table:
    """Molecules with a number for each atom."""
    table, target = series(n), Target("charge", level="atom")
    lists = [kinds_of(text, "atom") / 10 + 0.01 * len(text) for text in table.smiles]
    return replace(table, targets=(target,), y=None, packed={"charge": Packed.of(lists)})


def graph(n: int, highest: int = 2) -> Graph:
    """A ring of n nodes with labels of nodes and features of edges."""
    a, b = np.arange(n), (np.arange(n) + 1) % n
    edges = np.unique(np.concatenate([np.stack([a, b], 1), np.stack([b, a], 1)]), axis=0)
    return Graph(n, edges, node_label=np.minimum(a, highest), edge_features=edges / n)


GRAPHS = (graph(3), graph(5), graph(8), graph(4, 9), replace(graph(4), n_nodes=3), graph(12), graph(30), None)


def graphs(values: tuple[Any, ...] = tuple(graph(n) for n in range(3, 27))) -> Table:
    """A table of graphs with a number each."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    table = make_table(["C"] * len(values), targets=(Target("y"),), y=np.arange(len(values)) / 10)
    return replace(table, entities=(Entities("graph", "graph", column),))


TABLES: dict[str, Callable[[], Table]] = {"dmpnn": mixed, "charges": charges, "graphs": graphs}


def pair() -> Model:
    """Molecules and proteins, an encoder for each."""
    table = series(48)
    columns = {"drug": table.smiles, "protein": [PROTEINS[i % 2] for i in range(48)], "y": table.y[:, 0]}
    params = {"dmpnn.d_hidden": 8, "deepdta.n_filters": 4, "deepdta.d_embed": 8, "head_width": 8}
    asked = {"smiles": "drug", "sequence": "protein", "targets": ["y"], "split": "random", "baseline": False}
    return molgraph.train(columns, **asked, model="dmpnn+deepdta", params=params, epochs=2).model


def encoder() -> Model:
    """A pretrained encoder without a head."""
    return molgraph.pretrain(series(48), model="dmpnn", params={"d_hidden": 8}, epochs=2)


def generator() -> Model:
    """A language model of SMILES."""
    params = {"d_embedding": 8, "d_hidden": 16, "max_length": 80, "temperature": 0.5}
    return molgraph.train_generator(series(48), params=params, batch_size=16, epochs=2)


OTHERS: dict[str, Callable[[], Model]] = {"pair": pair, "encoder": encoder, "generator": generator}


def main() -> None:
    """Train each small model, save it, and write down what it answers; save the graphs of the questions on graphs."""
    answered = FOLDER / f"{molgraph.__version__}.json"
    expected = json.loads(answered.read_text()) if answered.exists() else {}
    for name in (*METHODS, *OTHERS):
        path = FOLDER / f"{molgraph.__version__}-{name}.mgm"
        if not path.exists():
            model = OTHERS[name]() if name in OTHERS else fitted(name)
            model.save(path)
            expected[path.name] = answers(model)
    answered.write_text(json.dumps(expected, indent=1) + "\n")
    place = FOLDER / f"{molgraph.__version__}-store-graphs"
    if not place.exists():
        each = molgraph.load(FOLDER / f"{molgraph.__version__}-graphs.mgm").method.graph_inputs()[0]
        table = graphs(GRAPHS)
        save_store(graphs_of(table, table.entities[0], each.featuriser, spec=each.spec).store, place)


def fitted(name: str) -> Model:
    """The model of a method of ``METHODS``."""
    method, params = METHODS[name]
    table = TABLES.get(name, lambda: series(48))()
    return Model(
        make_method(method, **params).fit(table),
        targets=table.targets,
        feature_names=table.feature_names,
        card=ModelCard(name=method, what="a golden file", n_train=len(table)),
    )


def questions(model: Model) -> Table:
    """The questions in the columns that a model reads."""
    n = len(model.feature_names)
    features = np.linspace(-1, 1, len(QUESTIONS) * n).reshape(-1, n) if n else None
    table = make_table(QUESTIONS, features=features, feature_names=model.feature_names)
    inputs = model.method.graph_inputs() if isinstance(model.method, PredictsGraphs) else ()
    if [each.kind for each in inputs] in ([], ["molecule"]):
        return table
    if inputs[0].kind == "graph":
        return replace(graphs(GRAPHS), targets=(), y=None)
    proteins = np.array(PROTEINS, dtype=object)
    return replace(table, entities=(*table.entities, Entities("protein", "sequence", proteins)))


def answers(model: Model) -> list[Any]:
    """The model's values for the questions, None where there is none; of a generator its samples."""
    if isinstance(model.method, Generator):
        return model.method.sample(20)
    ask = model.predict_table if model.method.predicts else lambda table: molgraph.embed(model, table)
    prediction = ask(questions(model))
    rows = [list(row) for row in prediction.value]
    for packed in prediction.packed.values():
        rows = [[*row, *own] for row, own in zip(rows, packed.lists(), strict=True)]
    return [[None if np.isnan(v) else float(v) for v in row] for row in rows]


if __name__ == "__main__":
    main()
