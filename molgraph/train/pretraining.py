"""Start an encoder from a file's weights, and give the states of an encoder."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from molgraph.base.contracts import Target
from molgraph.base.errors import ConflictError, UnsupportedError
from molgraph.base.registry import get
from molgraph.data.graph_store import InputSpec
from molgraph.data.table import Table
from molgraph.train.inference import FittedNetworks
from molgraph.train.inputs import Input, encoder_names, own_params
from molgraph.train.network import Network
from molgraph.train.outputs import DescriptorScale, Outputs

HEAD = ("head", "head_width", "head_layers")


@dataclass(frozen=True)
class Start:
    """A file's fitted graph method from which another one starts, and its model in words."""

    path: Path
    method: Any
    about: str

    @property
    def head(self) -> dict[str, Any]:
        """The size of its head, where the head starts from the file too, as one that learned to adapt does."""
        objective = get("objective", self.method.objective)
        return {name: getattr(self.method, name) for name in HEAD if objective.tasks and objective.trains_head}

    @property
    def specs(self) -> dict[str, InputSpec]:
        """What the graphs of its encoder hold."""
        return {self.method.encoder: self.method.ready().inputs[0].spec}

    @property
    def digest(self) -> str:
        """SHA-256 of the file."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    def params_with(self, encoder: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The hyper-parameters of a model that starts here: the file's for its encoder, and those that were given."""
        names, theirs = encoder_names(encoder), self.method.encoder
        if theirs not in names:
            raise ConflictError(
                f"{self.path} holds the encoder {theirs}, the model has {encoder}",
                hint=f"leave the model out, or choose {theirs}",
            )
        settings = own_params(self.method.params or {}, theirs, 1)
        signature = inspect.signature(get("encoder", theirs).__init__).parameters
        known = {name: settings.get(name, p.default) for name, p in signature.items()}
        for name, value in own_params(given, theirs, len(names)).items():
            if name in known and value != known[name]:
                raise ConflictError(
                    f"{name} is {value!r}, and {known[name]!r} in {self.path}",
                    hint="leave it out: an encoder that starts from a file has the file's parameters",
                )
        prefix = "" if len(names) == 1 else f"{theirs}."
        return {**given, **{f"{prefix}{name}": value for name, value in settings.items()}}

    def head_with(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The size of the head of a model that starts here, as far as the file sets it."""
        usual = inspect.signature(type(self.method)).parameters
        for name, value in self.head.items():
            if given[name] not in (usual[name].default, value):
                raise ConflictError(
                    f"{name} is {given[name]!r}, and {value!r} in {self.path}",
                    hint="leave it out: a head that starts from a file has the file's size",
                )
        return self.head

    def scales_for(self, table: Table, method: Any) -> tuple[Outputs, DescriptorScale] | None:
        """The file's scales, on which its head goes on: it learned these targets by this objective; None otherwise."""
        fitted, settings = self.method.ready(), (*HEAD, "objective", "descriptors", "encoder")
        same = fitted.outputs.targets == table.targets and not fitted.outputs.unlearned
        same = same and fitted.descriptors.names == table.feature_names
        same = same and all(getattr(method, name) == getattr(self.method, name) for name in settings)
        return (fitted.outputs, fitted.descriptors) if same and table.targets else None

    def copy_into(self, network: Network, inputs: Sequence[Input], outputs: Outputs) -> str:
        """Give the encoders of this name the file's weights, and the head its own where it suits these targets.

        Returns what a model's card says of its start; raises ``UnsupportedError`` where features are not the file's.
        """
        fitted, started = self.method.ready(), list[nn.Module]()
        for encoder, input_ in zip(network.encoders, inputs, strict=True):
            if input_.encoder != self.method.encoder:
                continue
            known = input_.featuriser.as_of(fitted.inputs[0].spec.featuriser).versions[0]  # an older version will do
            if replace(input_.spec, featuriser=known) != fitted.inputs[0].spec:
                theirs, here = (f"{s.featuriser} {dict(s.widths)}" for s in (fitted.inputs[0].spec, input_.spec))
                raise UnsupportedError(
                    f"{self.path} was trained on other features than this table's: {theirs}, here {here}",
                    hint="pretrain an encoder on data of this kind, or leave --init out",
                )
            encoder.load_state_dict(fitted.network.encoder.state_dict())
            started.append(encoder)
        kinds = {target.kind for target in outputs.targets}
        both = bool(self.head) and outputs.level == "row" and kinds == {fitted.outputs.targets[0].kind}
        same = outputs is fitted.outputs
        if same:
            network.head.load_state_dict(fitted.network.head.state_dict())
        elif both:
            self._copy_head(network.head)
        both = both or same
        if both:
            started.append(network.head)
        values = {value for module in started for value in module.parameters()}
        network.started = frozenset(name for name, value in network.named_parameters() if value in values)
        network.start_parts = dict(fitted.network.parts.items())
        part = f"the encoder {self.method.encoder}{' and the head' if both else ''}"
        graphs = "; labels of nodes and edges mean here what they meant there" * (inputs[0].kind == "graph")
        return f"{part} started from {self.path.name} ({self.about}; sha256 {self.digest[:16]}){graphs}"

    def _copy_head(self, head: nn.Module) -> None:
        """The file's head with its one output repeated for each target."""
        state, theirs = head.state_dict(), self.method.ready().network.head.state_dict()
        try:
            head.load_state_dict({name: value.expand_as(state[name]) for name, value in theirs.items()})
        except (KeyError, RuntimeError) as error:
            raise UnsupportedError(
                f"the head in {self.path} has other widths than this model's",
                hint="read the columns that it was pretrained on: leave descriptors and further inputs out",
            ) from error


def state_outputs(d: int) -> Outputs:
    """Columns for a state of width d, its values as they are."""
    return Outputs(tuple(Target(f"embedding_{i}") for i in range(d)), np.zeros(d), np.ones(d))


def encoder_alone(fitted: FittedNetworks) -> FittedNetworks:
    """A network without its head: it gives the state of each row, and needs no descriptors."""
    network = Network(fitted.network.encoders, fitted.network.joiner, nn.Identity())
    return FittedNetworks(network.eval(), state_outputs(network.d_state), DescriptorScale.fit(None, ()), fitted.inputs)
