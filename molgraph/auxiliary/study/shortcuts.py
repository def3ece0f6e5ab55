"""Measure which part of a molecule (size, side chains, core, elements) a model's score rests on, by randomising it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
from rdkit import Chem

from molgraph.base.contracts import Metric, Target
from molgraph.base.errors import EmptyError, UnsupportedError
from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.chem.recombine import put_together, resize, shuffle_elements, smallest, take_apart
from molgraph.chem.standardise import standardise_smiles
from molgraph.data.table import Table, make_table
from molgraph.evaluate.metrics import columns_of, evaluate_metric, get_metric
from molgraph.evaluate.report_style import COLOURS, DASHED
from molgraph.evaluate.statistics import Interval, paired_difference
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.subject_model import PRESET, judged
from molgraph.train.model import Model

BINS = 5  # of labels that are numbers, within which they count as alike
ALL, NOTHING = 0.9, 0.1  # share of the skill that a single shortcut carries, and that others may carry beside it
FEWEST = 8  # changed molecules of a row
TOYS, RINGS, ENDS = 400, ("nc1", "cn1"), ("cnc1", "ccn1")  # pyrimidine, pyrazine
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
        found = [[shuffle_elements(text, rng) for text in texts] for _ in range(draws)]
        return _whole(table, found, [])
    apart = [take_apart(text) for text in texts]
    count = np.array([-1 if each is None or not each.groups else len(each.groups) for each in apart])
    made = list[list[list[str]]]()
    for kinds in (count, np.where(count < 0, -1, count * (like.max(initial=0) + 1) + like)):
        made.append([])
        for _ in range(draws):
            donor = _strata(kinds, rng)
            core, groups = (donor, everyone) if block == "core" else (everyone, donor)
            made[-1].append([
                "" if k < 0 else put_together(apart[core[i]].core, apart[groups[i]].groups)
                for i, k in enumerate(count)
            ])  # fmt: skip
    return _whole(table, *made)


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
    mols = [Chem.MolFromSmiles(text) for text in texts]
    sizes = np.array([0 if mol is None else mol.GetNumAtoms() for mol in mols])
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
    own = table.take(rows)
    made = [own.with_smiles(column[rows]) for column in columns]
    return Randomised(rows, made[: len(found)], made[len(found) :])


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
    before, after, alike = predict(table), [predict(each) for each in made.tables], [predict(e) for e in made.alike]
    keep = np.isfinite([before, *after, *alike]).all(axis=0)
    y, before = y[keep], before[keep]
    after, alike = [each[keep] for each in after], [each[keep] for each in alike]
    whole, new, near = (
        float(np.mean([_score(metric, y, p) for p in some])) if some else np.nan for some in ([before], after, alike)
    )
    return Drop(len(y), whole, new, near, paired_difference(y, before, after, metric, resamples, seed))


def _score(metric: Metric, y: np.ndarray, p: np.ndarray) -> float:
    """The metric, where one value of all predictions has the score of chance."""
    if len(p) < 2:
        return np.nan
    return evaluate_metric(metric, y, p)[0] if np.ptp(p) > 0 else (0.5 if metric.name == "roc_auc" else 0.0)


@register(
    "study",
    "shortcuts",
    summary="which part of a molecule (size, side chains, core, elements) a model's score rests on",
    paper="Shah et al. 2020, NeurIPS",
    systems=(
        SystemCard(
            "simplicity-bias-randomisation-test",
            left_out="margins, ensembles and adversarial training; rewired skeletons",
            off="shortcuts(randomise=false)",
            beside=("the same change with donors of a like label",),
            command="molgraph study shortcuts dataset:esol -m random_forest -o shortcuts.csv",
            modules=("molgraph.chem.recombine", "molgraph.study.subject_model"),
        ),
    ),
    command="molgraph study shortcuts dataset:bace -m dmpnn -o shortcuts.png",
)
class Shortcuts(Study):
    """A row for each block: the score of a model on test molecules as they are, and with the block drawn anew.

    Shah et al. 2020: networks rely wholly on the simplest block that predicts the label. The blocks are the size, the
    groups on the core, the core, the places of the elements, and each column of features. Changed molecules are odd,
    which costs a model something whatever it reads: the column ``alike`` is the score after the same change with donors
    of a like label, and ``of_skill`` the share of the skill above chance that is lost beyond it. Controls: on planted
    molecules the number of heavy atoms has to lose all its skill with the size, and none with the elements.

    Args:
        split: how to divide the rows; the table's own split column if empty, or at random where it has none.
        rows: rows that are used, at most, drawn at random.
        epochs: of a model that is named; a file is taken as it is, and judged on the rows that it did not learn from.
        draws: repetitions of each block.
        randomise: ``false`` leaves every block as it is.

    Raises:
        UnsupportedError: the target has several classes.
    """

    needs = ("data", "model")
    small = MappingProxyType({"rows": 120, "epochs": 2, "draws": 1})

    def __init__(
        self,
        *,
        split: str = "",
        rows: Annotated[int, Range(20, 10_000_000)] = 2000,
        epochs: Count = 20,
        draws: Count = 3,
        randomise: bool = True,
    ) -> None:
        self.split, self.rows, self.epochs, self.draws, self.randomise = split, rows, epochs, draws, randomise

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Fit, score, draw each block anew and score again."""
        started = time.process_time()
        found = judged(subject, split=self.split, rows=self.rows, epochs=self.epochs, seed=seed)
        if found.target.kind == "multiclass":
            raise UnsupportedError(
                f"{found.target.name} has several classes", hint="name a target of two, or of numbers"
            )
        metric = get_metric("roc_auc" if found.target.kind == "binary" else "spearman")
        chance, predict = 0.5 if metric.name == "roc_auc" else 0.0, _predictor(found.model, found.target)
        intact = _score(metric, *_both(found.test, predict))
        if not np.isfinite(intact):
            raise EmptyError("the test rows have one class or one value alone", hint="name a larger table or a split")
        blocks, drops, notes = ["size", "groups", "core", "elements", *found.test.feature_names], {}, [*found.notes]
        for block in blocks:
            if time.process_time() - started > seconds:
                notes.append(f"{block} is left out, for want of time")
                continue
            drops[block] = self._drop(block, predict, found.test, metric, seed)
        rows = [{"block": "none", "molecules": len(found.test), "intact": intact, "randomised": intact}]
        rows += [_row(block, drop, chance) for block, drop in drops.items()]
        frame = pd.DataFrame(rows)
        title = f"Shortcuts of {found.model.name} on {found.target.name}: {len(found.test):,} test molecules"
        return Findings(
            title,
            _sentence(frame, metric.label, chance),
            frame,
            *self._controls(seed),
            lambda form: _picture(frame, metric.label, chance, form),
            tuple(notes),
        )

    def _drop(self, block: str, predict: Predict, table: Table, metric: Metric, seed: int) -> Drop:
        made = randomised(block if self.randomise else "identity", table, self.draws, derive(seed, "draw"))
        return measure(predict, table, made, metric, seed)

    def _controls(self, seed: int) -> tuple[Control, Control]:
        """The number of heavy atoms as a score of planted molecules."""
        toys, metric = planted(TOYS, derive(seed, "toys")), get_metric("roc_auc")

        def heavy(table: Table) -> np.ndarray:
            return np.array([float(Chem.MolFromSmiles(str(text)).GetNumAtoms()) for text in table.smiles])

        size, still = (
            measure(heavy, toys, randomised(b, toys, 4, seed), metric, seed, 2) for b in ("size", "elements")
        )
        return (
            Control("heavy atoms as a score, size randomised", "0.50", f"{size.randomised:.2f}",
                    abs(size.randomised - 0.5) < 0.05),
            Control("heavy atoms as a score, elements randomised", "a drop of 0", f"{still.drop.value:.2f}",
                    still.drop.value == 0),
        )  # fmt: skip


