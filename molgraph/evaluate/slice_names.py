"""Describe molecules by functional groups, scaffolds and property ranges, and name the slices on which a model errs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control, hypergeom
from sklearn.decomposition import PCA

from molgraph.base.seeds import derive, generator
from molgraph.base.table import Target
from molgraph.chem.descriptors import rdkit_descriptors
from molgraph.chem.fingerprints import morgan
from molgraph.chem.functional_groups import GROUPS, WORDS, functional_groups
from molgraph.chem.scaffold import scaffolds
from molgraph.evaluate.error_slices import Slices, error_slices

NAMES, FIRST = 3, 5  # names of a slice that are tested; slices that are named
WIDE, DEEP, PER = 512, 24, 30  # fingerprint width; principal components at most, and molecules for each
PROPERTIES = MappingProxyType(
    {"weight": "MolWt", "logP": "MolLogP", "TPSA": "TPSA", "rotatable bonds": "NumRotatableBonds", "rings": "RingCount"}
)


class Described(NamedTuple):
    """What is known of n molecules.

    Args:
        x: float64 [n, d], principal components, of variance 1, of atom environments together with functional groups.
        has: bool [n, m], whether each name is true of a molecule.
        names: the m names: functional groups, frequent scaffolds, and lowest and highest fifths of properties.
        words: what each stands for.
    """

    x: np.ndarray
    has: np.ndarray
    names: tuple[str, ...]
    words: tuple[str, ...]

    def alike(self, a: int, b: int) -> float:
        """Share of the molecules with one of two names that have both."""
        one, other = self.has[:, a], self.has[:, b]
        return float((one & other).sum() / max((one | other).sum(), 1))


def describe(smiles: list[str], seed: int = 0) -> Described:
    """Vectors and names of molecules, all of which can be read."""
    groups = functional_groups(smiles)
    environments = np.log1p(morgan(smiles, 1, WIDE, counts=True).x.astype(np.float64))
    both = np.nan_to_num(np.hstack([environments, groups]))
    pca = PCA(max(min(DEEP, len(both) // PER), 1), svd_solver="randomized", random_state=derive(seed, "pca") % 2**31)
    x = pca.fit_transform(both)
    spread = x.std(axis=0)
    x = x[:, spread > 1e-6] / spread[spread > 1e-6]
    columns, names = list(groups.T > 0), [*zip(GROUPS, WORDS, strict=True)]
    frames = [str(each) for each in scaffolds(smiles).values]
    common = [(text, n) for text, n in Counter(frames).items() if text and n >= max(8, len(smiles) // 100)]
    for i, (text, _) in enumerate(sorted(common, key=lambda each: (-each[1], each[0])), 1):
        columns.append(np.array([each == text for each in frames]))
        names.append((f"scaffold {i}", text))
    described = rdkit_descriptors(smiles)
    for name, column in PROPERTIES.items():
        values = described.x[:, described.names.index(column)]
        low, high = np.nanquantile(values, [0.2, 0.8], method="nearest")
        columns += [values < low, values > high]
        names += [(f"{name} below {low:.4g}", ""), (f"{name} above {high:.4g}", "")]
    return Described(x, np.column_stack(columns), *zip(*names, strict=True))


class Errors(NamedTuple):
    """Labels and predictions as distributions over classes; of numbers, the classes are those of the error.

    Args:
        labels, predictions: float64 [n, classes].
        words: of the error of a row of a class (first number) that is predicted as another (second).
    """

    labels: np.ndarray
    predictions: np.ndarray
    words: Callable[[int, int], str]

    @property
    def group(self) -> np.ndarray:
        """int64 [n]: the class."""
        return self.labels.argmax(axis=1)

    @property
    def fault(self) -> np.ndarray:
        """int64 [n]: the class that is predicted; -1 where it is right."""
        guess = self.predictions.argmax(axis=1)
        return np.where(guess == self.group, -1, guess)


def errors_of(y: np.ndarray, p: np.ndarray, target: Target) -> Errors:
    """The errors of predictions; a number's is too low or high beyond the root of the mean squared error."""
    if target.kind in ("binary", "multiclass"):
        shares = p if p.ndim == 2 else np.column_stack([1 - p, p])
        names = tuple(map(str, target.classes)) or ("0", "1")
        return Errors(
            np.eye(shares.shape[1])[y.astype(int)], shares, lambda a, b: f"{names[a]} predicted as {names[b]}"
        )
    error, sides = p - y, ("too low", "right", "too high")
    side = np.digitize(error, np.sqrt((error**2).mean()) * np.array([-1.0, 1.0]))
    return Errors(np.eye(3)[np.ones(len(y), int)], np.eye(3)[side], lambda _, b: f"predicted {sides[b]}")


