"""Define ``Objective``, the base class of what a step of training minimises, and make registered ones by name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from torch import Tensor, nn

from molgraph.base.errors import (
    ConflictError,
    UnknownNameError,
    UnsupportedError,
    UnusedSettingError,
    UsageError,
    nearest,
)
from molgraph.base.parameters import check_params
from molgraph.base.parts import Part, part_names, read_part
from molgraph.base.recipe_keys import GradientDescent
from molgraph.base.registry import get
from molgraph.data.view import View, make_views
from molgraph.train.episodes import Episodes
from molgraph.train.inputs import Input, own_params
from molgraph.train.network import Network
from molgraph.train.outputs import Outputs
from molgraph.train.row_groups import RowGroups
from molgraph.train.row_labels import RowLabels
from molgraph.train.samples import Samples


class Loss(NamedTuple):
    """What an objective gives for a batch.

    Args:
        total: scalar, the sum of the losses of ``count`` labels; a step minimises ``total / count``.
        count: how many labels (or tokens, or tasks) it is the sum of.
        parts: named shares of ``total``, the same names in every batch of a turn: columns ``train_NAME`` and
            ``valid_NAME`` of the curves, which are means over the labels as the loss is.
    """

    total: Tensor
    count: int  # type: ignore[assignment] # tuple has a method of that name
    parts: Mapping[str, Tensor] = MappingProxyType({})

    def with_penalties(
        self, penalties: Mapping[str, Tensor], weights: Mapping[str, float] = MappingProxyType({})
    ) -> Loss:
        """The loss with penalties added for each label, each times its weight, which is 1 if not given.

        Example:
            >>> import torch
            >>> found = Loss(torch.tensor(6.0), 2).with_penalties({"kl": torch.tensor(4.0)}, {"kl": 0.5})
            >>> found.total, found.parts
            (tensor(10.), {'kl': tensor(4.)})
        """
        parts = {name: value * (weights.get(name, 1.0) * self.count) for name, value in penalties.items()}
        return Loss(sum(parts.values(), self.total), self.count, {**self.parts, **parts})


class StepState(NamedTuple):
    """Where training stands, for objectives that change as it goes.

    Args:
        step, n_steps: the step's number, from 0, and how many there are at most.
        epoch: its epoch, from 0.
        turn: which of the objective's optimisers steps now.
        training: False where a validation part is judged.
    """

    step: int
    n_steps: int
    epoch: int
    turn: int = 0
    training: bool = True

    @property
    def progress(self) -> float:
        """The share of the training that is done, 0 to 1: the place of a warm-up."""
        return min(self.step / max(self.n_steps, 1), 1.0)


class Objective(nn.Module):
    """The base class of objectives: ``(network, batch, state) -> Loss``; it owns the step.

    Modules and buffers of its own (a discriminator, a teacher, prototypes) are trained and kept in checkpoints with
    the network. A subclass is registered with ``@register("objective", name)``. ``labelled``: whether it learns the
    labels of rows and is made from their ``Outputs``; one that is not pretrains an encoder and is made from
    ``(network, inputs)``, with ``outputs`` as well where ``tasks`` says that the targets of rows are its tasks.
    ``trains_head``: whether its tasks have a head, which a model that starts from the file has too; ``classes_only``:
    whether they are classes. ``adapts_by``: the callback by which a model that starts from the file learns a new task.
    ``helped``: it learns the first target beside helpers, and is made from ``(network, inputs, outputs)``.
    ``semi_supervised``: it learns from rows without labels too, is made from ``(network, inputs, outputs)``, and each
    batch of training has as many of them as rows with labels, after these. Its hyper-parameters are keyword arguments
    with defaults (``params.objective.NAME``).
    ``episodes``: what a batch has, where it is support and query of a few tasks (weights float [2, n, t]); then
    ``batch_size`` says how many steps an epoch has.
    ``grad_in_validation``: whether judging needs gradients, as fast weights do. ``unused_parameters``: whether a step
    may leave some parameters without a gradient, as several turns do: processes then look for those in every step.
    ``least_rows``: rows that a batch needs, 2 where rows are compared; a last one with fewer joins the one before.
    ``copies``: how often each row of a batch comes, each time seen through the views, in validation too unless it is
    ``semi_supervised``; they follow one another, all rows once, then all again. ``usual_views``: where none are named.
    ``plain``: of which rows ``batch.plain`` has one more copy, neither seen through views nor corrupted: of ``all``,
    or of ``labelled`` ones.
    ``valid_parts``: names of the shares that a loss has where a validation part is judged, and there alone.
    ``needs``: arrays that the graphs must hold, such as ``atom.position``. ``head_settings``: settings of the head
    where none are given, such as a smooth activation.
    ``learns_limits``: whether labels that are limits, such as >8, are learnt (``batch.limits``).
    ``learns_points``: whether the points of dose-response curves are (``batch.points``), of rows without a label too.
    ``arrays``: arrays of atoms that the training's graphs have for it beside what the encoder reads: ``position``.
    """

    labelled: bool = True
    tasks: bool = False
    trains_head: bool = True
    classes_only: bool = False
    adapts_by: str | None = None
    helped: bool = False
    semi_supervised: bool = False
    episodes: Episodes | None = None
    grad_in_validation: bool = False
    unused_parameters: bool = False
    learns_limits: bool = False
    learns_points: bool = False
    least_rows: int = 1
    copies: int = 1
    usual_views: str | None = None
    plain: Literal["none", "labelled", "all"] = "none"
    valid_parts: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    head_settings: Mapping[str, Any] = MappingProxyType({})

    @classmethod
    def check_inputs(cls, inputs: Sequence[Input]) -> None:
        """Refuse a model that reads what the objective cannot use; nothing by default."""

    arrays: tuple[str, ...] = ()

    @classmethod
    def heads(cls, outputs: Outputs) -> Outputs:
        """The columns of the network's head, for the targets of rows: by default one or more for each target."""
        return outputs

    @classmethod
    def parts(cls, encoder: Any, **settings: Any) -> Mapping[str, nn.Module]:
        """Modules that are the model's: ``network.parts`` has them, and so has its file. None by default.

        ``settings``: the objective's hyper-parameters.
        """
        return {}

    @classmethod
    def network_parts(cls, network: Network, **settings: Any) -> Mapping[str, nn.Module]:
        """The same of a network with several encoders; by default ``parts`` of its first."""
        return cls.parts(network.encoder, **settings)

    @classmethod
    def row_labels(cls, **settings: Any) -> RowLabels | None:
        """Labels that the objective makes of the molecules of a corpus, as ``batch.y``; none by default.

        Where rows have targets for tasks, they stand behind those.

        ``settings``: the objective's hyper-parameters.
        """
        return None

    def sampler(self, samples: Samples, batch_size: int, *, judged: bool = False) -> RowGroups | None:
        """What draws batches of rows that belong together; None, as by default, for batches of any rows.

        ``judged``: whether the rows are those of the validation part.
        """
        return None

    def lengths(self, samples: Samples) -> np.ndarray | None:
        """int [n], the terms of each row's loss where a batch is padded to its longest; None, as by default, elsewhere.

        Rows of like length are then learned together, each with the weight that it has in a batch of any rows, where
        an epoch has 16 batches or more.
        """
        return None

    @abstractmethod
    def forward(self, network: Any, batch: Any, state: StepState) -> Loss:
        """The loss of a batch."""

    def check_parts(self, how: GradientDescent, n_train: int, n_valid: int) -> None:
        """Refuse parts with fewer rows than are compared with each other, and to monitor an accuracy that is not given.

        Args:
            how: the settings of gradient descent.
            n_train, n_valid: rows of each part; 0 is a part that is not there.
        """
        judged = 0 if self.semi_supervised else n_valid  # by its labels alone
        for part, n in (("the training part", n_train), ("the validation part", judged), ("a batch", how.batch_size)):
            if 0 < n < self.least_rows:
                words = f"the objective compares {self.least_rows} rows or more with each other"
                hint = f"set batch_size to {self.least_rows} or more" if part == "a batch" else "give it more rows"
                raise UsageError(f"{words}, and {part} has {n}", hint=hint)
        if how.monitor == "accuracy" and "accuracy" not in self.valid_parts:
            words = "an accuracy cannot be monitored: not all targets are classes"
            raise UnsupportedError(words, hint="monitor the loss")

    def corrupt(self, batch: Any, rng: np.random.Generator) -> Any:
        """The batch with parts masked or noise added, before its relations are made; unchanged by default.

        ``rng`` depends on the seed, the epoch and the batch; for a batch of the validation part it is always the same.
        """
        return batch

    def turns(self, network: nn.Module) -> Sequence[Iterable[nn.Parameter]]:
        """The parameters of each optimiser; a step goes through them in turn. By default one has them all.

        The loss of the first is the run's: it is the one in the curves, and validation judges by it alone.
        """
        return [[*network.parameters(), *self.parameters()]]

    def warming_up(self, state: StepState) -> bool:
        """Whether validation losses of this epoch are not yet to be compared: it is never the best, patience waits."""
        return False

    def after_step(self, network: nn.Module, state: StepState) -> None:
        """Called after every step of training: move a teacher's weights, count."""