def _predictor(model: Model, target: Target) -> Predict:
    def predict(table: Table) -> np.ndarray:
        return columns_of(model.predict_table(table), target).astype(np.float64)

    return predict


def _both(table: Table, predict: Predict) -> tuple[np.ndarray, np.ndarray]:
    y, p = np.zeros(0) if table.y is None else table.y[:, 0], predict(table)
    keep = np.isfinite(y) & np.isfinite(p)
    return y[keep], p[keep]


def _row(block: str, drop: Drop, chance: float) -> dict[str, Any]:
    """A row of the table; ``of_skill``: what the block carries of the skill above chance, beyond a change alike."""
    skill, alike = drop.intact - chance, drop.intact if np.isnan(drop.alike) else drop.alike
    share = (alike - drop.randomised) / skill if skill > 0 else np.nan
    return {"block": block, "molecules": drop.rows, "intact": drop.intact, "randomised": drop.randomised,
            "alike": drop.alike, "drop": drop.drop.value, "low": drop.drop.low, "high": drop.drop.high,
            "of_skill": share}  # fmt: skip


def _sentence(frame: pd.DataFrame, label: str, chance: float) -> str:
    known = frame.iloc[1:].dropna(subset=["of_skill"]) if "of_skill" in frame else frame.iloc[:0]
    words = f"{label} {frame['intact'].iloc[0]:.2f}"
    if not len(known):
        return f"{words}; no block could be judged."
    share = {row["block"]: min(max(row["of_skill"], 0.0), 1.0) for _, row in known.iterrows()}
    top = "size" if share.get("size", 0) >= ALL else max(share, key=share.__getitem__)  # chains are groups too
    row = known[known["block"] == top].iloc[0]
    words += f"; with {top} randomised {row['intact']:.2f} becomes {row['randomised']:.2f}"
    words += f", {share[top]:.0%} of the skill above chance ({chance:g}) beyond a change alike"
    others = {name: value for name, value in share.items() if name != top and {name, top} != {"size", "groups"}}
    if share[top] >= ALL and others and max(others.values()) <= NOTHING:
        return f"{words}: a single shortcut, as no other block carries more than {NOTHING:.0%}."
    rest = ", ".join(f"{name} {value:.0%}" for name, value in share.items() if name != top)
    return f"{words}{'; ' + rest if rest else ''}."


def _picture(frame: pd.DataFrame, label: str, chance: float, form: str) -> bytes:
    """The score of each block as it is, changed alike and randomised, as three points on a line."""
    from matplotlib.figure import Figure  # which few runs need

    from molgraph.evaluate.report_style import save

    rows = frame.iloc[1:]
    figure = Figure(figsize=(6, 1 + 0.4 * max(len(rows), 1)), layout="constrained")
    axes = figure.subplots()
    axes.axvline(chance, **DASHED)
    at = np.arange(len(rows))
    names: Mapping[str, str] = {"intact": "as it is", "alike": "changed alike", "randomised": "randomised"}
    for colour, marker, (name, words) in zip((COLOURS[0], COLOURS[4], COLOURS[1]), "os^", names.items(), strict=True):
        axes.plot(rows[name], at, marker, color=colour, label=words)
    axes.set(yticks=at, yticklabels=rows["block"], xlabel=label, ylim=(len(rows) - 0.5, -0.5))
    figure.legend(loc="outside upper center", ncols=3)
    return save(figure, form)
