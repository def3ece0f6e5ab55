"""Train a graph encoder and a head on a table, and predict with them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
import torch

from molgraph.base import registry
from molgraph.base.contracts import Method, Prediction, State, Target
from molgraph.base.cores import cores
from molgraph.base.errors import NotFittedError, UnsupportedError
from molgraph.base.options import fill, keywords, takes
from molgraph.base.parameters import check_params
from molgraph.base.parts import read_part
from molgraph.base.ranges import Count, NotNegative, Probability, Range
from molgraph.base.recipe_keys import DEFAULTS, TrainingSection
from molgraph.base.registry import register
from molgraph.base.resources import model_path
from molgraph.base.search_space import Categorical, Float, Int, Space
from molgraph.data.graph_cache import CachedGraphs
from molgraph.data.table import Table
from molgraph.data.view import make_views
from molgraph.train.archive import refused
from molgraph.train.callback import Callback, as_trained, make_callbacks
from molgraph.train.engine import fit_network
from molgraph.train.fitting import fit_method
from molgraph.train.inference import FittedNetworks, predict_networks
from molgraph.train.inputs import Input, encoder_names, trial_inputs
from molgraph.train.modelfile import load_start
from molgraph.train.network import Network, build_network, encoder_params
from molgraph.train.objective import make_objective, with_parts
from molgraph.train.optimizers import check_optimizer, make_optimizer
from molgraph.train.outputs import Outputs
from molgraph.train.packed_weights import packed_state, quantised_of, unpacked_state
from molgraph.train.preparation import prepare
from molgraph.train.pretraining import Start, state_outputs
from molgraph.train.restore import (
    restore_fitted,
    restore_history,
    stored_defaults,
    stored_history,
    stored_params,
    stored_weights,
)
from molgraph.train.runtime import check_precision, resolve_device
from molgraph.train.view_mean import mean_over_views

SIZES: Space = {"depth": Int(2, 6), "d_hidden": Categorical((100, 200, 300, 600))}
OPTIONS = keywords(TrainingSection, leave=("ensemble", "baseline", "compare", "budget", "seed"))


@register("method", "graph", summary="a graph encoder and a head, trained by gradient descent")
class GraphMethod(Method):
    """Learn a graph encoder and a head from a table.

    Args:
        encoder: a registered encoder, such as ``dmpnn``; several for several kinds of entity, such as
            ``dmpnn+deepdta`` for molecules and proteins.
        params: that encoder's own hyper-parameters.
        head: from graph (and descriptors) to targets, a registered head with its settings; ``gaussian`` predicts a
            variance beside each number, ``atomwise`` sums contributions of atoms (``molgraph models --kind head``).
        head_width: width of the perceptron from graph (and descriptors) to targets.
        head_layers, head_dropout: its layers, and the probability of dropping a value while training.
        seed: seed of the weights, the order of the rows and dropout; the same seed gives the same model on one machine.
        devices, strategy: number of devices, each with its own process, and Lightning's strategy for them.
        predict_batch: rows that are predicted together.
        predict_views: random SMILES of each molecule whose predictions are averaged; 1: the molecule as it is.
        checkpoint_seconds: time between checkpoints, where fit is given a working folder.
        joiner: how the states of several entity columns become one (``molgraph models --kind joiner``).
        inputs: the entity columns to read, the others being left out on purpose; None for all.
        featuriser: what makes its kind's graphs in place of the usual one, such as ``reaction(mode=prod_diff)``.
        init: the file of a pretrained encoder or of a graph model, from whose weights the encoder starts; it has that
            file's hyper-parameters.
        descriptors: ``rdkit`` gives the head RDKit's descriptors of the molecules beside the table's features;
            ``molgraph train`` gives them to ``dmpnn`` in tables of up to 10,000 molecules.
        options: the keys of a recipe's training, with its defaults; ``help(GraphMethod.__init__)`` lists them.

    Example:
        >>> GraphMethod(epochs=3).get_params()["epochs"]
        3
    """

    name = "graph"
    small = MappingProxyType({"epochs": 2, "head_width": 8, "batch_size": 16})
    uses_valid = True
    gradient_descent = True
    #: called after each epoch that was the best so far, with the method as it would be if it ended there
    early: Callable[[], None] | None = None
    #: of the next fit, beside those that ``callback`` names
    extra_callbacks: Sequence[Callback] = ()

    @takes(OPTIONS)
    def __init__(
        self,
        encoder: str = "dmpnn",
        params: Mapping[str, Any] | None = None,
        *,
        head: str = "perceptron",
        head_width: Count = 300,
        head_layers: Count = 2,
        head_dropout: Probability = 0.0,
        seed: int = DEFAULTS.seed,
        devices: Count = 1,
        strategy: str = "auto",
        predict_batch: Count = 512,
        predict_views: Annotated[int, Range(1, 64)] = 1,
        checkpoint_seconds: NotNegative = 20.0,
        joiner: str = "concat",
        inputs: Sequence[str] | None = None,
        featuriser: str | None = None,
        init: str | None = None,
        descriptors: Literal["none", "rdkit"] = "none",
        **options: Any,
    ) -> None:
        """Keep the hyper-parameters.

        Args:
            **options
        """
        self.encoder, self.params, self.joiner = encoder, params, joiner
        self.inputs, self.featuriser, self.init, self.descriptors = inputs, featuriser, init, descriptors
        self.head, self.head_width, self.head_layers, self.head_dropout = head, head_width, head_layers, head_dropout
        self.seed, self.devices, self.strategy = seed, devices, strategy
        self.predict_batch, self.predict_views = predict_batch, predict_views
        self.checkpoint_seconds = checkpoint_seconds
        vars(self).update(fill(OPTIONS, options))
        self.fitted: FittedNetworks | None = None
        self.best_epoch: int | None = None

    if TYPE_CHECKING:  # the options

        def __getattr__(self, name: str) -> Any: ...

    @property
    def learns_limits(self) -> bool:  # type: ignore[override] # that of its objective
        """Whether its objective learns labels that are limits."""
        return bool(registry.get("objective", read_part(self.objective, "objective").name).learns_limits)

    @property
    def model_name(self) -> str:
        """The encoder's name."""
        return self.encoder

    def code_parts(self) -> tuple[Any, ...]:
        """What trains and predicts too."""
        parts = (Network, prepare, fit_network, make_optimizer, predict_networks)
        return (*super().code_parts(), registry.get("head", self.head), *parts)

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Train on the readable rows of ``table`` that have a label.

        Args:
            table: rows with targets.
            valid: rows that stop training early and pick the weights; without them all epochs are trained.
            workdir: a folder for the checkpoint; a fit that was stopped goes on from there.

        Raises:
            DataError: nothing can be learned from the table, or the folder's checkpoint is another fit's.
            Interrupted: Ctrl-C; its message says where the checkpoint is.
        """
        self.check()
        fit_method(self, table, valid, workdir)
        return self

    def predict(self, table: Table) -> Prediction:
        """Predict every row, in order; batches of ``predict_batch`` rows start at multiples of it."""
        return self.predict_graphs(table, None)

    def predict_graphs(self, table: Table, graphs: Sequence[CachedGraphs] | None) -> Prediction:
        """Predict every row with the graphs of each input; None makes them here."""

        def predict(graphs: Sequence[CachedGraphs] | None) -> Prediction:
            return predict_networks([self.ready()], table, graphs, **self.running())[0]

        return mean_over_views(predict, graphs, table, self.ready().inputs, self.predict_views, self.seed)

    def graph_inputs(self) -> tuple[Input, ...]:
        """The entity columns that the fitted network reads."""
        return self.ready().inputs

    def running(self) -> dict[str, Any]:
        """Where and how prediction runs."""
        return {name: getattr(self, name) for name in ("device", "precision", "threads", "predict_batch")}

    def ready(self) -> FittedNetworks:
        """The fitted network; raises ``NotFittedError`` before ``fit``."""
        if self.fitted is None:
            raise NotFittedError("this method has not learned anything yet", hint="call fit(table), or load a model")
        return self.fitted

    def state(self) -> State:
        """Weights and scales as arrays; hyper-parameters, targets and featuriser as JSON."""
        fitted = self.ready()
        outputs = fitted.outputs if fitted.network.has_head else Outputs((), np.zeros(0), np.ones(0))
        weights, packed = packed_state(stored_weights(fitted.network), fitted.network.quantised)
        arrays = weights | outputs.to_arrays()
        arrays |= {"feature.mean": fitted.descriptors.mean, "feature.scale": fitted.descriptors.scale}
        meta = {
            "params": self.get_params() | {"params": dict(self.params or {}), "store": None, "init": None},  # no path
            "defaults": stored_defaults(self),
            "targets": [asdict(t) for t in outputs.targets],
            "unlearned": dict(outputs.unlearned),
            "feature_names": list(fitted.descriptors.names),
            "feature_limit": fitted.descriptors.limit,
            "feature_observed": fitted.descriptors.observed,
            "inputs": [input_.to_json() for input_ in fitted.inputs],
            **stored_history(self),
            **packed,
        }
        return State(arrays, meta)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild; the network's shapes are compared with the arrays before any weight is made."""
        with refused("the model's parts do not fit together"):
            state = unpacked_state(state)
            method = cls(**state.meta["params"] | {"params": stored_params(state.meta)})
            method.check()
            objective = registry.get("objective", method.objective)
            method.predicts = objective.labelled
            head = objective.labelled or (objective.tasks and objective.trains_head)
            method.fitted = restore_fitted(
                state, method.encoder, lambda *a, **k: as_trained(method.build(*a, **k), method.callback), head
            )
            method.ready().network.quantised = quantised_of(state.meta)
            method.curves, method.best_epoch, method.notes = restore_history(state.meta)
        return method

    def space(self) -> Space:
        """The step size and the head; what is the encoder's own stays as its paper has it."""
        head: Space = {"head_width": Categorical((100, 300, 600)), "head_dropout": Float(0.0, 0.3)}
        return {"learning_rate": Float(1e-4, 3e-3, log=True), **head}

    def sizes(self) -> Space:
        """Depth and width of the encoder, where there is one that has them."""
        names = encoder_params(self.encoder) if len(encoder_names(self.encoder)) == 1 else ()
        return {name: size for name, size in SIZES.items() if name in names}

    def inner_value(self, name: str) -> Any:
        """The value of a hyper-parameter of the encoder."""
        usual = inspect.signature(registry.get("encoder", self.encoder).__init__).parameters[name].default
        return (self.params or {}).get(name, usual)

    def check(self) -> None:
        """Raise early for values that no fit can have."""
        check_params(GraphMethod, self.get_params(), owner=self.encoder)
        cores(self.threads)
        for name in encoder_names(self.encoder):
            registry.entry("encoder", name)
        for kind in ("joiner", "head", "schedule", "objective"):
            registry.entry(kind, getattr(self, kind))
        check_optimizer(self.optimizer)
        make_callbacks(self.callback)
        make_views(self.views)
        check_precision(self.precision, self.device)
        resolve_device(self.device)

    def check_network(self) -> None:
        """Refuse parameters that no network or objective can have, such as an unknown readout, at no cost in memory."""
        self.start()
        with torch.device("meta"):
            inputs = trial_inputs(self.encoder, self.params or {})
            network = self.build(inputs=inputs, d_extra=0, targets=state_outputs(1).targets)
            make_objective(self.objective, self.params or {}, network, inputs, state_outputs(1))

    def start(self) -> Start | None:
        """The encoder that training starts from, whose hyper-parameters the encoder then has."""
        if self.init is None:
            make_callbacks(self.callback, start=False)
            return None
        model = load_start(self.init)
        if not isinstance(model.method, GraphMethod):
            raise UnsupportedError(
                f"{self.init} holds a {model.kind}, no single encoder", hint="name a graph model's file"
            )
        start = Start(model_path(self.init), model.method, model.card.what or f"trained on {model.targets[0].name}")
        self.params = start.params_with(self.encoder, self.params or {})
        self.featuriser = self.featuriser or model.method.featuriser
        self.set_params(**start.head_with(self.get_params()))
        return start

    def build(self, inputs: Sequence[Input], *, d_extra: int, targets: Sequence[Target]) -> Network:
        """The network with fresh weights, for descriptors of that width and these targets."""
        usual = registry.get("objective", self.objective).head_settings
        sizes = {"d_hidden": self.head_width, "n_layers": self.head_layers, **usual}
        how: dict[str, Any] = {"joiner": self.joiner, "head": self.head, "dropout": self.head_dropout, **sizes}
        network = build_network(inputs, self.params or {}, d_extra=d_extra, targets=targets, **how)
        return with_parts(network, self.objective, self.params or {})
