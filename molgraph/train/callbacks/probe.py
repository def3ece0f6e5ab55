"""Probe an encoder while it is pretrained: ridge regression on its frozen vectors of named sets, after each epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Count
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.chem.scaffold import scaffolds
from molgraph.data.batch import collate
from molgraph.data.cards import card
from molgraph.data.datasets import load_dataset
from molgraph.data.graph_store import GraphStore
from molgraph.data.table import OK
from molgraph.nn.encoder import Encoder
from molgraph.train.callback import Callback

BATCH = 512
FOLDS = 5
ALPHAS = np.logspace(-1, 5, 13)
FAR = {"a_min": -5.0, "a_max": 5.0}  # deviations, beyond which one odd molecule would be all of the score


class ProbeSet(NamedTuple):
    """A set's graphs and which of them are read, their labels of one target, scaffolds, and if labels are classes."""

    graphs: GraphStore
    rows: np.ndarray
    y: np.ndarray
    scaffolds: np.ndarray
    binary: bool


@register(
    "callback",
    "probe",
    summary="ridge on the frozen vectors of named sets after each epoch, the untrained encoder beside it",
    paper="Alain and Bengio 2016",
)
class Probe(Callback):
    """Say by numbers whether a pretraining learns what a property needs.

    Alain and Bengio 2016, "Understanding intermediate layers using linear classifier probes": after each epoch a ridge
    regression on the encoder's vectors predicts the first target of each set, five folds of new scaffolds. Its penalty
    is chosen by leave-one-out in the training folds, and columns are cut off at five deviations. The curves have
    ``probe_SET``, R^2 or for two classes the ROC-AUC, and ``untrained_SET``, the same of the encoder with fresh
    weights. Training is not changed.

    Args:
        sets: data sets by name, joined by ``+``.
        rows: of each set at most, drawn at random.

    Raises:
        UnknownNameError: no data set of that name.
        UnsupportedError: the network reads several columns.
    """

    changes_training = False

    def __init__(self, *, sets: str = "chembl2321810", rows: Count = 1_500) -> None:
        super().__init__()
        self.sets, self.rows = sets.split("+"), rows
        for name in self.sets:
            card(name)
        self._ready: dict[str, ProbeSet] = {}
        self._untrained: dict[str, float] = {}

    def after_epoch(self, network: Any) -> Mapping[str, float]:
        """The scores of the encoder, and of an untrained one."""
        if not self._ready:
            self._ready = dict(self._read(network))
            with torch.random.fork_rng():
                torch.manual_seed(0)
                fresh = network.makers[0]().to(next(network.parameters()).device)
            self._untrained = {f"untrained_{name}": score(fresh, probe) for name, probe in self._ready.items()}
        return {f"probe_{name}": score(network.encoder, probe) for name, probe in self._ready.items()} | self._untrained

    def _read(self, network: Any) -> Iterator[tuple[str, ProbeSet]]:
        if len(network.inputs) != 1 or network.inputs[0].kind != "molecule":
            words = "a probe needs an encoder of one column of molecules"
            raise UnsupportedError(words, hint="leave the callback probe out")
        input_ = network.inputs[0]
        for name in self.sets:
            table = load_dataset(name).table
            y = np.asarray(table.y, dtype=float)[:, 0]
            rows = np.flatnonzero(table.ok & np.isfinite(y))
            rows = np.sort(generator(0, "probe", name).permutation(rows)[: self.rows])
            smiles = [str(text) for text in table.take(rows).smiles]
            store = input_.featuriser.featurise(smiles, spec=input_.spec)
            fine = np.flatnonzero(store.status == OK)
            keys = np.array(scaffolds([smiles[i] for i in fine]).values)
            yield name, ProbeSet(store, fine, y[rows][fine], keys, table.targets[0].kind == "binary")


def score(encoder: Encoder, each: ProbeSet) -> float:
    """R^2 or ROC-AUC of ridge on the encoder's vectors, over five folds of new scaffolds."""
    x, binary = vectors(encoder, each.graphs, each.rows), each.binary
    ridge = make_pipeline(StandardScaler(), FunctionTransformer(np.clip, kw_args=FAR), RidgeCV(ALPHAS))
    folds = GroupKFold(min(FOLDS, len(np.unique(each.scaffolds))))
    predicted = cross_val_predict(ridge, x, each.y, groups=each.scaffolds, cv=folds)
    return float(roc_auc_score(each.y, predicted) if binary else r2_score(each.y, predicted))


@torch.no_grad()
def vectors(encoder: Encoder, graphs: GraphStore, rows: np.ndarray) -> np.ndarray:
    """float64 [n, d]: the states of some graphs, from an encoder that is left in the mode it was in."""
    mode, parts, device = encoder.training, [], next(encoder.parameters()).device
    encoder.eval()
    for first in range(0, len(rows), BATCH):
        batch = collate(graphs, rows[first : first + BATCH]).to(device)
        encoder.prepare(batch)
        parts.append(encoder(batch).graphs.double().cpu().numpy())
    encoder.train(mode)
    return np.concatenate(parts)
