"""Read molecules with known values, from which a search begins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from molgraph.base.errors import BadValueError, EmptyError, MissingOptionError
from molgraph.chem.identity import canonical_smiles
from molgraph.data.read import read_source, read_table
from molgraph.data.reading.cells import Reading
from molgraph.data.standardise import standardise
from molgraph.data.table import Table
from molgraph.generate.oracles.calls import OracleCalls
from molgraph.generate.oracles.combined import Combined
from molgraph.generate.oracles.model import ModelOracle


class Known(NamedTuple):
    """A table of molecules, and the values of an oracle's parts that it holds.

    Args:
        table: n rows.
        given: label of a part -> float64 [n], NaN where a row has none; parts that are not here are computed.
    """

    table: Table
    given: dict[str, np.ndarray]


class Told(NamedTuple):
    """The known molecules that have a value.

    Args:
        smiles: m canonical ones.
        score: float64 [m], what a search is led by.
        values: whence the values are, in words.
        left: why rows are left out, and how many.
    """

    smiles: list[str]
    score: np.ndarray
    values: str
    left: Mapping[str, int]

    def note(self, n: int) -> str:
        """The counts in words.

        Args:
            n: molecules that are of use to the search.

        Raises:
            EmptyError: none.
        """
        left = {**self.left, "that the generator cannot encode": len(self.smiles) - n}
        counts = ", ".join(f"{n:,} {reason}" for reason, n in left.items() if n)
        if not n:
            words = "none of the known molecules is of use" + (f": {counts}" if counts else "")
            raise EmptyError(
                words, hint="give readable molecules with values, made of fragments that the generator knows"
            )
        text = f"{n:,} known molecules were told before the first call ({self.values})"
        return text + (f"; rows left out: {counts}" if counts else "")


def read_known(source: Any, oracle: Combined) -> Known:
    """Read the molecules, with the values of those parts of the oracle that a column is named after.

    A part's column has its label, as ``qed``; that of a property model may have its target's name, as ``pIC50``.

    Args:
        source: as for ``read_table``.
        oracle: whose parts are looked for.

    Raises:
        UsageError: no column for a part that is slow to compute, or a column of classes.

    Example:
        >>> from molgraph.generate.oracles.read_oracle import read_oracle
        >>> known = read_known({"smiles": ["CCO", "CC"], "qed": [0.4, None]}, read_oracle("qed,sa<4"))
        >>> {label: value.tolist() for label, value in known.given.items()}
        {'qed': [0.4, nan]}
    """
    names, column = read_source(source, Reading()).names, {}
    for term, label in zip(oracle.terms, oracle.labels, strict=True):
        labels = [label, *([term.oracle.target] if isinstance(term.oracle, ModelOracle) else [])]
        if there := [name for name in labels if name in names]:
            column[label] = there[0]
        elif not term.oracle.batched:
            words = f"the known molecules have no column {label!r}, and {label} may be slow: it is not computed for all"
            raise MissingOptionError(words, hint="add the column, with the value of each molecule")
    table = read_table(source, targets=list(dict.fromkeys(column.values())) or None)
    numbers = {target.name: j for j, target in enumerate(table.row_targets) if target.kind != "multiclass"}
    if wrong := [name for name in column.values() if name not in numbers]:
        raise BadValueError(f"the column {wrong[0]!r} of the known molecules has no numbers", hint="rename or mend it")
    values = {} if table.y is None else {label: table.y[:, numbers[name]] for label, name in column.items()}
    return Known(table, values)


def value_known(calls: OracleCalls, known: Known, standardiser: str = "standard") -> Told:
    """Keep the values of the known molecules in ``calls``, computing those that are not given.

    Args:
        calls: where they are kept, as no calls.
        known: of ``read_known``; rows of one molecule have the mean of their values.
        standardiser: the preset that proposals go through.
    """
    table, left = standardise(known.table, standardiser), Counter[str]()
    rows = np.flatnonzero(table.ok)
    molecules = canonical_smiles([str(s) for s in table.smiles[rows]])
    written = np.array(["" if molecule.reason else molecule.smiles for molecule in molecules], dtype=object)
    rows, written = rows[written != ""], written[written != ""]
    left["that cannot be read"] = len(table) - len(rows)
    codes, distinct = pd.factorize(written)
    columns = {label: pd.Series(value[rows]).groupby(codes).mean().to_numpy() for label, value in known.given.items()}
    left["that repeat a molecule"] = len(rows) - len(distinct)
    score = np.array([one.guide for one in calls.learn([*distinct], columns)], dtype=np.float64)
    ok = np.isfinite(score)
    left["without a value"] = int((~ok).sum())
    values = "; ".join(
        f"{label} {'of the table' if label in columns else 'computed, not counted as calls'}"
        for label in calls.oracle.labels
    )
    return Told([*distinct[ok]], score[ok], values, left)
