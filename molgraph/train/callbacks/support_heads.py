"""Callbacks ``film``, ``plastic`` and ``matching``: the head that a few-shot objective learned to make of a support."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import torch

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Count, Share, Width
from molgraph.base.registry import register
from molgraph.nn.closed_form import Linear
from molgraph.nn.matching_network import FittedMatching, MatchingNetwork
from molgraph.train.callback import Phase
from molgraph.train.callbacks.closed_form import ClosedFormHead, LinearProbe, Task
from molgraph.train.callbacks.lp_ft import STILL, new_parameters, of_rows
from molgraph.train.objectives.closed_form import centred
from molgraph.train.objectives.matching import Steps
from molgraph.train.ridge_probe import RidgeProbe


class LearnedHead(ClosedFormHead):
    """The base class: the head is what a part of the pretrained network (``starts_from``) makes of the rows."""

    def part(self, network: Any) -> Any:
        """The part of the start; None where a file is read.

        Raises:
            UnsupportedError: it was pretrained by another objective, or the head reads more than the states.
        """
        if not network.started:
            return None
        if self.starts_from not in network.start_parts:
            words = f"{self.name} makes the head by what --objective {self.starts_from} has learned; the file has not"
            hint = (
                f"pretrain with it: molgraph pretrain assays.csv -t 'SR-*' --objective {self.starts_from} -o start.mgm"
            )
            raise UnsupportedError(words, hint=hint)
        layers: Any = network.head.layers if of_rows(network) else ()
        if len(layers) != 1 or layers[0].in_features != network.d_state:
            words = f"{self.name} makes a linear head of the encoder's states"
            raise UnsupportedError(words, hint="set params.head_layers=1, and leave descriptors out")
        return network.start_parts[self.starts_from]


class WrittenHead(LearnedHead):
    """The base class of those that make a linear layer.

    Args:
        share: of the epochs in which the head alone is made; in the others all weights are trained from there.
    """

    def __init__(self, *, share: Share = 1.0) -> None:
        super().__init__()
        self.share, self.write = share, list[Any]()  # a module in a list is no part of this one

    def begin(self, network: Any) -> None:
        """Take the part of the start."""
        self.write = [self.part(network)]

    def phases(self, network: Any) -> list[Phase]:
        """One in which nothing moves, then one of everything."""
        first = Phase(self.share, new_parameters(network, self.name), STILL)
        return [first] if self.share == 1 else [first, Phase(1 - self.share)]

    def probe(self, network: Any) -> RidgeProbe:
        """The layer that the part makes of a target's rows."""
        kind = "regression" if self.write[0].numbers else "binary"
        if odd := [other for other, _, _ in network.head.columns if other != kind]:
            words = f"{self.starts_from} has learned {kind} targets in the file, and one here is {odd[0]}"
            raise UnsupportedError(words, hint="pretrain on assays of this kind")
        return LinearProbe(network.head, self.heads)

    def heads(self, tasks: list[Task]) -> list[Linear]:
        """One for each target."""
        part = deepcopy(self.write[0]).double()
        return [part(each.x, centred(each.y) if each.kind == "binary" else each.y) for each in tasks]


@register(
    "callback",
    "film",
    summary="the head that a set network writes from the labelled rows, without gradient",
    paper="Zakharov et al. 2019, ICCV",
    command="molgraph pretrain dataset:tox21 --objective support-film --epochs 3 -o film.mgm && "
    "molgraph finetune film.mgm dataset:tox21 --callback film -o model.mgm",
)
class FilmHead(WrittenHead):
    """The head by the set network of ``pretrain --objective support-film``; ``film(share=0.1)`` goes on by gradient.

    Args:
        share: of the epochs in which the head alone is made; in the others all weights are trained from there.
    """

    name, starts_from = "film", "support-film"


@register(
    "callback",
    "plastic",
    summary="the head that Hebbian learning writes from the labelled rows, without gradient",
    paper="Miconi et al. 2018, ICML",
    command="molgraph pretrain dataset:tox21 --objective plastic --epochs 3 -o plastic.mgm && "
    "molgraph finetune plastic.mgm dataset:tox21 --callback plastic -o model.mgm",
)
class PlasticHead(WrittenHead):
    """The head by the plastic layer of ``pretrain --objective plastic``, which reads the rows one after the other.

    Args:
        share: of the epochs in which the head alone is made; in the others all weights are trained from there.
    """

    name, starts_from = "plastic", "plastic"


@register(
    "callback",
    "matching",
    summary="predicts by attention over the labelled rows, without gradient",
    paper="Altae-Tran et al. 2017, ACS Cent. Sci. 3:283",
    command="molgraph pretrain dataset:tox21 --objective matching --epochs 3 -o matching.mgm && "
    "molgraph finetune matching.mgm dataset:tox21 --callback matching -o model.mgm",
)
class MatchingHead(LearnedHead):
    """The labelled rows are the support of a matching network (``pretrain --objective matching``), kept in the file.

    Args:
        steps: of refinement; 0 is the plain matching network.
        width: of the embeddings, as it was pretrained.
        most: rows of the support at most; the first of them are kept.
    """

    name, starts_from, classes_only = "matching", "matching", True

    def __init__(self, *, steps: Steps = 3, width: Width = 64, most: Count = 256) -> None:
        super().__init__()
        self.steps, self.width, self.most = steps, width, most

    def begin(self, network: Any) -> None:
        """Put the matching network behind the head."""
        part, d, kinds = self.part(network), network.d_state, {kind for kind, _, _ in network.head.columns}
        if kinds != {"binary"}:
            words = f"matching is of two classes, and a target is {min(kinds - {'binary'})}"
            raise UnsupportedError(words, hint="--callback ridge learns numbers")
        matching = MatchingNetwork(d, self.steps, self.width)
        if part is not None:
            if part.embed.out_features != self.width:
                words = f"the embeddings of the file are {part.embed.out_features} wide"
                raise UnsupportedError(words, hint=f"matching(width={part.embed.out_features})")
            matching.load_state_dict(part.state_dict())
        network.parts[self.name] = FittedMatching(matching, d, len(network.head.columns), self.most)
        network.head.register_forward_hook(network.parts[self.name].answer)

    def phases(self, network: Any) -> list[Phase]:
        """One phase, in which nothing moves."""
        names = new_parameters(network, self.name)
        return [Phase(1.0, frozenset(each for each in names if each.startswith("head.")), STILL)]

    def probe(self, network: Any) -> RidgeProbe:
        """What keeps the support."""
        return SupportProbe(network.head, network.parts[self.name])


class SupportProbe(RidgeProbe):
    """Collects as the ridge probe does, and gives the rows to a matching network."""

    def __init__(self, head: Any, matching: FittedMatching) -> None:
        super().__init__(head)
        self.matching = matching

    def solve(self) -> None:
        """Keep the support."""
        if self.x:
            x, y, known = (torch.as_tensor(np.concatenate(parts)) for parts in (self.x, self.y, self.known))
            self.matching.keep(x, y, known.expand_as(y))
