"""Find fingerprint bits and descriptors that predict a target but change with tautomer, charge or salt form."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float

from molgraph.base.errors import BadValueError, EmptyError, LabelError, nearest
from molgraph.base.ranges import Probability, Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.systems import SystemCard
from molgraph.chem.descriptors import rdkit_descriptors
from molgraph.chem.environment import bit_environments
from molgraph.chem.fingerprints import morgan
from molgraph.chem.smiles import parse_smiles
from molgraph.chem.standardise import standardise_smiles
from molgraph.chem.variants import CHANGES, variant
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject

STAYING = tuple(name for name, change in CHANGES.items() if change.should == "stay")
FEWEST, SHOWN = 30, 50  # molecules; rows of the table
RARE, MOST = 0.05, 0.9  # share of molecules that a bit needs; of useful features that a planted one has to exceed
By = Literal["fingerprint", "descriptors"]


def usefulness(
    y: Float[np.ndarray, " n"], x: Float[np.ndarray, "n d"], variants: Sequence[tuple[np.ndarray, np.ndarray]]
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Usefulness ``rho = E[y f(x)]`` and robust usefulness ``gamma = E[min_v y f(v)]`` of each feature.

    Ilyas et al. 2019, section 2; the minimum is over the molecule and its variants. A feature that falls with y is
    counted with the other sign.

    Args:
        y: labels of mean 0.
        x: features of mean 0 and deviation 1.
        variants: rows of x and their features in another form, the same scale: (int [m], float [m, d]) each.

    Example:
        >>> y, x = np.array([1.0, -1.0]), np.array([[1.0, -1.0], [-1.0, 1.0]])
        >>> usefulness(y, x, [(np.array([0]), np.array([[-1.0, -1.0]]))])
        (array([1., 1.]), array([0., 1.]))
    """
    sign = np.where(y @ x < 0, -1.0, 1.0)
    products = sign * x * y[:, None]
    least = products.copy()
    for rows, other in variants:
        np.minimum.at(least, rows, sign * other * y[rows, None])
    return products.mean(axis=0), least.mean(axis=0)


