"""Draw one block of molecules anew (size, side chains, core, elements, a feature); score a model before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from molgraph.base.contracts import Metric, Target
from molgraph.base.seeds import generator
from molgraph.chem.recombine import put_together, resize, shuffle_elements, smallest, take_apart
from molgraph.chem.sizes import heavy_atoms
from molgraph.chem.standardise import standardise_smiles
from molgraph.data.table import Table, make_table
from molgraph.evaluate.metrics import evaluate_metric
from molgraph.evaluate.statistics import Interval, paired_difference
from molgraph.study.subject_model import PRESET

BINS = 5  # of labels that are numbers, within which they count as alike
FEWEST = 8  # changed molecules of a row
RINGS, ENDS = ("nc1", "cn1"), ("cnc1", "ccn1")  # pyrimidine, pyrazine
Predict = Callable[[Table], np.ndarray]


class Randomised(NamedTuple):
    """Test rows whose one block is drawn anew.

    Args:
        rows: int [m], those that could be changed.
        tables: one a draw, of those rows.
        alike: the same with donors of a like label, so that what the block tells of it stays; may be empty.
    """

    rows: np.ndarray
    tables: Sequence[Table]
    alike: Sequence[Table] = ()


def planted(n: int, seed: int) -> Table:
    """Molecules whose label is told by their size, a straight line, and by their rings, a parity.

    An alkyl chain on three diazines with chains between: class 1 has 17 to 21 carbons in all chains and an odd number
    of pyrazines, class 0 has 10 to 14 and an even number; the others are pyrimidines, of as many atoms. Either tells
    the class alone, as the linear block and that of several slabs of Shah et al. 2020, section 3: along the number of
    pyrazines, 0 to 3, the classes alternate.

    Example:
        >>> table = planted(2, 0)
        >>> table.smiles[0], table.y[:, 0].tolist()
        ('CCCCCCCc1cnc(cn1)CCCc1cnc(nc1)CCc1cnccn1', [0.0, 1.0])
    """
    rng = generator(seed, "planted")
    y, texts = np.arange(n) % 2, list[str]()
    for label in y:
        first, second = rng.integers(0, 2, 2)
        last = int(first + second + label) % 2
        one, two = ("C" * int(k) for k in rng.integers(1, 5, 2))
        chain = "C" * (int(rng.integers(17, 22) if label else rng.integers(10, 15)) - len(one + two))
        texts.append(f"{chain}c1cnc({RINGS[first]}){one}c1cnc({RINGS[second]}){two}c1cn{ENDS[last]}")
    return make_table(texts, targets=(Target("planted", "binary"),), y=y[:, None].astype(float))


def randomised(block: str, table: Table, draws: int, seed: int) -> Randomised:
    """The rows of a table with a block drawn anew, whatever their label.

    ``size``: a molecule gets as many heavy atoms as one at random, by a longer or shorter alkyl chain; as rings cannot
    shrink, sizes are those above a limit, and rows those that come down to it. ``groups`` and ``core``: molecules with
    as many groups exchange them all, or their cores. ``elements``: elements change their places on the molecule's own
    skeleton. ``identity``: nothing. Any other name is a column of features, which is permuted. Alike: the donor has a
    like label.

    Args:
        block: its name.
        table: labelled, one target.
        draws: repetitions.
        seed: of the draws.
    """
    rng, everyone = generator(seed, "block", block), np.arange(len(table))
    like = _likes(np.zeros(0) if table.y is None else table.y[:, 0], table.targets[0])
    if block == "identity":
        return Randomised(everyone, [table] * draws)
    if block in table.feature_names:
        place = table.feature_names.index(block)
        both = [[_permuted(table, place, _strata(groups, rng)) for _ in range(draws)] for groups in (like * 0, like)]
        return Randomised(everyone, *both)
    texts = [str(text) for text in standardise_smiles(table.smiles, PRESET).values]
    if block == "size":
        return _resized(table, texts, like, draws, rng)
    if block == "elements":
        shuffles = [[shuffle_elements(text, rng) for text in texts] for _ in range(draws)]
        return _whole(table, shuffles, [])
    apart = [take_apart(text) for text in texts]
    count = np.array([-1 if parts is None or not parts.groups else len(parts.groups) for parts in apart])
    copies = list[list[list[str]]]()
    for kinds in (count, np.where(count < 0, -1, count * (like.max(initial=0) + 1) + like)):
        copies.append([])
        for _ in range(draws):
            donor = _strata(kinds, rng)
            core, groups = (donor, everyone) if block == "core" else (everyone, donor)
            copies[-1].append([
                "" if k < 0 else put_together(apart[core[i]].core, apart[groups[i]].groups)
                for i, k in enumerate(count)
            ])  # fmt: skip
    return _whole(table, *copies)


def _likes(y: np.ndarray, target: Target) -> np.ndarray:
    """The class of each row, or its bin of numbers."""
    if target.kind == "binary":
        return y.astype(int)
    edges = np.quantile(y, np.linspace(0, 1, BINS + 1)[1:-1]) if len(y) else np.zeros(0)
    return np.searchsorted(edges, y)


def _strata(kinds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A permutation of rows within each kind."""
    out = np.arange(len(kinds))
    for kind in np.unique(kinds):
        rows = np.flatnonzero(kinds == kind)
        out[rows] = rng.permutation(rows)
    return out


