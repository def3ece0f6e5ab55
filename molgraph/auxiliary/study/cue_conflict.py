"""Test whether a model classifies by topology or by elements, on molecules in which the two disagree."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Annotated, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import beta

from molgraph.base.contracts import Target
from molgraph.base.errors import EmptyError, UnsupportedError
from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.chem.recombine import exchange_elements
from molgraph.chem.sizes import element_counts, ring_counts
from molgraph.chem.standardise import standardise_smiles
from molgraph.data.table import Table, make_table
from molgraph.evaluate.metrics import columns_of
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.subject_model import PRESET, judged

FEWEST, TOYS = 8, 60  # conflicts of a row; molecules of the controls
Score = Callable[[Table], np.ndarray]


class Conflicts(NamedTuple):
    """Molecules with the topology of one row and the elements of another.

    Args:
        smiles: n molecules.
        topology, elements: int [n], the rows that they come from.
    """

    smiles: list[str]
    topology: np.ndarray
    elements: np.ndarray


def conflicts(
    smiles: Sequence[str], first: Sequence[int], second: Sequence[int], n: int, seed: int, *, exchange: bool = True
) -> Conflicts:
    """About n pairs of rows drawn at random, the elements of ``second`` on the skeleton of ``first``.

    Args:
        smiles: of all rows.
        first, second: rows to draw from.
        n: molecules, fewer where elements fit no skeleton.
        seed: of the draws.
        exchange: whether elements are exchanged; else the first molecule stays as it is.
    """
    rng, made = generator(seed, "conflicts"), list[tuple[str, int, int]]()
    for _ in range(3 * n):
        if len(made) == n or not (len(first) and len(second)):
            break
        a, b = int(rng.choice(first)), int(rng.choice(second))
        text = exchange_elements(smiles[a], smiles[b], rng) if exchange else smiles[a]
        if text:
            made.append((text, a, b))
    rows = np.array([row[1:] for row in made], dtype=np.int64).reshape(-1, 2)
    return Conflicts([text for text, *_ in made], rows[:, 0], rows[:, 1])


def topology_bias(y: np.ndarray, p: np.ndarray, made: Conflicts) -> tuple[int, int]:
    """Decisions for the topology, and all decisions: which of the two molecules' labels a prediction is nearer to.

    Hermann et al. 2020, section 3: shape bias is the share of shape decisions among those for shape or texture.

    Args:
        y: float [rows], labels.
        p: float [n], predictions of the conflicts.
        made: n conflicts.
    """
    a, b = np.abs(p - y[made.topology]), np.abs(p - y[made.elements])
    return int((a < b).sum()), int((a != b).sum())


def share_interval(k: int, n: int) -> tuple[float, float]:
    """The 95% interval of a share of k in n (Clopper and Pearson 1934).

    Example:
        >>> [round(x, 3) for x in share_interval(0, 10)]
        [0.0, 0.308]
    """
    low = float(beta.ppf(0.025, k, n - k + 1)) if k else 0.0
    return low, float(beta.ppf(0.975, k + 1, n - k)) if k < n else 1.0


def cue_toys(n: int, seed: int, *, mixed: bool = False) -> Table:
    """Molecules whose class is told by topology, a chain or a ring, and by elements, oxygens or nitrogens.

    Args:
        n: molecules, half of each class.
        seed: of the draws.
        mixed: whether elements are drawn anew, so that topology alone tells the class.

    Example:
        >>> table = cue_toys(2, 0)
        >>> ["O" in text for text in table.smiles], ["1" in text for text in table.smiles]
        ([True, False], [False, True])
    """
    rng, texts = generator(seed, "cue toys"), list[str]()
    for i in range(n):
        ring, element = i % 2, "ON"[rng.integers(2) if mixed else i % 2]
        size = int(rng.integers(9, 14))
        atoms = ["C"] * size
        for place in rng.choice([1, 3, *range(7, size - 1, 2)], 3, replace=False):
            atoms[place] = element
        if ring:
            atoms[0], atoms[5] = "C1", f"{atoms[5]}1"
        texts.append("".join(atoms))
    return make_table(texts, targets=(Target("class", "binary"),), y=(np.arange(n) % 2)[:, None].astype(float))


def bias_of(
    score: Score, table: Table, n: int, seed: int, *, groups: tuple[np.ndarray, np.ndarray] | None = None,
    exchange: bool = True,
) -> list[tuple[str, int, int]]:  # fmt: skip
    """By direction, decisions for the topology and all decisions, of molecules that the model is right about.

    Args:
        score: predictions of a table.
        table: one target; its two groups are the classes, or the lowest and highest third of numbers.
        n: conflicts of each direction.
        seed: of the draws.
        groups: rows of both, in the place of the table's own.
        exchange: as ``conflicts`` has it.
    """
    y = np.asarray(table.y)[:, 0]
    low, high = groups or two_groups(table)
    p, rows = score(table), [("low", low), ("high", high)]
    middle = (y[low].mean() + y[high].mean()) / 2
    right = [r[((p[r] > middle) == (y[r] > middle)) & np.isfinite(p[r])] for _, r in rows]
    texts = [str(text) for text in standardise_smiles(table.smiles, PRESET).values]
    out = []
    for i, (name, other) in enumerate((("low", "high"), ("high", "low"))):
        made = conflicts(texts, right[i], right[1 - i], n, derive(seed, name), exchange=exchange)
        found = np.zeros(0)
        if made.smiles:
            found = score(make_table(made.smiles, targets=table.targets, y=y[made.topology][:, None]))
        keep = np.flatnonzero(np.isfinite(found))
        kept = Conflicts([made.smiles[k] for k in keep], made.topology[keep], made.elements[keep])
        out.append((f"{name} topology, {other} elements", *topology_bias(y, found[keep], kept)))
    return out


def two_groups(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Rows of both classes, or of the lowest and the highest third of numbers."""
    y = np.asarray(table.y)[:, 0]
    low, high = (0.5, 0.5) if table.targets[0].kind == "binary" else np.nanquantile(y, [1 / 3, 2 / 3])
    return np.flatnonzero(y <= low), np.flatnonzero(y > high) if low == high else np.flatnonzero(y >= high)


