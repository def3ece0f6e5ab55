"""Map hidden units and attention heads to their entries in a network's weights, for structured pruning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from molgraph.base.errors import BadValueError


class Axis(NamedTuple):
    """Entries of a weight along one of its dimensions: ``times`` runs of ``size`` entries for each unit in turn.

    Args:
        name: of the weight in the state of the network.
        dim: the dimension.
        start: its first entry of the first unit.
        times: how often the units follow one another, as queries, keys and values do.
        size: entries of a unit in each run.
    """

    name: str
    dim: int
    start: int = 0
    times: int = 1
    size: int = 1


class Units(NamedTuple):
    """Hidden units, or heads, that can only be removed from all of these weights together.

    Args:
        n: how many there are.
        axes: the weights that write them, read them or normalise them.
    """

    n: int
    axes: tuple[Axis, ...]

    def places(self, axis: Axis) -> Int[Tensor, "times n size"]:
        """The entries of each unit along an axis."""
        return axis.start + torch.arange(axis.times * self.n * axis.size).view(axis.times, self.n, axis.size)

    def within(self, prefix: str) -> Units:
        """The same units of a module that stands in a larger one."""
        return Units(self.n, tuple(axis._replace(name=f"{prefix}.{axis.name}") for axis in self.axes))

    def norms(self, state: Mapping[str, Shaped[Tensor, " *_"]]) -> Float[Tensor, " {self.n}"]:
        """The squared L2 norm of each unit's weights, the mean of each axis being 1; biases do not count."""
        total = torch.zeros(self.n)
        for axis in self.axes:
            if not axis.name.endswith("weight"):
                continue
            rows = state[axis.name].float().movedim(axis.dim, 0)[self.places(axis)]
            norm = rows.flatten(2).square().sum((0, 2))
            total += norm / norm.mean().clamp(min=torch.finfo(norm.dtype).tiny)
        return total


class HiddenUnits(NamedTuple):
    """The hidden units of an encoder, all groups as wide as its ``d_hidden``.

    Args:
        groups: that can be pruned independently of each other, to one new width.
        rows: numbers of the groups that stand side by side in the states of its rows.
    """

    groups: tuple[Units, ...]
    rows: tuple[int, ...]


class Heads(NamedTuple):
    """The heads of one attention.

    Args:
        units: its heads.
        output: name of the linear layer that reads what the heads give, side by side.
        level: of its rows, ``atom`` or ``bond``.
    """

    units: Units
    output: str
    level: str = "atom"


def keep_units(
    state: Mapping[str, Shaped[Tensor, " *_"]], kept: Iterable[tuple[Units, Sequence[int]]]
) -> dict[str, Shaped[Tensor, " *_"]]:
    """The weights without the units that are not kept.

    Example:
        >>> state, units = {"w": torch.arange(6.0).view(3, 2)}, Units(3, (Axis("w", 0),))
        >>> keep_units(state, [(units, [0, 2])])["w"].tolist()
        [[0.0, 1.0], [4.0, 5.0]]
    """
    stays: dict[tuple[str, int], Bool[Tensor, " n"]] = {}
    for units, numbers in kept:
        for axis in units.axes:
            places = units.places(axis)
            here = stays.setdefault((axis.name, axis.dim), torch.ones(state[axis.name].shape[axis.dim]).bool())
            here[places.flatten()] = False
            here[places[:, list(numbers)].flatten()] = True
    new_state = dict(state)
    for (name, dim), here in stays.items():
        new_state[name] = new_state[name].index_select(dim, here.nonzero()[:, 0])
    return new_state


def vector_axes(module: nn.Module, d: int, prefix: str) -> tuple[Axis, ...]:
    """The weights and statistics of a norm that have one number for each of ``d`` units."""
    return tuple(Axis(f"{prefix}.{name}", 0) for name, value in module.state_dict().items() if value.shape == (d,))


def largest(scores: Float[Tensor, " n"], k: int) -> list[int]:
    """The numbers of the k largest scores, in order; of equal ones the first.

    Example:
        >>> largest(torch.tensor([1.0, 3.0, 2.0, 3.0]), 2)
        [1, 3]
    """
    return sorted(scores.argsort(descending=True, stable=True)[:k].tolist())


def head_counts(text: str, layers: int, heads: int) -> list[int]:
    """The number of heads of each attention: ``heads``, or those of a text such as ``2,4,1``.

    Raises:
        BadValueError: another number of attentions, or a number that is not 1 to ``heads``.

    Example:
        >>> head_counts("", 2, 4), head_counts("3,1", 2, 4)
        ([4, 4], [3, 1])
    """
    if not str(text):
        return [heads] * layers
    counts = [int(part) if part.strip().isdigit() else 0 for part in str(text).split(",")]
    if len(counts) != layers or not all(1 <= count <= heads for count in counts):
        words = f"kept_heads is {str(text)[:40]!r}, expected {layers} numbers from 1 to {heads}"
        raise BadValueError(words, hint="molgraph compress writes it; leave it out to train all heads")
    return counts