def make_objective(
    name: str, params: Mapping[str, Any], network: Network, inputs: Sequence[Input], outputs: Outputs
) -> Objective:
    """A registered objective for a network, what that reads, and the targets of rows.

    Of the hyper-parameters it takes those that begin with ``objective.``, and its settings in parentheses; one that it
    lacks is a ``UsageError``.
    """
    part = read_part(name, "objective")
    make, settings = get("objective", part.name), settings_in(part, params)
    check_params(make, settings, owner=part.name)
    make.check_inputs(inputs)
    if make.tasks or make.helped or make.semi_supervised:
        return make(network, inputs, outputs, **settings)
    return make(outputs, **settings) if make.labelled else make(network, inputs, **settings)


def what_is_read(name: str, params: Mapping[str, Any], *, views: str | None, descriptors: str) -> dict[str, Any]:
    """The settings of ``prepare`` that a registered objective with these hyper-parameters asks for.

    Raises:
        UnusedSettingError: descriptors beside an objective without a head of rows. ConflictError: as ``views_for``.
    """
    part = read_part(name, "objective")
    make = get("objective", part.name)
    reads = {"targets": make.labelled or make.tasks, "unlabelled": make.semi_supervised}
    reads["judge_views"] = make.copies > 1 and not make.semi_supervised
    if descriptors != "none" and not reads["targets"]:
        raise UnusedSettingError(f"{name} has no head that reads descriptors", hint="leave descriptors out")
    reads["points"] = make.learns_points
    return {**reads, "labels": make.row_labels(**settings_in(part, params)), "views": views_for(views, name)}


