"""Define ``Wrapper``, the base class of methods that train another method and adjust its predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import pandas as pd

from molgraph.base import registry
from molgraph.base.contracts import Method, Prediction, State
from molgraph.base.errors import DamagedModelError, NotFittedError
from molgraph.base.parameters import check_types
from molgraph.base.seeds import derive
from molgraph.data.graph_cache import CachedGraphs
from molgraph.data.table import Table
from molgraph.train.archive import refused
from molgraph.train.inference import predict_networks
from molgraph.train.inputs import Input
from molgraph.train.make_method import make_method
from molgraph.train.method import GraphMethod

LARGEST = 1000
TORN = "the {}'s parts do not fit together"
T = TypeVar("T", bound="type[Wrapper]")


class Wrapper(Method):
    """The base class of methods over a method: ``learn`` from held-out predictions, then ``adjust`` each prediction.

    A subclass is registered with ``@register_wrapper(name)``. Its hyper-parameters are those below, which it passes on
    to ``super().__init__``, and its own.

    ``n``: methods that are fitted, from seeds of their own. ``learns``: names of the arrays that ``learn`` gives, which
    are ``learned`` and kept in the file, and so finite.

    Args:
        method: what is wrapped: a method or encoder, with settings or without; another wrapper too.
        params: its hyper-parameters.
        seed: seeds of what is wrapped derive from it.
        threads, store: of what is wrapped, where it knows them and ``params`` has none.
    """

    n: int = 1
    learns: tuple[str, ...] = ()

    def __init__(
        self, method: str, params: Mapping[str, Any] | None, seed: int, threads: int | None, store: str | None
    ) -> None:
        self.method, self.params, self.seed, self.threads, self.store = method, params, seed, threads, store
        self.fitted: list[Method] = []
        self.learned: dict[str, np.ndarray] = {}

    def hold_out(self, table: Table) -> tuple[Table, Table | None]:
        """The rows to fit on, and those to learn from, which nothing is fitted on; by default all and none."""
        return table, None

    def learn(self, prediction: Prediction, table: Table) -> dict[str, np.ndarray]:
        """Arrays by name, learned from the predictions of the rows that were held out; a resume computes them again."""
        return {}

    def combine(self, parts: Sequence[Prediction]) -> Prediction:
        """One prediction from those of the methods that were fitted."""
        return parts[0]

    def adjust(self, prediction: Prediction) -> Prediction:
        """The prediction with what was learned; unchanged by default."""
        return prediction

    @property
    def title(self) -> str:
        """What it is in words."""
        return f"{self.name} of {self.members[0].title}"

    @property
    def uses_valid(self) -> bool:  # type: ignore[override] # that of what is wrapped
        """Whether what is wrapped learns anything from ``valid``."""
        return self.members[0].uses_valid

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """The libraries that what is wrapped needs."""
        return self.members[0].needs

    @property
    def members(self) -> list[Method]:  # type: ignore[override]
        """The methods, fitted or fresh."""
        return self.fitted or self._fresh()

    @property
    def curves(self) -> pd.DataFrame | None:  # type: ignore[override]
        """Their learning curves, one under the other, by the number in ``member``; None where they have none."""
        parts = [m.curves.assign(member=i) for i, m in enumerate(self.fitted) if m.curves is not None]
        return pd.concat(parts, ignore_index=True) if parts else None

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Fit one after the other, then learn; with a working folder, those that are done are not fitted again."""
        members = self._fresh()
        rest, held = self.hold_out(table)
        for i, member in enumerate(members):
            member.fit(rest, valid, workdir=None if workdir is None else Path(workdir) / f"member-{i}")
        self.fitted, self.notes = members, _notes(members)
        self.learned = {} if held is None else self.learn(self._combined(held, None), held)
        return self

    def predict(self, table: Table) -> Prediction:
        """Combine the predictions of what is wrapped, and adjust them."""
        return self.predict_graphs(table, None)

    def predict_graphs(self, table: Table, graphs: Sequence[CachedGraphs] | None) -> Prediction:
        """The same, with graphs that were made already."""
        return self.adjust(self._combined(table, graphs))

    def state(self) -> State:
        """The states of what is wrapped, their arrays under ``member-0.``, ``member-1.``, ..., and what was learned."""
        members = self._ready()
        arrays = {f"learned.{name}": value for name, value in self.learned.items()}
        states = [member.state() for member in members]
        for i, state in enumerate(states):
            arrays |= {f"member-{i}.{name}": value for name, value in state.arrays.items()}
        here = {"threads": None, "store": None}  # of this machine
        params = self.get_params() | {"params": dict(self.params or {})} | here
        return State(arrays, {"params": params, "member": members[0].name, "members": [dict(s.meta) for s in states]})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild all parts; raises ``DamagedModelError`` where one is not whole or of another method."""
        with refused(TORN.format(cls.name)):
            wrapper = cls(**state.meta["params"])
            metas, name = list(state.meta["members"]), str(state.meta["member"])
        dicts = all(isinstance(meta, Mapping) for meta in metas)
        if not 1 <= len(metas) <= LARGEST or not dicts or name == cls.name or name not in registry.names("method"):
            words = f"the {cls.name} has {len(metas)} members of the method {name[:60]!r}, which cannot be"
            raise DamagedModelError(words)
        member, arrays = registry.get("method", name), state.by_owner()
        for meta in metas:
            check_types(member, meta.get("params", {}))
        wrapper.fitted = [member.from_state(State(arrays.get(f"member-{i}", {}), m)) for i, m in enumerate(metas)]
        wrapper.learned, wrapper.notes = arrays.get("learned", {}), _notes(wrapper.fitted)
        if {*wrapper.learned} != {*wrapper.learns}:
            raise DamagedModelError(TORN.format(cls.name))
        return wrapper

    def graph_inputs(self) -> tuple[Input, ...]:
        """The entity columns that all parts read, where they share them; none otherwise."""
        shared = self._shared()
        return shared[0].graph_inputs() if shared else ()

    def predict_members(self, table: Table, graphs: Sequence[CachedGraphs] | None = None) -> list[Prediction]:
        """The prediction of each method that is wrapped; they share graphs and batches where they can."""
        if shared := self._shared():
            return predict_networks([m.ready() for m in shared], table, graphs, **shared[0].running())
        return [m.predict(table) for m in self._ready()]

    def _combined(self, table: Table, graphs: Sequence[CachedGraphs] | None) -> Prediction:
        return self.combine(self.predict_members(table, graphs))

    def _shared(self) -> list[GraphMethod]:
        """The parts where all are graph methods that read the same graphs and descriptors, and so share batches."""
        graph = [m for m in self.fitted if isinstance(m, GraphMethod)]
        kinds = {(m.encoder, repr(m.params), repr(m.graph_inputs()), m.ready().descriptors.names) for m in graph}
        return graph if len(graph) == len(self.fitted) and len(kinds) == 1 else []

    def _ready(self) -> list[Method]:
        if not self.fitted:
            raise NotFittedError(f"this {self.name} has not learned anything yet", hint="call fit(table) first")
        return self.fitted

    def _fresh(self) -> list[Method]:
        self.check_params()
        return [self._member(i) for i in range(int(self.n))]

    def _member(self, i: int) -> Method:
        params = dict(self.params or {})
        member = make_method(self.method, **params)
        seed = {"seed": derive(self.seed, "member", i)} if self.seed is not None else {}
        run = {"threads": self.threads, "store": self.store, **seed}
        known = set(member.param_names()) - set(params)
        return member.set_params(**{name: value for name, value in run.items() if name in known and value is not None})


def register_wrapper(name: str, **fields: Any) -> Callable[[T], T]:
    """Register a wrapper, which is a method too; the keywords are fields of ``molgraph.base.registry.Entry``."""

    def add(cls: T) -> T:
        registry.register("wrapper", name, **{k: v for k, v in fields.items() if k not in ("system", "systems")})(cls)
        return registry.register("method", name, **fields)(cls)

    return add


def _notes(members: Sequence[Method]) -> tuple[str, ...]:
    """What the parts say, each sentence once."""
    return tuple(dict.fromkeys(note for member in members for note in member.notes))
