"""chemprop's own D-MPNN, trained by chemprop's own parts, as a method."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

import numpy as np

from molgraph.auxiliary.peers import groups
from molgraph.auxiliary.peers.groups import Group, Rows
from molgraph.auxiliary.peers.weights import put_weights, weights_of
from molgraph.base.contracts import Method, Prediction, State
from molgraph.base.cores import cores
from molgraph.base.errors import UsageError, nearest
from molgraph.base.optional import need
from molgraph.base.ranges import Count, NotNegative, Positive, Probability, Range
from molgraph.base.registry import register
from molgraph.base.search_space import Float, Int, Space
from molgraph.base.seeds import derive
from molgraph.base.size import Shapes, Size
from molgraph.chem.smiles import parse_smiles
from molgraph.data.table import Table
from molgraph.train.runtime import lightning_quiet, torch_settings

AGGREGATIONS = {"mean": "MeanAggregation", "norm": "NormAggregation", "sum": "SumAggregation"}


@dataclass(frozen=True)
class _Network:
    model: Any
    group: Group
    batch_size: int
    threads: int | None

    def predict(self, smiles: list[str], extra: np.ndarray) -> np.ndarray:
        import torch

        out = []
        with torch_settings(self.threads), torch.inference_mode():
            for batch in _loader(smiles, None, None, extra, self.batch_size, None):
                out.append(self.model.eval()(batch.bmg, batch.V_d, batch.X_d).double().numpy())
        found = np.concatenate(out)
        return found[:, 0, :] if self.group.kind == "multiclass" else found

    def arrays(self) -> dict[str, np.ndarray]:
        return weights_of(self.model)


@register(
    "method",
    "chemprop",
    tags=("peer",),
    summary="chemprop's own D-MPNN, as a peer to compare with (extra: peers)",
    paper="Heid et al. 2024, J. Chem. Inf. Model. 64:9; Yang et al. 2019, J. Chem. Inf. Model. 59:3370",
)
@dataclass(eq=False)
class Chemprop(Method):
    """chemprop 2 (Heid et al. 2024) with its own layers, schedule, loader and trainer; defaults are chemprop's.

    Needs the extra ``peers``. Numbers share a network, binary targets share one, and each target of several classes
    has its own. With ``valid`` the epoch of the lowest validation loss is kept, as ``chemprop train`` does.

    Args:
        depth: steps of messages.
        d_hidden: width of a bond's state.
        aggregation: rows to graph: norm (chemprop's default), mean or sum.
        head_width: width of the perceptron's hidden layers.
        head_layers: hidden layers of the perceptron.
        dropout: probability of dropping a value while training.
        epochs: passes over the training rows.
        batch_size: rows in a step.
        learning_rate: the highest step size; a tenth of it at both ends.
        warmup_epochs: epochs until then.
        seed: of the weights and the order of the rows.
        threads: CPU threads; None for all.

    Example:
        >>> Chemprop(epochs=3).get_params()["d_hidden"]
        300
    """

    name = "chemprop"
    small = MappingProxyType({"epochs": 2, "d_hidden": 8, "head_width": 8, "batch_size": 16})
    gradient_descent = True
    needs = ("chemprop",)
    uses_valid = True

    depth: groups.Width = 3
    d_hidden: groups.Width = 300
    aggregation: Literal["norm", "mean", "sum"] = "norm"
    head_width: groups.Width = 300
    head_layers: Annotated[int, Range(0, 1000)] = 1
    dropout: Probability = 0.0
    epochs: Count = 50
    batch_size: Count = 64
    learning_rate: Positive = 1e-3
    warmup_epochs: NotNegative = 2
    seed: int = 0
    threads: int | None = None

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Train on ``table``; ``valid`` picks the epoch; ``workdir`` is not used."""
        self.check_params()
        table.check_one_molecule(self.name)
        cores(self.threads)
        if self.aggregation not in AGGREGATIONS:
            raise UsageError(
                f"no aggregation is named {self.aggregation!r}", hint=nearest(str(self.aggregation), AGGREGATIONS)
            )
        self._fitted = groups.learn(self, table, valid, self._train)
        return self

    def predict(self, table: Table) -> Prediction:
        """Values, P(class 1), or one probability a class."""
        return groups.predict(self, table)

    def state(self) -> State:
        """The networks' weights."""
        return groups.state(self)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild; raises ``ModelFileError`` where the state is not whole."""

        def load(method: Self, group: Group, arrays: Mapping[str, np.ndarray]) -> _Network:
            method.check_params()
            model = method._model(group)
            put_weights(model, arrays)
            return _Network(model.eval(), group, method.batch_size, method.threads)

        return groups.restore(cls, state, load)

    @classmethod
    def size_of(cls, meta: Mapping[str, Any], shapes: Shapes) -> Size:
        """What the stored networks need to predict."""
        return groups.size_of(meta, shapes, "depth")

    def space(self) -> Space:
        """What chemprop's own search tries."""
        return {"depth": Int(2, 6), "dropout": Float(0.0, 0.4), "learning_rate": Float(1e-4, 1e-2, log=True)}

    def _model(self, group: Group) -> Any:
        need("chemprop")
        from chemprop import models, nn

        message = nn.BondMessagePassing(d_h=self.d_hidden, depth=self.depth, dropout=self.dropout)
        heads = {"regression": nn.RegressionFFN, "binary": nn.BinaryClassificationFFN}
        head = heads.get(group.kind) or partial(nn.MulticlassClassificationFFN, n_classes=group.n_classes)
        predictor = head(
            n_tasks=len(group.columns),
            input_dim=message.output_dim + group.d_extra,
            hidden_dim=self.head_width,
            n_layers=self.head_layers,
            dropout=self.dropout,
        )
        top, end = self.learning_rate, self.learning_rate / 10
        rates = {"warmup_epochs": self.warmup_epochs, "init_lr": end, "max_lr": top, "final_lr": end}
        return models.MPNN(message, getattr(nn, AGGREGATIONS[self.aggregation])(), predictor, **rates)

    def _train(self, group: Group, rows: Rows, valid: Rows | None) -> _Network:
        need("chemprop")
        from lightning import pytorch as lightning

        seed = derive(self.seed, "chemprop", group.kind)
        with lightning_quiet(), _no_news(), torch_settings(self.threads, seed):
            model = self._model(group)
            order = derive(self.seed, "chemprop", "order") % 2**31
            train = _loader(rows.smiles, rows.y, rows.weights, rows.extra, self.batch_size, order)
            judge = None
            if valid is not None:
                judge = _loader(valid.smiles, valid.y, valid.weights, valid.extra, self.batch_size, None)
            best = _keeper(lightning)
            trainer = lightning.Trainer(
                max_epochs=self.epochs,
                accelerator="cpu",
                devices=1,
                logger=False,
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
                num_sanity_val_steps=0,
                callbacks=[best] if judge is not None else [],
            )
            trainer.fit(model, train, judge)
            if best.weights is not None:
                model.load_state_dict(best.weights)
        return _Network(model.eval(), group, self.batch_size, self.threads)


@contextmanager
def _no_news() -> Iterator[None]:
    """Lightning's lines on devices and its sponsors kept off the terminal; its warnings and errors stay."""
    news = logging.getLogger("lightning.pytorch")
    before = news.level
    news.setLevel(logging.WARNING)
    try:
        yield
    finally:
        news.setLevel(before)


def _keeper(lightning: Any) -> Any:
    """A callback that keeps the weights of the lowest validation loss, in memory."""

    class Keeper(lightning.Callback):
        def __init__(self) -> None:
            self.lowest = float("inf")
            self.weights: dict[str, Any] | None = None

        def on_validation_end(self, trainer: Any, module: Any) -> None:
            loss = float(trainer.callback_metrics.get("val_loss", float("nan")))
            if loss < self.lowest:
                self.lowest = loss
                self.weights = {name: value.detach().clone() for name, value in module.state_dict().items()}

    return Keeper()


def _loader(
    smiles: list[str],
    y: np.ndarray | None,
    weights: np.ndarray | None,
    extra: np.ndarray,
    batch_size: int,
    order: int | None,
) -> Any:
    """chemprop's loader; shuffled by ``order``, or in order where it is None."""
    from chemprop import data

    points = [
        data.MoleculeDatapoint(
            parse_smiles(text).mol,
            y=None if y is None else y[i],
            weight=1.0 if weights is None else float(weights[i]),
            x_d=extra[i] if extra.shape[1] else None,
        )
        for i, text in enumerate(smiles)
    ]
    shuffle = order is not None
    # chemprop drops a last batch of one row, for batch norms that are not used here: no row goes unseen
    return data.build_dataloader(
        data.MoleculeDataset(points), batch_size, shuffle=shuffle, seed=order, drop_last=False, num_workers=0
    )
