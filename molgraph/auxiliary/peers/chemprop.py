"""chemprop's own D-MPNN, trained by chemprop's own parts, as a method."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np

from molgraph.auxiliary.peers.groups import Group, PeerMethod, PeerRows, Width
from molgraph.base.optional import need
from molgraph.base.ranges import LARGEST, Count, NotNegative, Positive, Probability, Range
from molgraph.base.recipe_keys import GradientDescent
from molgraph.base.registry import register
from molgraph.base.search_space import Float, Int, Space
from molgraph.base.seeds import derive
from molgraph.chem.smiles import parse_smiles
from molgraph.train.optimizers import stretched
from molgraph.train.runtime import lightning_quiet, torch_settings

AGGREGATIONS = {"mean": "MeanAggregation", "norm": "NormAggregation", "sum": "SumAggregation"}


@register(
    "method",
    "chemprop",
    tags=("peer",),
    summary="chemprop's own D-MPNN (extra: peers)",
    paper="Heid et al. 2024, J. Chem. Inf. Model. 64:9; Yang et al. 2019, J. Chem. Inf. Model. 59:3370",
)
@dataclass(eq=False)
class Chemprop(PeerMethod):
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
        min_steps: steps at least, where none is stopped early; few rows get more epochs, patience and warm-up.
        patience: epochs without gain on ``valid`` before it stops; None for all epochs, as chemprop has it.
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
    needs = ("chemprop",)
    uses_valid = True

    depth: Width = 3
    d_hidden: Width = 300
    aggregation: Literal["norm", "mean", "sum"] = "norm"
    head_width: Width = 300
    head_layers: Annotated[int, Range(0, 1000)] = 1
    dropout: Probability = 0.0
    epochs: Count = 50
    min_steps: Annotated[int, Range(0, LARGEST)] = 0
    patience: Count | None = None
    batch_size: Count = 64
    learning_rate: Positive = 1e-3
    warmup_epochs: NotNegative = 2
    seed: int = 0
    threads: int | None = None

    def space(self) -> Space:
        """What chemprop's own search tries."""
        return {"depth": Int(2, 6), "dropout": Float(0.0, 0.4), "learning_rate": Float(1e-4, 1e-2, log=True)}

    def build(self, group: Group, warmup: float | None = None) -> Any:
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
        rates = {
            "warmup_epochs": self.warmup_epochs if warmup is None else warmup,
            "init_lr": end,
            "max_lr": top,
            "final_lr": end,
        }
        return models.MPNN(message, getattr(nn, AGGREGATIONS[self.aggregation])(), predictor, **rates)

    def train(self, group: Group, rows: PeerRows, valid: PeerRows | None) -> Any:
        need("chemprop")
        from lightning import pytorch as lightning

        best: dict[str, Any] = {"loss": float("inf")}

        def keep(trainer: Any, module: Any) -> None:
            """Keep the weights of the lowest validation loss, in memory."""
            loss = float(trainer.callback_metrics.get("val_loss", float("nan")))
            if loss < best["loss"]:
                weights = {name: value.detach().clone() for name, value in module.state_dict().items()}
                best.update(loss=loss, weights=weights)

        with lightning_quiet(), _no_news(), torch_settings(self.threads, derive(self.seed, "chemprop", group.kind)):
            asked = {name: getattr(self, name) for name in ("epochs", "min_steps", "patience", "warmup_epochs")}
            how = stretched(GradientDescent(**asked), -(-len(rows[0]) // self.batch_size))
            model = self.build(group, how.warmup_epochs)
            train = self._loader(rows, derive(self.seed, "chemprop", "order") % 2**31)
            watching: list[Any] = [lightning.callbacks.LambdaCallback(on_validation_end=keep)]
            if how.patience is not None:
                watching.append(lightning.callbacks.EarlyStopping("val_loss", patience=how.patience))
            trainer = lightning.Trainer(
                max_epochs=how.epochs,
                accelerator="cpu",
                devices=1,
                logger=False,
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
                num_sanity_val_steps=0,
                callbacks=[*watching] if valid else [],
            )
            trainer.fit(model, train, self._loader(valid) if valid else None)
            if "weights" in best:
                model.load_state_dict(best["weights"])
        return model

    def ask(self, model: Any, group: Group, rows: PeerRows) -> np.ndarray:
        import torch

        model.eval()
        with torch_settings(self.threads), torch.inference_mode():
            outputs = [model(batch.bmg, batch.V_d, batch.X_d).double().numpy() for batch in self._loader(rows)]
        whole = np.concatenate(outputs)
        return whole[:, 0, :] if group.kind == "multiclass" else whole

    def _loader(self, rows: PeerRows, order: int | None = None) -> Any:
        """chemprop's loader; shuffled by ``order``, or in order where it is None."""
        from chemprop import data

        smiles, extra, y, weights = rows
        points = [
            data.MoleculeDatapoint(
                parse_smiles(text).mol,
                y=None if y is None else y[i],
                weight=1.0 if weights is None else float(weights[i]),
                x_d=extra[i] if extra.shape[1] else None,
            )
            for i, text in enumerate(smiles)
        ]
        # chemprop drops a last batch of one row, for batch norms that are not used here: no row goes unseen
        opts = {"seed": order, "drop_last": False, "num_workers": 0}
        return data.build_dataloader(data.MoleculeDataset(points), self.batch_size, shuffle=order is not None, **opts)


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
