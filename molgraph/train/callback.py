"""Define ``Callback``, the base class of changes to training such as penalties and freezing, which can be combined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from torch import nn

from molgraph.base.errors import MissingOptionError
from molgraph.base.parts import read_parts, settings_of
from molgraph.base.registry import get
from molgraph.train.objective import Loss, StepState

Compute = Callable[[Any, Any, StepState], Loss]  #: (network, batch, state) -> Loss, as an objective is called
N = TypeVar("N", bound=nn.Module)
NONE = "none"  #: the word for plain training, where a verb has a callback by default


class Phase(NamedTuple):
    """A stretch of a fit, with a warm-up and a schedule of its own.

    Args:
        share: of the epochs; those of a callback's phases sum to 1.
        trains: names of the network's parameters that learn; the others, and their modules' buffers, stay as they are
            to the bit. None for all. The objective's parameters and the callback's own always learn.
        rate: its highest learning rate, as a multiple of the fit's.
    """

    share: float
    trains: frozenset[str] | None = None
    rate: float = 1.0


class Callback(nn.Module):
    """The base class of callbacks, which go around any objective.

    A subclass is registered with ``@register("callback", name)``; its settings are keyword arguments with defaults.
    Its modules and buffers are trained, and kept in checkpoints, with the network; a plain attribute that changes is
    not. ``needs_start``: whether it asks for a network that starts from a file (``--init``, ``finetune``), whose
    ``network.started`` then has the names of the parameters that come from there. ``arrays``: arrays of atoms that the
    training's graphs have for it, as for objectives. ``changes_training``: False for one that measures only.
    ``starts_from``: the objective whose parts (``network.start_parts``) it goes on with.
    """

    needs_start: bool = False
    changes_training: bool = True
    needs_layers: bool = False
    classes_only: bool = False
    solves_head: bool = False
    starts_from: str | None = None
    arrays: tuple[str, ...] = ()

    def begin(self, network: Any) -> None:
        """Called before training, when the network has the weights of its start, and when a model file is read.

        Parts that are put into the network here are the model's: it predicts with them, and its file has them.
        """

    def phases(self, network: Any) -> Sequence[Phase]:
        """The phases of the fit; none for one of everything.

        Where several callbacks have phases, a parameter learns while all of them train it, and rates multiply.
        """
        return ()

    def loss(self, objective: Compute, network: Any, batch: Any, state: StepState) -> Loss:
        """The loss of a batch, in training and in validation; ``objective`` computes it without this callback.

        It may be called several times, or on another batch. A validation part is judged by what is returned where
        ``state.training`` is False; a penalty that would favour the first epochs is left out there.
        """
        return objective(network, batch, state)

    def after_step(self, network: Any, state: StepState) -> None:
        """Called after every step of training: set weights to zero, move an average."""

    def after_epoch(self, network: Any) -> Mapping[str, float]:
        """Called after every epoch; further columns of the curves, such as scores on other data."""
        return {}

    def notes(self, network: Any) -> Sequence[str]:
        """Sentences for the log and the fit's record, on the network with the weights of its best epoch; before
        ``end``."""
        return ()

    def end(self, network: Any) -> None:
        """Called when the network has the weights of its best epoch: take off what only training needs."""


def make_callbacks(text: str | None, *, start: bool = True) -> list[Callback]:
    """The callbacks that a text names, the innermost first; ``none`` names none.

    ``start``: whether the network starts from a file.

    Raises:
        UsageError: an unknown name or setting, or a callback that needs a start where there is none.

    Example:
        >>> [type(each).__name__ for each in make_callbacks("lp-ft(share=0.3)+l2-sp")]
        ['LPFT', 'L2SP']
    """
    callbacks = []
    for part in read_parts(text, "callback") if text and text != NONE else ():
        make = get("callback", part.name)
        callbacks.append(make(**settings_of(make, part)))
        if make.needs_start and not start:
            words = f"{part.name} holds on to the weights of a pretrained model, and there is none"
            hint = "fine-tune one: molgraph finetune encoder.mgm assay.csv (or train --init)"
            raise MissingOptionError(words, hint=hint)
    return callbacks


def as_trained(network: N, text: str | None) -> N:
    """A fresh network with the parts that the callbacks of its training put into it, ready for a file's weights."""
    callbacks = make_callbacks(text)
    for step in ("begin", "end"):
        for callback in callbacks:
            getattr(callback, step)(network)
    return network
