"""Wrapper that makes conformers from SMILES for a model of atoms in space and averages its predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

import numpy as np

from molgraph.base.contracts import Prediction
from molgraph.base.printable import count
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.chem.conformer import MOST, MOST_SEEDS, SECONDS, make_conformers
from molgraph.chem.conformer_cache import conformer_file
from molgraph.data.conformer_table import ConformerRows, conformer_notes, expand, with_geometries
from molgraph.data.graph_cache import CachedGraphs
from molgraph.data.table import Table
from molgraph.trust.ensemble import mixture
from molgraph.trust.wrapper import Wrapper

FIELDS = {"mmff": "relaxed by MMFF94", "uff": "relaxed by UFF", "none": "not relaxed"}


@register(
    "method",
    "conformers",
    tags=("3d", "uncertainty"),
    summary="a model of atoms in space on tables of SMILES: conformers by ETKDG, their mean and spread",
    paper="Riniker and Landrum 2015, J. Chem. Inf. Model. 55:2562; Wang et al. 2020, J. Chem. Inf. Model. 60:2044",
)
class MadeConformers(Wrapper):
    """Make conformers of each molecule (``molgraph.chem.conformer``), and fit and predict with them.

    A molecule gets its hydrogens, ``conformers`` by ETKDG version 3 and a relaxation. Of several, training learns
    from all, each with a share of the row's weight, and the prediction is the mean over them, its spread their
    standard deviation: how far the answer depends on the conformer, which is not the error of the answer. A molecule
    that has no conformer is a row with a reason, in training and in prediction.

    A geometry that is made here is another input than one that was measured or computed with the target: a model that
    is trained on the one should not be asked about the other, and its card says which it read.

    Args:
        method: a model of atoms in space, such as ``schnet``; ``ensemble`` of one too.
        conformers: how many of each molecule, at most.
        relax: ``mmff`` (UFF where MMFF94 has no parameters), ``uff`` or ``none``.
        conformer_seed: of the embedding; it does not follow ``seed``, so that runs share what is in the cache.
        seconds: the time limit for each molecule.
        seed: of what is wrapped.
        params: hyper-parameters of what is wrapped.
        threads: processes that make conformers, and threads of what is wrapped.
        store: of what is wrapped, where it knows one.

    Example:
        >>> MadeConformers("schnet", conformers=3).title
        'schnet on 3 conformers'
    """

    name = "conformers"
    small = MappingProxyType(
        {
            "method": "schnet",
            "relax": "none",
            "seconds": 0.5,
            "params": {"epochs": 2, "head_width": 8, "d_hidden": 8, "depth": 1},
        }
    )

    def __init__(
        self,
        method: str = "schnet",
        conformers: Annotated[int, Range(1, MOST)] = 1,
        relax: Literal["mmff", "uff", "none"] = "mmff",
        conformer_seed: Annotated[int, Range(0, MOST_SEEDS)] = 0,
        seconds: Annotated[float, Range(0, 3600, above=True)] = SECONDS,
        seed: int = 0,
        params: Mapping[str, Any] | None = None,
        threads: int | None = None,
        store: str | None = None,
    ) -> None:
        super().__init__(method, params, seed, threads, store)
        self.conformers, self.relax, self.conformer_seed, self.seconds = conformers, relax, conformer_seed, seconds

    @property
    def title(self) -> str:
        """What it is in words."""
        return f"{self.members[0].title} on {count(self.conformers, 'conformer')}"

    @property
    def geometry(self) -> str:
        """How the positions of atoms are made."""
        how = f"ETKDGv3, seed {self.conformer_seed}, {FIELDS[self.relax]}"
        return f"made here: {count(self.conformers, 'conformer')} a molecule ({how})"

    def graph_inputs(self) -> tuple[Any, ...]:
        """None: the graphs are those of conformers, which are made at each prediction."""
        return ()

    def code_parts(self) -> tuple[Any, ...]:
        """What makes conformers too."""
        return (*super().code_parts(), make_conformers, expand)

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Make the conformers of both tables, and fit what is wrapped on them."""
        self.check_params()
        rows, notes = self._made(table, "training")
        if valid is not None:
            held, more = self._made(valid, "validation")
            valid, notes = held.table, notes + more
        super().fit(rows.table, valid, workdir=workdir)
        self.notes = (f"geometry {self.geometry}", *notes, *self.notes)
        return self

    def predict_graphs(self, table: Table, graphs: Sequence[CachedGraphs] | None) -> Prediction:
        """The mean over the conformers of each row, and their standard deviation where there are several."""
        rows, _ = self._made(table)
        prediction = super().predict_graphs(rows.table, None)
        if self.conformers > 1:
            prediction = over_conformers(prediction, rows)
        return replace(prediction, ids=table.ids, inputs=table.inputs)

    def as_read(self, table: Table) -> Table:
        """The table with a column of atoms in space in place of its molecules, without their positions."""
        return with_geometries(table)

    def _made(self, table: Table, part: str = "") -> tuple[ConformerRows, tuple[str, ...]]:
        """The rows of the conformers, and notes on the part of a training that the table is."""
        with_geometries(table)
        how: dict[str, Any] = {"relax": self.relax, "seed": self.conformer_seed, "seconds": self.seconds}
        how |= {"cache": conformer_file(), "n": self.conformers, "workers": self.threads}
        conformers = make_conformers(list(table.smiles[table.ok]), **how)
        return expand(table, conformers), conformer_notes(conformers, part, self.relax) if part else ()


def over_conformers(prediction: Prediction, rows: ConformerRows) -> Prediction:
    """The mean over the conformers of each molecule, and the standard deviation of their mixture as ``spread``."""
    first, n = rows.first, np.bincount(rows.row)
    means, spreads = np.empty((2, len(n), prediction.value.shape[1]))
    for size in np.unique(n):  # molecules of as many conformers together
        chosen = np.flatnonzero(n == size)
        parts = [first[chosen] + k for k in range(size)]
        within = [None if prediction.spread is None else prediction.spread[part] for part in parts]
        means[chosen], spreads[chosen] = mixture([prediction.value[part] for part in parts], within)
    ends = () if prediction.interval is None else prediction.interval
    low_high = [np.add.reduceat(end, first) / n[:, None] for end in ends]
    return replace(
        prediction,
        ids=prediction.ids[first],
        value=means,
        status=prediction.status[first],
        reason=prediction.reason[first],
        spread=spreads,
        interval=(low_high[0], low_high[1]) if low_high else None,
        inputs=None,
    )
