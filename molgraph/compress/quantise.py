"""Quantise the weights of a trained graph network to a few bits, with learned mixed precision."""

from __future__ import annotations

from copy import deepcopy
from types import MappingProxyType
from typing import Annotated, Any, Literal

from molgraph.base.contracts import Method
from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.compress.compressor import Compressor
from molgraph.compress.quantiser import QuantisedTraining, round_weights
from molgraph.data.table import Table
from molgraph.train.further import train_further
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.network import Network
from molgraph.train.packed_weights import FEWEST, MOST
from molgraph.train.rebuild import with_network

EPOCHS, STEPS = 30, 600  # if not said otherwise


@register(
    "compressor",
    "quantise",
    summary="weights of a few bits in the file, each matrix with as many as training finds it needs",
    paper="Uhlich et al. 2020, ICLR",
    systems=(
        SystemCard(
            "differentiable-mixed-precision-quantisat",
            left_out="activations of few bits, steps and weights that are powers of two; whole-number arithmetic",
            off="'quantise(bits=4, learn=steps)'",
            beside=("rounding", "as many bits for each matrix"),
            command="molgraph train dataset:adme_sol -m dmpnn -o assay.mgm && "
            "molgraph compress assay.mgm dataset:adme_sol --how 'quantise(bits=4)' -o small.mgm",
            modules=("molgraph.compress.quantiser", "molgraph.train.packed_weights", "molgraph.train.further"),
        ),
    ),
)
class Quantise(Compressor):
    """The file holds whole numbers of ``bits`` bits on average in the place of 32, and a step for each matrix.

    Uhlich et al. 2020, "Mixed precision DNNs: all you need is a good parametrization": the network trains further with
    weights that are rounded in every pass, and learns for each matrix the length of a step and the largest value, and
    so its bits, under the budget (``compress.quantiser``). Biases, norms and the weights of torch's own recurrent
    layers stay as they are. Predictions are made with 32 bits again: the file is smaller, and no prediction faster.

    Use it where a file has to be small; fingerprints of training molecules stay (train ``--private``).
    Known limits: on ESOL learned bits were no better than as many for each matrix at 4 bits; at 3 the error was 0.97
    times theirs in the mean of three seeds, which differ by more than that.

    Args:
        bits: of a weight, on average over the matrices; a number of weights times this is the most that they take.
        learn: ``widths``: bits and steps; ``steps``: as many bits for each matrix; ``nothing``: the weights are rounded
            as they are, without training.
        epochs: passes over the rows; if not given 30, or as many as 600 steps take.
    """

    source = "gin(depth=2, d_hidden=8)"
    small = MappingProxyType({"epochs": 2})

    def __init__(
        self,
        bits: Annotated[float, Range(FEWEST, MOST)] = 4.0,
        *,
        learn: Literal["widths", "steps", "nothing"] = "widths",
        epochs: Count | None = None,
    ) -> None:
        self.bits, self.learn, self.epochs = bits, learn, epochs

    def compress(self, model: Model, table: Table, valid: Table, seed: int) -> Method:
        """The same network with quantised weights."""
        method = model.method
        if not isinstance(method, GraphMethod):
            words = f"a {model.kind} has no network whose weights could be quantised"
            raise UnsupportedError(words, hint="teach a graph model first: --how 'born_again(student=gin)'")
        if self.learn == "nothing":
            network = deepcopy(method.ready().network)
            round_weights(network, self.bits)
            return with_network(method, network, summary_of(network))
        callback = QuantisedTraining(self.bits, learn_widths=self.learn == "widths")
        length: dict[str, Any] = {
            "epochs": self.epochs or EPOCHS,
            "min_steps": 0 if self.epochs else STEPS,
            "patience": None,
        }
        judged = valid if len(valid) else None
        result = train_further(method, table, judged, [callback], label="quantising", seed=seed, **length)
        result.notes = (*result.notes, summary_of(result.ready().network))
        return result


def summary_of(network: Network) -> str:
    """The bits of the matrices in words, such as ``4.0 bits for each of 1,200 weights, 2 to 6 in a matrix``."""
    sizes = {name: network.get_parameter(name).numel() for name in network.quantised}
    total = sum(steps.bits * sizes[name] for name, steps in network.quantised.items())
    widths = sorted(steps.bits for steps in network.quantised.values())
    spread = f", {widths[0]} to {widths[-1]} in a matrix" if widths[0] < widths[-1] else ""
    return f"{total / sum(sizes.values()):.3g} bits for each of {sum(sizes.values()):,} weights{spread}"
