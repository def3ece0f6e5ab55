"""Support vector machine on the Weisfeiler-Leman subtree kernel of graphs or molecules."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Self

import numpy as np
from scipy.sparse import csr_array

from molgraph.auxiliary.kernel_machine import fit_kernel_machine, values_of_decisions
from molgraph.auxiliary.targets import described, whole
from molgraph.base.contracts import Method, Prediction, State, Target
from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import NotNegative, Range
from molgraph.base.registry import register
from molgraph.base.search_space import Float, Int, Space
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.color_refinement import atom_colors
from molgraph.data.graph_store import GraphStore, InputSpec
from molgraph.data.labels import check_targets
from molgraph.data.table import OK, Table
from molgraph.data.target_json import notes_of, restore_unlearned, targets_from_json
from molgraph.train.archive import refused
from molgraph.train.inputs import Input, choose_columns, graph_of_rows, input_graphs, row_status, train_graphs

READER = "gin"  # the encoder whose graphs are read
BLOCK = 1_000  # graphs whose colours are counted at once
_ROUND = 0x9E3779B97F4A7C15  # keeps a colour of one round apart from the same one of another


@dataclass(frozen=True)
class Machine:
    """The machine of one target in the space of colours, whose decision is ``counts . weight / |counts| + height``."""

    weight: np.ndarray  # float64 [colours, k]
    height: np.ndarray  # float64 [k]
    sigmoid: np.ndarray  # float64 [2, k]


@dataclass(frozen=True)
class Fitted:
    """A fitted machine for each target, and the colours of the training graphs."""

    targets: tuple[Target, ...]
    inputs: tuple[Input, ...]
    colors: np.ndarray  # uint64 [colours], ascending
    machines: tuple[Machine | None, ...]
    unlearned: dict[str, str]


@register(
    "method",
    "wl_kernel",
    summary="support vectors on the WL subtree kernel",
    paper="Shervashidze et al. 2011, J. Mach. Learn. Res. 12:2539",
    tags=("kernel",),
)
@dataclass(eq=False)
class WLKernel(Method):
    """Support vector machine with the Weisfeiler-Leman subtree kernel.

    Shervashidze et al. 2011, definition 5: each node's colour becomes that of itself and the multiset of its
    neighbours', ``rounds`` times; ``k(G, G') = sum_c n_c(G) n_c(G')`` over the colours c of all rounds, here divided by
    ``|n(G)| |n(G')|``. Nodes begin with their label, or their degree where there are none; continuous features are not
    read beside labels. Of molecules a label is all features of an atom, and bonds have labels too.

    Use it as the baseline of networks on graphs without chemistry. Known limits: its kernel matrix takes rows x rows x
    8 bytes.

    Args:
        rounds: of colour refinement (the paper's h).
        cost: what a row outside the margin costs.
        epsilon: half-width of the margin of numbers, in standard deviations.
        seed: of the folds that probabilities are fitted to.

    Example:
        >>> from molgraph.data.table import make_table
        >>> table = make_table(["CCO", "CCCO", "CCN", "CCCN"], targets=(Target("y"),), y=[1, 1, 2, 2])
        >>> WLKernel().fit(table).predict(table).value.round().ravel().tolist()
        [1.0, 1.0, 2.0, 2.0]
    """

    name = "wl_kernel"
    reads_features = False
    small = MappingProxyType({"rounds": 1})

    rounds: Annotated[int, Range(0, 16)] = 4
    cost: Annotated[float, Range(0, 1e6, above=True)] = 3.0
    epsilon: NotNegative = 0.1
    seed: int = 0

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Fit a machine for each target to the rows that have it; ``valid`` and ``workdir`` are not used."""
        self.check_params()
        chosen = choose_columns(table, READER, None)
        if len(chosen) != 1:
            words = f"{self.name} reads one molecule or graph a row, the table has {len(chosen)} columns"
            raise UnsupportedError(words)
        inputs, graphs = train_graphs(table, chosen, cache=None, workers=1)
        readable = row_status(table, inputs, graphs)[0] == OK
        targets, labels = table.row_targets, check_targets(table, readable)
        rows = np.flatnonzero(readable)
        of_row = graph_of_rows(graphs)[rows, 0]
        colors, counts = color_counts(graphs[0].store, of_row, inputs[0].spec, self.rounds)
        x = _unit(counts)
        weights = np.ones(len(table)) if table.weights is None else table.weights
        machines: list[Machine | None] = []
        for j, target in enumerate(targets):
            use = ~np.isnan(labels.y[rows, j]) & (weights[rows] > 0)
            if target.name in labels.unlearned:
                machines.append(None)
                continue
            features, w = x[use], weights[rows[use]]
            solution = fit_kernel_machine(
                (features @ features.T).toarray(), target, labels.y[rows[use], j], None if (w == w[:1]).all() else w,
                cost=float(self.cost), epsilon=float(self.epsilon), seed=int(self.seed),
            )  # fmt: skip
            machines.append(Machine(features.T @ solution[0], *solution[1:]))
        self.notes = notes_of(labels.unlearned)
        self._fitted = Fitted(targets, inputs, colors, tuple(machines), dict(labels.unlearned))
        return self

    def predict(self, table: Table) -> Prediction:
        """Predict values, P(class 1), or one probability a class; NaN and a reason where there is none."""
        fitted: Fitted = whole(self)
        graphs = input_graphs(table, fitted.inputs)
        status, reason = row_status(table, fitted.inputs, graphs)
        rows = np.flatnonzero(status == OK)
        keys, counts = color_counts(graphs[0].store, graph_of_rows(graphs)[rows, 0], fitted.inputs[0].spec, self.rounds)
        place = np.searchsorted(fitted.colors, keys).clip(max=len(fitted.colors) - 1)
        known = fitted.colors[place] == keys
        unit = _unit(counts)
        data = np.where(known[unit.indices], unit.data, 0.0)  # a colour that is new counts in the length alone
        x = csr_array((data, place[unit.indices], unit.indptr), shape=(len(rows), len(fitted.colors)))
        value = np.full((len(table), sum(len(t.columns) for t in fitted.targets)), np.nan)
        first = 0
        for target, machine in zip(fitted.targets, fitted.machines, strict=True):
            columns = slice(first, first := first + len(target.columns))
            if machine is not None:
                value[rows, columns] = values_of_decisions(target, x @ machine.weight + machine.height, machine.sigmoid)
        more: dict[str, Any] = {"inputs": table.inputs, "unlearned": fitted.unlearned}
        return Prediction(table.ids, fitted.targets, value, status, reason, **more)

    def space(self) -> Space:
        """Rounds and cost."""
        return {"rounds": Int(0, 8), "cost": Float(0.1, 1000.0, log=True)}

    def state(self) -> State:
        """Colours, and the weights of each target's machine."""
        fitted: Fitted = whole(self)
        arrays = {"colors": fitted.colors.view(np.int64)}
        for j, machine in enumerate(fitted.machines):
            arrays |= {} if machine is None else {f"target_{j}.{key}": array for key, array in vars(machine).items()}
        inputs = [entry.to_json() for entry in fitted.inputs]
        return State(arrays, described(self, fitted.targets, fitted.unlearned) | {"inputs": inputs})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild; raises ``ModelFileError`` where the state is not whole."""
        with refused("the model's description is not whole"):
            method = cls(**state.meta["params"])
            method.check_params()
            targets, inputs = targets_from_json(state.meta["targets"]), state.meta["inputs"]
            unlearned = restore_unlearned(state.meta, targets)
            colors = np.asarray(state.arrays["colors"])
            if colors.dtype != np.int64 or colors.ndim != 1 or not len(colors) or len(inputs) != 1:
                raise ValueError("the colours are not whole")
            colors = colors.view(np.uint64)
            if (colors[1:] <= colors[:-1]).any():
                raise ValueError("the colours are not ascending")
            parts = state.by_owner()
            machines: list[Machine | None] = []
            for j, target in enumerate(targets):
                k, arrays = len(target.columns), parts.get(f"target_{j}", {})
                if target.name in unlearned:
                    machines.append(None)
                    continue
                machine = Machine(**{key: np.asarray(array, dtype=np.float64) for key, array in arrays.items()})
                if [value.shape for value in vars(machine).values()] != [(len(colors), k), (k,), (2, k)]:
                    raise ValueError("the weights do not fit the targets")
                machines.append(machine)
            fitted = Fitted(targets, (Input.from_json(inputs[0]),), colors, tuple(machines), unlearned)
        method._fitted, method.notes = fitted, notes_of(unlearned)
        return method


def color_counts(store: GraphStore, graphs: np.ndarray, spec: InputSpec, rounds: int) -> tuple[np.ndarray, csr_array]:
    """The colours of graphs and how often each has each.

    Args:
        store: packed graphs.
        graphs: int64 [g], numbers of graphs.
        spec: what the graphs of the training hold.
        rounds: of refinement.

    Returns:
        uint64 [colours], ascending, and float64 [g, colours].
    """
    blocks = [_pairs(collate(store, graphs[a : a + BLOCK]), spec, rounds) for a in range(0, len(graphs), BLOCK)]
    owner = np.concatenate([np.zeros(0, np.int64), *(graph + BLOCK * i for i, (graph, _) in enumerate(blocks))])
    keys, place = np.unique(np.concatenate([np.zeros(0, np.uint64), *(key for _, key in blocks)]), return_inverse=True)
    return keys, csr_array((np.ones(len(owner)), (owner, place)), shape=(len(graphs), len(keys)))


def _pairs(batch: GraphBatch, spec: InputSpec, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """A graph and a colour for each node in each round."""
    atoms, bonds = _labels(batch, "atom", "node", spec), _labels(batch, "bond", "edge", spec)
    offsets = np.append(0, np.cumsum(np.bincount(batch.target.numpy(), minlength=batch.n_atoms)))
    rows = atom_colors(atoms, bonds, batch.source.numpy(), offsets, rounds)
    keys = [colors ^ np.uint64(_ROUND * t % 2**64) for t, colors in enumerate(rows)]
    return np.tile(batch.graph_of("atom").numpy(), rounds + 1), np.concatenate(keys)


def _labels(batch: GraphBatch, level: str, kind: str, spec: InputSpec) -> np.ndarray:
    """int64 [rows]: a number for each distinct label, the same in every batch."""
    table = batch[level].table
    if table is None:
        return np.zeros(len(batch[level]), np.int64)
    values, n = table.numpy(), dict(spec.settings).get(f"{kind}_labels", 0)
    values = values[:, :n] if n else values
    codes = np.array([int.from_bytes(blake2b(row.tobytes(), digest_size=7).digest()) for row in values], dtype=np.int64)
    return codes[batch[level].code.numpy()]


def _unit(counts: csr_array) -> csr_array:
    """Each row divided by its length."""
    length = np.sqrt((counts * counts).sum(axis=1)).clip(min=1e-12)
    return csr_array(
        (counts.data / np.repeat(length, np.diff(counts.indptr)), counts.indices, counts.indptr), counts.shape
    )