def by_topology(table: Table) -> np.ndarray:
    """A model of the toys that reads rings alone."""
    return (ring_counts(table.smiles) > 0).astype(float)


def by_elements(table: Table) -> np.ndarray:
    """A model of the toys that reads elements alone."""
    return (element_counts(table.smiles, 7) > element_counts(table.smiles, 8)).astype(float)


@register(
    "study",
    "cue-conflict",
    summary="whether a model decides by the topology or the elements of a molecule where they disagree",
    paper="Hermann et al. 2020, NeurIPS",
    systems=(
        SystemCard(
            "cue-conflict-bias",
            left_out="images; how fast either cue is learnt alone; other augmentations than random elements",
            off="cue-conflict(exchange=false)",
            beside=("a model of topology alone", "a model of elements alone"),
            command="molgraph study cue-conflict dataset:esol -m random_forest -o cues.csv",
            modules=("molgraph.chem.recombine", "molgraph.study.subject_model"),
        ),
    ),
)
class CueConflict(Study):
    """A row for each direction: the share of decisions that follow the topology, among molecules of two cues.

    Hermann et al. 2020, "The Origins and Prevalence of Texture Bias in Convolutional Neural Networks": with the shape
    of one class and the texture of another, does a network name the class of the shape? Here the skeleton of bonds of
    one test molecule gets the elements of another of the opposite class, in its shares; both are molecules that the
    model is right about. Numbers have the lowest and the highest third for classes. Near 0 a model counts elements;
    near 1 it reads rings, branches and sizes. Controls: models of rings alone and of elements alone.

    Args:
        n: molecules of each direction, at most.
        split: how to divide the rows; the table's own split column if empty, or at random where it has none.
        rows: that are used, at most, drawn at random.
        epochs: of a model that is named.
        exchange: ``false`` leaves the elements as they are, so that every decision is for the topology.

    Raises:
        EmptyError: too few molecules that the model is right about, or whose elements can be exchanged.
        UnsupportedError: the target has several classes.
    """

    needs = ("data", "model")
    small = MappingProxyType({"rows": 120, "epochs": 2, "n": 40})

    def __init__(
        self,
        *,
        n: Annotated[int, Range(FEWEST, 1_000_000)] = 200,
        split: str = "",
        rows: Annotated[int, Range(20, 10_000_000)] = 2000,
        epochs: Count = 20,
        exchange: bool = True,
    ) -> None:
        self.n, self.split, self.rows, self.epochs, self.exchange = n, split, rows, epochs, exchange

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Fit, exchange and predict."""
        started = time.process_time()
        found = judged(subject, split=self.split, rows=self.rows, epochs=self.epochs, seed=seed)
        if found.target.kind == "multiclass":
            words = f"{found.target.name} has several classes"
            raise UnsupportedError(words, hint="name a target of two, or of numbers")

        def score(table: Table) -> np.ndarray:
            return columns_of(found.model.predict_table(table), found.target).astype(np.float64)

        made = bias_of(score, found.test, self.n, seed, exchange=self.exchange)
        k, n = sum(row[1] for row in made), sum(row[2] for row in made)
        if n < FEWEST:
            words = f"{n} molecules with the elements of another class could be judged, of {FEWEST} that are needed"
            raise EmptyError(words, hint="give more rows, or a model that is right more often")
        rows = [{"molecules": a, "n": n_a, "topology": k_a / max(n_a, 1)} for a, k_a, n_a in [*made, ("both", k, n)]]
        frame = pd.DataFrame(rows)
        bounds = [share_interval(k_a, n_a) for _, k_a, n_a in [*made, ("both", k, n)]]
        frame["low"], frame["high"] = zip(*bounds, strict=True)
        toys = cue_toys(TOYS, derive(seed, "toys"))
        shape, colour = (_share(bias_of(one, toys, TOYS, seed)) for one in (by_topology, by_elements))
        words = (
            f"With the topology of one class and the elements of the other, {k / n:.0%} of {n} decisions follow the "
            f"topology ({bounds[-1][0]:.0%} to {bounds[-1][1]:.0%}), the others the elements."
        )
        took = time.process_time() - started
        return Findings(
            f"Topology and elements in {found.model.name} on {found.target.name}: {len(found.test):,} test molecules",
            words, frame,
            Control("a model of rings alone", "1.00", f"{shape:.2f}", shape == 1),
            Control("a model of elements alone", "0.00", f"{colour:.2f}", colour == 0),
            notes=(*found.notes, *["it took longer than was asked for"] * (took > seconds)),
        )  # fmt: skip


def _share(made: list[tuple[str, int, int]]) -> float:
    return sum(row[1] for row in made) / max(sum(row[2] for row in made), 1)
