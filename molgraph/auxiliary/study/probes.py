"""Fit linear probes of chemical concepts to each layer of a graph network, before and after its training."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import RidgeCV

from molgraph.base.ranges import LARGEST, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.chem.concepts import concepts
from molgraph.data.batch import collate
from molgraph.data.table import Table
from molgraph.nn.encoder import Encoder
from molgraph.nn.head import Head
from molgraph.study.graph_subject import graph_subject
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.train.inputs import Input, graph_of_rows, input_graphs
from molgraph.train.method import GraphMethod
from molgraph.train.runtime import torch_settings

LEAST, BATCH, TRAIN = 40, 256, 0.7  # rows; molecules of a batch; share of the rows that probes learn from
ALPHAS = np.logspace(-1, 6, 15)  # of ridge regression on standardised columns
CHANCE, CLEAR = 0.05, 0.99  # R2 of the controls


def decodability(x: np.ndarray, y: np.ndarray, seed: int = 0) -> np.ndarray:
    """float64 [concepts]: R2 of a ridge regression on rows that it has not seen, of each column of y by all of x.

    Hermann and Lampinen 2020, section 3: what a linear model on frozen activations decodes. The strength is chosen by
    the leave-one-out error on the 70% of the rows that it learns from. 0 is the mean of those rows.

    Args:
        x: float [n, d].
        y: float [n, concepts].
        seed: of the division.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(200, 3))
        >>> bool(decodability(x, x[:, :1] - x[:, 1:2]).round(3)[0] == 1)
        True
    """
    order = generator(seed, "probe").permutation(len(x))
    train, test = np.split(order, [round(TRAIN * len(x))])
    spread = x[train].std(axis=0)
    z = ((x - x[train].mean(axis=0)) / np.where(spread > 1e-9, spread, 1.0))[:, spread > 1e-9].clip(-10, 10)
    mean = y[train].mean(axis=0)
    guess = np.broadcast_to(mean, y[test].shape)
    if z.shape[1]:
        guess = RidgeCV(ALPHAS, alpha_per_target=True).fit(z[train], y[train]).predict(z[test]).reshape(len(test), -1)
    error, plain = ((y[test] - guess) ** 2).sum(axis=0), ((y[test] - mean) ** 2).sum(axis=0)
    return np.asarray(1 - error / np.maximum(plain, 1e-12))


@torch.no_grad()
def activations(
    encoder: Encoder, inputs: tuple[Input, ...], table: Table, head: Head | None = None
) -> dict[str, np.ndarray]:
    """Float64 [n, d] by layer: sums of atoms' features and of their states after each layer, the readout, the head.

    Layers between the input and the readout are those that the encoder tells (``Encoded.layers``); ``head`` is the last
    hidden layer of a perceptron that reads the readout alone.
    """
    graphs = input_graphs(table, inputs)
    rows, store = graph_of_rows(graphs)[:, 0], graphs[0].store
    pieces: dict[str, list[np.ndarray]] = {}
    for start in range(0, len(rows), BATCH):
        batch = collate(store, rows[start : start + BATCH])
        encoded = encoder.eval()(batch, rows=True)
        features = batch.features("atom").double()
        total = torch.zeros(batch.n_graphs, features.shape[1], dtype=torch.float64)
        parts = {"input": total.index_add_(0, batch.graph_of("atom"), features)}
        parts |= {f"layer {i}": states for i, states in enumerate(encoded.layers, 1)}
        parts["readout"] = h = encoded.graphs
        if head is not None:
            for layer in list(head.layers)[:-1]:
                h = head.activation(layer(h))
            parts["head"] = h
        for name, part in parts.items():
            pieces.setdefault(name, []).append(part.double().numpy())
    return {name: np.concatenate(parts) for name, parts in pieces.items()}


def hidden_layers(method: GraphMethod) -> bool:
    """Whether the head is a perceptron with hidden layers that reads the readout alone."""
    network = method.ready().network
    alone = network.level == "row" and not network.reads_atoms and not method.ready().descriptors.names
    return alone and network.has_head and len(getattr(network.head, "layers", ())) > 1


def with_concept(x: np.ndarray, concept: np.ndarray) -> np.ndarray:
    """The vectors with a concept as one more column, several times so that a ridge regression can tell it."""
    return np.concatenate([x, np.repeat(concept[:, None], max(x.shape[1], 1), axis=1)], axis=1)


@register(
    "study",
    "probes",
    summary="which chemistry the layers of a graph network hold, before and after training",
    paper="Hermann and Lampinen 2020, NeurIPS",
    systems=(
        SystemCard(
            "decodability-probes",
            left_out="images; classifiers (groups are regressed as 0 and 1); pairs of redundant planted features",
            beside=("untrained", "shuffled", "input"),
            off="probes(linear=false)",
            command="molgraph study probes builtin:chembl2321810 -m 'gin(depth=3, epochs=10)' -o probes.csv",
        ),
    ),
)
class ProbesStudy(Study):
    """R2 of linear probes for each layer and concept, for the trained network and one with fresh weights.

    Hermann and Lampinen 2020, "What Shapes Feature Representations?": much can be decoded from a network that was never
    trained; training raises what its task needs and lowers the rest. ``-m`` is a model's file, or the name of a graph
    network, which then learns the table's targets from the rows that probes learn from. ``shuffled`` has the concept in
    another order, which is chance, and ``input`` the sums of the atoms' features. Controls: a random concept that is
    appended to the last vectors, and one that is not.

    Args:
        most: rows, drawn by the seed.
        linear: whether probes are fitted; else each is the mean, and nothing is decoded.
    """

    needs = ("data", "graph_model")
    small = MappingProxyType({"most": 120})

    def __init__(self, *, most: Annotated[int, Range(LEAST, LARGEST)] = 1000, linear: bool = True) -> None:
        self.most, self.linear = most, linear

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Probe both networks."""
        end = time.process_time() + seconds
        how: dict[str, Any] = {"what": "probes", "most": self.most, "least": LEAST, "share": TRAIN}
        method, table, mols = graph_subject(subject, **how, seed=seed)
        network, inputs = method.ready().network, method.graph_inputs()
        with torch_settings(1, derive(seed, "untrained")):
            fresh: Encoder = network.makers[0]().eval()
            fresh.measure(input_graphs(table, inputs)[0].store)
            start = network.make_head(method.ready().outputs.targets) if hidden_layers(method) else None
            heads = (network.head, start) if start else (None, None)
            both = zip((network.encoder, fresh), heads, strict=True)
            trained, untrained = (activations(one, inputs, table, head) for one, head in both)
        frame = concepts(mols)
        y, rng = frame.to_numpy(), generator(seed, "shuffled")
        shuffled = rng.permutation(y)
        rows: list[tuple[Any, ...]] = []
        left = [*trained]
        raw = self._probe(trained["input"], y, seed)
        while left and (not rows or time.process_time() < end):
            layer = left.pop()  # the last first
            values = [self._probe(x, t, seed) for x, t in
                      ((trained[layer], y), (untrained[layer], y), (trained[layer], shuffled))]  # fmt: skip
            rows += [(layer, name, *scores) for name, *scores in zip(frame, *values, raw, strict=True)]
        results = pd.DataFrame(rows[::-1], columns=["layer", "concept", "trained", "untrained", "shuffled", "input"])
        top = next(reversed(trained))  # the head, or the readout
        last = results[results["layer"] == top].set_index("concept")
        change = last["trained"] - last["untrained"]
        up, down, random = change.idxmax(), change.idxmin(), rng.normal(size=(len(y), 1))
        x = trained[top]
        there = float(self._probe(with_concept(x, random[:, 0]), random, seed)[0])
        absent = float(self._probe(x, random, seed)[0])
        chance = float(results["shuffled"].mean())
        words = (
            f"Of {len(last)} concepts the {top} holds {int((last['trained'] > 0.5).sum())} (R2 above 0.5), before "
            f"training {int((last['untrained'] > 0.5).sum())}; training raised {up} most "
            f"({last['untrained'][up]:.2f} to {last['trained'][up]:.2f}) and {down} least "
            f"({last['untrained'][down]:.2f} to {last['trained'][down]:.2f}); shuffled concepts: {chance:.2f}."
        )
        return Findings(
            f"Probes of {method.model_name}, {len(y):,} molecules",
            words,
            results,
            Control("a random concept appended", f"R2 above {CLEAR}", f"{there:.3f}", there > CLEAR),
            Control("one that is not", f"R2 of {CHANCE} at most", f"{absent:.3f}", absent <= CHANCE),
            notes=(f"no time for {', '.join(left)}: give more seconds",) if left else (),
        )

    def _probe(self, x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
        return decodability(x if self.linear else x[:, :0], y, seed)