@register(
    "study",
    "fragile-features",
    summary="features that predict a target and change with the tautomer, charge or salt of the same substance",
    paper="Ilyas et al. 2019, NeurIPS, arXiv:1905.02175",
    systems=(
        SystemCard(
            "robust-non-robust-features",
            left_out="sets of examples made by gradients, and networks trained on them",
            off="fragile-features(changes=order)",
            beside=("a planted feature", "the number of carbons"),
            command="molgraph study fragile-features dataset:esol -o fragile.csv",
            modules=("molgraph.chem.variants",),
        ),
    ),
)
class FragileFeatures(Study):
    """A row for each feature: how useful it is as molecules are written, and how useful in their worst other form.

    Ilyas et al. 2019: a feature may predict well and break under a change that leaves the label as it is. Here the
    change is another way to write the same substance. Features are bits of Morgan fingerprints or RDKit's
    descriptors, of deviation 1; the label has mean 0 and deviation 1; so ``useful`` is a correlation, ``robust`` what
    is left of it in the worst form, and ``fragile`` what is lost, the whole use at most. Controls: a feature that turns
    over with the last of ``changes`` is among the most fragile, and the number of carbons is not fragile.

    Args:
        by: ``fingerprint`` or ``descriptors``.
        changes: ``order``, ``hydrogens``, ``salt``, ``charge``, ``tautomer``, joined by ``+``.
        standardiser: the preset that every form goes through before its features are computed.
        rows: molecules, at most, drawn at random.
        least: usefulness below which a feature is not shown.

    Raises:
        LabelError: no target of numbers or of two classes, or fewer than 30 labelled molecules.
        EmptyError: no molecule has another form of that kind.
    """

    needs = ("data",)
    small = MappingProxyType({"rows": 60})

    def __init__(
        self,
        *,
        by: By = "fingerprint",
        changes: str = "salt+charge+tautomer",
        standardiser: str = "none",
        rows: Annotated[int, Range(FEWEST, 1_000_000)] = 1000,
        least: Probability = 0.05,
    ) -> None:
        self.by, self.changes, self.standardiser, self.rows, self.least = by, changes, standardiser, rows, least

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Write each molecule in its other forms, and compare features."""
        end, names = time.process_time() + 0.7 * seconds, [name.strip() for name in self.changes.split("+")]
        for name in names:
            if name not in STAYING:
                raise BadValueError(f"no form of a substance is named {name!r}", hint=nearest(name, STAYING))
        table = subject.table()
        able = [t for t in table.row_targets if t.kind in ("regression", "bounded", "binary")]
        if not able or table.y is None:
            raise LabelError("the table has no target of numbers or of two classes", hint="name its column: -t COLUMN")
        place = [t.name for t in table.row_targets].index(able[0].name)
        kept = np.flatnonzero(table.ok & np.isfinite(table.y[:, place]))
        kept = np.sort(generator(seed, "rows").permutation(kept)[: self.rows])
        y = table.y[kept, place]
        if len(kept) < FEWEST or y.std() == 0:
            few = f"{len(kept)} molecules have a value of {able[0].name}, or all values are equal"
            raise LabelError(few, hint=f"give {FEWEST} rows or more, with values that vary")
        texts = [str(text) for text in table.smiles[kept]]
        first, notes, forms = self.features(texts), list[str](), list[tuple[str, np.ndarray, list[str]]]()
        for name in names:
            variants, done = list[tuple[int, str]](), 0
            for done, text in enumerate(texts, 1):
                if time.process_time() > end:
                    break
                if other := variant(name, text, generator(seed, name, done)):
                    variants.append((done - 1, other))
            notes += [f"{name}: {done:,} of {len(texts):,} molecules, for want of time"] * (done < len(texts))
            if variants:
                forms.append((name, np.array([row for row, _ in variants]), [other for _, other in variants]))
        if not forms:
            raise EmptyError(f"no molecule has another form by {self.changes}", hint="name other changes")
        middle, scale = first.mean(axis=0), first.std(axis=0)
        use = scale > 1e-6
        if self.by == "fingerprint":  # the deviation of a rare bit is small, and one change is many of them
            use &= np.abs(middle - 0.5) <= 0.5 - RARE
        y = (y - y.mean()) / y.std()

        def scaled(x: np.ndarray) -> np.ndarray:
            return (x[:, use] - middle[use]) / scale[use]

        others = [(rows, scaled(self.features(variants))) for _, rows, variants in forms]
        useful, robust = usefulness(y, scaled(first), others)
        columns = np.flatnonzero(use)
        fragile = useful - np.maximum(robust, 0)
        shown = np.flatnonzero(useful >= self.least)
        shown = shown[np.argsort(-fragile[shown], kind="stable")]
        words = self.words(columns[shown[:SHOWN]].tolist(), texts)
        frame = pd.DataFrame({"feature": words, "useful": useful[shown][:SHOWN], "robust": robust[shown][:SHOWN]})
        frame["fragile"] = fragile[shown][:SHOWN]
        moved = ", ".join(f"{len(rows):,} by {name}" for name, rows, _ in forms)
        planted, still = self.controls(y, texts, forms, fragile[shown])
        lost = int((robust[shown] < useful[shown] / 2).sum())
        top = f"; most fragile is {words[0]} ({frame['useful'].iloc[0]:.2f} to {frame['robust'].iloc[0]:.2f})"
        what = able[0].name if not isinstance(subject.data, str) else f"{able[0].name} of {subject.data}"
        return Findings(
            f"Fragile features of {what}: {len(texts):,} molecules, other forms of {moved}",
            f"{lost} of {len(shown)} useful features lose half of their use in another form of the same substance"
            f"{top if len(shown) else ''}.",
            frame,
            planted,
            still,
            notes=(*notes, f"standardiser {self.standardiser}"),
        )

    def features(self, texts: Sequence[str]) -> np.ndarray:
        """float64 [n, d], of each text after the standardiser; 0 where there is none."""
        clean = [str(text or "") for text in standardise_smiles(list(texts), self.standardiser).values]
        if self.by == "fingerprint":
            return morgan(clean).x.astype(np.float64)
        return np.nan_to_num(rdkit_descriptors(clean).x.astype(np.float64))

    def words(self, columns: Sequence[int], texts: Sequence[str]) -> list[str]:
        """What columns are: names of descriptors, or bits with an environment that sets each."""
        if self.by == "descriptors":
            return [rdkit_descriptors(["C"]).names[column] for column in columns]
        known = bit_environments(texts, columns)
        return [f"bit {column}: {known.get(column, '?')}" for column in columns]

    def controls(
        self, y: np.ndarray, texts: Sequence[str], forms: Sequence[tuple[str, np.ndarray, list[str]]],
        fragile: np.ndarray,
    ) -> tuple[Control, Control]:  # fmt: skip
        """A feature that is the label, and its opposite in each other form; and the number of carbons."""
        name, rows, _ = forms[-1]
        planted = usefulness(y, y[:, None], [(rows, -y[rows, None])] if name != "order" else [])
        drop = float(planted[0][0] - planted[1][0])
        count, *others = (carbons(smiles) for smiles in (texts, *(variants for _, _, variants in forms)))
        scale = count.std() or 1.0
        same = [(index, (x - count.mean()) / scale) for (_, index, _), x in zip(forms, others, strict=True)]
        kept = usefulness(y, (count - count.mean()) / scale, same)
        most, still = float(np.quantile(fragile, MOST)) if len(fragile) else 0.0, float((kept[0] - kept[1])[0])
        return (
            Control(f"a feature that turns over by {name}", f"more fragile than {MOST:.0%} of the features",
                    f"{drop:.2f} beside {most:.2f}",
                    drop > most),
            Control("the number of carbons", "a loss of 0", f"{still:.2f}", still == 0),
        )  # fmt: skip


def carbons(texts: Sequence[str]) -> np.ndarray:
    """float64 [n, 1], the carbons of each molecule."""
    mols = [parse_smiles(text).mol for text in texts]
    return np.array([[0.0 if mol is None else sum(a.GetAtomicNum() == 6 for a in mol.GetAtoms())] for mol in mols])
