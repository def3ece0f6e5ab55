"""Read molecules with known values and encode them as the first points of a search."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from molgraph.base.contracts import LatentGenerator
from molgraph.base.errors import DataError, UsageError
from molgraph.chem.identity import canonical_smiles
from molgraph.data.cells import Reading
from molgraph.data.read import read_source, read_table
from molgraph.data.standardise import standardise
from molgraph.data.table import Table
from molgraph.generate.oracles.combined import Combined
from molgraph.generate.oracles.journal import OracleCalls
from molgraph.generate.oracles.model import ModelOracle


class Known(NamedTuple):
    """A table of molecules, and the values of an objective's parts that it holds.

    Args:
        table: n rows.
        given: label of a part -> float64 [n], NaN where a row has none; parts that are not here are computed.
    """

    table: Table
    given: dict[str, np.ndarray]


class Told(NamedTuple):
    """The known molecules that have a place in the space.

    Args:
        z: float64 [m, d].
        score: float64 [m], what a search is led by.
        note: the counts in words.
    """

    z: np.ndarray
    score: np.ndarray
    note: str


def read_known(source: Any, objective: Combined) -> Known:
    """Read the molecules, with the values of those parts of the objective that a column is named after.

    A part's column has its label, as ``qed``; that of a property model may have its target's name, as ``pIC50``.

    Args:
        source: as for ``read_table``.
        objective: whose parts are looked for.

    Raises:
        UsageError: no column for a part that is slow to compute, or a column of classes.

    Example:
        >>> from molgraph.generate.oracles.combined import read_objective
        >>> known = read_known({"smiles": ["CCO", "CC"], "qed": [0.4, None]}, read_objective("qed,sa<4"))
        >>> {label: value.tolist() for label, value in known.given.items()}
        {'qed': [0.4, nan]}
    """
    names, column = read_source(source, Reading()).names, {}
    for term, label in zip(objective.terms, objective.labels, strict=True):
        own = [label, *([term.oracle.target] if isinstance(term.oracle, ModelOracle) else [])]
        if there := [name for name in own if name in names]:
            column[label] = there[0]
        elif not term.oracle.batched:
            words = f"the known molecules have no column {label!r}, and {label} may be slow: it is not computed for all"
            raise UsageError(words, hint="add the column, with the value of each molecule")
    table = read_table(source, targets=list(dict.fromkeys(column.values())) or None)
    numbers = {target.name: j for j, target in enumerate(table.row_targets) if target.kind != "multiclass"}
    if wrong := [name for name in column.values() if name not in numbers]:
        raise UsageError(f"the column {wrong[0]!r} of the known molecules has no numbers", hint="rename or mend it")
    given = {} if table.y is None else {label: table.y[:, numbers[name]] for label, name in column.items()}
    return Known(table, given)


def place_known(generator: LatentGenerator, calls: OracleCalls, known: Known, standardiser: str = "standard") -> Told:
    """Keep the values of the known molecules in ``calls``, computing those that are not given, and encode them.

    Args:
        generator: fitted.
        calls: where they are kept, as no calls.
        known: of ``read_known``; rows of one molecule have the mean of their values.
        standardiser: the preset that the generator's molecules went through.

    Raises:
        DataError: none of them has a value and a place in the space.
    """
    table, left = standardise(known.table, standardiser), Counter[str]()
    rows = np.flatnonzero(table.ok)
    found = canonical_smiles([str(s) for s in table.smiles[rows]])
    written = np.array(["" if each.reason else each.smiles for each in found], dtype=object)
    rows, written = rows[written != ""], written[written != ""]
    left["that cannot be read"] = len(table) - len(rows)
    codes, distinct = pd.factorize(written)
    given = {label: pd.Series(value[rows]).groupby(codes).mean().to_numpy() for label, value in known.given.items()}
    left["that repeat a molecule"] = len(rows) - len(distinct)
    score = np.array([one.guide for one in calls.learn([*distinct], given)], dtype=np.float64)
    left["without a value"] = int((~np.isfinite(score)).sum())
    places = np.flatnonzero(np.isfinite(score))
    first = rows[np.unique(codes, return_index=True)[1]]
    if len(places):
        encoded = generator.encode(table.take(first[places]))
        left["without a place in the space"] = int((~encoded.ok).sum())
        places, z = places[encoded.ok], encoded.mean[encoded.ok]
    counts = ", ".join(f"{n:,} {why}" for why, n in left.items() if n)
    if not len(places):
        words = f"none of {len(table):,} rows of known molecules is of use" + (f": {counts}" if counts else "")
        raise DataError(words, hint="give readable molecules with values, made of fragments that the generator knows")
    values = "; ".join(
        f"{label} {'of the table' if label in given else 'computed, not counted as calls'}"
        for label in calls.objective.labels
    )
    note = f"{len(places):,} known molecules were told before the first call ({values})"
    return Told(z, score[places], note + (f"; rows left out: {counts}" if counts else ""))