def rank(slices: Slices, wrong: np.ndarray) -> np.ndarray:
    """Numbers of the slices in the order of the errors in their region above the usual rate, in standard errors.

    A chance error is a slice too where gamma is large, and has the largest mismatch; its region has no more errors.
    """
    excess = slices.region.T @ (wrong - wrong.mean())
    return np.argsort(-excess / np.sqrt(slices.region.sum(axis=0) + 5.0), kind="stable")


def name_slices(known: Described, errors: Errors, *, k: int, gamma: float, seed: int) -> pd.DataFrame:
    """Find slices in one half of the rows, and test their names in the other.

    A slice's names are those most enriched among its rows against the rows of its class (Domino's prototype less that
    of the class). Each is tested where neither slice nor name was chosen: are more of its rows wrong than of the other
    rows of the class? One-sided by Fisher's exact test, with q-values by Benjamini and Hochberg.

    Returns:
        A row a name, the surest first: ``slice`` (its rank), ``name``, ``error``, ``rows`` of the second half with the
        class and the name, ``wrong`` (the share with that error), ``others`` (that of other rows of the class), ``p``,
        ``q``, and ``words`` that say what the name stands for.
    """
    n = len(known.x)
    half = generator(seed, "halves").permutation(n)
    one, two = half[: n // 2], half[n // 2 :]
    k = max(min(k, len(one) // 20), 2)
    slices = error_slices(known.x[one], errors.labels[one], errors.predictions[one], k=k, gamma=gamma, seed=seed)
    group, fault, rows, seen = errors.group, errors.fault, list[tuple[Any, ...]](), set[tuple[int, int, int]]()
    for place, j in enumerate(rank(slices, fault[one] >= 0)[:FIRST], 1):
        member, label = slices.member[:, j] > 0.5, int(slices.labels[j].argmax())
        faults = fault[one][member & (group[one] == label) & (fault[one] >= 0)]
        if not len(faults):
            continue
        side = int(np.bincount(faults).argmax())
        here, test = (group[one] == label) | member, group[two] == label
        enriched = _fisher(known.has[one][here], member[here])
        has, wrong = known.has[two][test], fault[two][test] == side
        for m in np.argsort(enriched, kind="stable")[:NAMES]:
            if (int(m), label, side) in seen or enriched[m] > 0.5 or not has[:, m].any():
                continue
            seen.add((int(m), label, side))
            inside, outside = wrong[has[:, m]], wrong[~has[:, m]]
            rate = outside.mean() if len(outside) else np.nan
            p = _fisher(has[:, [m]], wrong)[0]
            rows.append(
                (place, known.names[m], errors.words(label, side), len(inside), inside.mean(), rate, p, known.words[m])
            )
    frame = pd.DataFrame(rows, columns=["slice", "name", "error", "rows", "wrong", "others", "p", "words"])
    frame.insert(7, "q", false_discovery_control(frame["p"]) if len(frame) else frame["p"])
    return frame.sort_values(["p", "slice"], kind="stable", ignore_index=True)


def _fisher(has: np.ndarray, marked: np.ndarray) -> np.ndarray:
    """One-sided p-values, float64 [m], that columns [n, m] hold more of the marked rows than by chance."""
    both, size = (has & marked[:, None]).sum(axis=0), has.sum(axis=0)
    return np.asarray(hypergeom.sf(both - 1, len(marked), int(marked.sum()), size))
