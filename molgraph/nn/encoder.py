"""What an encoder is: a batch of graphs in, one state a graph and the states of its rows out."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

from jaxtyping import Float, Int
from torch import Tensor, nn

from molgraph.data.batch import GraphBatch


@dataclass(frozen=True)
class Rows:
    """States of the rows of one level.

    Args:
        level: ``atom``, ``bond``, ``tree``, ...
        h: float [rows, d].
        graph_of: int64 [rows], the graph of each row.
    """

    level: str
    h: Float[Tensor, "rows d"]
    graph_of: Int[Tensor, " rows"]


@dataclass(frozen=True)
class Encoded:
    """What an encoder gives.

    Args:
        graphs: float [g, d_out].
        rows: states below the graph, where the encoder has them.
        penalties: scalars to add to the objective (KL terms, balance terms), by name.
    """

    graphs: Float[Tensor, "g d_out"]
    rows: tuple[Rows, ...] = ()
    penalties: dict[str, Float[Tensor, ""]] = field(default_factory=dict)


class Encoder(nn.Module):
    """The base class of every encoder.

    A subclass takes ``d_atom`` and ``d_bond`` (widths of the features) and then its hyper-parameters
    as keyword arguments with defaults, sets ``d_out``, and is registered with
    ``@register("encoder", name, paper=..., line=...)``. ``repeats`` names the hyper-parameters that say how often the
    same weights are used: a model file's values for them are bounded by what that costs.
    """

    d_out: int
    repeats: tuple[str, ...] = ()

    def prepare(self, batch: GraphBatch) -> None:
        """Make the batch's index work (relations) ahead, in the loader; nothing by default."""

    @abstractmethod
    def forward(self, batch: GraphBatch, *, rows: bool = False) -> Encoded:
        """Encode a batch; with ``rows``, write out the states of its rows too.

        A graph without atoms gives a finite row, which callers mask by its status.
        """
