"""DeepChem's own torch models, trained by DeepChem's own loop, as a method."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from molgraph.auxiliary.peers.groups import Group, PeerMethod, PeerRows, Width
from molgraph.base.optional import need
from molgraph.base.ranges import Bits, Count, Positive, Probability
from molgraph.base.registry import register
from molgraph.base.search_space import Float, Space
from molgraph.base.seeds import derive
from molgraph.chem.fingerprints import morgan
from molgraph.chem.smiles import parse_smiles, quiet
from molgraph.train.runtime import torch_settings


@register(
    "method",
    "deepchem",
    tags=("peer",),
    summary="DeepChem's own DMPNN, or ECFP perceptron",
    paper="Ramsundar et al. 2019, Deep Learning for the Life Sciences; Wu et al. 2018, Chem. Sci. 9:513",
)
@dataclass(eq=False)
class DeepChem(PeerMethod):
    """DeepChem's ``DMPNNModel``, or its ``MultitaskRegressor`` and ``MultitaskClassifier`` on ECFP (Wu et al. 2018).

    Those of DeepChem's models that run on torch alone. Numbers share a network, binary targets share one, and each
    target of several classes has its own. All epochs are trained. DeepChem shuffles by numpy's global random numbers:
    they are seeded for the fit, and put back.

    Args:
        model: dmpnn or multitask.
        d_hidden: width of the hidden layers (DeepChem's defaults: 300 and 1,000).
        dropout: probability of dropping a value while training.
        epochs: passes over the training rows.
        batch_size: rows in a step.
        learning_rate: Adam's.
        n_bits: of the fingerprint of ``multitask``; its radius is 2.
        seed: of the weights and the order of the rows.
        threads: CPU threads; None for all.

    Example:
        >>> DeepChem("multitask", epochs=3).get_params()["n_bits"]
        1024
    """

    name = "deepchem"
    small = MappingProxyType({"model": "multitask", "epochs": 2, "d_hidden": 8, "n_bits": 64})
    needs = ("deepchem",)

    model: Literal["dmpnn", "multitask"] = "dmpnn"
    d_hidden: Width = 300
    dropout: Probability = 0.0
    epochs: Count = 50
    batch_size: Count = 50
    learning_rate: Positive = 1e-3
    n_bits: Bits = 1024
    seed: int = 0
    threads: int | None = None

    def space(self) -> Space:
        """Dropout and the step size."""
        return {"dropout": Float(0.0, 0.5), "learning_rate": Float(1e-4, 3e-3, log=True)}

    def network(self, model: Any) -> Any:
        return model.model

    def build(self, group: Group) -> Any:
        need("deepchem")
        with _kept_random(derive(self.seed, "deepchem", group.kind)):
            import deepchem
            from deepchem.models.torch_models import DMPNNModel

            n_tasks, n_classes = len(group.columns), group.n_classes or 2
            common: dict[str, Any] = {
                "batch_size": self.batch_size,
                "learning_rate": self.learning_rate,
                "device": "cpu",
                "model_dir": str(Path(tempfile.gettempdir()) / "molgraph-deepchem"),  # where it would save; it doesn't
            }
            if self.model == "dmpnn":
                mode = "regression" if group.kind == "regression" else "classification"
                wide = {"enc_hidden": self.d_hidden, "ffn_hidden": self.d_hidden}
                drop = {"enc_dropout_p": self.dropout, "ffn_dropout_p": self.dropout}
                settings = {"global_features_size": group.d_extra, "mode": mode, "n_classes": n_classes}
                return DMPNNModel(n_tasks=n_tasks, **settings, **wide, **drop, **common)
            layers: dict[str, Any] = {
                "n_features": self.n_bits + group.d_extra,
                "layer_sizes": [self.d_hidden],
                "dropouts": self.dropout,
            }
            if group.kind == "regression":
                return deepchem.models.MultitaskRegressor(n_tasks, **layers, **common)
            return deepchem.models.MultitaskClassifier(n_tasks, n_classes=n_classes, **layers, **common)

    def train(self, group: Group, rows: PeerRows, valid: PeerRows | None) -> Any:
        seed = derive(self.seed, "deepchem", group.kind)
        with torch_settings(self.threads, seed), _kept_random(seed), quiet():
            model = self.build(group)
            unsaved = {"checkpoint_interval": 0, "max_checkpoints_to_keep": 0}
            model.fit(self._data(rows), nb_epoch=int(self.epochs), **unsaved)
        return model

    def ask(self, model: Any, group: Group, rows: PeerRows) -> np.ndarray:
        with torch_settings(self.threads), quiet():
            output = np.asarray(model.predict(self._data(rows)), dtype=np.float64)
        n, k = len(rows.smiles), len(group.columns)
        if group.kind == "regression":
            return output.reshape(n, k)
        shares = output.reshape(n, k, -1)
        shares /= shares.sum(axis=2, keepdims=True)
        return shares[:, 0, :] if group.kind == "multiclass" else shares[:, :, 1]

    def _data(self, rows: PeerRows) -> Any:
        """DeepChem's data set; a missing label weighs nothing."""
        import deepchem

        smiles, extra, y, weights = rows
        if self.model == "multitask":
            x: Any = np.concatenate([morgan(smiles, 2, self.n_bits).x.astype(np.float32), extra], axis=1)
        else:
            featurizer = deepchem.feat.DMPNNFeaturizer()
            x = np.empty(len(smiles), dtype=object)
            for i, text in enumerate(smiles):
                x[i] = featurizer._featurize(parse_smiles(text).mol)
                if extra.shape[1]:
                    x[i].global_features = extra[i]
        if y is None or weights is None:
            return deepchem.data.NumpyDataset(x)
        w = weights[:, None] * ~np.isnan(y)
        return deepchem.data.NumpyDataset(x, np.nan_to_num(y), w)


@contextmanager
def _kept_random(seed: int) -> Iterator[None]:
    """numpy's global random numbers seeded, and as they were before at the end."""
    before = np.random.get_state()  # noqa: NPY002 - DeepChem asks nothing else
    np.random.seed(seed % 2**32)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002