def _permuted(table: Table, place: int, order: np.ndarray) -> Table:
    features = np.array(table.features)
    features[:, place] = features[order, place]
    return replace(table, features=features)


def _resized(table: Table, texts: Sequence[str], like: np.ndarray, draws: int, rng: np.random.Generator) -> Randomised:
    """Sizes drawn from those of all rows, or of rows of a like label, that every molecule which is kept can have."""
    sizes = heavy_atoms(texts)
    least = np.array([smallest(text) for text in texts])
    kept = [((least > 0) & (least <= low)).sum() * (sizes >= low).sum() for low in np.unique(sizes)]
    low = int(np.unique(sizes)[int(np.argmax(kept))]) if kept else 0
    able = (least > 0) & (least <= low)
    pools = [np.zeros_like(like), like]

    def one(kinds: np.ndarray) -> list[str]:
        out = []
        for i, text in enumerate(texts):
            pool = sizes[(kinds == kinds[i]) & (sizes >= low)]
            out.append(resize(text, int(rng.choice(pool)), rng) if able[i] and len(pool) else "")
        return out

    return _whole(table, *([one(kinds) for _ in range(draws)] for kinds in pools))


def _whole(table: Table, found: list[list[str]], alike: list[list[str]]) -> Randomised:
    """The rows for which every draw has a molecule."""
    columns = np.array([*found, *alike], dtype=object)
    rows = np.flatnonzero((columns != "").all(axis=0)) if columns.size else np.arange(0)
    subset = table.take(rows)
    tables = [subset.with_smiles(column[rows]) for column in columns]
    return Randomised(rows, tables[: len(found)], tables[len(found) :])


class Drop(NamedTuple):
    """Scores of the rows that were changed: as they are, randomised, and changed alike; the drop has an interval."""

    rows: int
    intact: float
    randomised: float
    alike: float
    drop: Interval


def measure(predict: Predict, table: Table, made: Randomised, metric: Metric, seed: int, resamples: int = 200) -> Drop:
    """Score the rows before and after; Shah et al. 2020, section 3: the S-randomised score, where S is the block.

    A model that does not read the block has the same score and the drop 0; one that reads nothing else has the score of
    chance.
    """
    table = table.take(made.rows)
    y = np.zeros(0) if table.y is None else table.y[:, 0]
    if len(y) < FEWEST:
        return Drop(len(y), np.nan, np.nan, np.nan, Interval(np.nan, np.nan, np.nan))
    before, after, alike = predict(table), [predict(copy) for copy in made.tables], [predict(e) for e in made.alike]
    keep = np.isfinite([before, *after, *alike]).all(axis=0)
    y, before = y[keep], before[keep]
    after, alike = [copy[keep] for copy in after], [copy[keep] for copy in alike]
    whole, new, near = (
        float(np.mean([chance_score(metric, y, p) for p in some])) if some else np.nan
        for some in ([before], after, alike)
    )
    return Drop(len(y), whole, new, near, paired_difference(y, before, after, metric, resamples, seed))


def chance_score(metric: Metric, y: np.ndarray, p: np.ndarray) -> float:
    """The metric, where one value of all predictions has the score of chance."""
    if len(p) < 2:
        return np.nan
    return evaluate_metric(metric, y, p)[0] if np.ptp(p) > 0 else (0.5 if metric.name == "roc_auc" else 0.0)
