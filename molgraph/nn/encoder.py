"""The base class of encoders: a batch of graphs to one state a graph and the states of its rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from molgraph.base.errors import UnsupportedError
from molgraph.data.batch import GraphBatch
from molgraph.data.featuriser import DEFAULT_FEATURISERS
from molgraph.data.graph_store import GraphStore, InputSpec
from molgraph.nn.matrix_limit import MatrixLimit
from molgraph.nn.norms import CountedBatchNorm, Norm
from molgraph.nn.penalties import Penalties
from molgraph.nn.removable import Heads, HiddenUnits


@dataclass(frozen=True)
class Rows:
    """States of the rows of one level.

    Args:
        level: ``atom``, ``bond``, ``token``, ...
        h: float [rows, *d].
        graph_of: int64 [rows], the graph of each row.
        name: tells several states of one level apart, as ``node`` and ``edge`` views of the atoms.
    """

    level: str
    h: Float[Tensor, " rows *d"]
    graph_of: Int[Tensor, " rows"]
    name: str = ""


@dataclass(frozen=True)
class Encoded:
    """The states that an encoder gives.

    Args:
        graphs: float [g, d_out].
        rows: states below the graph, where the encoder has them.
        penalties: scalars to add to the objective (KL terms, balance terms), by name; those of its readout too.
        layers: the sum over the rows of each graph of the states after each layer, where rows are asked for and the
            encoder has ``d_layers``.
    """

    graphs: Float[Tensor, "g d_out"]
    rows: tuple[Rows, ...] = ()
    penalties: Penalties = field(default_factory=dict)
    layers: tuple[Float[Tensor, "g _"], ...] = ()


class Encoder(nn.Module):
    """The base class of every encoder.

    A subclass takes an ``InputSpec`` and then its hyper-parameters as keyword arguments with defaults, sets ``d_out``
    (and ``d_rows``, the width of its first rows, where it gives any), and is registered with
    ``@register("encoder", name, paper=..., line=...)``. ``d_layers``: the widths of ``Encoded.layers``, where it gives
    them.

    ``reads``: kinds of entity that it can encode. ``needs``: levels and arrays that the graphs must hold, such as
    ``atom.position``. ``featurisers``: the registered featuriser that makes its graphs, by kind of entity, where it
    is not the default. ``distinct``: whether rows that look alike are computed once. ``counts_rows``: whether its norms
    are told for how many atoms each row stands (``AtomRound.members``). ``small``: hyper-parameters of a quick one, for
    trials. ``limit``: which graphs are too large for it, where any are. ``by_code``: whether it knows atoms by their
    code in the place of their features, so that an option cannot add any. ``head_settings``: those of the head on its
    graphs' states, unless the head's own name says otherwise.
    """

    d_out: int
    d_rows: int = 0
    d_layers: tuple[int, ...] = ()
    reads: tuple[str, ...] = ("molecule", "graph", "reaction")
    needs: tuple[str, ...] = ("atom", "bond")
    featurisers: Mapping[str, str] = MappingProxyType({})
    distinct: bool = True
    counts_rows: bool = False
    small: Mapping[str, Any] = MappingProxyType({})
    limit: MatrixLimit | None = None
    by_code: bool = False
    head_settings: Mapping[str, Any] = MappingProxyType({})

    @classmethod
    def featuriser(cls, kind: str, params: Mapping[str, Any]) -> str:
        """Name of the featuriser that makes its graphs of a kind of entity, for these hyper-parameters."""
        return cls.featurisers.get(kind, DEFAULT_FEATURISERS[kind])

    @property
    def options(self) -> Sequence[Any]:
        """The block options around it, the outermost first."""
        return [*getattr(self, "block_options", ())]

    def __call__(self, batch: GraphBatch, *, rows: bool = False) -> Encoded:
        """``forward`` with the block options around it."""
        call: Callable[..., Encoded] = super().__call__
        for option in reversed(self.options):
            call = partial(option.around, call)
        return call(batch, rows=rows)

    def notes(self) -> tuple[str, ...]:
        """What a person should know of it once it is trained; nothing by default."""
        return ()

    def prepare_all(self, batch: GraphBatch) -> None:
        """``prepare`` for what the encoder reads behind its block options."""
        for option in self.options:
            batch = option.change(batch)
        self.prepare(batch)

    def prepare(self, batch: GraphBatch) -> None:
        """Make the batch's index work (relations) ahead, in the loader; nothing by default."""

    def measure(self, store: GraphStore) -> None:
        """Take what the network has of the training graphs, before the first step; nothing by default."""

    def hidden_units(self) -> HiddenUnits | None:
        """Which weights belong to each hidden unit, where some can be removed; None where the encoder does not tell."""
        return None

    def attention_heads(self) -> tuple[Heads, ...]:
        """The heads of each attention, in the order of its hyper-parameter ``kept_heads``; none by default."""
        return ()

    @abstractmethod
    def forward(self, batch: GraphBatch, *, rows: bool = False) -> Encoded:
        """Encode a batch; with ``rows``, write out the states of its rows too.

        A graph without atoms gives a finite row, which callers mask by its status.
        """

    @property
    def shares_rows(self) -> bool:
        """Whether rows that look alike can be computed once.

        Not in training where they may differ (dropout, batch norm that is not told for how many atoms each row stands,
        ``counts_rows``), and not under a norm over the rows of each graph,
        in which atoms that look alike normally differ from graph to graph.
        """
        if any(option.same_rows for option in self.options):
            return False
        return self.distinct and not any(
            (isinstance(m, Norm) and not m.by_row)
            or (self.training and isinstance(m, _DropoutNd) and m.p > 0)
            or (self.training and isinstance(m, _BatchNorm) and not (self.counts_rows and type(m) is CountedBatchNorm))
            for m in self.modules()
        )


def check_input(encoder: type[Encoder], spec: InputSpec, name: str) -> None:
    """Refuse graphs that lack what an encoder reads, before anything is computed.

    Raises:
        UnsupportedError: the missing levels and arrays by name.

    Example:
        >>> check_input(Encoder, InputSpec("v2.1", {"atom": 72, "bond": 14}), "mine")
    """
    missing = spec.missing(encoder.needs)
    if missing:
        have = ", ".join([*spec.widths, *spec.arrays])
        raise UnsupportedError(
            f"{name} needs {', '.join(missing)}, which this table's graphs do not have",
            hint=f"they have {have}; choose another model, or a table that holds it",
        )
