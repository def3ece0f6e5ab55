"""Train a graph encoder and a head on a table, and predict with them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self, cast

import pandas as pd
import torch

from molgraph.base import registry
from molgraph.base.contracts import Method, Prediction, State
from molgraph.base.cores import cores
from molgraph.base.errors import UsageError
from molgraph.base.finite import check_finite
from molgraph.base.parameters import check_params
from molgraph.base.paths import store_folder
from molgraph.base.ranges import Count, NotNegative, Positive, Probability
from molgraph.base.recipe import DEFAULTS
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.size import Shapes, Size
from molgraph.base.space import Categorical, Float, Space
from molgraph.data.graph_cache import Graphs
from molgraph.data.table import Table
from molgraph.train.engine import Fit, Plan
from molgraph.train.inference import Fitted, Running, predict_networks
from molgraph.train.inputs import Input, encoder_names, trial_inputs
from molgraph.train.network import Network, build_network
from molgraph.train.objective import Supervised
from molgraph.train.outputs import ClassWeights
from molgraph.train.preparation import NO_VALID, Prepared, prepare
from molgraph.train.restore import CURVES, refused_parts, restore_fitted, restore_history, size_of, too_large
from molgraph.train.runtime import check_precision, lightning_quiet, make_fabric, resolve_device, torch_settings

logger = logging.getLogger("molgraph")


@register("method", "graph", summary="a graph encoder and a head, trained by gradient descent")
class GraphMethod(Method):
    """Learn a graph encoder and a head from a table.

    Args:
        encoder: a registered encoder, such as ``dmpnn``; several for several kinds of entity, such as
            ``dmpnn+deepdta`` for molecules and proteins.
        params: that encoder's own hyper-parameters.
        epochs: passes over the training rows, at most.
        batch_size: rows in a step.
        learning_rate: Adam's highest step size; it rises linearly from a tenth over the warm-up, then decays
            exponentially to a tenth, as chemprop has it.
        warmup_epochs: epochs until the step size is at its highest.
        weight_decay: Adam's pull of the weights towards zero.
        patience: epochs without a better validation loss before training stops; None never stops early.
        gradient_clip: largest norm of a step's gradient; None for no limit.
        class_weights: None, balanced, or a weight for each class label.
        head_width: width of the perceptron from graph (and descriptors) to targets.
        head_layers: its layers.
        head_dropout: probability of dropping one of its values while training.
        seed: of the weights, the order of the rows and dropout; the same seed gives the same model on one machine.
        device: cpu, cuda, mps or auto.
        devices: how many of them, each in a process of its own.
        strategy: Lightning's word for how processes work together.
        threads: CPU threads; None for all.
        precision: float32 or bfloat16 (mixed).
        predict_batch: rows that are predicted together.
        checkpoint_seconds: time between checkpoints, where fit is given a working folder.
        store: a folder that keeps the molecules' graphs, so that they are made once for all splits, seeds and members
            of an ensemble; auto for one in molgraph's cache; None keeps them in memory.
        joiner: how the states of several entity columns become one (``molgraph models`` lists them).
        inputs: the entity columns to read, the others being left out on purpose; None for all.

    Example:
        >>> GraphMethod(epochs=3).get_params()["epochs"]
        3
    """

    name = "graph"
    uses_valid = True
    gradient_descent = True

    def __init__(
        self,
        encoder: str = "dmpnn",
        params: Mapping[str, Any] | None = None,
        epochs: Count = DEFAULTS.epochs,
        batch_size: Count = DEFAULTS.batch_size,
        learning_rate: Positive = DEFAULTS.learning_rate,
        warmup_epochs: NotNegative = DEFAULTS.warmup_epochs,
        weight_decay: NotNegative = DEFAULTS.weight_decay,
        patience: Count | None = DEFAULTS.patience,
        gradient_clip: Positive | None = DEFAULTS.gradient_clip,
        class_weights: ClassWeights = DEFAULTS.class_weights,
        head_width: Count = 300,
        head_layers: Count = 2,
        head_dropout: Probability = 0.0,
        seed: int = DEFAULTS.seed,
        device: str = DEFAULTS.device,
        devices: Count = 1,
        strategy: str = "auto",
        threads: int | None = DEFAULTS.threads,
        precision: str = DEFAULTS.precision,
        predict_batch: Count = 512,
        checkpoint_seconds: NotNegative = 20.0,
        store: str | None = DEFAULTS.store,
        joiner: str = "concat",
        inputs: Sequence[str] | None = None,
    ) -> None:
        self.encoder, self.params = encoder, params
        self.joiner, self.inputs = joiner, inputs
        self.epochs, self.batch_size, self.learning_rate = epochs, batch_size, learning_rate
        self.warmup_epochs, self.weight_decay, self.patience = warmup_epochs, weight_decay, patience
        self.gradient_clip, self.class_weights = gradient_clip, class_weights
        self.head_width, self.head_layers, self.head_dropout = head_width, head_layers, head_dropout
        self.seed, self.device, self.devices, self.strategy = seed, device, devices, strategy
        self.threads, self.precision = threads, precision
        self.predict_batch, self.checkpoint_seconds = predict_batch, checkpoint_seconds
        self.store = store
        self.fitted: Fitted | None = None
        self.best_epoch: int | None = None

    @property
    def model_name(self) -> str:
        """The encoder's name."""
        return self.encoder

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Train on the readable rows of ``table`` that have a label.

        Args:
            table: rows with targets; those that cannot be read are passed over.
            valid: rows that stop training early and pick the weights; without them all epochs are trained.
            workdir: a folder for the checkpoint; a fit that was stopped goes on from there.

        Raises:
            DataError: nothing can be learned from the table, or the folder's checkpoint is another fit's.
            Interrupted: Ctrl-C; its message says where the checkpoint is.
        """
        self.check()
        recipe = {k: v for k, v in self.get_params().items() if k not in self.run_only}
        cache = None if self.store is None else store_folder(self.store)
        made = prepare(table, valid, self.encoder, self.inputs, self.class_weights, recipe, cache, self.threads)
        if NO_VALID in made.notes:  # those on targets are said once by the run, not by each method
            logger.info(NO_VALID)
        with lightning_quiet(), torch_settings(self.threads, derive(self.seed, "weights")):
            network = self.build(
                inputs=made.inputs,
                d_extra=len(made.descriptors.names),
                d_out=made.outputs.d_out,
            )
            fabric = make_fabric(self.device, self.precision, self.devices, self.strategy)
            plan = self._plan(made, None if workdir is None else Path(workdir))
            fit = Fit(Supervised(made.outputs), made.train, made.valid, plan)
            learned = fabric.launch(cast(Any, fit), network)
        check_finite(learned.weights)
        network.cpu().load_state_dict({name: torch.from_numpy(value) for name, value in learned.weights.items()})
        self.fitted = Fitted(network.eval(), made.outputs, made.descriptors, made.inputs)
        self.curves = pd.DataFrame(learned.curves, columns=list(CURVES)).astype({"epoch": int})
        self.best_epoch, self.notes = learned.best_epoch, made.notes
        return self

    def predict(self, table: Table) -> Prediction:
        """Predict every row, in order; batches of ``predict_batch`` rows start at multiples of it."""
        return self.predict_graphs(table, None)

    def predict_graphs(self, table: Table, graphs: Sequence[Graphs] | None) -> Prediction:
        """Predict every row with the graphs of each input; None makes them here."""
        (prediction,) = predict_networks([self.ready()], table, self.running(), graphs)
        return prediction

    def graph_inputs(self) -> tuple[Input, ...]:
        """The entity columns that the fitted network reads."""
        return self.ready().inputs

    def running(self) -> Running:
        """How prediction runs."""
        return Running(self.device, self.precision, self.threads, self.predict_batch)

    def ready(self) -> Fitted:
        """The fitted network; raises ``UsageError`` before ``fit``."""
        if self.fitted is None:
            raise UsageError("this method has not learned anything yet", hint="call fit(table) first, or load a model")
        return self.fitted

    def state(self) -> State:
        """Weights and scales as arrays; hyper-parameters, targets and featuriser as JSON."""
        fitted = self.ready()
        arrays = {f"network.{k}": v.detach().cpu().numpy() for k, v in fitted.network.state_dict().items()}
        arrays |= {"target.mean": fitted.outputs.mean, "target.scale": fitted.outputs.scale}
        arrays |= {"feature.mean": fitted.descriptors.mean, "feature.scale": fitted.descriptors.scale}
        meta = {
            "params": self.get_params() | {"params": dict(self.params or {}), "store": None},  # no path of this machine
            "targets": [asdict(t) for t in fitted.outputs.targets],
            "unlearned": dict(fitted.outputs.unlearned),
            "feature_names": list(fitted.descriptors.names),
            "inputs": [each.to_json() for each in fitted.inputs],
            "curves": [] if self.curves is None else self.curves.to_numpy().tolist(),
            "best_epoch": self.best_epoch,
            "notes": list(self.notes),
        }
        return State(arrays, meta)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild; the network's shapes are compared with the arrays before any weight is made."""
        with refused_parts():
            method = cls(**state.meta["params"])
            method.check()
            method.fitted = restore_fitted(state, method.encoder, method.params or {}, method.build)
            method.curves, method.best_epoch, method.notes = restore_history(state.meta)
        return method

    @classmethod
    def size_of(cls, meta: Mapping[str, Any], shapes: Shapes) -> Size:
        """What the stored network needs to predict."""
        return size_of(meta, shapes)

    def space(self) -> Space:
        """The step size and the head; what is the encoder's own stays as its paper has it."""
        return {
            "learning_rate": Float(1e-4, 3e-3, log=True),
            "head_width": Categorical((100, 300, 600)),
            "head_dropout": Float(0.0, 0.3),
        }

    def check(self) -> None:
        """Raise early for values that no fit can have."""
        check_params(GraphMethod, self.get_params(), owner=self.encoder)
        for name, value, limit in too_large(self.get_params()):  # a file with it would be refused, after all the work
            raise UsageError(f"{name} is {value!r}, expected whole numbers up to {limit:,}")
        cores(self.threads)
        for name in encoder_names(self.encoder):
            registry.entry("encoder", name)
        registry.entry("joiner", self.joiner)
        check_precision(self.precision)
        resolve_device(self.device)

    def check_network(self) -> None:
        """Refuse parameters that no network can have, such as an unknown readout, at no cost in memory."""
        with torch.device("meta"):
            self.build(inputs=trial_inputs(self.encoder), d_extra=0, d_out=1)

    def _plan(self, made: Prepared, folder: Path | None) -> Plan:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        return Plan(
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            warmup_epochs=self.warmup_epochs,
            weight_decay=self.weight_decay,
            patience=self.patience,
            gradient_clip=self.gradient_clip,
            seed=self.seed,
            checkpoint_seconds=self.checkpoint_seconds,
            folder=folder,
            prints=made.prints,
            label=f"training {self.encoder}",
        )

    def build(self, inputs: Sequence[Input], *, d_extra: int, d_out: int) -> Network:
        """The network with fresh weights, for those widths."""
        return build_network(
            inputs,
            self.params or {},
            joiner=self.joiner,
            d_extra=d_extra,
            d_out=d_out,
            d_hidden=self.head_width,
            n_layers=self.head_layers,
            dropout=self.head_dropout,
        )
