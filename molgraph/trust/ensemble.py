"""Fit one method several times: their mean, and their spread as an uncertainty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd

from molgraph.base import registry
from molgraph.base.contracts import Method, Prediction, State
from molgraph.base.errors import ModelFileError, UsageError
from molgraph.base.parameters import measure
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.size import Shapes, Size, by_owner, together
from molgraph.data.graph_cache import Graphs
from molgraph.data.table import Table
from molgraph.train.archive import refused
from molgraph.train.inference import predict_networks
from molgraph.train.inputs import Input
from molgraph.train.make_method import make_method
from molgraph.train.method import GraphMethod

LARGEST = 1000
TORN = "the ensemble's parts do not fit together"


@register(
    "method",
    "ensemble",
    system="deep-ensembles",
    tags=("uncertainty",),
    summary="fits of one model from several seeds: their mean, and their spread, which is not calibrated",
    paper="Lakshminarayanan et al. 2017, NeurIPS 30",
)
class Ensemble(Method):
    """Fit one method several times, from seeds derived from one seed.

    Lakshminarayanan, Pritzel & Blundell 2017: the prediction is the members' mean (for classes, of their
    probabilities), and its uncertainty their standard deviation (with n in the denominator). That spread is not
    calibrated: members that see the same rows agree far more closely with each other than with a measurement.

    Args:
        method: a registered method or encoder, such as ``dmpnn``.
        n: number of members.
        seed: members' seeds derive from it.
        params: the members' hyper-parameters.
        threads, store: each member's, where it knows them and ``params`` has none.

    Example:
        >>> Ensemble("dmpnn", n=3, params={"epochs": 5}).members[0].epochs
        5
    """

    name = "ensemble"
    small = MappingProxyType(
        {"method": "dmpnn", "n": 2, "params": {"epochs": 2, "head_width": 8, "batch_size": 16, "d_hidden": 8}}
    )

    def __init__(
        self,
        method: str = "dmpnn",
        n: Annotated[int, Range(1, LARGEST)] = 5,
        seed: int = 0,
        params: Mapping[str, Any] | None = None,
        threads: int | None = None,
        store: str | None = None,
    ) -> None:
        self.method, self.n, self.seed, self.params = method, n, seed, params
        self.threads, self.store = threads, store
        self.fitted: list[Method] = []

    @property
    def uses_valid(self) -> bool:  # type: ignore[override] # the members' own, whatever they are
        """Whether the members learn anything from ``valid``."""
        return self._member(0).uses_valid

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """The libraries that the members need."""
        return self._member(0).needs

    @property
    def members(self) -> list[Method]:  # type: ignore[override]
        """The members, fitted or fresh."""
        return self.fitted or self._fresh()

    @property
    def curves(self) -> pd.DataFrame | None:  # type: ignore[override]
        """The members' learning curves, one under the other, by the number in ``member``; None where they have none."""
        parts = [m.curves.assign(member=i) for i, m in enumerate(self.fitted) if m.curves is not None]
        return pd.concat(parts, ignore_index=True) if parts else None

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Fit the members one after the other; with a working folder, members that are done are not fitted again."""
        members = self._fresh()
        for i, member in enumerate(members):
            member.fit(table, valid, workdir=None if workdir is None else Path(workdir) / f"member-{i}")
        self.fitted, self.notes = members, _notes(members)
        return self

    def predict(self, table: Table) -> Prediction:
        """The members' mean, and their standard deviation as ``spread``."""
        return self.predict_graphs(table, None)

    def predict_graphs(self, table: Table, graphs: Sequence[Graphs] | None) -> Prediction:
        """The same, with the graphs that were made already for members that read them."""
        shared = self._shared()
        if shared:
            parts = predict_networks([m.ready() for m in shared], table, graphs, **shared[0].running())
        else:
            parts = [m.predict(table) for m in self._ready()]
        values = np.stack([p.value for p in parts])
        packed = {}
        for name, first in parts[0].packed.items():
            below = np.stack([p.packed[name].values for p in parts])
            packed[name] = replace(first, values=below.mean(axis=0))
            packed[f"{name}_spread"] = replace(first, values=below.std(axis=0))
        mean, spread = values.mean(axis=0), values.std(axis=0)
        return replace(parts[0], value=mean, spread=spread, packed=packed, interval=None)

    def state(self) -> State:
        """The members' states, their arrays under ``member-0.``, ``member-1.``, ..."""
        members = self._ready()
        arrays: dict[str, np.ndarray] = {}
        metas = []
        for i, member in enumerate(members):
            state = member.state()
            arrays |= {f"member-{i}.{name}": value for name, value in state.arrays.items()}
            metas.append(dict(state.meta))
        here = {"threads": None, "store": None}  # of this machine
        params = self.get_params() | {"params": dict(self.params or {})} | here
        return State(arrays, {"params": params, "member": type(self.fitted[0]).name, "members": metas})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild every member; raises ``ModelFileError`` where one is not whole or of another method."""
        member, metas = _members(state.meta)
        with refused(TORN):
            ensemble = cls(**state.meta["params"])
        own = by_owner(state.arrays)
        ensemble.fitted = [member.from_state(State(own.get(f"member-{i}", {}), m)) for i, m in enumerate(metas)]
        ensemble.notes = _notes(ensemble.fitted)
        return ensemble

    @classmethod
    def size_of(cls, meta: Mapping[str, Any], shapes: Shapes) -> Size:
        """What the members need, one after the other, and the values of all of them."""
        member, metas = _members(meta)
        own = by_owner(shapes)
        size = together(measure(member, m, own.get(f"member-{i}", {})) for i, m in enumerate(metas))
        return replace(size, row_bytes=size.row_bytes * (1 + len(metas) // 2))

    def graph_inputs(self) -> tuple[Input, ...]:
        """The entity columns that all members read, where they share them; none otherwise."""
        shared = self._shared()
        return shared[0].graph_inputs() if shared else ()

    def _shared(self) -> list[GraphMethod]:
        """The members where all are graph methods that read the same graphs and descriptors, and so share batches."""
        graph = [m for m in self.fitted if isinstance(m, GraphMethod)]
        kinds = {(m.encoder, repr(m.params), repr(m.graph_inputs()), m.ready().descriptors.names) for m in graph}
        return graph if len(graph) == len(self.fitted) and len(kinds) == 1 else []

    def _ready(self) -> list[Method]:
        if not self.fitted:
            raise UsageError("this ensemble has not learned anything yet", hint="call fit(table) first")
        return self.fitted

    def _member(self, i: int) -> Method:
        given = dict(self.params or {})
        member = make_method(self.method, **{**given, "seed": derive(self.seed, "member", i)})
        run = {"threads": self.threads, "store": self.store}
        known = set(member.param_names()) - set(given)
        return member.set_params(**{name: value for name, value in run.items() if name in known and value is not None})

    def _fresh(self) -> list[Method]:
        self.check_params()
        return [self._member(i) for i in range(int(self.n))]


def _members(meta: Mapping[str, Any]) -> tuple[type[Method], list[Mapping[str, Any]]]:
    """The members' class and the JSON values of each; raises ``ModelFileError`` where no ensemble has such."""
    with refused(TORN):
        metas, name = list(meta["members"]), str(meta["member"])
    dicts = all(isinstance(each, Mapping) for each in metas)
    if not 1 <= len(metas) <= LARGEST or not dicts or name == Ensemble.name or name not in registry.names("method"):
        raise ModelFileError(f"the ensemble has {len(metas)} members of the method {name[:60]!r}, which cannot be")
    return registry.get("method", name), metas


def _notes(members: list[Method]) -> tuple[str, ...]:
    """What the members say, each sentence once."""
    return tuple(dict.fromkeys(note for member in members for note in member.notes))
