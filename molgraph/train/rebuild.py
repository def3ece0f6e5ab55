"""Build a fitted graph method anew with other hyper-parameters, and give it weights of the old one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from molgraph.base.errors import UnsupportedError
from molgraph.train.callback import as_trained
from molgraph.train.method import GraphMethod
from molgraph.train.network import Network
from molgraph.train.runtime import torch_settings


def rebuilt(method: GraphMethod, weights: Mapping[str, Tensor], note: str, **changed: Any) -> GraphMethod:
    """A copy of a fitted method whose network has other sizes; the method stays as it is.

    Args:
        method: fitted.
        weights: of the new network; those that it lacks are left out.
        note: what was done, for the model's card.
        changed: hyper-parameters that are other ones.

    Raises:
        UnsupportedError: the new network needs weights that are not there, or of other shapes.
    """
    fitted = method.ready()
    clone = GraphMethod(**{**method.get_params(), "init": None, **changed})
    with torch_settings(method.threads, 0):  # the weights that are drawn are replaced
        targets = fitted.outputs.targets if fitted.network.has_head else ()
        network = clone.build(fitted.inputs, d_extra=len(fitted.descriptors.names), targets=targets)
        network = as_trained(network, method.callback).eval()
    wanted = network.state_dict()
    if not wanted.keys() <= weights.keys():
        words = f"the layers {', '.join(sorted(wanted.keys() - weights.keys())[:3])} are not in the trained model"
        raise UnsupportedError(words, hint="cut the model that it was cut from, or one without callbacks")
    if odd := [name for name, value in wanted.items() if value.shape != weights[name].shape]:
        words = (
            f"{odd[0]} has {tuple(weights[odd[0]].shape)} weights, and the smaller model {tuple(wanted[odd[0]].shape)}"
        )
        raise UnsupportedError(words, hint="train one with plain settings of readout, head and norm")
    network.load_state_dict({name: weights[name] for name in wanted})
    return with_network(method, network, note, **changed)


def with_network(method: GraphMethod, network: Network, *notes: str, **changed: Any) -> GraphMethod:
    """A copy of a fitted method with another network, further notes, and the hyper-parameters that are other ones."""
    clone = GraphMethod(**{**method.get_params(), "init": None, **changed})
    clone.fitted = replace(method.ready(), network=network.eval())
    clone.predicts, clone.curves, clone.best_epoch = method.predicts, method.curves, method.best_epoch
    clone.notes = (*method.notes, *notes)
    return clone
