"""Prune the hidden units or weights of smallest magnitude, then train on with learning-rate rewinding."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any

from molgraph.base.contracts import Method
from molgraph.base.errors import BadValueError, UnsupportedError
from molgraph.base.parts import read_part
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.systems import SystemCard
from molgraph.compress.compressor import Compressor
from molgraph.compress.retrain import Retrain, graph_method, rates_of, retrain
from molgraph.data.table import Table
from molgraph.nn.head import Head
from molgraph.nn.removable import Axis, Units, keep_units, largest
from molgraph.train.masks import Masked, masks_of, matrices
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.rebuild import rebuilt

READOUTS = ("sum", "mean", "max", "norm", "sum_max")  # of each channel by itself


@register(
    "compressor",
    "magnitude",
    summary="removes the smallest hidden units (or weights) and trains on at rewound learning rates",
    paper="Renda et al. 2020, ICLR; Li et al. 2017, ICLR",
    systems=(
        SystemCard(
            "learning-rate-rewinding",
            left_out="rewinding the weights, which a model file does not hold; images and translation",
            off="'magnitude(0.5, structured=false, retrain=finetune)'",
            beside=("fine-tuning at the last learning rate", "no training after pruning"),
            command="molgraph train dataset:adme_sol -m dmpnn -o assay.mgm && "
            "molgraph compress assay.mgm dataset:adme_sol --how 'magnitude(0.5, structured=false)' -o pruned.mgm",
            modules=("molgraph.compress.retrain", "molgraph.train.masks", "molgraph.nn.removable"),
        ),
    ),
)
class Magnitude(Compressor):
    """Prune by magnitude, then train on at the learning rates of the training's last epochs.

    Renda, Frankle and Carbin 2020, "Comparing Rewinding and Fine-tuning in Neural Network Pruning", algorithm 2: the
    weights that are left go on from their values, and the learning rate goes through its last ``rewind`` epochs of the
    training once more; several ``rounds`` prune the same share of what is left each time.

    Structured, hidden units of dmpnn or gin and of the head are removed: the file holds a network of a smaller
    ``d_hidden``, which predicts faster. A unit's magnitude is the squared L2 norm of the weights into and out of it,
    each matrix being divided by its mean, after Li et al. 2017. Unstructured, single weights become zero and stay so;
    dense matrices are neither faster nor shorter for it, only compressible.

    Args:
        fraction: of the hidden units, or of the weights, that are removed.
        structured: hidden units; otherwise weights, the smallest of all matrices together.
        rewind: the share of the training's epochs, up to the one that was kept, that is gone through again.
        retrain: ``lr_rewind``; ``finetune`` for as many epochs at the last learning rate; or ``none``.
        rounds: of pruning and training.
    """

    source = "dmpnn(d_hidden=8)"
    small = MappingProxyType({"fraction": 0.5})

    def __init__(
        self,
        fraction: Annotated[float, Range(0, 1, above=True, below=True)] = 0.5,
        *,
        structured: bool = True,
        rewind: Annotated[float, Range(0, 1, above=True)] = 0.75,
        retrain: Retrain = "lr_rewind",
        rounds: Annotated[int, Range(1, 100)] = 1,
    ) -> None:
        self.fraction, self.structured, self.rewind, self.retrain = fraction, structured, rewind, retrain
        self.rounds, self.trains = rounds, retrain is not None

    def compress(self, model: Model, table: Table, valid: Table, seed: int) -> Method:
        """The smaller network, trained on."""
        source = result = graph_method(model, "hidden units" if self.structured else "weights")
        rates = [] if self.retrain is None else rates_of(source, self.rewind, self.retrain)
        for turn in range(self.rounds):
            share = 1 - (1 - self.fraction) ** ((turn + 1) / self.rounds)  # of the source
            result = narrowed(source, result, share) if self.structured else with_zeros(result, share)
            if rates:
                on = [] if self.structured else [Masked()]
                result = retrain(result, table, valid, rates, seed=derive(seed, "pruned", turn), callbacks=on)
        return result


def narrowed(source: GraphMethod, method: GraphMethod, share: float) -> GraphMethod:
    """A fitted method without the smallest of its hidden units.

    Args:
        source: of the widths that the share is of.
        method: the source, or one with fewer hidden units.
        share: of the hidden units that are gone then; one stays in any case.

    Raises:
        UnsupportedError: an encoder that does not tell its hidden units, or parts around it that need all of them.
    """
    network = method.ready().network
    encoder, head, weights = network.encoder, network.head, network.state_dict()
    hidden_units = encoder.hidden_units()
    if hidden_units is None:
        words = f"{method.encoder} does not say which of its weights belong to a hidden unit"
        raise UnsupportedError(words, hint="prune a dmpnn or gin, or choose structured=false")
    options = [key for key, value in (method.params or {}).items() if key in ("stack", "exit") and value != "none"]
    readout = read_part(str(method.inner_value("readout")), "readout").name
    plain = isinstance(head, Head) and not head.reads_atoms and not head.state_dict().keys() - _names(head)
    if options or readout not in READOUTS or not plain or network.parts or network.joiner is not None:
        what = (
            f"params.{options[0]}" if options else f"the readout {readout}" if readout not in READOUTS else "its head"
        )
        words = f"hidden units of {method.encoder} cannot be removed beside {what}, which reads all of them"
        raise UnsupportedError(words, hint="train it without, or choose structured=false")
    wide = _width(source)
    left = max(1, wide - round(share * wide))
    if left == hidden_units.groups[0].n:
        words = f"{share:.2g} of {wide} hidden units are less than one"
        raise BadValueError(words, hint="choose a larger fraction")
    groups = [units.within("encoder") for units in hidden_units.groups]
    copies = encoder.d_out // encoder.d_rows if network.level == "row" else 1  # of the states, in the readout's
    for place, number in enumerate(hidden_units.rows):
        n = groups[number].n
        first = [Axis("head.layers.0.weight", 1, place * n + copy * encoder.d_rows) for copy in range(copies)]
        groups[number] = Units(n, (*groups[number].axes, *first))
    kept = [(units, largest(units.norms(weights), left)) for units in groups]
    settings: dict[str, object] = {"params": {**(method.params or {}), "d_hidden": left}}
    if len(head.layers) > 1 and {layer.out_features for layer in head.layers[:-1]} == {method.head_width}:
        width = max(1, source.head_width - round(share * source.head_width))
        settings["head_width"] = width
        kept += [(units, largest(units.norms(weights), width)) for units in head_units(head)]
    return rebuilt(method, keep_units(weights, kept), f"pruned to {left} of {wide} hidden units", **settings)


def _names(head: Head) -> set[str]:
    return {f"layers.{i}.{name}" for i in range(len(head.layers)) for name in ("weight", "bias")}


def _width(method: GraphMethod) -> int:
    """Hidden units of each group of an encoder."""
    units = method.ready().network.encoder.hidden_units()
    assert units is not None
    return units.groups[0].n


def head_units(head: Head) -> list[Units]:
    """The hidden units of each layer of a head, in a network."""
    hidden = [f"head.layers.{i}" for i in range(len(head.layers))]
    layers: list[Any] = [*head.layers]
    return [
        Units(layer.out_features, (Axis(f"{name}.weight", 0), Axis(f"{name}.bias", 0), Axis(f"{reader}.weight", 1)))
        for layer, name, reader in zip(layers[:-1], hidden[:-1], hidden[1:], strict=True)
    ]


def with_zeros(method: GraphMethod, share: float) -> GraphMethod:
    """A fitted method whose smallest weights, of all matrices together, are zero."""
    network = method.ready().network
    scores = {name: value.detach().abs() for name, value in matrices(network).items()}
    weights = {name: value.clone() for name, value in network.state_dict().items()}
    masks = masks_of(scores, share)
    for name, mask in masks.items():
        weights[name] *= mask
    note = f"{share:.0%} of {sum(mask.numel() for mask in masks.values()):,} weights set to zero"
    return rebuilt(method, weights, note)
