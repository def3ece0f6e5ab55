"""Measure which changes of a molecule a model ignores (atom order, salt, tautomer) and which it sees (stereo)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import pandas as pd

from molgraph.base.errors import EmptyError, UnsupportedError
from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.systems import SystemCard
from molgraph.chem.fingerprints import morgan
from molgraph.chem.identity import canonical_smiles
from molgraph.chem.variants import CHANGES, variant
from molgraph.data.sources import builtin
from molgraph.data.table import Table
from molgraph.embed.encoder import encoder_model
from molgraph.embed.firing import STAYS, Threshold, judge
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.subject_model import is_name, judged
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model

FEWEST, FEW = 20, 10  # molecules of a study; of a change whose figures count
WIDTH = 64  # of the controls' vectors


@register(
    "study",
    "invariance",
    summary="what a model ignores of a molecule (order, salt, tautomer) and what it sees (stereo, small changes)",
    paper="Purushwalkam and Gupta 2020, NeurIPS; Goodfellow et al. 2009, NIPS",
    systems=(
        SystemCard(
            "invariance-audit",
            left_out="conformers, and pretraining with frames of trajectories in the place of augmented pairs",
            off="invariance(threshold=zero)",
            beside=("pairs of characters of the SMILES", "Morgan fingerprints"),
            command="molgraph study invariance dataset:esol -m encoder.mgm -o invariance.csv",
            modules=("molgraph.embed.firing", "molgraph.chem.variants"),
        ),
    ),
    command="molgraph study invariance dataset:bace -m dmpnn -o invariance.png",
)
class Invariance(Study):
    """A row for each change of a molecule: how much of a model's vectors and predictions stays as it was.

    Order of atoms, written hydrogens, a salt, a charge and the tautomer leave a substance what it is; a stereocentre,
    one edit and a crop make another one. A model is wrong where it sees one of the first, and blind where it ignores
    one of the last. Vectors are those of the encoder, or the predictions of a model that has none. Controls on the
    same molecules: counts of pairs of characters see the order of atoms, Morgan fingerprints do not.

    Args:
        n: molecules, at most, drawn at random.
        variants: of each molecule for each change, at most.
        rate: share of molecules for which a unit fires.
        top: most invariant units, whose mean is ``top``; ``firing`` is that of all.
        threshold: of firing; ``zero`` does without the fixed rate.
        epochs: of a model that is named; a file is taken as it is.
    """

    needs = ("model",)
    small = MappingProxyType({"n": 40, "variants": 1, "epochs": 2})

    def __init__(
        self,
        *,
        n: Annotated[int, Range(FEWEST, 100_000)] = 300,
        variants: Count = 2,
        rate: Annotated[float, Range(0.01, 0.5)] = 0.1,
        top: Count = 25,
        threshold: Threshold = "rate",
        epochs: Count = 20,
    ) -> None:
        self.n, self.variants, self.epochs = n, variants, epochs
        self.how: dict[str, Any] = {"rate": rate, "top": top, "threshold": threshold}

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Write the variants, and compare what the model makes of them."""
        started, notes = time.process_time(), list[str]()
        if is_name(subject.model):
            setup = judged(subject, epochs=self.epochs, seed=seed)
            model, table, notes = setup.model, subject.table(), [*setup.notes]
        else:
            model = subject.fitted()
            table = builtin.chembl2321810() if subject.data is None else model.read(subject.data, **subject.columns)
            notes += ["molecules of builtin:chembl2321810"] * (subject.data is None)
        table = _distinct(table, self.n, seed)
        texts = [str(text) for text in table.smiles]
        variants = {name: _variants(name, texts, self.variants, seed) for name in CHANGES}
        vectors, predict = _readers(model)
        x, ok = vectors(table)
        spread = np.nan
        if predict is not None:
            values = predict(table)[0]
            spread = float(np.nanstd(values, axis=0).mean())
        rows = list[dict[str, Any]]()
        for name, (of, written) in variants.items():
            if time.process_time() - started > seconds:
                notes.append(f"{name} is left out, for want of time")
                continue
            row: dict[str, Any] = {"change": name, "should": CHANGES[name].should}
            changed = table.take(of).with_smiles(np.array(written, dtype=object))
            z, good = vectors(changed) if len(of) else (x[:0], ok[:0])
            keep = good & ok[of]
            one = judge(x[ok], z[keep], (np.cumsum(ok) - 1)[of[keep]], **self.how) if keep.any() else None
            row |= {"molecules": len({*of[keep].tolist()})}
            if one is not None:
                row |= {"firing": one.firing.mean, "top": one.firing.top, "cosine": one.cosine,
                        "distance": one.distance}  # fmt: skip
                if predict is not None:
                    step = predict(changed)[0][keep] - values[of[keep]]
                    row["moved"] = float(np.sqrt(np.nanmean(step**2))) / spread if spread > 0 else np.nan
                row["it_is"] = one.word if row["molecules"] >= FEW else "too few"
                wanted = {"stay": "seen", "change": "ignored"}[row["should"]]
                row["wrong"] = row["it_is"] == wanted
            else:
                row |= {"it_is": "too few", "wrong": False}
            rows.append(row)
        frame = pd.DataFrame(rows)
        return Findings(
            f"Invariance of {model.name} on {len(texts):,} molecules, {x.shape[1]} "
            + ("units" if isinstance(model.method, GraphMethod) else "predictions"),
            _sentence(frame, self.how["rate"]),
            frame,
            *_controls(texts, variants["order"], seed, self.how["rate"]),
            lambda form: _drawn(frame, form),
            tuple(notes),
        )


