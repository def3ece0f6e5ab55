"""Start an encoder from a file's weights, and give the states of an encoder."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from molgraph.base import registry
from molgraph.base.contracts import Target
from molgraph.base.errors import UsageError
from molgraph.train.inference import FittedNetworks
from molgraph.train.inputs import Input, encoder_names
from molgraph.train.network import Network, own_params
from molgraph.train.outputs import DescriptorScale, Outputs

HEAD = ("head_width", "head_layers")
NO_DESCRIPTORS = DescriptorScale((), np.zeros(0), np.ones(0))


@dataclass(frozen=True)
class Start:
    """A trained encoder from which another one starts.

    Args:
        path: its file.
        encoder, params: its name and hyper-parameters.
        fitted: the network that has it.
        about: the file's model in words.
        head: its head's size, where the head starts from the file too, as one that learned to adapt does; else empty.
    """

    path: Path
    encoder: str
    params: Mapping[str, Any]
    fitted: FittedNetworks
    about: str
    head: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 of the file."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    def params_with(self, encoder: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The hyper-parameters of a model that starts here: the file's for its encoder, and those that were given."""
        names = encoder_names(encoder)
        if self.encoder not in names:
            raise UsageError(
                f"{self.path} holds the encoder {self.encoder}, the model has {encoder}",
                hint=f"leave the model out, or choose {self.encoder}",
            )
        own = own_params(self.params, self.encoder, 1)
        signature = inspect.signature(registry.get("encoder", self.encoder).__init__).parameters
        known = {name: own.get(name, p.default) for name, p in signature.items()}
        for name, value in own_params(given, self.encoder, len(names)).items():
            if name in known and value != known[name]:
                raise UsageError(
                    f"{name} is {value!r}, and {known[name]!r} in {self.path}",
                    hint="leave it out: an encoder that starts from a file has the file's parameters",
                )
        prefix = "" if len(names) == 1 else f"{self.encoder}."
        return {**given, **{f"{prefix}{name}": value for name, value in own.items()}}

    def head_with(self, given: Mapping[str, Any], default: Mapping[str, Any]) -> Mapping[str, Any]:
        """The size of the head of a model that starts here, as far as the file sets it."""
        for name, value in self.head.items():
            if given[name] not in (default[name], value):
                raise UsageError(
                    f"{name} is {given[name]!r}, and {value!r} in {self.path}",
                    hint="leave it out: a head that starts from a file has the file's size",
                )
        return self.head

    def copy_into(self, network: Network, inputs: Sequence[Input], outputs: Outputs) -> str:
        """Give the encoders of this name the file's weights, and the head its own where it suits these targets.

        Returns what a model's card says of its start; raises ``UsageError`` where the features are not the file's.
        """
        theirs = self.fitted.inputs[0].spec
        for encoder, each in zip(network.encoders, inputs, strict=True):
            if each.encoder != self.encoder:
                continue
            if each.spec != theirs:
                said = (
                    f"{theirs.featuriser} {dict(theirs.widths)}, here {each.spec.featuriser} {dict(each.spec.widths)}"
                )
                raise UsageError(
                    f"{self.path} was trained on other features than this table's: {said}",
                    hint="pretrain an encoder on data of this kind, or leave --init out",
                )
            encoder.load_state_dict(self.fitted.network.encoder.state_dict())
        kinds = {target.kind for target in outputs.targets}
        both = bool(self.head) and outputs.level == "row" and kinds == {self.fitted.outputs.targets[0].kind}
        if both:
            self._copy_head(network.head)
        part = f"the encoder {self.encoder}{' and the head' if both else ''}"
        return f"{part} started from {self.path.name} ({self.about}; sha256 {self.digest[:16]})"

    def _copy_head(self, head: nn.Module) -> None:
        """The file's head with its one output repeated for each target."""
        own, theirs = head.state_dict(), self.fitted.network.head.state_dict()
        try:
            head.load_state_dict({name: value.expand_as(own[name]) for name, value in theirs.items()})
        except (KeyError, RuntimeError) as error:
            raise UsageError(
                f"the head in {self.path} has other widths than this model's",
                hint="read the columns that it was pretrained on: leave descriptors and further inputs out",
            ) from error


def state_outputs(d: int) -> Outputs:
    """Columns for a state of width d, its values as they are."""
    return Outputs(tuple(Target(f"embedding_{i}") for i in range(d)), np.zeros(d), np.ones(d))


def encoder_alone(fitted: FittedNetworks) -> FittedNetworks:
    """A network without its head: it gives the state of each row, and needs no descriptors."""
    network = Network(fitted.network.encoders, fitted.network.joiner, nn.Identity())
    return FittedNetworks(network.eval(), state_outputs(network.d_state), NO_DESCRIPTORS, fitted.inputs)