def settings_in(part: Part, params: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of an objective: in parentheses behind its name, and those hyper-parameters that are its own."""
    return {**own_params(params, "objective", 2), **part.settings}


def with_parts(network: Network, name: str, params: Mapping[str, Any]) -> Network:
    """The network with the parts that an objective puts into it, of those of its settings that they have."""
    part = read_part(name, "objective")
    network.parts.update(get("objective", part.name).network_parts(network, **settings_in(part, params)))
    return network


def views_for(text: str | None, name: str) -> list[View]:
    """Views that a text names; raises ``ConflictError`` for one that an objective of that name cannot learn from."""
    objective = get("objective", part_names(name)[0])
    views = make_views(text or objective.usual_views)
    for view in views:
        if (objective.labelled or objective.tasks) and not view.keeps_label:
            words = f"labels do not hold in the view {type(view).__name__}"
            raise ConflictError(words, hint="choose another view, or pretrain with it")
        if objective.corrupt is not Objective.corrupt and not view.graph_invariant:
            raise ConflictError(f"{name} hides parts of its batches itself", hint="leave views out")
        if view.n > 1 and (objective.semi_supervised or objective.episodes or not objective.labelled):
            words = f"several views of a row have one label, and {name} compares rows"
            raise ConflictError(words, hint="leave n out")
    return views


def check_penalties(weights: Mapping[str, float], penalties: Mapping[str, Tensor]) -> None:
    """Refuse a weight of a penalty that a network does not have."""
    if unknown := weights.keys() - penalties.keys():
        words = f"the network has no penalty {min(unknown)!r}"
        raise UnknownNameError(words, hint=nearest(min(unknown), sorted(penalties)))