def _distinct(table: Table, most: int, seed: int) -> Table:
    """Some of the different molecules that can be read."""
    entity = table.entity("molecule")
    keys = canonical_smiles([str(text) if ok else "" for text, ok in zip(entity.values, table.ok, strict=True)])
    first: dict[str, int] = {}
    for i, key in enumerate(keys):
        if not key.reason and key.smiles:
            first.setdefault(key.smiles, i)
    rows = np.array([*first.values()], dtype=np.int64)
    if len(rows) < FEWEST:
        words = f"the table has {len(rows)} different molecules that can be read"
        raise EmptyError(words, hint=f"the invariance study needs {FEWEST} or more")
    return table.take(np.sort(generator(seed, "molecules").permutation(rows)[:most]))


def _variants(name: str, texts: Sequence[str], most: int, seed: int) -> tuple[np.ndarray, list[str]]:
    """Different variants of each molecule, and the molecule of each."""
    rng, of, out = generator(seed, "variants", name), list[int](), list[str]()
    for i, text in enumerate(texts):
        forms = dict.fromkeys(variant(name, text, rng) for _ in range(most))
        of += [i for form in forms if form]
        out += [form for form in forms if form]
    return np.array(of, dtype=np.int64), out


Reader = Callable[[Table], tuple[np.ndarray, np.ndarray]]


def _readers(model: Model) -> tuple[Reader, Reader | None]:
    """Vectors of a table's rows with whether they are whole, and predictions, where the model has some."""

    def reads(of: Model) -> Reader:
        def read(table: Table) -> tuple[np.ndarray, np.ndarray]:
            value = of.predict_table(table).value.astype(np.float64)
            return value, np.asarray(np.isfinite(value).all(axis=1))

        return read

    predict = reads(model) if model.targets and getattr(model.method, "predicts", False) else None
    if isinstance(model.method, GraphMethod):
        return reads(encoder_model(model)), predict
    if predict is None:
        words = f"a model of the kind {model.kind} has no vector and no prediction of a molecule"
        raise UnsupportedError(words, hint="name a predictor or an encoder: -m model.mgm")
    return predict, predict


def _sentence(frame: pd.DataFrame, rate: float) -> str:
    """What the model gets right, and what it does not."""
    known = frame[frame["it_is"] != "too few"]
    if not len(known):
        return "No change has molecules enough to be judged."
    if (known["it_is"] == "degenerate").all():
        return "The vectors are degenerate: they are the same for most molecules, so that nothing is invariant or not."
    parts = []
    for should, verdict in (("stay", "seen"), ("change", "ignored")):
        bad = known[(known["should"] == should) & known["wrong"]]
        one = "sees what leaves the substance the same" if verdict == "seen" else "is blind to what makes another one"
        changes = [f"{row.change} (firing {row.firing:.3f})" for row in bad.itertuples()]
        parts += [f"It {one}: {', '.join(changes)}."] if changes else []
    good = ", ".join(known[~known["wrong"].astype(bool)]["change"]) or "none"
    return " ".join([f"Right about {good}.", *parts, f"By chance {rate:.2f} of the units fire."])


def _controls(texts: list[str], order: tuple[np.ndarray, list[str]], seed: int, rate: float) -> tuple[Control, Control]:
    """Counts of pairs of characters, which see the order of atoms, and Morgan fingerprints, which do not."""
    of, written = order
    rng = generator(seed, "projections")
    plane = rng.standard_normal((256, WIDTH))

    def characters(some: Sequence[str]) -> np.ndarray:
        x = np.zeros((len(some), 256))
        for row, text in zip(x, some, strict=True):
            np.add.at(row, [(37 * ord(a) + ord(b)) % 256 for a, b in zip(text, text[1:] + " ", strict=True)], 1)
        return x @ plane

    def prints(some: Sequence[str]) -> np.ndarray:
        return morgan(some, 2, 256, counts=True).x @ plane

    texts = [molecule.smiles for molecule in canonical_smiles(texts)]  # one way of writing, whoever wrote the table
    seen, same = (judge(f(texts), f(written), of, rate=rate) for f in (characters, prints))
    low, high = seen.firing.mean, same.firing.mean
    return (
        Control("characters under order", f"firing below {STAYS - 0.09:.2f}", f"{low:.3f}", bool(low < STAYS - 0.09)),
        Control("Morgan fingerprints under order", "firing 1.000", f"{high:.3f}", bool(high > 1 - 1e-9)),
    )


def _drawn(frame: pd.DataFrame, form: str) -> bytes:
    from molgraph.evaluate.report_trust import invariance_bars  # with matplotlib

    return invariance_bars(frame, form)
